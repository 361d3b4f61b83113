#include "tests/unit_lidar/golden_scans.h"

#include <algorithm>

namespace quern::lidar_test {
namespace {

using namespace quern::codec::lidar;

/// Points in no order, so that rays cannot code them well.
TestCloud shuffled(TestCloud cloud, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t i = cloud.points(); i > 1; --i) {
    const std::size_t j = random.below(i);
    for (std::size_t axis = 0; axis < 3; ++axis) std::swap(cloud.words[3 * (i - 1) + axis], cloud.words[3 * j + axis]);
    std::swap(cloud.intensity[i - 1], cloud.intensity[j]);
  }
  return cloud;
}

TestCloud named_cloud(const char* name) {
  const auto clouds = adversarial_clouds();
  return *std::find_if(clouds.begin(), clouds.end(), [&](const TestCloud& cloud) { return cloud.name == name; });
}

}  // namespace

std::vector<GoldenScan> golden_scans() {
  const TestCloud scan = spinning_scan(8, 40, 7, false);
  const TestCloud decimal = spinning_scan(6, 40, 8, true);
  return {
      {"set_octree", shuffled(scan, 1), {Mode::set, 1500}},
      {"set_octree_slices", shuffled(spinning_scan(10, 60, 6, false), 2), {Mode::set, 300, false, 3}},
      {"set_cubic", named_cloud("crowd_mm"), {Mode::set, 1}},
      {"set_rays", scan, {Mode::set, 500}},
      {"set_non_finite", named_cloud("non_finite"), {Mode::set, 500, true}},
      {"points_rays", scan, {Mode::points, 500}},
      {"points_octree", shuffled(scan, 3), {Mode::points, 500}},
      {"points_verbatim", named_cloud("magnitudes"), {Mode::points, 500}},
      {"exact_decimal_rays", decimal, {Mode::exact, 1}},
      {"exact_decimal_octree", shuffled(decimal, 4), {Mode::exact, 1}},
      {"exact_binary", scan, {Mode::exact, 1}},
      {"exact_integers", named_cloud("integers_near"), {Mode::exact, 1}},
      {"empty", named_cloud("empty"), {Mode::points, 500}},
      {"set_predicted", shuffled(scan, 5), {Mode::set, 1500}, near_prediction(scan, 6, 500), true},
      {"set_predicted_slices", shuffled(scan, 5), {Mode::set, 300, false, 2}, near_prediction(scan, 6, 500), true},
      {"set_predicted_cubic",
       named_cloud("crowd_mm"),
       {Mode::set, 1},
       near_prediction(named_cloud("crowd_mm"), 7, 1),
       true},
      {"points_predicted", shuffled(scan, 3), {Mode::points, 500}, near_prediction(scan, 8, 500), true},
      {"set_weighed", shuffled(scan, 5), {Mode::set, 1500}, near_prediction(scan, 6, 500)},
      {"set_weighed_slices", shuffled(scan, 5), {Mode::set, 300, false, 2}, near_prediction(scan, 6, 500)},
      {"set_weighed_cubic", named_cloud("crowd_mm"), {Mode::set, 1}, near_prediction(named_cloud("crowd_mm"), 7, 1)},
      {"points_weighed", shuffled(scan, 3), {Mode::points, 500}, near_prediction(scan, 8, 500)},
      {"set_known", shuffled(scan, 5), {Mode::set, 1500}, known_prediction(scan, 6, 500)},
      {"set_known_slices", shuffled(scan, 5), {Mode::set, 300, false, 2}, known_prediction(scan, 6, 500)},
      {"set_known_cubic", named_cloud("crowd_mm"), {Mode::set, 1}, known_prediction(named_cloud("crowd_mm"), 7, 1)},
      {"points_known", shuffled(scan, 3), {Mode::points, 500}, known_prediction(scan, 8, 500)},
  };
}

std::vector<std::uint8_t> encode_golden(const GoldenScan& scan) {
  std::vector<std::uint8_t> wide(4 * scan.cloud.points());
  for (std::size_t i = 0; i < wide.size(); ++i)
    wide[i] = static_cast<std::uint8_t>(scan.cloud.intensity[i / 4] * (1 + i % 4) + i / 64);
  const ColumnView columns[] = {{1, scan.cloud.intensity}, {4, wide}};
  SerialRunner runner;
  const auto bytes = encode_scan({scan.cloud.type, scan.cloud.words, columns}, scan.options, runner, scan.prediction);
  if (!bytes.ok()) return {};
  return {bytes->begin(), bytes->end()};
}

std::vector<std::uint8_t> prediction_bytes(const GoldenScan& scan) {
  std::vector<std::uint8_t> out;
  for (const PredictedPoint& point : scan.prediction) {
    for (const std::int64_t at : point.at)
      for (unsigned b = 0; b < 8; ++b)
        out.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(at) >> (8 * b)));
    if (!scan.former) out.push_back(point.weight);
  }
  return out;
}

std::vector<std::uint8_t> decoded_golden(const std::vector<std::uint8_t>& stream, Prediction prediction) {
  SerialRunner runner;
  const auto cloud = decode_scan(stream, 1 << 20, runner, prediction);
  if (!cloud.ok()) return {};
  std::vector<std::uint8_t> out = {static_cast<std::uint8_t>(cloud->type)};
  const auto put = [&](std::uint32_t word) {
    for (unsigned b = 0; b < 4; ++b) out.push_back(static_cast<std::uint8_t>(word >> (8 * b)));
  };
  put(static_cast<std::uint32_t>(cloud->points()));
  for (const std::uint32_t word : cloud->words) put(word);
  for (const Column& column : cloud->columns) out.insert(out.end(), column.values.begin(), column.values.end());
  return out;
}

}  // namespace quern::lidar_test
