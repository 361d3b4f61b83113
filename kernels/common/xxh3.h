// XXH3-64 with seed 0, from the specification of xxHash: the checksum of everything stored. Here are one thread's form,
// for headers and other short things, and what it shares with a warp's (kernels/common/warp/xxh3.h). Long inputs on a
// processor belong to the xxHash library, which is twice as fast.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/unroll.h"

namespace quern::kernels {

namespace xxh3 {

inline constexpr std::uint64_t kPrime32_1 = 0x9E3779B1;
inline constexpr std::uint64_t kPrime32_2 = 0x85EBCA77;
inline constexpr std::uint64_t kPrime32_3 = 0xC2B2AE3D;
inline constexpr std::uint64_t kPrime64_1 = UINT64_C(0x9E3779B185EBCA87);
inline constexpr std::uint64_t kPrime64_2 = UINT64_C(0xC2B2AE3D27D4EB4F);
inline constexpr std::uint64_t kPrime64_3 = UINT64_C(0x165667B19E3779F9);
inline constexpr std::uint64_t kPrime64_4 = UINT64_C(0x85EBCA77C2B2AE63);
inline constexpr std::uint64_t kPrime64_5 = UINT64_C(0x27D4EB2F165667C5);
inline constexpr std::uint64_t kPrimeMix1 = UINT64_C(0x165667919E3779F9);
inline constexpr std::uint64_t kPrimeMix2 = UINT64_C(0x9FB21C651E98DF25);

inline constexpr unsigned kAccumulators = 8;
inline constexpr unsigned kStripeBytes = 8 * kAccumulators;
inline constexpr unsigned kBlockStripes = 16;
inline constexpr unsigned kBlockBytes = kBlockStripes * kStripeBytes;
/// Longest input that has no accumulators.
inline constexpr unsigned kMaxMediumBytes = 240;

inline constexpr unsigned kSecretWords = 24;
/// Where in the secret its parts for the scramble, the last stripe and the end begin, in bytes.
inline constexpr unsigned kScrambleSecret = 128;
inline constexpr unsigned kLastStripeSecret = 121;
inline constexpr unsigned kMergeSecret = 11;
/// The same for the second half and the last 16 bytes of inputs of 129 to 240 bytes.
inline constexpr unsigned kSecondHalfSecret = 3;
inline constexpr unsigned kLastMixSecret = 119;

/// The default secret, as little-endian words. A copy at every call: device code knows no arrays of namespace scope.
[[gnu::always_inline]] constexpr std::array<std::uint64_t, kSecretWords> default_secret() {
  return {UINT64_C(0xbe4ba423396cfeb8), UINT64_C(0x1cad21f72c81017c), UINT64_C(0xdb979083e96dd4de),
          UINT64_C(0x1f67b3b7a4a44072), UINT64_C(0x78e5c0cc4ee679cb), UINT64_C(0x2172ffcc7dd05a82),
          UINT64_C(0x8e2443f7744608b8), UINT64_C(0x4c263a81e69035e0), UINT64_C(0xcb00c391bb52283c),
          UINT64_C(0xa32e531b8b65d088), UINT64_C(0x4ef90da297486471), UINT64_C(0xd8acdea946ef1938),
          UINT64_C(0x3f349ce33f76faa8), UINT64_C(0x1d4f0bc7c7bbdcf9), UINT64_C(0x3159b4cd4be0518a),
          UINT64_C(0x647378d9c97e9fc8), UINT64_C(0xc3ebd33483acc5ea), UINT64_C(0xeb6313faffa081c5),
          UINT64_C(0x49daf0b751dd0d17), UINT64_C(0x9e68d429265516d3), UINT64_C(0xfca1477d58be162b),
          UINT64_C(0xce31d07ad1b8f88f), UINT64_C(0x280416958f3acb45), UINT64_C(0x7e404bbbcafbd7af)};
}

/// The 8 bytes that begin `bytes` bytes, 0 to 7, into `low`, which `high` follows.
[[gnu::always_inline]] constexpr std::uint64_t straddling_word(std::uint64_t low, std::uint64_t high, unsigned bytes) {
  return low >> (8 * bytes) | high << 1 << (63 - 8 * bytes);
}

/// 8 bytes of the secret, at a byte offset below 184.
[[gnu::always_inline]] constexpr std::uint64_t secret_word(const std::array<std::uint64_t, kSecretWords>& secret,
                                                           std::size_t offset) {
  return straddling_word(secret[offset / 8], secret[offset / 8 + 1], static_cast<unsigned>(offset % 8));
}
/// The same at a constant offset.
template <std::size_t kOffset>
inline constexpr std::uint64_t kSecretAt = secret_word(default_secret(), kOffset);

/// What the accumulators of long inputs begin with.
[[gnu::always_inline]] constexpr std::array<std::uint64_t, kAccumulators> first_accumulators() {
  return {kPrime32_3, kPrime64_1, kPrime64_2, kPrime64_3, kPrime64_4, kPrime32_2, kPrime64_5, kPrime32_1};
}

/// Both halves of the product, folded.
[[gnu::always_inline]] constexpr std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
  return (a * b) ^ multiply_high(a, b);
}

[[gnu::always_inline]] constexpr std::uint64_t avalanche(std::uint64_t x) {
  x ^= x >> 37;
  x *= kPrimeMix1;
  return x ^ x >> 32;
}
/// The final mix of XXH64, for the shortest inputs.
[[gnu::always_inline]] constexpr std::uint64_t avalanche_xxh64(std::uint64_t x) {
  x ^= x >> 33;
  x *= kPrime64_2;
  x ^= x >> 29;
  x *= kPrime64_3;
  return x ^ x >> 32;
}

/// What one word of a stripe adds to its own accumulator; the word itself is added to its neighbour's.
[[gnu::always_inline]] constexpr std::uint64_t stripe_product(std::uint64_t word, std::uint64_t secret) {
  const std::uint64_t key = word ^ secret;
  return (key & 0xFFFFFFFF) * (key >> 32);
}
[[gnu::always_inline]] constexpr std::uint64_t scrambled(std::uint64_t accumulator, std::uint64_t secret) {
  return ((accumulator ^ accumulator >> 47) ^ secret) * kPrime32_1;
}

/// At most 16 bytes, in two words; what the words hold behind the last byte does not matter.
constexpr std::uint64_t hash_short(std::uint64_t low, std::uint64_t high, unsigned size) {
  if (size > 8) {
    const unsigned beyond = size - 8;
    const std::uint64_t last = beyond == 8 ? high : straddling_word(low, high, beyond);
    const std::uint64_t a = kSecretAt<24> ^ kSecretAt<32> ^ low;
    const std::uint64_t b = kSecretAt<40> ^ kSecretAt<48> ^ last;
    std::uint64_t swapped = 0;
    for (unsigned i = 0; i < 8; ++i) swapped = swapped << 8 | (a >> (8 * i) & 0xFF);
    return avalanche(size + swapped + b + folded_product(a, b));
  }
  if (size >= 4) {
    const auto first = static_cast<std::uint32_t>(low);
    const auto last = static_cast<std::uint32_t>(low >> (8 * (size - 4)));
    std::uint64_t x = kSecretAt<8> ^ kSecretAt<16> ^ (static_cast<std::uint64_t>(first) << 32 | last);
    x ^= (x << 49 | x >> 15) ^ (x << 24 | x >> 40);
    x *= kPrimeMix2;
    x ^= (x >> 35) + size;
    x *= kPrimeMix2;
    return x ^ x >> 28;
  }
  if (size > 0) {
    const auto byte = [&](unsigned i) { return static_cast<std::uint32_t>(low >> (8 * i)) & 0xFF; };
    const std::uint32_t combined = byte(size - 1) | size << 8 | byte(0) << 16 | byte(size / 2) << 24;
    return avalanche_xxh64(((kSecretAt<0> ^ kSecretAt<0> >> 32) & 0xFFFFFFFF) ^ combined);
  }
  return avalanche_xxh64(kSecretAt<56> ^ kSecretAt<64>);
}

/// `count` bytes at any address as the low bytes of a word.
[[gnu::always_inline]] constexpr std::uint64_t load_bytes(const std::uint8_t* at, unsigned count) {
  std::uint64_t word = 0;
  for (unsigned i = 0; i < count; ++i) word |= static_cast<std::uint64_t>(at[i]) << (8 * i);
  return word;
}
/// Eight of them; processors that may load words from anywhere do so in one instruction.
[[gnu::always_inline]] constexpr std::uint64_t load_word(const std::uint8_t* at) {
  const auto byte = [&](unsigned i) { return static_cast<std::uint64_t>(at[i]) << (8 * i); };
  return byte(0) | byte(1) | byte(2) | byte(3) | byte(4) | byte(5) | byte(6) | byte(7);
}

/// 17 to 240 bytes.
[[gnu::noinline]] constexpr std::uint64_t hash_medium(const std::uint8_t* bytes, unsigned size) {
  const auto words = default_secret();
  std::uint64_t sum = size * kPrime64_1;
  const auto mix = [&](unsigned at, unsigned secret_at) {
    sum += folded_product(load_word(bytes + at) ^ secret_word(words, secret_at),
                          load_word(bytes + at + 8) ^ secret_word(words, secret_at + 8));
  };
  if (size <= 128) {
    rolled(0, (size + 31) / 32, [&](unsigned i) {
      mix(16 * i, 32 * i);
      mix(size - 16 * (i + 1), 32 * i + 16);
    });
    return avalanche(sum);
  }
  rolled(0, 8, [&](unsigned i) { mix(16 * i, 16 * i); });
  sum = avalanche(sum);
  rolled(8, size / 16, [&](unsigned i) { mix(16 * i, 16 * (i - 8) + kSecondHalfSecret); });
  mix(size - 16, kLastMixSecret);
  return avalanche(sum);
}

/// Adds a stripe to the accumulators of a long input.
[[gnu::always_inline]] constexpr void add_stripe(std::array<std::uint64_t, kAccumulators>& sums,
                                                 const std::uint8_t* stripe, const std::uint64_t* secret) {
  for (std::size_t i = 0; i < kAccumulators; ++i) {
    const std::uint64_t word = load_word(stripe + 8 * i);
    sums[i ^ 1] += word;
    sums[i] += stripe_product(word, secret[i]);
  }
}

/// More than 240 bytes.
[[gnu::noinline]] constexpr std::uint64_t hash_long(const std::uint8_t* bytes, std::uint64_t size) {
  const auto words = default_secret();
  std::array<std::uint64_t, kAccumulators> last_stripe{}, merge{};
  for (std::size_t i = 0; i < kAccumulators; ++i) {
    last_stripe[i] = secret_word(words, kLastStripeSecret + 8 * i);
    merge[i] = secret_word(words, kMergeSecret + 8 * i);
  }
  auto sums = first_accumulators();
  const std::uint64_t stripes = (size - 1) / kStripeBytes;  // whole ones, but for the last 64 bytes
  std::size_t in_block = 0;
  for (std::uint64_t s = 0; s < stripes; ++s) {
    add_stripe(sums, bytes + s * kStripeBytes, words.data() + in_block);
    if (++in_block < kBlockStripes) continue;
    in_block = 0;
    for (std::size_t i = 0; i < kAccumulators; ++i) sums[i] = scrambled(sums[i], words[kScrambleSecret / 8 + i]);
  }
  add_stripe(sums, bytes + (size - kStripeBytes), last_stripe.data());
  std::uint64_t hash = size * kPrime64_1;
  for (std::size_t i = 0; i < kAccumulators; i += 2)
    hash += folded_product(sums[i] ^ merge[i], sums[i + 1] ^ merge[i + 1]);
  return avalanche(hash);
}

}  // namespace xxh3

/// XXH3-64 with seed 0 of `size` bytes at any address. O(size).
constexpr std::uint64_t xxh3_64(const std::uint8_t* bytes, std::uint64_t size) {
  using namespace xxh3;
  if (size > kMaxMediumBytes) return hash_long(bytes, size);
  const auto few = static_cast<unsigned>(size);
  if (few > 16) return hash_medium(bytes, few);
  return hash_short(load_bytes(bytes, few < 8 ? few : 8), few > 8 ? load_bytes(bytes + 8, few - 8) : 0, few);
}

}  // namespace quern::kernels
