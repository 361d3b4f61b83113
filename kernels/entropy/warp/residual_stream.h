// Residuals of a section in levels, taken by one warp: every lane of the section has a lane of the warp to itself.
// Where a section has fewer lanes than a warp, lane l of the warp follows lane l modulo their number, so that states
// need not be passed around. A step is one chain of dependent instructions with nothing to wait for but shared memory:
// tables and words lie there before they are needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/common/bits.h"
#include "kernels/common/lanes.h"
#include "kernels/common/unroll.h"
#include "kernels/entropy/context_bin.h"
#include "kernels/entropy/job_streams.h"
#include "kernels/entropy/rans.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/entropy/token_distribution.h"

namespace quern::kernels {

/// Two tokens of a bucket of slots: of the first, which begins at or before the bucket, its begin, end and number, and
/// where the token after it ends. Slots beyond are looked up.
struct alignas(8) SlotBucket {
  std::uint32_t first = 0;   ///< begin, and end << 16
  std::uint32_t second = 0;  ///< end of the second one, and number of the first << 16
};
inline constexpr unsigned kSlotBucketShift = 9;
inline constexpr unsigned kSlotBuckets = kFrequencySum >> kSlotBucketShift;

/// What stands for the context bin of a point without residual: it takes nothing from its lane and gives 0.
inline constexpr std::uint32_t kAbsentBin = kContextBins;

/// Tables of a chunk, for every context bin, in memory that its warps share.
struct SlotBuckets {
  SlotBucket of[kContextBins + 1][kSlotBuckets];
  StreamStarts starts[kContextBins];
  std::uint8_t serving[kContextBins];  ///< which of the starts a context bin has
};

/// Fills the tables from those of a job; called by every warp of a chunk.
template <class X, class Job>
constexpr void fill_slot_buckets(const Job& job, const StreamStarts* starts, std::uint32_t warp, std::uint32_t warps,
                                 SlotBuckets& buckets) {
  if (warp == 0) {
    X::lanes([&](std::size_t lane) {
      for (std::size_t b = lane; b < kSlotBuckets; b += kLanes)
        X::store(&buckets.of[kAbsentBin][b], lane, {kFrequencySum << 16, kFrequencySum});
    });
  }
  for (std::uint32_t t = warp; t < job.table_count; t += warps) {
    X::lanes([&](std::size_t lane) {
      for (std::size_t i = lane; i < kResidualTokens + 2; i += kLanes)
        X::store(&buckets.starts[t].at[i], lane, X::load(&starts[t].at[i], lane));
    });
  }
  for (std::uint32_t level = warp; level < kContextBins; level += warps) {
    const std::uint8_t serving = job.serving[level];
    const StreamStarts& from = starts[serving];
    X::lanes([&](std::size_t lane) {
      if (lane == 0) X::store(&buckets.serving[level], lane, serving);
      for (std::size_t b = lane; b < kSlotBuckets; b += kLanes) {
        // The last token that begins at or before the bucket.
        unsigned low = 0;
        unsigned high = kResidualTokens;
        while (low < high) {
          const unsigned middle = (low + high) / 2;
          if (X::load(&from.at[middle + 1], lane) <= b << kSlotBucketShift)
            low = middle + 1;
          else
            high = middle;
        }
        SlotBucket bucket;
        bucket.first = X::load(&from.at[low], lane) | std::uint32_t{X::load(&from.at[low + 1], lane)} << 16;
        bucket.second = X::load(&from.at[low + 2], lane) | low << 16;
        X::store(&buckets.of[level][b], lane, bucket);
      }
    });
  }
}

/// The next words of the lanes, in memory that the warp has to itself: a column for each lane.
inline constexpr std::uint32_t kKeptWords = 64;
struct StreamWords {
  std::uint16_t words[kKeptWords][kLanes];
  std::uint32_t paused[5][kLanes];  ///< lanes between two uses of the stream
};
/// Words that a lane fetches at a time, and the steps after which it may: more than they can use. It does where a lane
/// has fewer words than kFewWords, which last until what is fetched is kept. What is used beyond a lane's end is of no
/// matter, as the chunk is damaged then.
inline constexpr std::uint32_t kFetchedWords = 16;
inline constexpr std::uint32_t kFetchSteps = 4;
inline constexpr std::uint32_t kFewWords = 40;
static_assert(kFetchSteps * 3 < kFetchedWords && kFewWords + kFetchedWords <= kKeptWords &&
              kFetchedWords % kStreamWordAlignment == 0);

template <class X>
class ResidualStream {
 public:
  template <class T>
  using vec = typename X::template vec<T>;

