// The scan codec: hostile streams and parts decode or fail inside their limits; any cloud comes back under its bound in
// both directions, by the check of lidar/verify.
#include <algorithm>
#include <set>
#include <vector>

#include "codecs/lidar/columns/column_coder.h"
#include "codecs/lidar/exact/residuals.h"
#include "codecs/lidar/octree/tree.h"
#include "codecs/lidar/order/order_coder.h"
#include "codecs/lidar/point_codec.h"
#include "codecs/lidar/prediction/expected_sites.h"
#include "codecs/lidar/rays/rays.h"
#include "lidar/verify/exact_check.h"
#include "tests/fuzz/fuzz_common.h"

namespace {

using namespace quern;
using namespace quern::codec::lidar;

constexpr std::uint64_t kMostHostilePoints = 4096;
/// Tables of models for that many points, and what decoding takes for each point.
constexpr std::uint64_t kMostMemory = UINT64_C(1) << 25;

void decode_hostile_stream(fuzz::Feed& feed) {
  SerialRunner runner;
  const fuzz::AllocationWatch watch;
  (void)decode_scan(feed.rest(), kMostHostilePoints, runner);
  QUERN_FUZZ_CHECK(watch.peak() <= kMostMemory);
}

/// Cubes of a block, each once and rising, with any weights.
ExpectedCubes some_cubes(fuzz::Feed& feed, const Block& block, bool centred) {
  std::set<std::uint64_t> keys;
  for (unsigned left = feed.byte() % 64; left > 0; --left) keys.insert(feed.below(UINT64_C(1) << 3 * block.depth));
  ExpectedCubes out;
  for (const std::uint64_t key : keys) {
    const unsigned halves = centred ? 1 + feed.byte() % 3U : 1;
    const auto weight_of = [&](unsigned half) {
      return static_cast<std::uint8_t>((halves & half) != 0 ? 1 + feed.byte() % kMostSiteWeight : 0);
    };
    const std::uint8_t even = weight_of(1);
    out.cubes.push_back(key);
    out.halves.push_back(static_cast<std::uint8_t>(halves));
    out.weights.push_back({even, weight_of(2)});
  }
  return out;
}

void decode_hostile_parts(fuzz::Feed& feed) {
  const fuzz::AllocationWatch watch;
  {
    const std::uint64_t cubes = 1 + feed.below(kMostHostilePoints);
    Block block;
    block.depth = static_cast<unsigned>(feed.below(22));
    block.origin = {feed.raw<std::int32_t>(), feed.raw<std::int32_t>(), feed.raw<std::int32_t>()};
    const bool counted = feed.byte() % 2 == 0;
    const Surroundings surroundings{{static_cast<std::int64_t>(1 + feed.below(kMostMaxError)), feed.byte() % 2 == 0},
                                    static_cast<std::uint32_t>(1 + feed.below(1 << 20))};
    BlockPrediction prediction;
    prediction.expected = some_cubes(feed, block, surroundings.lattice.centred);
    prediction.known = some_cubes(feed, block, surroundings.lattice.centred);
    if (feed.byte() % 8 == 0) prediction.expected.weights.clear();
    Vector<std::uint8_t> values(4 * feed.byte());
    Vector<Site> points(feed.byte());
    Vector<std::int64_t> numbers(3 * feed.byte());
    const auto bytes = feed.rest();
    if (decode_block(bytes, surroundings, cubes, counted, kMostHostilePoints, block, prediction).ok())
      QUERN_FUZZ_CHECK(block.cubes.size() == cubes);
    (void)decode_rays(bytes, surroundings.lattice.spacing, points);
    (void)apply_residuals(bytes, numbers);
    (void)decode_column(bytes, 4, values);
    const Vector<Site> sites = {{0, 0, 0}, {1, 1, 1}, {-40, 2, 6}, {2, 2, 2}};
    const Vector<std::uint32_t> counts = {3, 1, 2, 1};
    Vector<std::uint32_t> order(7);
    if (decode_order(bytes, sites, counts, order).ok())
      QUERN_FUZZ_CHECK(std::count(order.begin(), order.end(), 0U) == 3);
  }
  QUERN_FUZZ_CHECK(watch.peak() <= kMostMemory);
}

void round_trip(fuzz::Feed& feed) {
  CloudView cloud;
  cloud.type = feed.byte() % 4 == 0 ? CoordinateType::i32 : CoordinateType::f32;
  ScanOptions options;
  options.mode = static_cast<Mode>(feed.byte() % 3);
  options.max_error = 1 + static_cast<std::uint32_t>(feed.below(kMostMaxError));
  options.slices = feed.byte() % 4;
  std::vector<std::uint32_t> words(3 * feed.byte());
  for (std::uint32_t& word : words) word = feed.raw<std::uint32_t>();
  cloud.words = words;
  std::vector<PredictedPoint> prediction(feed.byte() % 32);
  for (PredictedPoint& point : prediction) {
    for (std::int64_t& at : point.at) at = feed.raw<std::int32_t>() % (kMostPredictedUnits + 1);
    point.weight = static_cast<std::uint8_t>(feed.byte() % (kMostPredictedWeight + 1));
  }
  SerialRunner runner;
  const auto bytes = encode_scan(cloud, options, runner, prediction);
  QUERN_FUZZ_CHECK(bytes.ok());
  QUERN_FUZZ_CHECK(bytes->size() <= 4 * words.size() + words.size() / 250 + 256);
  const auto back = decode_scan(*bytes, kMostHostilePoints, runner, prediction);
  QUERN_FUZZ_CHECK(back.ok());
  const bool is_integer = cloud.type == CoordinateType::i32;
  const quern::lidar::exact::Bound bound{options.max_error, is_integer ? 1U : kUnitsPerMetre};
  if (options.mode == Mode::exact) {
    QUERN_FUZZ_CHECK(std::equal(back->words.begin(), back->words.end(), words.begin(), words.end()));
  } else if (options.mode == Mode::points) {
    QUERN_FUZZ_CHECK(quern::lidar::exact::pair_violations(words, back->words, is_integer, bound) == 0);
  } else {
    const auto source = quern::lidar::exact::exact_points(words, is_integer);
    const auto decoded = quern::lidar::exact::exact_points(back->words, is_integer);
    QUERN_FUZZ_CHECK(quern::lidar::exact::violations(source, decoded, bound) == 0);
    QUERN_FUZZ_CHECK(quern::lidar::exact::violations(decoded, source, bound) == 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Feed feed({data, size});
  switch (feed.byte() % 3) {
    case 0: decode_hostile_stream(feed); break;
    case 1: decode_hostile_parts(feed); break;
    default: round_trip(feed);
  }
  return 0;
}
