// Values through the filter: element types, byte orders, edges, gaps, and chunks that were damaged.
#include <bit>
#include <random>

#include "tests/integration_hdf5/hdf5_file.h"

namespace {

using namespace quern::hdf5_test;

class FilterData : public Hdf5FilterTest {
 protected:
  /// Writes values of `type` and reads them back after closing the file.
  template <class T>
  std::vector<T> round_trip(hid_t type, const Extents& extents, hid_t dcpl, const std::vector<T>& values) {
    {
      const Id dataset = create("x", type, extents, dcpl);
      EXPECT_TRUE(dataset.ok()) << error_text();
      if (!dataset.ok()) return {};
      const Id memory(H5Tget_native_type(type, H5T_DIR_DEFAULT), H5Tclose);
      EXPECT_GE(H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0) << error_text();
    }
    reopen();
    const Id dataset = open("x");
    const Id memory(H5Tget_native_type(type, H5T_DIR_DEFAULT), H5Tclose);
    std::vector<T> back(values.size());
    EXPECT_GE(H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()), 0) << error_text();
    return back;
  }

  template <class T>
  void check_type(hid_t little, hid_t big, double bound) {
    const Extents extents{23, 41}, chunk{10, 16};
    for (const hid_t type : {little, big}) {
      for (const bool exact : {false, true}) {
        SCOPED_TRACE(std::string(type == big ? "big-endian" : "little-endian") + (exact ? ", lossless" : ", absolute"));
        const auto values = wave<T>(elems_of(extents));
        const Id dcpl = chunked(chunk, request(exact ? QUERN_BOUND_LOSSLESS : QUERN_BOUND_ABS, bound));
        const auto back = round_trip<T>(type, extents, dcpl, values);
        expect_within(values, back, exact ? 0 : bound);
        const Id dataset = open("x");
        EXPECT_LE(H5Dget_storage_size(dataset), 9 * (160 * sizeof(T) * 1001 / 1000 + 256)) << "nine padded chunks";
        ASSERT_GE(H5Ldelete(file_, "x", H5P_DEFAULT), 0);
      }
    }
  }
};

TEST_F(FilterData, Floats_BothByteOrders_BoundHolds) {
  check_type<float>(H5T_IEEE_F32LE, H5T_IEEE_F32BE, 0.01);
  check_type<double>(H5T_IEEE_F64LE, H5T_IEEE_F64BE, 1e-7);
}

TEST_F(FilterData, SignedIntegers_BothByteOrders_BoundHolds) {
  check_type<std::int8_t>(H5T_STD_I8LE, H5T_STD_I8BE, 2);
  check_type<std::int16_t>(H5T_STD_I16LE, H5T_STD_I16BE, 1);
  check_type<std::int32_t>(H5T_STD_I32LE, H5T_STD_I32BE, 3.5);
  check_type<std::int64_t>(H5T_STD_I64LE, H5T_STD_I64BE, 1);
}

TEST_F(FilterData, UnsignedIntegers_BothByteOrders_BoundHolds) {
  check_type<std::uint8_t>(H5T_STD_U8LE, H5T_STD_U8BE, 2);
  check_type<std::uint16_t>(H5T_STD_U16LE, H5T_STD_U16BE, 1);
  check_type<std::uint32_t>(H5T_STD_U32LE, H5T_STD_U32BE, 3);
  check_type<std::uint64_t>(H5T_STD_U64LE, H5T_STD_U64BE, 1);
}

/// The value of a 16-bit float's bits.
double small_value(std::uint16_t bits, int mantissa_bits, int bias) {
  const int exponent = (bits & 0x7FFF) >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double size = exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                    : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return (bits & 0x8000) != 0 ? -size : size;
}

TEST_F(FilterData, SmallFloats_BothKindsAndByteOrders_BoundHoldsAndTypeIsTold) {
  struct Kind {
    int exponent_bits, mantissa_bits, bias;
    quern_dtype dtype;
  };
  const Extents extents{200}, chunk{64};
  for (const Kind& k : {Kind{5, 10, 15, QUERN_F16}, Kind{8, 7, 127, QUERN_BF16}}) {
    for (const H5T_order_t order : {H5T_ORDER_LE, H5T_ORDER_BE}) {
      SCOPED_TRACE(std::to_string(k.dtype) + (order == H5T_ORDER_BE ? " big-endian" : ""));
      const Id type = small_float(k.exponent_bits, k.mantissa_bits, k.bias, order);
      std::vector<std::uint16_t> values;
      for (int i = 0; i < 200; ++i)
        values.push_back(static_cast<std::uint16_t>((k.bias << k.mantissa_bits) + 3 * i + (i % 3 == 0 ? 0x8000 : 0)));
      std::vector<std::uint16_t> stored = values, back(values.size());
      const auto swap_all = [&](std::vector<std::uint16_t>& v) {
        if (order == H5T_ORDER_BE)
          for (auto& bits : v) bits = static_cast<std::uint16_t>(bits << 8 | bits >> 8);
      };
      swap_all(stored);
      {
        const Id dataset = create("x", type, extents, chunked(chunk, request(QUERN_BOUND_ABS, 0.05)));
        ASSERT_TRUE(dataset.ok()) << error_text();
        ASSERT_GE(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, stored.data()), 0) << error_text();
        const Id dcpl(H5Dget_create_plist(dataset), H5Pclose);
        EXPECT_EQ(stored_words(dcpl)[6], static_cast<unsigned>(k.dtype));
      }
      reopen();
      const Id dataset = open("x");
      ASSERT_GE(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()), 0) << error_text();
      swap_all(back);
      for (std::size_t i = 0; i < back.size(); ++i)
        ASSERT_LE(
            std::fabs(small_value(values[i], k.mantissa_bits, k.bias) - small_value(back[i], k.mantissa_bits, k.bias)),
            0.05)
            << i;
      ASSERT_GE(H5Ldelete(file_, "x", H5P_DEFAULT), 0);
    }
  }
}

