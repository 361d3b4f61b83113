// Values that the filter decoded and gets again: datasets whose chunks are rewritten in part, were written once, or
// come from filters that marked nothing; and missing values of every number.
#include <algorithm>
#include <bit>
#include <iterator>
#include <random>

#include "tests/integration_hdf5/hdf5_file.h"

namespace {

using namespace quern::hdf5_test;

constexpr unsigned kWriteOnce = 32;
constexpr unsigned kIdempotent = 64;

class FilterRewriting : public Hdf5FilterTest {
 protected:
  /// Opens with a chunk cache of so many bytes.
  Id open_with_cache(const char* name, std::size_t bytes) {
    const Id access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
    EXPECT_GE(H5Pset_chunk_cache(access, 11, bytes, 0.75), 0);
    return {H5Dopen2(file_, name, access), H5Dclose};
  }

  template <class T>
  void write_box(hid_t dataset, const Extents& begin, const Extents& count, const std::vector<T>& values) {
    const Id space(H5Dget_space(dataset), H5Sclose);
    const Id memory = space_of(count);
    ASSERT_GE(H5Sselect_hyperslab(space, H5S_SELECT_SET, begin.data(), nullptr, count.data(), nullptr), 0);
    ASSERT_GE(H5Dwrite(dataset, native<T>(), memory, space, H5P_DEFAULT, values.data()), 0) << error_text();
  }

  template <class T>
  std::vector<T> read_all(const char* name, std::size_t elems) {
    std::vector<T> out(elems);
    EXPECT_GE(H5Dread(open(name), native<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()), 0) << error_text();
    return out;
  }

  template <class T>
  static hid_t native() {
    return std::is_same_v<T, float> ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
  }

