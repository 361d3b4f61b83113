// Blocks of packed words: every width comes back, hostile bytes never reach outside.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "examples/codec/packed_words.h"

namespace quern::codec::packing {
namespace {

std::vector<std::uint8_t> pack(const std::vector<std::uint64_t>& words, unsigned width, const Packing& packing) {
  std::vector<std::uint8_t> room(most_packed_bytes(words.size(), width, packing));
  ByteWriter out(room);
  pack_words(words, width, packing, out);
  EXPECT_TRUE(out.fits());
  room.resize(out.size());
  return room;
}

TEST(PackedWords, EveryWidthStrideAndCount_ComesBack) {
  std::mt19937_64 random(7);
  for (const unsigned width : {8u, 16u, 32u, 64u})
    for (const std::uint64_t stride : {1u, 3u, 64u})
      for (const std::size_t count : {0u, 1u, 15u, 16u, 17u, 1000u})
        for (const unsigned spread : {0u, 3u, 7u, 64u}) {
          const Packing packing{4, stride};
          std::vector<std::uint64_t> words(count);
          for (std::uint64_t& word : words) {
            word = spread == 0 ? 5 : random() >> (64 - spread);
            if (width < 64) word &= (std::uint64_t{1} << width) - 1;
          }
          const auto bytes = pack(words, width, packing);
          std::vector<std::uint64_t> back(count);
          ByteReader in(bytes);
          ASSERT_TRUE(unpack_words(in, width, packing, back).ok());
          EXPECT_EQ(in.remaining(), 0u);
          EXPECT_EQ(back, words) << width << " bits, stride " << stride << ", " << count << " words";
        }
}

TEST(PackedWords, SmallDifferences_TakeFewBytes) {
  std::vector<std::uint64_t> words(128);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = 1000000 + i % 2;
  words[0] = 0;
  words[1] = UINT64_MAX;  // -1: one less
  for (std::size_t i = 2; i < words.size(); ++i) words[i] = words[i - 2];
  EXPECT_EQ(pack(words, 64, {7, 1}).size(), 1u + 128 * 2 / 8);
}

TEST(PackedWords, RoomThatIsTooSmall_IsNoticed) {
  const std::vector<std::uint64_t> words{1, 200, 3};
  for (std::size_t size = 0; size < pack(words, 8, {}).size(); ++size) {
    std::vector<std::uint8_t> room(size);
    ByteWriter out(room);
    pack_words(words, 8, {}, out);
    EXPECT_FALSE(out.fits());
  }
}

TEST(PackedWords, HostileBytes_GiveWordsOrCorrupt) {
  std::mt19937 random(11);
  std::size_t refused = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::vector<std::uint8_t> bytes(random() % 40);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random() % (trial % 2 == 0 ? 9 : 256));
    std::vector<std::uint64_t> words(random() % 50);
    ByteReader in(bytes);
    const Status status = unpack_words(in, 16, {4, 2}, words);
    if (status.ok()) {
      for (const std::uint64_t word : words) EXPECT_LE(word, 0xFFFFu);
    } else {
      ++refused;
      EXPECT_EQ(status.code(), StatusCode::corrupt);
    }
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_LT(refused, 20000u);
}

}  // namespace
}  // namespace quern::codec::packing
