// XXH3-64 of one input by a warp, over an execution model X: the same number as xxh3.h. The input is bytes at any
// alignment, with two words in front of them if wanted, which bind a checksum to its place.
//
// Memory is read in aligned words of 8 bytes, by each lane its own, neighbours side by side. No word is touched that
// holds no wanted byte, but of the first and the last also the bytes around are: where the input ends less than a word
// before the end of its allocation, the allocation must go on to the end of that word.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/lanes.h"
#include "kernels/common/unroll.h"
#include "kernels/common/xxh3.h"

namespace quern::kernels {

/// Eight bytes of a stream, which is bytes elsewhere.
struct [[gnu::may_alias]] StreamWord {
  std::uint64_t value;
};

/// What is hashed; the same in all lanes.
struct LaneHashInput {
  const std::uint8_t* bytes = nullptr;  ///< device memory, where X is a device's
  std::uint64_t size = 0;
  std::uint64_t first = 0;  ///< the words in front, if has_prefix
  std::uint64_t second = 0;
  bool has_prefix = false;

  [[gnu::always_inline]] constexpr std::uint64_t prefix_size() const { return has_prefix ? 16 : 0; }
  [[gnu::always_inline]] constexpr std::uint64_t total() const { return size + prefix_size(); }
};

namespace xxh3 {

/// The word at an address, of which `wanted` bytes, 1 to 8, exist. Without branches, so that a lane need not wait for
/// one word to ask for the next: a second word that is not wanted is the first once more.
template <class X>
[[gnu::always_inline]] constexpr std::uint64_t memory_word(const std::uint8_t* at, unsigned wanted, std::size_t lane) {
  const auto odd = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(at)) % 8;
  const auto* const words = reinterpret_cast<const StreamWord*>(at - odd);
  const std::uint64_t low = X::load(words, lane).value;
  return straddling_word(low, X::load(words + (odd + wanted > 8 ? 1 : 0), lane).value, odd);
}

/// Word l of the secret in lane l.
template <class X>
constexpr void lane_secret(typename X::template vec<std::uint64_t>& secret) {
  X::lanes([&](auto lane) {
    std::uint64_t word = 0;
    unroll<kSecretWords>([&](auto w) {
      if (lane == w) word = default_secret()[w];
    });
    X::set(secret, lane, word);
  });
}

/// Lane by lane, the bytes at `offset` of a table that lies word by word in the lanes.
template <class X>
constexpr void lookup(const typename X::template vec<std::uint64_t>& table,
                      const typename X::template vec<std::uint32_t>& offset,
                      typename X::template vec<std::uint64_t>& out) {
  typename X::template vec<std::uint32_t> from;
  typename X::template vec<std::uint64_t> low, high;
  X::lanes([&](auto lane) { X::set(from, lane, X::get(offset, lane) / 8); });
  X::shuffle(low, table, from);
  X::lanes([&](auto lane) { X::set(from, lane, X::get(offset, lane) / 8 + 1); });
  X::shuffle(high, table, from);
  X::lanes([&](auto lane) {
    X::set(out, lane, straddling_word(X::get(low, lane), X::get(high, lane), X::get(offset, lane) % 8));
  });
}

/// out[l] = a[l ^ distance].
template <class X>
constexpr void exchange(typename X::template vec<std::uint64_t>& out, const typename X::template vec<std::uint64_t>& a,
                        unsigned distance) {
  typename X::template vec<std::uint32_t> from;
  X::lanes([&](auto lane) { X::set(from, lane, static_cast<std::uint32_t>(lane) ^ distance); });
  X::shuffle(out, a, from);
}
/// a[l] += a[l ^ distance].
template <class X>
constexpr void add_exchanged(typename X::template vec<std::uint64_t>& a, unsigned distance) {
  typename X::template vec<std::uint64_t> other;
  exchange<X>(other, a, distance);
  X::lanes([&](auto lane) { X::set(a, lane, X::get(a, lane) + X::get(other, lane)); });
}

/// Up to 240 bytes: the whole input lies in the lanes.
template <class X>
constexpr std::uint64_t hash_up_to_medium(const LaneHashInput& input) {
  const auto total = static_cast<unsigned>(input.total());
  typename X::template vec<std::uint64_t> words;
  X::lanes([&](auto lane) {
    const auto at = 8 * static_cast<unsigned>(lane);
    const auto before = static_cast<unsigned>(input.prefix_size());
    std::uint64_t word = 0;
    if (at < before) {
      word = at == 0 ? input.first : input.second;
    } else if (at < total) {
      word = memory_word<X>(input.bytes + (at - before), total - at < 8 ? total - at : 8, lane);
    }
    X::set(words, lane, word);
  });
  if (total <= 16) return hash_short(X::broadcast(words, 0), X::broadcast(words, 1), total);
  // Each lane mixes 16 bytes; lanes 0 to 7 are the first half of inputs of more than 128 bytes.
  const unsigned mixes = total <= 128 ? 2 * ((total + 31) / 32) : total / 16 + 1;
  typename X::template vec<std::uint32_t> offset, secret_offset;
  X::lanes([&](auto lane) {
    const auto m = static_cast<std::uint32_t>(lane);
    std::uint32_t from = 16 * m, key = 16 * m;
    if (total <= 128) {
      from = m % 2 == 0 ? 8 * m : total - 8 * (m + 1);
    } else if (m + 1 == mixes) {
      from = total - 16;
      key = kLastMixSecret;
    } else if (m >= 8) {
      key = 16 * (m - 8) + kSecondHalfSecret;
    }
    X::set(offset, lane, m < mixes ? from : 0);
    X::set(secret_offset, lane, m < mixes ? key : 0);
  });
  typename X::template vec<std::uint64_t> secret, sum;
  lane_secret<X>(secret);
  typename X::template vec<std::uint64_t> data[2], keys[2];
  unroll<2>([&](auto half) {
    lookup<X>(words, offset, data[half]);
    lookup<X>(secret, secret_offset, keys[half]);
    X::lanes([&](auto lane) {
      X::set(offset, lane, X::get(offset, lane) + 8);
      X::set(secret_offset, lane, X::get(secret_offset, lane) + 8);
    });
  });
  X::lanes([&](auto lane) {
    const std::uint64_t product =
        folded_product(X::get(data[0], lane) ^ X::get(keys[0], lane), X::get(data[1], lane) ^ X::get(keys[1], lane));
    X::set(sum, lane, lane < mixes ? product : std::uint64_t{0});
  });
  unroll<3>([&](auto step) { add_exchanged<X>(sum, 1u << step); });
  std::uint64_t hash = avalanche(total * kPrime64_1 + X::broadcast(sum, 0));
  if (total > 128) hash = avalanche(hash + X::broadcast(sum, 8));
  return hash;
}

}  // namespace xxh3