  constexpr ResidualStream(const SlotBuckets& buckets, StreamWords& memory) : buckets_(&buckets), memory_(&memory) {}

  constexpr void open(const StreamSection& section, const std::uint8_t* words) {
    words_ = words;
    mask_ = section.mask;
    steps_ = 0;
    X::lanes([&](std::size_t lane) {
      const std::size_t own = lane & mask_;
      const std::uint32_t begin = section.begins[own];
      X::set(end_, lane, section.begins[own + 1]);
      const std::uint32_t aligned = begin / kStreamWordAlignment * kStreamWordAlignment;
      X::set(filled_, lane, aligned);
      X::set(room_, lane, true);
      for (std::uint32_t i = 0; i < kKeptWords / kFetchedWords; ++i) {
        fetch(lane);
        keep(lane);
      }
      X::set(state_, lane, two_words(begin, lane));
      X::set(at_, lane, begin + 2);
      X::set(next_, lane, two_words(begin + 2, lane));
    });
    fetching_ = false;
    pause();
  }
  /// The lanes are put away, so that registers are free for other work, and taken up again.
  constexpr void pause() {
    X::lanes([&](std::size_t lane) {
      if (fetching_) keep(lane);
      for_paused(
          [&](auto i, vec<std::uint32_t>& value) { X::store(&memory_->paused[i][lane], lane, X::get(value, lane)); });
    });
  }
  constexpr void resume() {
    steps_ = 0;
    X::lanes([&](std::size_t lane) {
      for_paused(
          [&](auto i, vec<std::uint32_t>& value) { X::set(value, lane, X::load(&memory_->paused[i][lane], lane)); });
    });
    fetching_ = false;
    fetch_ahead();
  }

  /// A step of the lanes, each with a residual of its context bin.
  [[gnu::always_inline]] constexpr void take(const vec<std::uint32_t>& levels, vec<std::int32_t>& residuals) {
    X::lanes([&](std::size_t lane) { X::set(residuals, lane, take_one(X::get(levels, lane), lane)); });
    if (++steps_ % kFetchSteps != 0) return;
    if (fetching_) {
      X::lanes([&](std::size_t lane) { keep(lane); });
    }
    fetch_ahead();
  }

  /// The residuals of 32 points, of lane l of the warp that of stream l modulo the number of streams: one step, or where
  /// there are fewer streams, several.
  [[gnu::always_inline]] constexpr void take_window(const vec<std::uint32_t>& levels, vec<std::int32_t>& residuals) {
    if (mask_ + 1 < kLanes)
      take_few(levels, residuals);
    else
      take(levels, residuals);
  }

  /// True when every word of every lane was used and the states are those that encoding began with.
  constexpr bool finished() {
    resume();
    vec<bool> bad;
    X::lanes([&](std::size_t lane) {
      X::set(bad, lane, X::get(at_, lane) != X::get(end_, lane) || X::get(state_, lane) != kRansFloor);
    });
    return !X::any(bad);
  }

 private:
  struct alignas(16) Fetched {
    std::uint32_t units[kStreamWordAlignment / 2];
  };
  static constexpr std::size_t kFetches = kFetchedWords / kStreamWordAlignment;
  static constexpr std::uint32_t kTriedTogether = 8;

  /// Frequency of token 0 at a context bin.
  [[gnu::always_inline]] constexpr std::uint32_t zero_frequency(std::uint32_t level, std::size_t lane) const {
    return X::load(&buckets_->of[level][0].first, lane) >> 16;
  }

  /// Points of a stream of few lanes: as many steps as its lanes go into a warp's.
  constexpr void take_few(const vec<std::uint32_t>& levels, vec<std::int32_t>& residuals) {
    X::lanes([&](std::size_t lane) { X::set(residuals, lane, std::int32_t{0}); });
    if (all_are_zero(levels)) return;
    const unsigned bits = popcount(mask_);
    rolled(0, kLanes >> bits, [&](unsigned step) {
      vec<std::uint32_t> from;
      vec<std::uint32_t> level;
      vec<std::int32_t> residual;
      X::lanes(
          [&](std::size_t lane) { X::set(from, lane, (step << bits) + (static_cast<std::uint32_t>(lane) & mask_)); });
      X::shuffle(level, levels, from);
      take(level, residual);
      X::lanes([&](std::size_t lane) {
        if (lane >> bits == step) X::set(residuals, lane, X::get(residual, lane));
      });
    });
  }

