// Golden files about the container: shapes, bounds as stored, metadata, segments, streams one after another.
#include <string_view>

#include "tests/golden/groups.h"
#include "tests/golden/values.h"

namespace quern::golden {
namespace {

using testing::OwnedArray;

OwnedArray ramp(DType dtype, std::initializer_list<std::uint64_t> extents) {
  return values_of(dtype, extents, [](std::uint64_t i) { return static_cast<double>(i % 97) / 4; });
}

CompressOptions with_metadata(CompressOptions options, std::string_view text) {
  options.metadata.assign(text.begin(), text.end());
  return options;
}

void add_shapes(std::vector<GoldenFile>& files) {
  files.push_back(one("stored_u8", "codec id 0: every chunk raw", ramp(DType::u8, {3}), with(BoundKind::lossless, 0)));
  files.push_back(one("empty", "an extent of 0: no segment", ramp(DType::f32, {4, 0, 3}), with(BoundKind::abs, 0.1)));
  files.push_back(one("scalar", "rank 0", values_of(DType::f64, {}, [](std::uint64_t) { return -12.625; }),
                      with(BoundKind::abs, 0.5)));
  files.push_back(one("rank8", "eight axes", ramp(DType::f32, {2, 1, 3, 2, 1, 2, 3, 5}), with(BoundKind::abs, 0.125)));
  files.push_back(one("raw_chunk", "a chunk that no codec makes smaller",
                      bits_of(DType::u32, {150}, [](std::uint64_t i) { return noise(5, i, 0); }),
                      with(BoundKind::lossless, 0, "lossless")));
}

void add_bounds(std::vector<GoldenFile>& files) {
  files.push_back(
      one("bound_rel", "rel: range and enforced value stored", ramp(DType::f32, {40}), with(BoundKind::rel, 1e-2)));
  CompressOptions given = with(BoundKind::rel, 1e-2);
  given.range = ValueRange{-100, 400};
  files.push_back(one("bound_rel_given", "rel of a range that the caller gave", ramp(DType::f64, {40}), given));
  CompressOptions constant = with(BoundKind::rel, 1e-3);
  constant.goal = "ratio";
  files.push_back(one("bound_rel_constant", "rel of a constant array: lossless is enforced",
                      values_of(DType::f32, {50}, [](std::uint64_t) { return 1.5; }), constant));
  files.push_back(one("bound_psnr", "psnr: an absolute bound found by search", ramp(DType::f32, {20, 20}),
                      with(BoundKind::psnr, 40)));
  files.push_back(
      one("bound_ratio", "ratio: a bound found by search",
          values_of(DType::f32, {30, 40}, [](std::uint64_t i) { return static_cast<double>(noise(7, i, 4000)) / 64; }),
          with(BoundKind::ratio, 4)));
}

void add_metadata(std::vector<GoldenFile>& files) {
  files.push_back(one("metadata_plain", "metadata as it is", ramp(DType::i16, {9}),
                      with_metadata(with(BoundKind::abs, 1), R"({"name":"t"})")));
  std::string text;
  for (int i = 0; i < 40; ++i) text += R"({"variable":"temperature","units":"K"},)";
  GoldenFile packed = one("metadata_packed", "metadata packed by zstd", ramp(DType::i16, {9}),
                          with_metadata(with(BoundKind::abs, 1), text));
  packed.reproducible = false;
  files.push_back(std::move(packed));
}

void add_segments(std::vector<GoldenFile>& files) {
  // Chunks of arrays that are thin in two axes are small, so that few values make many segments.
  const auto value = [](std::uint64_t i) {
    return static_cast<double>(i / 9000) * 8 + static_cast<double>(i % 4099 == 0 ? 3 : 0);
  };
  const Settings blocks{{"layout", "3d:1,2"}};
  files.push_back(one("segments_axis0", "65 chunks along axis 0: two segments",
                      values_of(DType::f32, {2080, 3, 7}, value), with(BoundKind::abs, 0.5, "lorenzo", blocks)));
  files.push_back(one("segments_axis1", "65 chunks along axis 1", values_of(DType::i32, {16640, 4}, value),
                      with(BoundKind::abs, 1, "lorenzo", {{"layout", "2d:1"}})));
  files.push_back(one("segments_axis2", "66 chunks along axis 2",
                      values_of(DType::f32, {3, 1, 16700}, [&](std::uint64_t i) { return value(i % 16700); }),
                      with(BoundKind::abs, 0.5, "lorenzo", blocks)));
  files.push_back(one("segments_planes", "segments of several chunks along two axes",
                      values_of(DType::f32, {264, 60, 7}, value), with(BoundKind::abs, 0.5, "lorenzo", blocks)));
}

void add_streams(std::vector<GoldenFile>& files) {
  GoldenFile steps{"appended", "four streams of different types, one after another", {}, true, {}};
  steps.streams.push_back({ramp(DType::f32, {5, 7}), with(BoundKind::abs, 0.25)});
  steps.streams.push_back({ramp(DType::f32, {5, 7}), with(BoundKind::rel, 1e-3)});
  steps.streams.push_back({ramp(DType::u8, {0}), with(BoundKind::lossless, 0)});
  steps.streams.push_back({ramp(DType::i64, {11}), with(BoundKind::abs, 2)});
  files.push_back(std::move(steps));
}

}  // namespace

void add_container_files(std::vector<GoldenFile>& files) {
  add_shapes(files);
  add_bounds(files);
  add_metadata(files);
  add_segments(files);
  add_streams(files);
}

}  // namespace quern::golden