TEST_F(FilterData, PointwiseRelativeBound_Floats_Holds) {
  std::vector<float> values;
  for (int i = 0; i < 3000; ++i) values.push_back(std::ldexp(1.0F + static_cast<float>(i % 97) / 97, i % 60 - 30));
  const auto back =
      round_trip<float>(H5T_IEEE_F32LE, {3000}, chunked({1000}, request(QUERN_BOUND_PWREL, 0.01)), values);
  ASSERT_EQ(back.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_LE(std::fabs(double{values[i]} - double{back[i]}), 0.01 * std::fabs(double{values[i]})) << i;
}

TEST_F(FilterData, FillValueNanAndInf_ComeBackBitForBit) {
  auto values = wave<float>(5000);
  const float fill = -9999.25F;
  const float nan = std::bit_cast<float>(0x7FC12345U);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % 17 == 3) values[i] = fill;
    if (i % 101 == 5) values[i] = nan;
    if (i % 211 == 7) values[i] = -std::numeric_limits<float>::infinity();
    if (i % 307 == 9) values[i] = -0.0F;
  }
  for (const hid_t type : {H5T_IEEE_F32LE, H5T_IEEE_F32BE}) {
    const Id dcpl = chunked({1024}, request(QUERN_BOUND_ABS, 0.5));
    ASSERT_GE(H5Pset_fill_value(dcpl, H5T_NATIVE_FLOAT, &fill), 0);
    const auto back = round_trip<float>(type, {5000}, dcpl, values);
    ASSERT_EQ(back.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] == fill || !std::isfinite(values[i]) || values[i] == 0) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(back[i])) << i;
      } else {
        ASSERT_LE(std::fabs(double{values[i]} - double{back[i]}), 0.5) << i;
      }
    }
    const Id made(H5Dget_create_plist(open("x")), H5Pclose);
    EXPECT_EQ(stored_words(made)[0] & 0x100U, 0x100U) << "the fill value is among the words";
    EXPECT_EQ(stored_words(made)[17], std::bit_cast<std::uint32_t>(fill));
    ASSERT_GE(H5Ldelete(file_, "x", H5P_DEFAULT), 0);
  }
}

TEST_F(FilterData, DeclaredMissingValue_ComesBackBitForBitAndStaysInTheWords) {
  auto values = wave<float>(4000);
  const float missing = 12.3456F;  // inside the range, so that only the declaration can keep it
  for (std::size_t i = 0; i < values.size(); i += 37) values[i] = missing;
  Words words = request(QUERN_BOUND_ABS, 0.5, 0, 16);
  words.resize(18, 0);
  words[0] |= 0x400;
  words[17] = std::bit_cast<std::uint32_t>(missing);
  const auto back = round_trip<float>(H5T_IEEE_F32BE, {4000}, chunked({1000}, words), values);
  ASSERT_EQ(back.size(), values.size());
  for (std::size_t i = 0; i < values.size(); i += 37)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(back[i]), std::bit_cast<std::uint32_t>(missing)) << i;
  expect_within(values, back, 0.5);
  const Id made(H5Dget_create_plist(open("x")), H5Pclose);
  EXPECT_EQ(stored_words(made)[0], 0x601U);
  EXPECT_EQ(stored_words(made)[17], std::bit_cast<std::uint32_t>(missing));
}

TEST_F(FilterData, SmallAndOddChunks_RoundTrip) {
  struct Case {
    Extents extents, chunk;
  };
  const Case cases[] = {{{1}, {1}},
                        {{7}, {3}},
                        {{5, 1}, {2, 1}},
                        {{3, 5, 7}, {2, 2, 2}},
                        {{2, 2}, {2, 2}},
                        {{10, 9}, {16, 16}},
                        {{2, 1, 3, 2}, {1, 1, 2, 2}},
                        {{2, 2, 2, 2, 2, 2, 2, 3}, {1, 2, 1, 2, 1, 2, 1, 2}}};
  for (const Case& c : cases) {
    const auto values = wave<double>(elems_of(c.extents));
    Extents limits(c.extents.size(), H5S_UNLIMITED);
    const Id space(H5Screate_simple(static_cast<int>(c.extents.size()), c.extents.data(), limits.data()), H5Sclose);
    const Id dcpl = chunked(c.chunk, request(QUERN_BOUND_ABS, 1e-3));
    {
      const Id dataset(H5Dcreate2(file_, "x", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT), H5Dclose);
      ASSERT_TRUE(dataset.ok()) << error_text();
      ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0) << error_text();
    }
    reopen();
    std::vector<double> back(values.size());
    ASSERT_GE(H5Dread(open("x"), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()), 0) << error_text();
    expect_within(values, back, 1e-3);
    ASSERT_GE(H5Ldelete(file_, "x", H5P_DEFAULT), 0);
  }
}