  Words words_of(const char* name) { return stored_words(Id(H5Dget_create_plist(open(name)), H5Pclose)); }
};

template <class T>
std::vector<T> rough(std::size_t count, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> step;
  std::vector<T> out(count);
  double at = 0;
  for (T& value : out) value = static_cast<T>(at += step(rng));
  return out;
}

TEST_F(FilterRewriting, RandomBoxesInAnyOrder_OneBoundInAllAndNothingElseMoves) {
  for (unsigned seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 rng(seed);
    const Extents extents{20, 37}, chunk{1 + rng() % 20, 1 + rng() % 37};
    const double bound = seed % 3 == 0 ? 0.3 : 0.01;
    {
      const Id made =
          create("x", H5T_IEEE_F32LE, extents, chunked(chunk, request(QUERN_BOUND_ABS, bound, seed % 2 == 0 ? 0 : 3)));
      ASSERT_TRUE(made.ok()) << error_text();
    }
    std::vector<float> truth(740, 0), seen(740, 0);
    std::vector<bool> fresh(740, true);
    for (int round = 0; round < 5; ++round) {
      {
        const Id dataset = open_with_cache("x", rng() % 3 * 1500);
        for (int i = 0; i < 6; ++i) {
          const Extents begin{rng() % 20, rng() % 37};
          const Extents count{1 + rng() % (20 - begin[0]), 1 + rng() % (37 - begin[1])};
          const auto values = rough<float>(count[0] * count[1], static_cast<unsigned>(rng()));
          write_box(dataset, begin, count, values);
          for (std::size_t r = 0; r < count[0]; ++r) {
            for (std::size_t x = 0; x < count[1]; ++x) {
              const std::size_t at = (begin[0] + r) * 37 + begin[1] + x;
              truth[at] = values[r * count[1] + x];
              fresh[at] = true;
            }
          }
        }
      }
      reopen();
      const auto back = read_all<float>("x", 740);
      expect_within(truth, back, bound);
      for (std::size_t i = 0; i < 740; ++i) {
        if (!fresh[i]) {
          ASSERT_EQ(std::memcmp(&back[i], &seen[i], 4), 0) << i;
        }
        fresh[i] = false;
      }
      seen = back;
    }
    ASSERT_GE(H5Ldelete(file_, "x", H5P_DEFAULT), 0);
  }
}

TEST_F(FilterRewriting, ChunksWrittenOnce_AreTheSmallestAndLaterWritesMoveNothing) {
  const Extents extents{64, 100}, chunk{40, 100};
  const auto values = wave<float>(6400);
  const double bound = 0.5;
  const Id once =
      create("once", H5T_IEEE_F32LE, extents, chunked(chunk, request(QUERN_BOUND_ABS, bound, 0, kWriteOnce)));
  const Id again = create("again", H5T_IEEE_F32LE, extents, chunked(chunk, request(QUERN_BOUND_ABS, bound)));
  ASSERT_GE(quern_hdf5_write(once, QUERN_F32, values.data(), 1), 0) << error_text();
  ASSERT_GE(quern_hdf5_write(again, QUERN_F32, values.data(), 1), 0) << error_text();
  EXPECT_LT(chunk_bytes(once, {0, 0}).size(), chunk_bytes(again, {0, 0}).size());
  EXPECT_EQ(words_of("once")[5], kWriteOnce);
  EXPECT_EQ(words_of("again")[5], kIdempotent);
  std::vector<float> first(6400), back(6400);
  ASSERT_GE(quern_hdf5_read(once, QUERN_F32, first.data(), 1), 0);
  expect_within(values, first, bound);
  for (int round = 0; round < 3; ++round) {
    // One element anew, kept bit for bit, and some with their own values.
    const float odd = 1.2345F + static_cast<float>(round);
    write_box(once, {static_cast<hsize_t>(round), 7}, {1, 1}, std::vector<float>{odd});
    write_box(once, {50, 0}, {1, 100}, std::vector<float>(first.begin() + 5000, first.begin() + 5100));
    first[static_cast<std::size_t>(round) * 100 + 7] = odd;
    ASSERT_GE(H5Dflush(once), 0) << error_text();
    ASSERT_GE(quern_hdf5_read(once, QUERN_F32, back.data(), 1), 0) << error_text();
    ASSERT_TRUE(same_bits(first, back)) << round;
  }
}

TEST_F(FilterRewriting, CopyOfChunksWrittenOnce_KeepsTheMarkAndEveryBit) {
  const auto values = wave<double>(5000);
  const Id once = create("once", H5T_IEEE_F64BE, {5000}, chunked({900}, request(QUERN_BOUND_ABS, 0.01, 0, kWriteOnce)));
  ASSERT_GE(quern_hdf5_write(once, QUERN_F64, values.data(), 2), 0) << error_text();
  std::vector<double> first(5000);
  ASSERT_GE(quern_hdf5_read(once, QUERN_F64, first.data(), 1), 0);
  const Id list(H5Dget_create_plist(once), H5Pclose);
  const hsize_t other_chunk[] = {731};
  ASSERT_GE(H5Pset_chunk(list, 1, other_chunk), 0);
  {
    const Id copy = create("copy", H5T_IEEE_F64BE, {5000}, list);
    ASSERT_TRUE(copy.ok()) << error_text();
    ASSERT_GE(H5Dwrite(copy, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, first.data()), 0) << error_text();
  }
  EXPECT_EQ(words_of("copy")[5], kWriteOnce);
  reopen();
  EXPECT_TRUE(same_bits(read_all<double>("copy", 5000), first));
}

TEST_F(FilterRewriting, WordsWithoutAMark_AreTakenForChunksWrittenOnce) {
  Words words = request(QUERN_BOUND_ABS, 0.5);
  words.resize(18, 0);
  words[6] = QUERN_F32;  // as a filter that knew no marks completed them
  words[7] = 1;
  words[8] = 500;
  const auto values = rough<float>(1000, 3);
  {
    const Id dataset = create("x", H5T_NATIVE_FLOAT, {1000}, chunked({500}, words));
    ASSERT_TRUE(dataset.ok()) << error_text();
    ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0) << error_text();
  }
  EXPECT_EQ(words_of("x")[5], kWriteOnce);
  reopen();
  EXPECT_TRUE(same_bits(read_all<float>("x", 1000), values));
}

