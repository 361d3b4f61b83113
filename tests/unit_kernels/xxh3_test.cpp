// XXH3-64 by one thread and by a warp on the emulator against the xxHash library behind checksum64.
#include <gtest/gtest.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "kernels/common/warp/xxh3.h"
#include "kernels/common/xxh3.h"
#include "libcompress/format/frame/checksum.h"
#include "tests/emulator/lane_emulator.h"

namespace quern::kernels {
namespace {

using quern::testing::EmulatorState;
using quern::testing::LaneEmulator;

constexpr std::uint64_t kSeed = 20240917;
constexpr std::size_t kAlignments = 16;

constexpr std::uint8_t kText[] = "quern";
// The first is among the xxHash project's test vectors.
static_assert(xxh3_64(kText, 0) == UINT64_C(0x2D06800538D394C2));
static_assert(xxh3_64(kText, 5) == UINT64_C(0x4ADB0142AF92CFF3));

/// A memory of aligned words, random up to the last byte.
class Memory {
 public:
  Memory(std::size_t bytes, std::uint64_t seed) : words_(bytes / 8 + 4) {
    std::mt19937_64 random(seed);
    for (std::uint64_t& word : words_) word = random();
  }
  std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(words_.data()); }

 private:
  std::vector<std::uint64_t> words_;
};

/// Counts reads outside of the words that hold the fence's bytes.
struct Fence {
  static inline const std::uint8_t* begin = nullptr;
  static inline const std::uint8_t* end = nullptr;
  static inline std::uint64_t trespasses = 0;

  static void around(const std::uint8_t* bytes, std::size_t size) {
    const std::uint8_t* const last = size == 0 ? bytes : bytes + size - 1;
    begin = bytes - reinterpret_cast<std::uintptr_t>(bytes) % 8;
    end = size == 0 ? begin : last - reinterpret_cast<std::uintptr_t>(last) % 8 + 8;
  }
};
struct FencedLanes : LaneEmulator {
  template <class T>
  static T load(const T* at, std::size_t lane) {
    const auto* const first = reinterpret_cast<const std::uint8_t*>(at);
    if (first < Fence::begin || first + sizeof(T) > Fence::end) ++Fence::trespasses;
    return LaneEmulator::load(at, lane);
  }
};

std::uint64_t hash_on_lanes(const LaneHashInput& input) {
  Fence::around(input.bytes, input.size);
  return xxh3_lanes<FencedLanes>(input);
}

/// Compares all forms for the bytes, which may lie anywhere.
void check_all(const std::uint8_t* bytes, std::size_t size) {
  const std::uint64_t whole = checksum64({bytes, size});
  ASSERT_EQ(xxh3_64(bytes, size), whole);
  ASSERT_EQ(hash_on_lanes({.bytes = bytes, .size = size}), whole);
  const std::uint64_t first = kSeed * size, second = ~size;
  ASSERT_EQ(hash_on_lanes({bytes, size, first, second, true}), bound_checksum64(first, second, {bytes, size}));
}

class Xxh3 : public ::testing::Test {
 protected:
  void SetUp() override {
    EmulatorState::instance().reset(kSeed);
    Fence::trespasses = 0;
  }
  void TearDown() override {
    EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u);
    EXPECT_EQ(Fence::trespasses, 0u) << "reads of words that hold no byte of the input";
  }
};

TEST_F(Xxh3, EveryLengthAndAlignment_GiveTheLibrarysNumber) {
  constexpr std::size_t kLongest = 2100;
  Memory memory(kLongest + kAlignments, kSeed);
  for (std::size_t size = 0; size <= kLongest; ++size)
    for (std::size_t at = 0; at < kAlignments; ++at) {
      SCOPED_TRACE(::testing::Message() << "seed " << kSeed << ", " << size << " bytes at " << at);
      check_all(memory.bytes() + at, size);
      if (HasFatalFailure()) return;
    }
}

