// Golden files of the interp codec: tiles of every kind, element types, masks, exceptions, values of 32 and 64 bits,
// several chunks.
#include "tests/golden/stencil_fields.h"

namespace quern::golden {
namespace {

CompressOptions interp(double bound, const char* layout) {
  return with(BoundKind::abs, bound, "interp", {{"layout", layout}});
}

}  // namespace

void add_interp_files(std::vector<GoldenFile>& files) {
  const auto add = [&](const char* name, const char* feature, testing::OwnedArray array, double bound,
                       const char* layout) {
    files.push_back(one(std::string("interp_") + name, feature, std::move(array), interp(bound, layout)));
  };
  add("auto", "layout and predictors that the codec chooses", waves(DType::f32, {8, 12, 15}, 0.1), 0.02, "auto");
  add("line", "one axis", waves(DType::f32, {700}, 0.05), 0.01, "1d");
  add("plane", "two axes", waves(DType::f64, {30, 41}, 0.05), 0.01, "2d:1");
  add("cube", "three axes", waves(DType::f32, {19, 18, 21}, 0.02), 0.05, "3d:1,2");
  add("planes", "planes by themselves", waves(DType::f32, {4, 20, 19}, 0.1), 0.05, "3d:1,2:0,6,6");
  add("upright", "tiles along the first axis and the last", waves(DType::f32, {20, 4, 19}, 0.1), 0.05, "3d:1,2:6,0,6");
  add("column", "tiles along the axis before the last", waves(DType::f32, {60, 7}, 0.1), 0.05, "2d:1:0,12,0");
  add("small_tiles", "tiles of unequal extents, cut at the upper ends", waves(DType::f32, {11, 13, 17}, 0.1), 0.05,
      "3d:1,2:1,2,3");
  add("merged_axes", "four axes merged to three", waves(DType::f32, {3, 4, 9, 16}, 0.1), 0.05, "3d:2,3");
  add("noise", "codes that fill several lanes", waves(DType::f64, {40, 45}, 1), 1.0 / 16384, "2d:1");
  add("wide", "values of 64 bits", waves(DType::f64, {9, 40}, 0), 1.0 / (UINT64_C(1) << 33), "2d:1");
  add("exceptions", "values beyond all codes, and -0.0",
      with_minus_zeros(with_spikes(waves(DType::f64, {20, 31}, 0.1), 0x1p120)), 0x1p84, "2d:1");
  add("minus_zeros", "-0.0 among small values", with_minus_zeros(waves(DType::f32, {20, 31}, 0.1)), 0.02, "2d:1");
  add("land", "NaN", with_land(waves(DType::f32, {6, 14, 17}, 0.1), 0x7FC00001), 0.03, "auto");
  add("chunks", "more elements than one chunk holds",
      values_of(DType::u8, {(1u << 19) + 5}, [](std::uint64_t i) { return i <= 1u << 18 ? 7.0 : 9.0; }), 0.5, "1d");
  files.back().streams[0].options.find_repeated = false;
  add("levels", "segments that may have level tables",
      values_of(DType::i16, {257, 256}, [](std::uint64_t i) { return i % 256 < 100 ? 0.0 : 800.0; }), 3, "2d:1");
  files.back().streams[0].options.find_repeated = false;
  for (const DType dtype :
       {DType::f16, DType::bf16, DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32}) {
    const bool narrow = dtype_bytes(dtype) == 1;
    const double scale = is_float(dtype) ? 1 : narrow ? 40 : 3000;
    const double base = is_float(dtype) || is_signed_integer(dtype) ? 0 : narrow ? 127 : 20000;
    const double bound = is_float(dtype) ? 0.03125 : narrow ? 1 : 40;
    add(dtype_name(dtype), "an element type", waves(dtype, {10, 12, 13}, 0.05, scale, base), bound, "3d:1,2");
  }
}

}  // namespace quern::golden