TEST_F(FilterRewriting, FillValueAndSeveralMissingValues_AllComeBackBitForBit) {
  const std::vector<float> special{-999.25F, 12.345F, 7.0625F, 1e20F};
  auto values = rough<float>(4000, 9);
  for (std::size_t i = 0; i < values.size(); i += 11) values[i] = special[i / 11 % special.size()];
  Words words = request(QUERN_BOUND_ABS, 0.4);
  words.resize(16, 0);
  words[0] |= 0x400;
  for (std::size_t i = 1; i < special.size(); ++i)
    words.insert(words.end(), {0U, std::bit_cast<std::uint32_t>(special[i])});
  const Id dcpl = chunked({1000}, words);
  ASSERT_GE(H5Pset_fill_value(dcpl, H5T_NATIVE_FLOAT, special.data()), 0);
  {
    const Id dataset = create("x", H5T_IEEE_F32BE, {4000}, dcpl);
    ASSERT_TRUE(dataset.ok()) << error_text();
    ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0) << error_text();
  }
  const Words stored = words_of("x");
  ASSERT_EQ(stored.size(), 16 + 2 * special.size());
  EXPECT_EQ(stored[0], 0x701U);
  for (std::size_t i = 0; i < special.size(); ++i)
    EXPECT_EQ(stored[17 + 2 * i], std::bit_cast<std::uint32_t>(special[i]));
  reopen();
  const auto back = read_all<float>("x", 4000);
  expect_within(values, back, 0.4);
  for (std::size_t i = 0; i < values.size(); i += 11) ASSERT_EQ(std::memcmp(&values[i], &back[i], 4), 0) << i;
}

TEST_F(FilterRewriting, MarkersOfMissingDataThatNobodyDeclared_ComeBackBitForBit) {
  for (const double bound : {0.3, 1e-4, 1e15}) {
    auto values = rough<double>(3000, 5);
    const std::vector<double> markers{-999, -9999, 1e20, 9.969209968386869e36};
    for (std::size_t i = 0; i < values.size(); i += 13) values[i] = markers[i / 13 % markers.size()];
    {
      const Id dataset = create("x", H5T_IEEE_F64LE, {3000}, chunked({1000}, request(QUERN_BOUND_ABS, bound)));
      ASSERT_TRUE(dataset.ok()) << error_text();
      ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0) << error_text();
    }
    reopen();
    const auto back = read_all<double>("x", 3000);
    for (std::size_t i = 0; i < values.size(); i += 13) ASSERT_EQ(values[i], back[i]) << i;
    expect_within(values, back, bound);
    ASSERT_GE(H5Ldelete(file_, "x", H5P_DEFAULT), 0);
  }
}

TEST_F(FilterRewriting, FillValueThatALaterListHasNoMore_StaysAmongTheWords) {
  const float fill = -999.25F;
  const Id dcpl = chunked({1000}, request(QUERN_BOUND_ABS, 0.4));
  ASSERT_GE(H5Pset_fill_value(dcpl, H5T_NATIVE_FLOAT, &fill), 0);
  const Words with_fill = [&] {
    const Id dataset = create("x", H5T_NATIVE_FLOAT, {4000}, dcpl);
    return words_of("x");
  }();
  ASSERT_EQ(with_fill[0], 0x101U);
  const Id copy = create("copy", H5T_NATIVE_FLOAT, {4000}, chunked({800}, with_fill));
  ASSERT_TRUE(copy.ok()) << error_text();
  const Words copied = words_of("copy");
  EXPECT_EQ(copied[0], 0x401U);
  EXPECT_EQ(copied[17], std::bit_cast<std::uint32_t>(fill));
  const Id third = create("third", H5T_NATIVE_FLOAT, {4000}, chunked({800}, copied));
  EXPECT_EQ(words_of("third"), copied);
}