TEST_F(FilterData, EmptyDataset_CreatesAndReads) {
  for (const Extents& extents : {Extents{0}, Extents{4, 0}, Extents{0, 3}}) {
    const Extents chunk(extents.size(), 2);
    const Extents most(extents.size(), H5S_UNLIMITED);
    const Id space(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), most.data()), H5Sclose);
    const Id dcpl = chunked(chunk, request(QUERN_BOUND_ABS, 1));
    const Id dataset(H5Dcreate2(file_, "x", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT), H5Dclose);
    ASSERT_TRUE(dataset.ok()) << error_text();
    float nothing = 7;
    EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &nothing), 0);
    EXPECT_GE(H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &nothing), 0);
    EXPECT_GE(quern_hdf5_write(dataset, QUERN_F32, &nothing, 2), 0) << error_text();
    EXPECT_GE(quern_hdf5_read(dataset, QUERN_F32, &nothing, 2), 0) << error_text();
    EXPECT_EQ(nothing, 7);
    ASSERT_GE(H5Ldelete(file_, "x", H5P_DEFAULT), 0);
  }
}

TEST_F(FilterData, NoiseInLosslessChunks_StaysWithinTheSizeLimit) {
  std::mt19937_64 random(11);
  std::vector<std::uint64_t> values(4096);
  for (auto& v : values) v = random();
  const auto back =
      round_trip<std::uint64_t>(H5T_STD_U64LE, {4096}, chunked({1024}, request(QUERN_BOUND_LOSSLESS, 0)), values);
  EXPECT_TRUE(same_bits(values, back));
  EXPECT_LE(H5Dget_storage_size(open("x")), 4 * (1024 * 8 + 256 + 1024 * 8 / 1000));
}

TEST_F(FilterData, DamagedChunk_ReadFailsWithAReason) {
  const auto values = wave<float>(1000);
  std::vector<std::uint8_t> good;
  {
    const Id dataset = create("x", H5T_IEEE_F32LE, {1000}, chunked({1000}, request(QUERN_BOUND_ABS, 0.01)));
    ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    H5Dflush(dataset);
    good = chunk_bytes(dataset, {0});
  }
  ASSERT_GT(good.size(), 100U);
  const hsize_t origin[] = {0};
  std::vector<float> back(1000);
  const Id dataset = open("x");
  const auto read_changed = [&](const std::vector<std::uint8_t>& bytes) {
    EXPECT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, origin, bytes.size(), bytes.data()), 0);
    return H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()) >= 0;
  };
  for (std::size_t at = 0; at < good.size(); ++at) {
    auto bad = good;
    bad[at] ^= static_cast<std::uint8_t>(1U << (at % 8));
    ASSERT_FALSE(read_changed(bad)) << "byte " << at;
    ASSERT_TRUE(reason_has("quern: ")) << "byte " << at;
  }
  for (const std::size_t size : {std::size_t{1}, std::size_t{10}, good.size() / 2, good.size() - 1}) {
    ASSERT_FALSE(read_changed({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)})) << size;
    ASSERT_TRUE(reason_has("quern: "));
  }
  auto longer = good;
  longer.push_back(0);
  EXPECT_FALSE(read_changed(longer)) << "bytes after the stream";
  ASSERT_TRUE(read_changed(good)) << error_text();
  expect_within(values, back, 0.01);
}

TEST_F(FilterData, ChunkOfAnotherDataset_ReadSaysWhatItIs) {
  const auto values = wave<float>(64);
  const Id a = create("a", H5T_IEEE_F32LE, {8, 8}, chunked({8, 8}, request(QUERN_BOUND_ABS, 0.01)));
  const Id b = create("b", H5T_IEEE_F32LE, {64}, chunked({64}, request(QUERN_BOUND_ABS, 0.01)));
  ASSERT_GE(H5Dwrite(a, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  H5Dflush(a);
  const auto bytes = chunk_bytes(a, {0, 0});
  const hsize_t origin[] = {0};
  ASSERT_GE(H5Dwrite_chunk(b, H5P_DEFAULT, 0, origin, bytes.size(), bytes.data()), 0);
  std::vector<float> back(64);
  ASSERT_LT(H5Dread(b, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()), 0);
  const std::string text = error_text();
  EXPECT_NE(text.find("f32 8x8"), std::string::npos) << text;
  EXPECT_NE(text.find("f32 64"), std::string::npos) << text;
}

}  // namespace