  /// Tries whether all points are zeros, which few lanes mostly say again and again; moves the states if so. No words
  /// are used then.
  constexpr bool all_are_zero(const vec<std::uint32_t>& levels) {
    const unsigned bits = popcount(mask_);
    vec<std::uint32_t> frequencies;
    vec<bool> open;
    X::lanes([&](std::size_t lane) {
      // A token that always comes leaves the state alone.
      const std::uint32_t frequency = zero_frequency(X::get(levels, lane), lane);
      X::set(frequencies, lane, frequency);
      X::set(open, lane, frequency != kFrequencySum);
    });
    if (!X::any(open)) return true;
    vec<std::uint32_t> state;
    vec<bool> bad;
    X::lanes([&](std::size_t lane) {
      X::set(state, lane, X::get(state_, lane));
      X::set(bad, lane, false);
    });
    const auto try_step = [&](std::uint32_t step) __attribute__((always_inline)) {
      vec<std::uint32_t> from;
      vec<std::uint32_t> frequency;
      X::lanes(
          [&](std::size_t lane) { X::set(from, lane, (step << bits) + (static_cast<std::uint32_t>(lane) & mask_)); });
      X::shuffle(frequency, frequencies, from);
      X::lanes([&](std::size_t lane) {
        const std::uint32_t slot = X::get(state, lane) & (kFrequencySum - 1);
        const std::uint32_t next = X::get(frequency, lane) * (X::get(state, lane) >> kFrequencySumBits) + slot;
        X::set(bad, lane, X::get(bad, lane) || slot >= X::get(frequency, lane) || next < kRansFloor);
        X::set(state, lane, next);
      });
    };
    const std::uint32_t steps = kLanes >> bits;
    std::uint32_t step = 0;
    for (; step + kTriedTogether <= steps; step += kTriedTogether)
      unroll<kTriedTogether>([&](auto i) { try_step(step + static_cast<std::uint32_t>(i)); });
    rolled(step, steps, [&](unsigned s) { try_step(s); });
    if (X::any(bad)) return false;
    X::lanes([&](std::size_t lane) { X::set(state_, lane, X::get(state, lane)); });
    return true;
  }

  template <class F>
  [[gnu::always_inline]] constexpr void for_paused(F&& f) {
    f(std::integral_constant<std::size_t, 0>{}, at_);
    f(std::integral_constant<std::size_t, 1>{}, end_);
    f(std::integral_constant<std::size_t, 2>{}, filled_);
    f(std::integral_constant<std::size_t, 3>{}, next_);
    f(std::integral_constant<std::size_t, 4>{}, state_);
  }

  [[gnu::always_inline]] constexpr std::int32_t take_one(std::uint32_t level, std::size_t lane) {
    std::uint32_t now = X::get(state_, lane);
    std::uint32_t next = X::get(next_, lane);
    std::uint32_t at = X::get(at_, lane);
    const auto refill = [&] {
      const bool low = now < kRansFloor;
      now = low ? now << 16 | (next & 0xFFFF) : now;
      next = low ? next >> 16 : next;
      at += low ? 1 : 0;
    };
    const std::uint32_t slot = now & (kFrequencySum - 1);
    const SlotBucket bucket = X::load(&buckets_->of[level][slot >> kSlotBucketShift], lane);
    std::uint32_t begin = bucket.first & 0xFFFF;
    std::uint32_t end = bucket.first >> 16;
    std::uint32_t token = bucket.second >> 16;
    if (slot >= end) {
      begin = end;
      end = bucket.second & 0xFFFF;
      ++token;
    }
    if (slot >= end) {
      const StreamStarts& starts = buckets_->starts[X::load(&buckets_->serving[level], lane)];
      while (slot >= end) {
        begin = end;
        ++token;
        end = X::load(&starts.at[token + 1], lane);
      }
    }
    now = (end - begin) * (now >> kFrequencySumBits) + (slot - begin);
    refill();
    std::uint32_t count = token < 1 ? token : 1;
    std::uint32_t magnitude = token;
    if (token >= kPlainMagnitudes) {
      count = token_open_bits(token) + 1;
      magnitude = token_base(token);
    }
    const std::uint32_t low_count = count < kRansPlainBits ? count : std::uint32_t{kRansPlainBits};
    std::uint32_t plain = now & ((1u << low_count) - 1);
    now >>= low_count;
    refill();
    if (count > kRansPlainBits) {
      plain |= (now & ((1u << (count - kRansPlainBits)) - 1)) << kRansPlainBits;
      now >>= count - kRansPlainBits;
      next = two_words(at, lane);
      refill();
    }
    X::set(next_, lane, two_words(at, lane));
    X::set(at_, lane, at);
    X::set(state_, lane, now);
    magnitude += plain >> 1;
    return static_cast<std::int32_t>((plain & 1) != 0 ? 0 - magnitude : magnitude);
  }

