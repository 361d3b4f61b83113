// Golden files of the lorenzo codec: forms of chunks and tiles, exceptions, exact and wide tiles, signs, integers.
#include <limits>

#include "tests/golden/groups.h"
#include "tests/golden/values.h"

namespace quern::golden {
namespace {

using testing::OwnedArray;

CompressOptions lorenzo(BoundKind kind, double value) {
  CompressOptions options = with(kind, value, "lorenzo");
  options.find_repeated = false;
  return options;
}

void add_forms(std::vector<GoldenFile>& files) {
  files.push_back(one("lorenzo_constant_chunk", "a chunk of constant tiles (form 1)",
                      values_of(DType::f64, {64, 64}, [](std::uint64_t) { return 273.25; }),
                      lorenzo(BoundKind::abs, 0.5)));
  files.push_back(one("lorenzo_many_tiles", "constant tiles and equal seeds among others",
                      values_of(DType::f32, {5000},
                                [](std::uint64_t i) {
                                  const bool flat = i / 1024 % 2 == 0;
                                  return flat ? 7.0 : 7.0 + static_cast<double>(i % 1024 / 8);
                                }),
                      lorenzo(BoundKind::abs, 0.5)));
  files.push_back(
      one("lorenzo_dense_planes", "planes that are stored dense",
          values_of(DType::f32, {1024}, [](std::uint64_t i) { return static_cast<double>(swing(41, i, 200)); }),
          lorenzo(BoundKind::abs, 0.5)));
  files.push_back(one(
      "lorenzo_clipped_block", "tiles cut at every upper end",
      values_of(DType::i16, {5, 9, 35}, [](std::uint64_t i) { return static_cast<double>(i % 35 * 5 + i / 315 * 9); }),
      lorenzo(BoundKind::abs, 2)));
  // Under a step of twice the bound, some of these miss it.
  files.push_back(
      one("lorenzo_step_with_slack", "a step smaller than twice the bound",
          values_of(DType::f32, {1024},
                    [](std::uint64_t i) { return 12000 + static_cast<double>(noise(42, i, 65536)) / 1024; }),
          lorenzo(BoundKind::abs, 0.2)));
}

void add_exceptions(std::vector<GoldenFile>& files) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    OwnedArray array = values_of(dtype, {200}, [](std::uint64_t i) { return static_cast<double>(i % 50); });
    testing::store_element(array, 3, -0.0);
    testing::store_element(array, 130, -0.0);
    // Too far away for a code; under a bound of half a step the largest f16 still has one.
    const double far = dtype == DType::f64 ? 1e300 : dtype == DType::f16 ? 65504 : 1e30;
    testing::store_element(array, 77, far);
    testing::store_element(array, 191, -far);
    files.push_back(one(std::string("lorenzo_exceptions_") + dtype_name(dtype), "exceptions: -0.0 and far values",
                        std::move(array), lorenzo(BoundKind::abs, 0.25)));
  }
  files.push_back(one("lorenzo_exact_tile_f32", "a bound below the distance of neighbouring values: exact tiles",
                      values_of(DType::f32, {64}, [](std::uint64_t i) { return 1e6 + static_cast<double>(i * i) / 8; }),
                      lorenzo(BoundKind::abs, 1e-9)));
  files.push_back(
      one("lorenzo_exact_tile_f64", "exact tiles of 8-byte elements",
          values_of(DType::f64, {48}, [](std::uint64_t i) { return 1e12 + static_cast<double>(i * i) / 64; }),
          lorenzo(BoundKind::abs, 1e-12)));
  files.push_back(one("lorenzo_exact_quantizer_f32", "quantizer exact, by a lossless bound",
                      values_of(DType::f32, {96}, [](std::uint64_t i) { return static_cast<double>(i) - 40.5; }),
                      lorenzo(BoundKind::lossless, 0)));
  files.push_back(one("lorenzo_exact_quantizer_f16", "quantizer exact on negative f16 values",
                      values_of(DType::f16, {96}, [](std::uint64_t i) { return 30 - static_cast<double>(i); }),
                      lorenzo(BoundKind::lossless, 0)));
  files.push_back(one("lorenzo_no_step_f64", "a bound without a usable step: quantizer exact",
                      values_of(DType::f64, {40}, [](std::uint64_t i) { return static_cast<double>(i) / 4; }),
                      lorenzo(BoundKind::abs, 1e-320)));
}