/// The long form, for more than 240 bytes: first the sums of all blocks, each by whichever warp, then these are added
/// in order, then the end. Lane l works on accumulator l % 8 of every fourth stripe; four stripes are a step.
template <class X>
class LaneLongHash {
 public:
  using Words = typename X::template vec<std::uint64_t>;
  static constexpr unsigned kStepStripes = kLanes / xxh3::kAccumulators;
  static constexpr unsigned kSteps = xxh3::kBlockStripes / kStepStripes;
  /// The words of a block.
  struct Block {
    Words steps[kSteps];
  };

  constexpr explicit LaneLongHash(const LaneHashInput& input);

  /// Whole blocks, without the last, which has 1 to 1024 bytes.
  constexpr std::uint64_t blocks() const { return (input_.total() - 1) / xxh3::kBlockBytes; }
  /// Reads a whole block.
  constexpr void load(std::uint64_t block, Block& words) const {
    unroll<kSteps>(
        [&](auto s) { X::lanes([&](auto lane) { X::set(words.steps[s], lane, block_word(block, s, lane)); }); });
  }
  /// What a whole block adds to the accumulator of each lane. Depends on its bytes alone.
  constexpr void sum_block(const Block& words, Words& sum) const {
    Words products, plain;
    X::lanes([&](auto lane) {
      std::uint64_t p = 0, w = 0;
      unroll<kSteps>([&](auto s) {
        const std::uint64_t word = X::get(words.steps[s], lane);
        p += xxh3::stripe_product(word, X::get(secrets_[s], lane));
        w += word;
      });
      X::set(products, lane, p);
      X::set(plain, lane, w);
    });
    add_stripes(products, plain, sum);
  }
  /// Adds the sum of the next block.
  constexpr void add_block(const Words& sum) {
    X::lanes([&](auto lane) {
      X::set(accumulators_, lane,
             xxh3::scrambled(X::get(accumulators_, lane) + X::get(sum, lane), X::get(scramble_, lane)));
    });
  }
  /// Adds the sums of the next `count` blocks, at least 1: those of block i at sums + 8 * i. What is multiplied takes
  /// in the next sum with the product's upper half, which shortens the chain.
  constexpr void add_blocks(const std::uint64_t* sums, unsigned count) {
    constexpr unsigned kTogether = 8;
    Words pending;
    X::lanes([&](auto lane) {
      X::set(pending, lane, X::get(accumulators_, lane) + X::load(sums + accumulator_of(lane), lane));
    });
    const auto follow = [&](const Words& next) {
      X::lanes([&](auto lane) {
        const std::uint64_t x = X::get(pending, lane);
        const std::uint64_t key = x ^ x >> 47 ^ X::get(scramble_, lane);
        const std::uint64_t upper = X::get(next, lane) + ((key >> 32) * xxh3::kPrime32_1 << 32);
        X::set(pending, lane, (key & 0xFFFFFFFF) * xxh3::kPrime32_1 + upper);
      });
    };
    unsigned i = 1;
    const auto read = [&](unsigned block, Words& out) {
      X::lanes([&](auto lane) {
        X::set(out, lane, X::load(sums + block * xxh3::kAccumulators + accumulator_of(lane), lane));
      });
    };
    for (; i + kTogether <= count; i += kTogether) {
      Words next[kTogether];
      unroll<kTogether>([&](auto k) { read(i + k, next[k]); });
      unroll<kTogether>([&](auto k) { follow(next[k]); });
    }
    for (; i < count; ++i) {
      Words next;
      read(i, next);
      follow(next);
    }
    X::lanes([&](auto lane) {
      X::set(accumulators_, lane, xxh3::scrambled(X::get(pending, lane), X::get(scramble_, lane)));
    });
  }
  /// After all blocks.
  constexpr std::uint64_t finish();

