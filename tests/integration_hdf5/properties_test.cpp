// What the filter accepts and refuses when a dataset is created, and the words it leaves in the property list.
#include "bindings/hdf5/filter.h"
#include "tests/integration_hdf5/hdf5_file.h"

namespace {

using namespace quern::hdf5_test;

class FilterProperties : public Hdf5FilterTest {
 protected:
  htri_t can_apply(hid_t dcpl, hid_t type) { return quern::hdf5::filter_class().can_apply(dcpl, type, space_of({64})); }
  herr_t set_local(hid_t dcpl, hid_t type) { return quern::hdf5::filter_class().set_local(dcpl, type, space_of({64})); }
  Id created_list(hid_t dataset) { return {H5Dget_create_plist(dataset), H5Pclose}; }
};

TEST_F(FilterProperties, FilterNumber_IsForTestsAndOwn) {
  EXPECT_GE(QUERN_HDF5_FILTER_ID, 256);
  EXPECT_LE(QUERN_HDF5_FILTER_ID, 511);
  EXPECT_GT(H5Zfilter_avail(QUERN_HDF5_FILTER_ID), 0);
  unsigned config = 0;
  ASSERT_GE(H5Zget_filter_info(QUERN_HDF5_FILTER_ID, &config), 0);
  EXPECT_EQ(config, static_cast<unsigned>(H5Z_FILTER_CONFIG_ENCODE_ENABLED | H5Z_FILTER_CONFIG_DECODE_ENABLED));
}

TEST_F(FilterProperties, SetLocalTwice_SameWords) {
  const Id dcpl = chunked({4, 6}, request(QUERN_BOUND_ABS, 0.125));
  const float fill = -1;
  ASSERT_GE(H5Pset_fill_value(dcpl, H5T_NATIVE_FLOAT, &fill), 0);
  ASSERT_GE(set_local(dcpl, H5T_IEEE_F32BE), 0) << error_text();
  const Words once = stored_words(dcpl);
  ASSERT_GE(set_local(dcpl, H5T_IEEE_F32BE), 0) << error_text();
  EXPECT_EQ(stored_words(dcpl), once);
  // 0.125 is 0x3FC00000 00000000, -1 is 0xBF800000; version 1, fill value and big-endian; idempotent.
  EXPECT_EQ(once, (Words{0x301, 0, 1, 0x3FC00000, 0, 0x40, QUERN_F32, 2, 4, 6, 0, 0, 0, 0, 0, 0, 0, 0xBF800000}));
}

TEST_F(FilterProperties, CopiedList_FitsTheNewDataset) {
  const Id first = create("first", H5T_NATIVE_DOUBLE, {10, 10}, chunked({5, 5}, request(QUERN_BOUND_ABS, 1, 1)));
  ASSERT_TRUE(first.ok()) << error_text();
  const Id list = created_list(first);
  const Id same = create("same", H5T_NATIVE_DOUBLE, {10, 10}, list);
  ASSERT_TRUE(same.ok()) << error_text();
  EXPECT_EQ(stored_words(created_list(same)), stored_words(list));

  const hsize_t other_chunk[] = {20};
  ASSERT_GE(H5Pset_chunk(list, 1, other_chunk), 0);
  const Id other = create("other", H5T_STD_I16LE, {100}, list);
  ASSERT_TRUE(other.ok()) << error_text();
  EXPECT_EQ(stored_words(created_list(other)),
            (Words{1, 1, 1, 0x3FF00000, 0, 0x40, QUERN_I16, 1, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST_F(FilterProperties, EveryWordWrong_RefusedWithAReasonOrHarmless) {
  const unsigned boundary[] = {0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
  const auto values = wave<float>(64);
  Words good = request(QUERN_BOUND_ABS, 0.5);
  good.resize(18, 0);
  int accepted = 0, refused = 0;
  for (std::size_t word = 0; word < good.size(); ++word) {
    for (const unsigned value : boundary) {
      SCOPED_TRACE("word " + std::to_string(word) + " = " + std::to_string(value));
      Words words = good;
      words[word] = value;
      const Id dcpl = chunked({16}, words);
      const Id dataset = create("x", H5T_NATIVE_FLOAT, {64}, dcpl);
      if (!dataset.ok()) {
        ++refused;
        ASSERT_LT(word, 6U) << "what the filter fills in itself is never refused";
        ASSERT_TRUE(reason_has(""));
        continue;
      }
      ++accepted;
      std::vector<float> back(64);
      ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0) << error_text();
      ASSERT_GE(H5Dflush(dataset), 0);
      ASSERT_GE(quern_hdf5_read(dataset, QUERN_F32, back.data(), 1), 0) << error_text();
      const bool bound_changed = word == 3 || word == 4;  // then the bound is another number, a tiny one at worst
      if (!bound_changed) expect_within(values, back, 0.5);
      ASSERT_GE(H5Ldelete(file_, "x", H5P_DEFAULT), 0);
    }
  }
  EXPECT_GT(accepted, 80);
  EXPECT_GT(refused, 15);
}

TEST_F(FilterProperties, WrongWordsInTheCallback_FailWithAReasonBothWays) {
  const auto values = wave<float>(64);
  Words good = request(QUERN_BOUND_ABS, 0.5);
  good.resize(18, 0);
  good[6] = QUERN_F32;
  good[7] = 1;
  good[8] = 64;
  const auto run = [](const Words& words, bool reverse, std::vector<std::uint8_t>& bytes) {
    std::size_t capacity = bytes.size();
    void* buffer = H5allocate_memory(capacity, false);
    std::memcpy(buffer, bytes.data(), bytes.size());
    const std::size_t size = quern::hdf5::run_filter(reverse ? H5Z_FLAG_REVERSE : 0, words.size(), words.data(),
                                                     bytes.size(), &capacity, &buffer);
    EXPECT_LE(size, capacity);
    if (size != 0) bytes.assign(static_cast<std::uint8_t*>(buffer), static_cast<std::uint8_t*>(buffer) + size);
    H5free_memory(buffer);
    return size != 0;
  };
  std::vector<std::uint8_t> raw(values.size() * sizeof(float));
  std::memcpy(raw.data(), values.data(), raw.size());
  auto stream = raw;
  ASSERT_TRUE(run(good, false, stream)) << error_text();
  std::vector<std::uint8_t> decoded = stream;
  ASSERT_TRUE(run(good, true, decoded));

  for (std::size_t word = 0; word < good.size(); ++word) {
    for (const unsigned value : {0U, 1U, 2U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU}) {
      SCOPED_TRACE("word " + std::to_string(word) + " = " + std::to_string(value));
      Words words = good;
      words[word] = value;
      auto forward = raw, back = stream;
      if (!run(words, false, forward)) {
        ASSERT_TRUE(reason_has(""));
      }
      if (run(words, true, back)) {
        ASSERT_EQ(back, decoded) << "accepted words must not change the data";
      } else {
        ASSERT_TRUE(reason_has(""));
      }
    }
  }
  auto back = stream;
  EXPECT_TRUE(run({}, true, back)) << "lost settings: the chunk says it all";
  EXPECT_EQ(back, decoded);
  for (const std::size_t count : {1U, 5U, 19U}) {
    auto again = stream;
    Words words = good;
    words.resize(count);
    EXPECT_FALSE(run(words, true, again));
    EXPECT_TRUE(reason_has("6 to 32 settings"));
  }
}

TEST_F(FilterProperties, LostWordsOfBigEndianData_StillDecode) {
  std::vector<std::uint8_t> raw(256);
  for (std::size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<std::uint8_t>(i % 4 == 3 ? i : 0);
  Words words = request(QUERN_BOUND_LOSSLESS, 0);
  words.resize(18, 0);
  words[0] |= 0x200;
  words[6] = QUERN_I32;
  words[7] = 1;
  words[8] = 64;
  std::size_t capacity = raw.size();
  void* buffer = H5allocate_memory(capacity, false);
  std::memcpy(buffer, raw.data(), raw.size());
  const std::size_t size = quern::hdf5::run_filter(0, words.size(), words.data(), raw.size(), &capacity, &buffer);
  ASSERT_NE(size, 0U) << error_text();
  ASSERT_EQ(quern::hdf5::run_filter(H5Z_FLAG_REVERSE, 0, nullptr, size, &capacity, &buffer), raw.size())
      << error_text();
  EXPECT_EQ(std::memcmp(buffer, raw.data(), raw.size()), 0);
  H5free_memory(buffer);
}

TEST_F(FilterProperties, BoundsAFilterCannotKeep_AreRefusedWithAdvice) {
  Words words = request(QUERN_BOUND_ABS, 1e-3);
  const auto refused = [&](quern_bound_kind kind, const char* part) {
    words[2] = static_cast<unsigned>(kind);
    EXPECT_FALSE(create("x", H5T_NATIVE_FLOAT, {64}, chunked({16}, words)).ok());
    EXPECT_TRUE(reason_has(part));
    unsigned out[6];
    EXPECT_LT(quern_hdf5_request(kind, 40, 0, 0, out), 0);
    EXPECT_TRUE(reason_has(part));
  };
  refused(QUERN_BOUND_REL, "max - min");
  refused(QUERN_BOUND_PSNR, "no bound a filter can promise");
  refused(QUERN_BOUND_RATIO, "no bound a filter can promise");
  unsigned out[6];
  for (const double value : {-1.0, std::nan(""), static_cast<double>(INFINITY)}) {
    EXPECT_LT(quern_hdf5_request(QUERN_BOUND_ABS, value, 0, 0, out), 0) << value;
    EXPECT_TRUE(reason_has(""));
  }
  EXPECT_LT(quern_hdf5_request(QUERN_BOUND_ABS, 1, 4711, 0, out), 0);
  EXPECT_TRUE(reason_has("has no codec 4711"));
}

TEST_F(FilterProperties, TypesOfOtherKinds_AreRefusedByName) {
  const Id text(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(text, 8);
  const Id compound(H5Tcreate(H5T_COMPOUND, 8), H5Tclose);
  H5Tinsert(compound, "a", 0, H5T_NATIVE_FLOAT);
  H5Tinsert(compound, "b", 4, H5T_NATIVE_INT32);
  const Id choice(H5Tenum_create(H5T_NATIVE_INT8), H5Tclose);
  const std::int8_t no = 0, yes = 1;
  H5Tenum_insert(choice, "FALSE", &no);
  H5Tenum_insert(choice, "TRUE", &yes);
  const Id opaque(H5Tcreate(H5T_OPAQUE, 4), H5Tclose);
  const hsize_t three[] = {3};
  const Id array(H5Tarray_create2(H5T_NATIVE_FLOAT, 1, three), H5Tclose);
  const Id odd(H5Tcopy(H5T_STD_I32LE), H5Tclose);
  H5Tset_precision(odd, 17);
  struct Case {
    hid_t type;
    const char* part;
  };
  const Case cases[] = {{text, "strings"},
                        {compound, "compounds"},
                        {H5T_STD_B16LE, "bit fields"},
                        {choice, "enumerations"},
                        {opaque, "opaque bytes"},
                        {array, "arrays"},
                        {odd, "numbers of 17 bits in 4 bytes"},
                        {H5T_NATIVE_LDOUBLE, "numbers of"},
                        {H5T_VAX_F32, "another format"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.part);
    const Id dcpl = chunked({16}, request(QUERN_BOUND_ABS, 0.5));
    EXPECT_EQ(can_apply(dcpl, c.type), 0);
    EXPECT_TRUE(reason_has(c.part));
    EXPECT_FALSE(create("x", c.type, {64}, dcpl).ok());
    EXPECT_TRUE(reason_has(c.part));
  }
  EXPECT_FALSE(create("x", H5T_STD_I32LE, {64}, chunked({16}, request(QUERN_BOUND_PWREL, 0.1))).ok());
  EXPECT_TRUE(reason_has("do not serve i32"));
}

TEST_F(FilterProperties, OptionalFilterOnUnsuitedType_StoresAsItIs) {
  // The list is one that served another dataset: nothing of that may stay.
  const Id first =
      create("first", H5T_NATIVE_DOUBLE, {16}, chunked({16}, request(QUERN_BOUND_ABS, 1), H5Z_FLAG_OPTIONAL));
  const Id list = created_list(first);
  const Id opaque(H5Tcreate(H5T_OPAQUE, 8), H5Tclose);
  const std::vector<std::uint64_t> values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  const Id dataset = create("bytes", opaque, {16}, list);
  ASSERT_TRUE(dataset.ok()) << error_text();
  ASSERT_GE(H5Dwrite(dataset, opaque, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0) << error_text();
  H5Dflush(dataset);
  std::vector<std::uint64_t> back(16);
  ASSERT_GE(H5Dread(dataset, opaque, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()), 0) << error_text();
  EXPECT_EQ(back, values);
  EXPECT_EQ(stored_words(created_list(dataset))[7], 0U);
}

TEST_F(FilterProperties, ChunkOfFourGiB_IsRefused) {
  // HDF5 itself takes fewer than 2^32 elements a chunk; of 8 bytes each that is 32 GiB.
  for (const Extents& chunk : {Extents{1U << 29}, Extents{(1U << 29) - 1}, Extents{65536, 65535}}) {
    const Id dcpl = chunked(chunk, request(QUERN_BOUND_ABS, 1));
    EXPECT_EQ(can_apply(dcpl, H5T_NATIVE_DOUBLE), 0);
    EXPECT_TRUE(reason_has("4 GiB"));
    EXPECT_LT(set_local(dcpl, H5T_NATIVE_DOUBLE), 0);
    EXPECT_TRUE(reason_has("4 GiB"));
  }
  EXPECT_GT(can_apply(chunked({(1U << 29) - (1U << 20)}, request(QUERN_BOUND_ABS, 1)), H5T_NATIVE_DOUBLE), 0);
}

TEST_F(FilterProperties, NineAxes_AreRefused) {
  EXPECT_EQ(can_apply(chunked(Extents(9, 2), request(QUERN_BOUND_ABS, 1)), H5T_NATIVE_FLOAT), 0);
  EXPECT_TRUE(reason_has("quern takes 1 to 8"));
  EXPECT_GT(can_apply(chunked(Extents(8, 2), request(QUERN_BOUND_ABS, 1)), H5T_NATIVE_FLOAT), 0);
}

TEST_F(FilterProperties, FilterBeforeQuern_IsRefused) {
  const Words words = request(QUERN_BOUND_ABS, 1);
  const Id dcpl(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  const hsize_t chunk[] = {16};
  H5Pset_chunk(dcpl, 1, chunk);
  H5Pset_shuffle(dcpl);
  H5Pset_filter(dcpl, QUERN_HDF5_FILTER_ID, H5Z_FLAG_MANDATORY, words.size(), words.data());
  EXPECT_FALSE(create("x", H5T_NATIVE_FLOAT, {64}, dcpl).ok());
  EXPECT_TRUE(reason_has("stands before quern"));

  const Id after = chunked({16}, words);
  H5Pset_fletcher32(after);
  const Id dataset = create("x", H5T_NATIVE_FLOAT, {64}, after);
  ASSERT_TRUE(dataset.ok()) << error_text();
  const auto values = wave<float>(64);
  std::vector<float> back(64);
  ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0) << error_text();
  H5Dflush(dataset);
  ASSERT_GE(H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()), 0) << error_text();
  expect_within(values, back, 1);
}

TEST_F(FilterProperties, AfterHdf5WasClosed_FilterAndReasonsWorkAgain) {
  // Every identifier is gone then, those of the filter's error class too.
  EXPECT_FALSE(create("x", H5T_C_S1, {64}, chunked({16}, request(QUERN_BOUND_ABS, 1))).ok());
  EXPECT_TRUE(reason_has("strings"));
  file_.reset();
  ASSERT_GE(H5close(), 0);
  ASSERT_GE(H5open(), 0);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  ASSERT_GE(quern_hdf5_register(), 0);
  reopen();
  EXPECT_FALSE(create("x", H5T_C_S1, {64}, chunked({16}, request(QUERN_BOUND_ABS, 1))).ok());
  EXPECT_TRUE(reason_has("strings"));
}

TEST_F(FilterProperties, ThreadsFromTheEnvironment_GiveTheSameBytesOrAReason) {
  const auto values = wave<float>(1 << 16);
  const Words words = request(QUERN_BOUND_ABS, 1e-3);
  const Id one = create("one", H5T_NATIVE_FLOAT, {1 << 16}, chunked({1 << 16}, words));
  ASSERT_GE(H5Dwrite(one, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  H5Dflush(one);
  ASSERT_EQ(setenv("QUERN_HDF5_THREADS", "3", 1), 0);  // NOLINT: no other thread runs
  const Id three = create("three", H5T_NATIVE_FLOAT, {1 << 16}, chunked({1 << 16}, words));
  ASSERT_GE(H5Dwrite(three, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0) << error_text();
  H5Dflush(three);
  EXPECT_EQ(chunk_bytes(one, {0}), chunk_bytes(three, {0}));
  ASSERT_EQ(setenv("QUERN_HDF5_THREADS", "many", 1), 0);  // NOLINT
  std::vector<float> back(values.size());
  reopen();
  EXPECT_LT(H5Dread(open("one"), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()), 0);
  EXPECT_TRUE(reason_has("QUERN_HDF5_THREADS=many"));
  unsetenv("QUERN_HDF5_THREADS");  // NOLINT
}

}  // namespace