void add_wide(std::vector<GoldenFile>& files) {
  files.push_back(
      one("lorenzo_wide_f64", "8-byte elements with distances beyond 32 bits",
          values_of(DType::f64, {80}, [](std::uint64_t i) { return static_cast<double>(swing(51, i, 2000000000)); }),
          lorenzo(BoundKind::abs, 0.0625)));
  files.push_back(one("lorenzo_wide_u64", "all 64 planes",
                      bits_of(DType::u64, {40}, [](std::uint64_t i) { return noise(52, i / 10, 0); }),
                      lorenzo(BoundKind::abs, 0)));
  files.push_back(one("lorenzo_far_seed_i64", "a seed far from 0",
                      bits_of(DType::i64, {60}, [](std::uint64_t i) { return (UINT64_C(3) << 60) - 17 * i; }),
                      lorenzo(BoundKind::abs, 8)));
}

double magnitude(std::uint64_t i) { return 100 + static_cast<double>(i % 64); }

void add_signs(std::vector<GoldenFile>& files) {
  const auto pwrel = lorenzo(BoundKind::pwrel, 1e-2);
  files.push_back(one("pwrel_all_plus", "no signs part",
                      values_of(DType::f32, {300}, [](std::uint64_t i) { return magnitude(i); }), pwrel));
  files.push_back(one("pwrel_all_minus", "signs: all minus",
                      values_of(DType::f32, {300}, [](std::uint64_t i) { return -magnitude(i); }), pwrel));
  files.push_back(one(
      "pwrel_sparse", "signs: sparse",
      values_of(DType::f64, {300}, [](std::uint64_t i) { return i % 50 == 0 ? -magnitude(i) : magnitude(i); }), pwrel));
  files.push_back(
      one("pwrel_complement", "signs: sparse, complemented",
          values_of(DType::bf16, {300}, [](std::uint64_t i) { return i % 50 == 0 ? magnitude(i) : -magnitude(i); }),
          pwrel));
  files.push_back(one("pwrel_dense", "signs: dense",
                      values_of(DType::f16, {1024},
                                [](std::uint64_t i) { return noise(61, i, 2) == 0 ? magnitude(i) : -magnitude(i); }),
                      pwrel));
  OwnedArray odd = values_of(DType::f32, {260}, [](std::uint64_t i) { return magnitude(i) * (i % 2 == 0 ? 1 : -1); });
  testing::store_element(odd, 9, 1e-42);
  testing::store_element(odd, 10, 0.0);
  testing::store_element(odd, 11, -0.0);
  set_bits(odd, 12, 0x7F7FFFFF);
  set_bits(odd, 13, 0xFF7FFFFF);
  files.push_back(one("pwrel_odd_values", "subnormal numbers, zeros and the largest numbers", std::move(odd), pwrel));
}

void add_integers(std::vector<GoldenFile>& files) {
  files.push_back(one("integers_half_u8", "half > 0 on u8, to both ends of the type",
                      values_of(DType::u8, {256}, [](std::uint64_t i) { return static_cast<double>(i); }),
                      lorenzo(BoundKind::abs, 3)));
  files.push_back(one("integers_half_i8", "half > 0 on i8, to both ends of the type",
                      values_of(DType::i8, {256}, [](std::uint64_t i) { return static_cast<double>(i) - 128; }),
                      lorenzo(BoundKind::abs, 2.5)));
  OwnedArray ends =
      values_of(DType::i32, {64}, [](std::uint64_t i) { return static_cast<double>(swing(71, i, 1000)); });
  set_bits(ends, 20, 0x7FFFFFFF);
  set_bits(ends, 40, 0x80000000);
  files.push_back(one("integers_ends_i32", "both ends of i32", std::move(ends), lorenzo(BoundKind::abs, 10)));
  files.push_back(one("integers_ends_u64", "both ends of u64",
                      bits_of(DType::u64, {64}, [](std::uint64_t i) { return i % 16 == 0 ? ~UINT64_C(0) - i : i; }),
                      lorenzo(BoundKind::abs, 1000)));
}

}  // namespace

void add_lorenzo_files(std::vector<GoldenFile>& files) {
  add_forms(files);
  add_exceptions(files);
  add_wide(files);
  add_signs(files);
  add_integers(files);
}

}  // namespace quern::golden