 private:
  [[gnu::always_inline]] static constexpr unsigned accumulator_of(std::size_t lane) {
    return static_cast<unsigned>(lane) % xxh3::kAccumulators;
  }
  [[gnu::always_inline]] static constexpr unsigned stripe_of(std::size_t lane) {
    return static_cast<unsigned>(lane) / xxh3::kAccumulators;
  }
  /// The word of a lane in a step of a block.
  template <class Step>
  [[gnu::always_inline]] constexpr std::uint64_t block_word(std::uint64_t block, Step step, std::size_t lane) const {
    const std::uint64_t word = block * (xxh3::kBlockBytes / 8) + (kLanes * step + lane);
    const std::uint64_t before = input_.prefix_size() / 8;
    if constexpr (step != 0) return aligned_word(word - before, lane);
    const std::uint64_t in_memory = aligned_word(word < before ? 0 : word - before, lane);
    return word < before ? (word == 0 ? input_.first : input_.second) : in_memory;
  }
  /// The `index`-th word of the bytes, all of which is wanted.
  [[gnu::always_inline]] constexpr std::uint64_t aligned_word(std::uint64_t index, std::size_t lane) const {
    const StreamWord* const at = words_ + index;
    const std::uint64_t low = X::load(at, lane).value;
    return xxh3::straddling_word(low, X::load(at + (odd_ != 0 ? 1 : 0), lane).value, odd_);
  }
  /// Sums of the lanes' stripes, the same in all lanes of an accumulator: a word counts for the accumulator beside its
  /// own.
  static constexpr void add_stripes(const Words& products, const Words& plain, Words& sum) {
    xxh3::exchange<X>(sum, plain, 1);
    X::lanes([&](auto lane) { X::set(sum, lane, X::get(sum, lane) + X::get(products, lane)); });
    xxh3::add_exchanged<X>(sum, xxh3::kAccumulators);
    xxh3::add_exchanged<X>(sum, 2 * xxh3::kAccumulators);
  }

  LaneHashInput input_;
  const StreamWord* words_;  // the one with the first byte, in which it is byte odd_
  unsigned odd_;
  Words secrets_[kSteps];  // of each step's stripe
  Words scramble_;
  Words last_stripe_;
  Words merge_;
  Words accumulators_;
};

