// Whole datasets past the pipeline: the same bytes as the filter's, chunk for chunk, and the same values back.
#include "tests/integration_hdf5/hdf5_file.h"

namespace {

using namespace quern::hdf5_test;

class DirectPath : public Hdf5FilterTest {
 protected:
  /// Writes the same values through the filter and directly, and compares every chunk.
  template <class T>
  void expect_same_chunks(hid_t type, quern_dtype dtype, const Extents& extents, const Extents& chunk, hid_t dcpl,
                          const std::vector<T>& values, std::uint32_t threads) {
    const Id filtered = create("filtered", type, extents, dcpl);
    const Id direct = create("direct", type, extents, dcpl);
    ASSERT_TRUE(filtered.ok() && direct.ok()) << error_text();
    const Id memory(H5Tget_native_type(type, H5T_DIR_DEFAULT), H5Tclose);
    ASSERT_GE(H5Dwrite(filtered, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0) << error_text();
    ASSERT_GE(H5Dflush(filtered), 0);
    ASSERT_GE(quern_hdf5_write(direct, dtype, values.data(), threads), 0) << error_text();
    Extents offset(extents.size(), 0);
    std::size_t chunks = 0;
    for (bool more = true; more;) {
      ASSERT_EQ(chunk_bytes(filtered, offset), chunk_bytes(direct, offset)) << "chunk " << chunks;
      ++chunks;
      more = false;
      for (std::size_t a = extents.size(); a-- > 0 && !more;) {
        offset[a] += chunk[a];
        more = offset[a] < extents[a];
        if (!more) offset[a] = 0;
      }
    }
    std::vector<T> through_filter(values.size()), directly(values.size());
    ASSERT_GE(H5Dread(direct, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, through_filter.data()), 0) << error_text();
    ASSERT_GE(quern_hdf5_read(filtered, dtype, directly.data(), threads), 0) << error_text();
    EXPECT_TRUE(same_bits(through_filter, directly));
    ASSERT_GE(H5Ldelete(file_, "filtered", H5P_DEFAULT), 0);
    ASSERT_GE(H5Ldelete(file_, "direct", H5P_DEFAULT), 0);
  }
};

TEST_F(DirectPath, EdgeChunks_SameBytesAsFilter) {
  for (const std::uint32_t threads : {1U, 3U}) {
    const Extents extents{33, 41}, chunk{16, 16};
    expect_same_chunks(H5T_IEEE_F32LE, QUERN_F32, extents, chunk, chunked(chunk, request(QUERN_BOUND_ABS, 0.01)),
                       wave<float>(elems_of(extents)), threads);
    expect_same_chunks(H5T_IEEE_F64BE, QUERN_F64, extents, chunk, chunked(chunk, request(QUERN_BOUND_ABS, 1e-6)),
                       wave<double>(elems_of(extents)), threads);
    expect_same_chunks(H5T_STD_I16BE, QUERN_I16, {50}, {7}, chunked({7}, request(QUERN_BOUND_LOSSLESS, 0)),
                       wave<std::int16_t>(50), threads);
    expect_same_chunks(H5T_STD_U8LE, QUERN_U8, {5, 6, 7}, {2, 4, 5}, chunked({2, 4, 5}, request(QUERN_BOUND_ABS, 1)),
                       wave<std::uint8_t>(210), threads);
  }
}

TEST_F(DirectPath, FillValues_PaddingIsWhatHdf5Writes) {
  const Extents extents{33, 41}, chunk{16, 16};
  const auto values = wave<float>(elems_of(extents));
  const float fill = 1e20F;
  for (const H5D_fill_time_t time : {H5D_FILL_TIME_IFSET, H5D_FILL_TIME_ALLOC, H5D_FILL_TIME_NEVER}) {
    for (const hid_t type : {H5T_IEEE_F32LE, H5T_IEEE_F32BE}) {
      const Id dcpl = chunked(chunk, request(QUERN_BOUND_ABS, 0.01));
      ASSERT_GE(H5Pset_fill_value(dcpl, H5T_NATIVE_FLOAT, &fill), 0);
      ASSERT_GE(H5Pset_fill_time(dcpl, time), 0);
      expect_same_chunks(type, QUERN_F32, extents, chunk, dcpl, values, 2);
    }
  }
  const Id undefined = chunked(chunk, request(QUERN_BOUND_ABS, 0.01));
  ASSERT_GE(H5Pset_fill_value(undefined, H5T_NATIVE_FLOAT, nullptr), 0);
  expect_same_chunks(H5T_IEEE_F32LE, QUERN_F32, extents, chunk, undefined, values, 2);
  const Id early = chunked(chunk, request(QUERN_BOUND_ABS, 0.01));
  ASSERT_GE(H5Pset_alloc_time(early, H5D_ALLOC_TIME_EARLY), 0);
  expect_same_chunks(H5T_IEEE_F32LE, QUERN_F32, extents, chunk, early, values, 2);
}

TEST_F(DirectPath, ManyChunksFewThreads_AllArrive) {
  const Extents extents{1000, 9}, chunk{3, 4};
  expect_same_chunks(H5T_STD_I32LE, QUERN_I32, extents, chunk, chunked(chunk, request(QUERN_BOUND_ABS, 1)),
                     wave<std::int32_t>(9000), 4);
}

TEST_F(DirectPath, UnwrittenChunks_ReadAsFillValue) {
  const Id dcpl = chunked({4}, request(QUERN_BOUND_ABS, 0.1));
  const double fill = 5.5;
  ASSERT_GE(H5Pset_fill_value(dcpl, H5T_NATIVE_DOUBLE, &fill), 0);
  const Id dataset = create("x", H5T_IEEE_F64BE, {10}, dcpl);
  std::vector<double> back(10, 1);
  ASSERT_GE(quern_hdf5_read(dataset, QUERN_F64, back.data(), 2), 0) << error_text();
  EXPECT_EQ(back, std::vector<double>(10, fill));
}

TEST_F(DirectPath, RawChunkOfOptionalFilter_IsRead) {
  Id dataset = create("x", H5T_IEEE_F32BE, {4}, chunked({4}, request(QUERN_BOUND_ABS, 0.1), H5Z_FLAG_OPTIONAL));
  const std::uint8_t raw[16] = {0x3F, 0x80, 0, 0, 0x40, 0, 0, 0, 0x40, 0x40, 0, 0, 0x40, 0x80, 0, 0};
  const hsize_t origin[] = {0};
  ASSERT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 1, origin, sizeof raw, raw), 0);
  // HDF5 1.10.8 forgets the mask of a chunk written this way until the dataset is opened again.
  dataset.reset();
  reopen();
  dataset = open("x");
  std::vector<float> back(4);
  ASSERT_GE(quern_hdf5_read(dataset, QUERN_F32, back.data(), 1), 0) << error_text();
  EXPECT_EQ(back, (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(DirectPath, DamagedChunk_ErrorNamesItsPlace) {
  const auto values = wave<float>(100);
  const Id dataset = create("x", H5T_IEEE_F32LE, {10, 10}, chunked({4, 4}, request(QUERN_BOUND_ABS, 0.1)));
  ASSERT_GE(quern_hdf5_write(dataset, QUERN_F32, values.data(), 2), 0) << error_text();
  auto bytes = chunk_bytes(dataset, {4, 8});
  ASSERT_FALSE(bytes.empty());
  bytes[bytes.size() / 2] ^= 1;
  const hsize_t offset[] = {4, 8};
  ASSERT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, offset, bytes.size(), bytes.data()), 0);
  std::vector<float> back(100);
  for (const std::uint32_t threads : {1U, 4U}) {
    ASSERT_LT(quern_hdf5_read(dataset, QUERN_F32, back.data(), threads), 0);
    EXPECT_TRUE(reason_has("chunk at (4, 8)"));
  }
}

TEST_F(DirectPath, UnsuitedDatasets_AreRefusedWithAReason) {
  std::vector<float> values(16);
  const auto refused = [&](hid_t dataset, quern_dtype dtype, const char* part) {
    EXPECT_LT(quern_hdf5_write(dataset, dtype, values.data(), 1), 0);
    EXPECT_TRUE(reason_has(part));
    EXPECT_LT(quern_hdf5_read(dataset, dtype, values.data(), 1), 0);
    EXPECT_TRUE(reason_has(part));
  };
  refused(create("plain", H5T_NATIVE_FLOAT, {16}, H5P_DEFAULT), QUERN_F32, "not chunked");
  const Id bare(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  const hsize_t four[] = {4};
  ASSERT_GE(H5Pset_chunk(bare, 1, four), 0);
  refused(create("bare", H5T_NATIVE_FLOAT, {16}, bare), QUERN_F32, "does not use the filter quern");
  const Id more = chunked({4}, request(QUERN_BOUND_ABS, 0.1));
  ASSERT_GE(H5Pset_fletcher32(more), 0);
  refused(create("more", H5T_NATIVE_FLOAT, {16}, more), QUERN_F32, "other filters");
  refused(create("type", H5T_NATIVE_FLOAT, {16}, chunked({4}, request(QUERN_BOUND_ABS, 0.1))), QUERN_F64,
          "the dataset holds f32");
  refused(H5I_INVALID_HID, QUERN_F32, "must be a dataset");
}

}  // namespace