TEST_F(Xxh3, LargeInputs_GiveTheLibrarysNumber) {
  constexpr std::size_t kLargest = (UINT64_C(1) << 21) + 37;
  Memory memory(kLargest + kAlignments, kSeed + 1);
  for (const std::size_t size : {UINT64_C(4096), UINT64_C(4097), UINT64_C(65535), UINT64_C(100001), kLargest})
    for (const std::size_t at : {0, 1, 4, 7}) {
      SCOPED_TRACE(::testing::Message() << "seed " << kSeed << ", " << size << " bytes at " << at);
      check_all(memory.bytes() + at, size);
      if (HasFatalFailure()) return;
    }
}

TEST_F(Xxh3, BytesAroundTheInput_DoNotMatter) {
  for (const std::size_t size : {1, 5, 13, 100, 200, 1000, 3000})
    for (std::size_t at = 0; at < kAlignments; ++at) {
      Memory one(size + kAlignments, kSeed), other(size + kAlignments, kSeed + 1);
      std::memcpy(other.bytes() + at, one.bytes() + at, size);
      for (const bool has_prefix : {false, true})
        EXPECT_EQ(hash_on_lanes({one.bytes() + at, size, 1, 2, has_prefix}),
                  hash_on_lanes({other.bytes() + at, size, 1, 2, has_prefix}))
            << "seed " << kSeed << ", " << size << " bytes at " << at;
    }
}

TEST_F(Xxh3, BlocksSummedInAnyOrder_AddUpToTheSameNumber) {
  using Hash = LaneLongHash<FencedLanes>;
  constexpr std::size_t kSize = 9 * 1024 + 77;
  Memory memory(kSize + kAlignments, kSeed);
  std::mt19937_64 random(kSeed);
  for (const std::size_t at : {0, 3}) {
    const LaneHashInput input{memory.bytes() + at, kSize, 5, 6, true};
    Fence::around(input.bytes, input.size);
    Hash hash(input);
    std::vector<std::uint64_t> order(hash.blocks());
    for (std::size_t b = 0; b < order.size(); ++b) order[b] = b;
    std::shuffle(order.begin(), order.end(), random);
    std::vector<Hash::Words> sums(order.size());
    for (const std::uint64_t b : order) {
      Hash::Block words;
      Hash(input).load(b, words);
      Hash(input).sum_block(words, sums[b]);
    }
    for (const Hash::Words& sum : sums) hash.add_block(sum);
    EXPECT_EQ(hash.finish(), bound_checksum64(5, 6, {input.bytes, input.size})) << "seed " << kSeed;
  }
}

TEST_F(Xxh3, PositionsBeyond32Bits_AreReached) {
  // Pages that nobody wrote to take no memory.
  constexpr std::size_t kSize = (UINT64_C(1) << 32) + 5000;
  constexpr std::uint64_t kBlock = (UINT64_C(1) << 22) + 1;
  void* const pages = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) GTEST_SKIP() << "no address space of 4 GiB";
  auto* const bytes = static_cast<std::uint8_t*>(pages);
  Memory memory(4096, kSeed);
  std::memcpy(bytes + kBlock * 1024, memory.bytes(), 3000);
  using Hash = LaneLongHash<LaneEmulator>;
  const Hash far({.bytes = bytes + 3, .size = kSize - 3});
  const Hash near({.bytes = memory.bytes() + 3, .size = 2997});
  ASSERT_EQ(far.blocks(), kBlock + 3);
  Hash::Block far_words, near_words;
  Hash::Words far_sum, near_sum;
  far.load(kBlock, far_words);
  far.sum_block(far_words, far_sum);
  near.load(0, near_words);
  near.sum_block(near_words, near_sum);
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    EXPECT_EQ(LaneEmulator::get(far_sum, lane), LaneEmulator::get(near_sum, lane));
  munmap(pages, kSize);
}

}  // namespace
}  // namespace quern::kernels
