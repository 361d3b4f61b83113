// Golden files of the codec lossless: modes, differencing orders, dictionary, contexts, shift, every key order.
#include "tests/golden/groups.h"
#include "tests/golden/values.h"

namespace quern::golden {
namespace {

CompressOptions lossless(Settings settings = {}) {
  CompressOptions options = with(BoundKind::lossless, 0, "lossless", std::move(settings));
  options.find_repeated = false;
  return options;
}

void add_modes(std::vector<GoldenFile>& files) {
  files.push_back(one("lossless_constant", "mode constant",
                      values_of(DType::f64, {10, 10}, [](std::uint64_t) { return 0.1; }), lossless()));
  files.push_back(one("lossless_dictionary", "a dictionary of few values far apart",
                      bits_of(DType::u32, {600}, [](std::uint64_t i) { return noise(101, noise(102, i, 9), 0); }),
                      lossless()));
  files.push_back(
      one("lossless_shift", "low bits that are always 0",
          values_of(DType::f64, {400}, [](std::uint64_t i) { return static_cast<double>(noise(103, i, 3000)) - 1500; }),
          lossless()));
  files.push_back(one("lossless_contexts", "several contexts",
                      values_of(DType::i16, {40, 50},
                                [](std::uint64_t i) {
                                  const std::uint64_t row = i / 50;
                                  return static_cast<double>(swing(104, i, row < 12 ? 2 : row < 26 ? 20 : 400));
                                }),
                      lossless()));
  files.push_back(
      one("lossless_raw_bits", "tokens with many raw bits",
          bits_of(DType::u64, {120}, [](std::uint64_t i) { return noise(105, i, UINT64_C(1) << (8 + i % 48)); }),
          lossless()));
}

void add_orders(std::vector<GoldenFile>& files) {
  files.push_back(
      one("lossless_order0", "no differencing",
          values_of(DType::u8, {500},
                    [](std::uint64_t i) { return static_cast<double>(noise(111, i, 6) * noise(112, i, 4)); }),
          lossless()));
  files.push_back(one("lossless_order1", "first differences within a row",
                      values_of(DType::i8, {500},
                                [](std::uint64_t i) {
                                  return static_cast<double>(i / 4 % 90) + static_cast<double>(noise(113, i, 2));
                                }),
                      lossless()));
  files.push_back(one("lossless_order2", "second differences within a row",
                      values_of(DType::i32, {300}, [](std::uint64_t i) { return static_cast<double>(i * i * 37 / 2); }),
                      lossless()));
  files.push_back(one("lossless_plane", "differences along rows and columns",
                      values_of(DType::u16, {20, 30},
                                [](std::uint64_t i) {
                                  return static_cast<double>(noise(114, i / 30, 9000) + noise(115, i % 30, 9000) +
                                                             noise(116, i, 3));
                                }),
                      lossless()));
  files.push_back(one("lossless_volume", "differences along three axes",
                      values_of(DType::i32, {6, 10, 24},
                                [](std::uint64_t i) {
                                  const std::uint64_t x = i % 24;
                                  const std::uint64_t y = i / 24 % 10;
                                  const std::uint64_t z = i / 240;
                                  return static_cast<double>(swing(117, z * 32 + y, 90000) +
                                                             swing(118, z * 32 + x, 90000) +
                                                             swing(119, y * 32 + x, 90000));
                                }),
                      lossless()));
  files.push_back(one("lossless_volume2", "second differences along planes",
                      values_of(DType::i64, {14, 4, 9},
                                [](std::uint64_t i) {
                                  const std::uint64_t at = i % 36;
                                  const auto z = static_cast<std::int64_t>(i / 36);
                                  return static_cast<double>(swing(120, at, 900000) + swing(121, at, 90000) * z +
                                                             z * z * 40);
                                }),
                      lossless()));
  files.push_back(one("lossless_planes_apart", "planes that have nothing in common",
                      values_of(DType::u16, {3, 12, 25},
                                [](std::uint64_t i) {
                                  const std::uint64_t z = i / 300;
                                  return static_cast<double>(noise(122, z * 64 + i / 25, 9000) +
                                                             noise(123, z * 64 + i % 25, 9000));
                                }),
                      lossless()));
}

void add_types(std::vector<GoldenFile>& files) {
  for (const DType dtype : testing::all_dtypes()) {
    files.push_back(one(std::string("lossless_type_") + dtype_name(dtype), "the key order of the type",
                        values_of(dtype, {9, 17},
                                  [&](std::uint64_t i) {
                                    const double centre = is_float(dtype) || is_signed_integer(dtype) ? 40 : 0;
                                    return static_cast<double>(i % 17 * 4 + i / 17) - centre;
                                  }),
                        lossless()));
  }
}

void add_archive(std::vector<GoldenFile>& files) {
  GoldenFile elements = one("lossless_zstd", "mode zstd",
                            bits_of(DType::u32, {900}, [](std::uint64_t i) { return noise(131, i % 60, 0); }),
                            lossless({{"zstd", "19"}}));
  elements.reproducible = false;
  files.push_back(std::move(elements));
  GoldenFile planes = one("lossless_zstd_planes", "mode zstd planes",
                          bits_of(DType::u32, {900},
                                  [](std::uint64_t i) {
                                    return (noise(133, i % 37, 250) << 24) + (noise(134, i % 41, 250) << 8) +
                                           (noise(135, i % 43, 250) << 16) + noise(136, i % 47, 250);
                                  }),
                          lossless({{"zstd", "19"}}));
  planes.reproducible = false;
  files.push_back(std::move(planes));
}

}  // namespace

void add_lossless_files(std::vector<GoldenFile>& files) {
  add_modes(files);
  add_orders(files);
  add_types(files);
  add_archive(files);
}

}  // namespace quern::golden