  /// The word of a number and the one after it.
  [[gnu::always_inline]] constexpr std::uint32_t two_words(std::uint32_t number, std::size_t lane) const {
    return X::load(&memory_->words[number % kKeptWords][lane], lane) |
           std::uint32_t{X::load(&memory_->words[(number + 1) % kKeptWords][lane], lane)} << 16;
  }
  /// Fetches words where there is room for them if a lane has few; they are kept a few steps later.
  constexpr void fetch_ahead() {
    vec<bool> few;
    X::lanes([&](std::size_t lane) { X::set(few, lane, X::get(filled_, lane) - X::get(at_, lane) < kFewWords); });
    fetching_ = X::any(few);
    if (!fetching_) return;
    X::lanes([&](std::size_t lane) {
      const bool room = X::get(filled_, lane) + kFetchedWords <= X::get(at_, lane) + kKeptWords;
      X::set(room_, lane, room);
      if (room) fetch(lane);
    });
  }
  /// Words from number `filled_` on: the job has them up to the next multiple of kStreamWordAlignment.
  [[gnu::always_inline]] constexpr void fetch(std::size_t lane) {
    constexpr std::uint32_t kUnits = kStreamWordAlignment / 2;
    unroll<kFetches>([&](auto f) {
      const std::uint32_t from = X::get(filled_, lane) + static_cast<std::uint32_t>(f) * kStreamWordAlignment;
      Fetched fetched{};
      if (from < X::get(end_, lane))
        fetched = X::load(reinterpret_cast<const Fetched*>(words_ + std::size_t{2} * from), lane);
      unroll<kUnits>([&](auto i) { X::set(fetched_[f * kUnits + i], lane, fetched.units[i]); });
    });
  }
  [[gnu::always_inline]] constexpr void keep(std::size_t lane) {
    if (!X::get(room_, lane)) return;
    constexpr std::uint32_t kUnits = kStreamWordAlignment / 2;
    unroll<kFetches>([&](auto f) {
      const std::uint32_t first =
          (X::get(filled_, lane) + static_cast<std::uint32_t>(f) * kStreamWordAlignment) % kKeptWords;
      unroll<kStreamWordAlignment>([&](auto i) {
        const std::uint32_t unit = X::get(fetched_[f * kUnits + i / 2], lane);
        X::store(&memory_->words[first + static_cast<std::uint32_t>(i)][lane], lane,
                 static_cast<std::uint16_t>(unit >> (i % 2 * 16)));
      });
    });
    X::set(filled_, lane, X::get(filled_, lane) + kFetchedWords);
  }

  const SlotBuckets* buckets_;
  StreamWords* memory_;
  const std::uint8_t* words_ = nullptr;
  std::uint32_t mask_ = 0;
  std::uint32_t steps_ = 0;
  vec<std::uint32_t> at_;      ///< number of the next word
  vec<std::uint32_t> end_;     ///< of the lane's words
  vec<std::uint32_t> filled_;  ///< of the first word that is not in memory_
  vec<std::uint32_t> next_;    ///< the next two words
  vec<std::uint32_t> state_;
  bool fetching_ = false;  ///< fetched_ holds words from filled_ on, of lanes that have room
  vec<bool> room_;
  vec<std::uint32_t> fetched_[kFetchedWords / 2];
};

}  // namespace quern::kernels