template <class X>
constexpr LaneLongHash<X>::LaneLongHash(const LaneHashInput& input)
    : input_(input), odd_(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(input.bytes)) % 8) {
  words_ = reinterpret_cast<const StreamWord*>(input.bytes - odd_);
  X::lanes([&](auto lane) {
    std::uint64_t first = 0;
    unroll<xxh3::kAccumulators>([&](auto a) {
      if (accumulator_of(lane) == a) first = xxh3::first_accumulators()[a];
    });
    X::set(accumulators_, lane, first);
  });
  Words secret;
  xxh3::lane_secret<X>(secret);
  const auto read = [&](unsigned begin, bool by_stripe, Words& out) {
    typename X::template vec<std::uint32_t> offset;
    X::lanes([&](auto lane) {
      X::set(offset, lane, begin + 8 * (accumulator_of(lane) + (by_stripe ? stripe_of(lane) : 0)));
    });
    xxh3::lookup<X>(secret, offset, out);
  };
  unroll<kSteps>([&](auto s) { read(static_cast<unsigned>(8 * s * kStepStripes), true, secrets_[s]); });
  read(xxh3::kScrambleSecret, false, scramble_);
  read(xxh3::kLastStripeSecret, false, last_stripe_);
  read(xxh3::kMergeSecret, false, merge_);
}

template <class X>
constexpr std::uint64_t LaneLongHash<X>::finish() {
  const std::uint64_t total = input_.total();
  const std::uint64_t block = blocks();
  const auto stripes = static_cast<unsigned>((total - 1) % xxh3::kBlockBytes / xxh3::kStripeBytes);
  const std::uint8_t* const last_stripe = input_.bytes + (input_.size - xxh3::kStripeBytes);
  Words products, plain, sum;
  X::lanes([&](auto lane) {
    std::uint64_t p = 0, w = 0;
    const auto add = [&](std::uint64_t word, std::uint64_t secret) {
      p += xxh3::stripe_product(word, secret);
      w += word;
    };
    unroll<kSteps>([&](auto s) {
      if (s * kStepStripes + stripe_of(lane) < stripes) add(block_word(block, s, lane), X::get(secrets_[s], lane));
    });
    if (lane < xxh3::kAccumulators)
      add(xxh3::memory_word<X>(last_stripe + 8 * lane, 8, lane), X::get(last_stripe_, lane));
    X::set(products, lane, p);
    X::set(plain, lane, w);
  });
  add_stripes(products, plain, sum);
  Words left, right;
  X::lanes(
      [&](auto lane) { X::set(left, lane, (X::get(accumulators_, lane) + X::get(sum, lane)) ^ X::get(merge_, lane)); });
  xxh3::exchange<X>(right, left, 1);
  X::lanes([&](auto lane) { X::set(sum, lane, xxh3::folded_product(X::get(left, lane), X::get(right, lane))); });
  xxh3::add_exchanged<X>(sum, 2);
  xxh3::add_exchanged<X>(sum, 4);
  return xxh3::avalanche(total * xxh3::kPrime64_1 + X::broadcast(sum, 0));
}

/// XXH3-64 with seed 0 of an input, by all lanes together; all of them get it. O(input.total()).
template <class X>
constexpr std::uint64_t xxh3_lanes(const LaneHashInput& input) {
  if (input.total() <= xxh3::kMaxMediumBytes) return xxh3::hash_up_to_medium<X>(input);
  using Hash = LaneLongHash<X>;
  Hash hash(input);
  const std::uint64_t blocks = hash.blocks();
  typename Hash::Words sum;
  std::uint64_t b = 0;
  // Several blocks are read before the first is worked on: one warp alone waits for memory most of the time.
  constexpr std::size_t kTogether = 4;
  for (; b + kTogether <= blocks; b += kTogether) {
    typename Hash::Block words[kTogether];
    unroll<kTogether>([&](auto i) { hash.load(b + i, words[i]); });
    unroll<kTogether>([&](auto i) {
      hash.sum_block(words[i], sum);
      hash.add_block(sum);
    });
  }
  for (; b < blocks; ++b) {
    typename Hash::Block words;
    hash.load(b, words);
    hash.sum_block(words, sum);
    hash.add_block(sum);
  }
  return hash.finish();
}

}  // namespace quern::kernels
