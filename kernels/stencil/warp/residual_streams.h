// Residuals of a section, taken by the lanes of a warp: every lane of the section has a lane of the warp to itself. For
// chunks in raster order and under the wavelet; kernels/entropy/warp/residual_stream.h is faster and serves those in
// levels.
#pragma once

#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/lanes.h"
#include "kernels/entropy/context_bin.h"
#include "kernels/entropy/rans.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/entropy/token_distribution.h"
#include "kernels/stencil/level_job.h"

namespace quern::kernels {

/// Finds the token of a slot: where to begin looking, then upwards.
struct LevelTokens {
  static constexpr unsigned kBucketShift = 7;
  static constexpr unsigned kBuckets = kFrequencySum >> kBucketShift;
  std::uint16_t starts[kResidualTokens + 2];
  std::uint8_t buckets[kBuckets];
};

/// What the warps of a chunk share: a table for each distribution, and which one serves a context bin.
struct LevelTables {
  LevelTokens tokens[kContextBins];
  std::uint8_t serving[kContextBins];
};

/// Fills the tables; called by every warp of a chunk.
template <class X, class Job>
constexpr void fill_level_tables(const Job& job, const StreamStarts* starts, std::uint32_t warp, std::uint32_t warps,
                                 LevelTables& tables) {
  if (warp == 0) {
    X::lanes([&](std::size_t lane) {
      for (std::size_t i = lane; i < kContextBins; i += kLanes) X::store(&tables.serving[i], lane, job.serving[i]);
    });
  }
  for (std::uint32_t t = warp; t < job.table_count; t += warps) {
    LevelTokens& table = tables.tokens[t];
    const StreamStarts& from = starts[t];
    X::lanes([&](std::size_t lane) {
      for (std::size_t i = lane; i < kResidualTokens + 2; i += kLanes)
        X::store(&table.starts[i], lane, X::load(&from.at[i], lane));
      for (std::size_t b = lane; b < LevelTokens::kBuckets; b += kLanes) {
        // The last token that begins at or before the bucket.
        unsigned low = 0;
        unsigned high = kResidualTokens;
        while (low < high) {
          const unsigned middle = (low + high) / 2;
          if (X::load(&from.at[middle + 1], lane) <= b << LevelTokens::kBucketShift)
            low = middle + 1;
          else
            high = middle;
        }
        X::store(&table.buckets[b], lane, static_cast<std::uint8_t>(low));
      }
    });
  }
}

/// States of a section's lanes. Words past a lane's end are zeros and make it fail.
template <class X>
struct LevelLanes {
  template <class T>
  using vec = typename X::template vec<T>;

  const std::uint8_t* words = nullptr;  ///< of all sections
  vec<std::uint32_t> at;                ///< byte of the word after the next
  vec<std::uint32_t> left;              ///< words, the next one included
  vec<std::uint32_t> next;              ///< the next word: known before it is needed
  vec<std::uint32_t> state;
  vec<bool> failed;

  constexpr void open(const StreamSection& section, const std::uint8_t* all_words) {
    words = all_words;
    X::lanes([&](std::size_t lane) {
      X::set(at, lane, std::uint32_t{0});
      X::set(left, lane, std::uint32_t{0});
      X::set(next, lane, std::uint32_t{0});
      X::set(state, lane, kRansFloor);
      X::set(failed, lane, false);
      if (lane > section.mask) return;
      const std::uint32_t from = 2 * section.begins[lane];
      X::set(state, lane, word(from, lane) | word(from + 2, lane) << 16);
      X::set(at, lane, from + 4);
      X::set(left, lane, section.begins[lane + 1] - section.begins[lane] - 2);
      look_ahead(lane);
    });
  }

  [[gnu::always_inline]] constexpr std::int32_t take(const LevelTokens& table, std::size_t lane) {
    std::uint32_t now = X::get(state, lane);
    const std::uint32_t slot = now & (kFrequencySum - 1);
    unsigned token = X::load(&table.buckets[slot >> LevelTokens::kBucketShift], lane);
    std::uint32_t start = X::load(&table.starts[token], lane);
    std::uint32_t end = X::load(&table.starts[token + 1], lane);
    while (slot >= end) {
      ++token;
      start = end;
      end = X::load(&table.starts[token + 1], lane);
    }
    now = (end - start) * (now >> kFrequencySumBits) + (slot - start);
    refill(now, lane);
    std::int32_t residual = 0;
    if (token != 0) {
      const unsigned count = token_open_bits(token) + 1;
      std::uint32_t plain = take_plain(now, count < kRansPlainBits ? count : unsigned{kRansPlainBits}, lane);
      if (count > kRansPlainBits) plain |= take_plain(now, count - kRansPlainBits, lane) << kRansPlainBits;
      const auto magnitude = static_cast<std::int32_t>(token_base(token) + (plain >> 1));
      residual = (plain & 1) != 0 ? -magnitude : magnitude;
    }
    X::set(state, lane, now);
    return residual;
  }

  /// True when every word of every lane was used and the states are those that encoding began with.
  constexpr bool finished() const {
    vec<bool> bad;
    X::lanes([&](std::size_t lane) {
      X::set(bad, lane, X::get(failed, lane) || X::get(left, lane) != 0 || X::get(state, lane) != kRansFloor);
    });
    return !X::any(bad);
  }

 private:
  [[gnu::always_inline]] constexpr std::uint32_t word(std::uint32_t from, std::size_t lane) const {
    return static_cast<std::uint32_t>(X::load(words + from, lane)) |
           static_cast<std::uint32_t>(X::load(words + from + 1, lane)) << 8;
  }
  [[gnu::always_inline]] constexpr void look_ahead(std::size_t lane) {
    if (X::get(left, lane) == 0) return;
    const std::uint32_t from = X::get(at, lane);
    X::set(next, lane, word(from, lane));
    X::set(at, lane, from + 2);
  }
  [[gnu::always_inline]] constexpr void refill(std::uint32_t& now, std::size_t lane) {
    if (now >= kRansFloor) return;
    if (X::get(left, lane) == 0) {
      X::set(failed, lane, true);
      now <<= 16;
      return;
    }
    now = now << 16 | X::get(next, lane);
    X::set(left, lane, X::get(left, lane) - 1);
    look_ahead(lane);
  }
  [[gnu::always_inline]] constexpr std::uint32_t take_plain(std::uint32_t& now, unsigned count, std::size_t lane) {
    const std::uint32_t bits = now & ((1u << count) - 1);
    now >>= count;
    refill(now, lane);
    return bits;
  }
};

}  // namespace quern::kernels