TEST_F(FilterRewriting, DatasetWithAFillValueOpenedAgain_CanBeExtended) {
  const float fill = -5;
  const Id dcpl = chunked({10}, request(QUERN_BOUND_ABS, 0.4));
  ASSERT_GE(H5Pset_fill_value(dcpl, H5T_NATIVE_FLOAT, &fill), 0);
  {
    const hsize_t now[] = {10}, most[] = {H5S_UNLIMITED};
    const Id space(H5Screate_simple(1, now, most), H5Sclose);
    const Id dataset(H5Dcreate2(file_, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT), H5Dclose);
    ASSERT_TRUE(dataset.ok()) << error_text();
  }
  reopen();
  {
    const Id dataset = open("x");
    const hsize_t more[] = {25};
    ASSERT_GE(H5Dset_extent(dataset, more), 0) << error_text();
    write_box(dataset, {5}, {15}, std::vector<float>(15, 1.5F));
  }
  reopen();
  const auto back = read_all<float>("x", 25);
  EXPECT_EQ(back[0], fill);
  EXPECT_EQ(back[24], fill);
  EXPECT_NEAR(back[10], 1.5F, 0.4);
}

TEST_F(FilterRewriting, RandomWordsAndHistories_AreRefusedOrKeepTheBound) {
  const unsigned odd[] = {0, 1, 2, 3, 16, 32, 64, 96, 0x100, 0x200, 0x400, 0x700, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
  int taken = 0, refused = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 rng(seed);
    const double bound = 0.25;
    Words words = request(QUERN_BOUND_ABS, bound, rng() % 4 == 0 ? 1 : 0);
    words.resize(6 + rng() % 30, 0);
    for (unsigned changes = rng() % 4; changes > 0; --changes) {
      const std::size_t word = rng() % words.size();
      if (word != 2 && word != 3 && word != 4) words[word] = odd[rng() % std::size(odd)];
    }
    const Id dcpl = chunked({7}, words);
    const float fill = -1;
    if (rng() % 2 == 0) {
      ASSERT_GE(H5Pset_fill_value(dcpl, H5T_NATIVE_FLOAT, &fill), 0);
    }
    {
      const Id dataset = create("x", H5T_IEEE_F32LE, {40}, dcpl);
      if (!dataset.ok()) {
        ++refused;
        ASSERT_TRUE(reason_has(""));
        continue;
      }
    }
    ++taken;
    std::vector<float> truth = rough<float>(40, seed);
    {
      const Id dataset = open_with_cache("x", 0);
      write_box(dataset, {0}, {40}, truth);
    }
    for (int round = 0; round < 3; ++round) {
      reopen();
      const Id dataset = open_with_cache("x", 0);
      const hsize_t begin = rng() % 40;
      const hsize_t count = 1 + rng() % (40 - begin);
      const auto values = rough<float>(count, static_cast<unsigned>(rng()));
      write_box(dataset, {begin}, {count}, values);
      std::copy(values.begin(), values.end(), truth.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    reopen();
    expect_within(truth, read_all<float>("x", 40), bound);
    ASSERT_GE(H5Ldelete(file_, "x", H5P_DEFAULT), 0);
  }
  EXPECT_GT(taken, 100);
  EXPECT_GT(refused, 100);
}

TEST_F(FilterRewriting, WordsThatContradictThemselves_AreRefused) {
  Words words = request(QUERN_BOUND_ABS, 0.5);
  words[5] = kWriteOnce | kIdempotent;
  EXPECT_FALSE(create("x", H5T_NATIVE_FLOAT, {10}, chunked({10}, words)).ok());
  EXPECT_TRUE(reason_has("both write-once (32) and idempotent (64)"));
  words = request(QUERN_BOUND_ABS, 0.5);
  words.resize(22, 0);
  EXPECT_FALSE(create("x", H5T_NATIVE_FLOAT, {10}, chunked({10}, words)).ok());
  EXPECT_TRUE(reason_has("do not agree on how many missing values"));
  words[0] |= 0x400;
  words[17] = words[19] = words[21] = 1;
  words[20] = 1;
  EXPECT_FALSE(create("x", H5T_NATIVE_FLOAT, {10}, chunked({10}, words)).ok());
  EXPECT_TRUE(reason_has("is no f32 number"));
  words.resize(50, 0);
  EXPECT_FALSE(create("x", H5T_NATIVE_FLOAT, {10}, chunked({10}, words)).ok());
  EXPECT_TRUE(reason_has("6 to 32 settings"));
}

}  // namespace
