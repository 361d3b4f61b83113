// Symbols of masks that are coded by levels, as a warp writes them: noted with their probabilities in their order, then
// put into the words of lanes from the last one on. Over an execution model X (see kernels/README.md).
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/lanes.h"
#include "kernels/mask/levels/lanes.h"
#include "kernels/mask/warp/level_lattice.h"
#include "kernels/mask/warp/level_tables.h"
#include "kernels/mask/warp/memory.h"

namespace quern::kernels {

/// Notes symbols; a walk over cells uses it as it uses LaneLevelDecoder.
template <class X>
class LaneLevelRecorder {
 public:
  static constexpr bool kDecodes = false;

  /// `symbols`: memory for all that are noted between two calls of begin_part (see most_level_symbols).
  constexpr LaneLevelRecorder(LaneLevelShared& shared, const LevelConstants& constants, std::uint16_t* symbols)
      : tables_(shared, constants), symbols_(symbols) {}

  constexpr void begin_tables() { tables_.begin_tables(); }
  /// Notes symbols from the first place on; so many came before.
  constexpr void begin_part(std::uint64_t done) {
    X::sync();
    tables_.begin_batches(done);
    noted_ = 0;
  }
  constexpr std::uint32_t noted() const { return noted_; }
  static constexpr bool good() { return true; }

  /// A list of symbols of one context: symbols(first, n) says which of n symbols from `first` on are 1. Calls
  /// sink(first, ones) with the same.
  template <class Symbols, class F>
  constexpr void run(unsigned context, std::uint32_t count, Symbols&& symbols, F&& sink) {
    for (std::uint32_t at = 0; at < count;) {
      const std::uint32_t batch = tables_.batch_of(count - at), p = tables_.probability(context);
      std::uint32_t all = 0;
      for (std::uint32_t b = 0; b < batch; b += kLanes) {
        const std::uint32_t there = batch - b < kLanes ? batch - b : kLanes;
        const std::uint32_t ones = symbols(at + b, there);
        X::lanes([&](auto lane) {
          if (lane < there) note(b + static_cast<std::uint32_t>(lane), p, ones >> lane & 1, lane);
        });
        all += popcount(ones);
        sink(at + b, ones);
      }
      tables_.learn_run(context, batch, all);
      noted_ += batch;
      at += batch;
    }
  }

  /// As LaneLevelDecoder has them.
  constexpr void begin_list(const LaneBits&, bool fine) { tables_.begin_list(fine); }
  template <class Lane>
  [[gnu::always_inline]] constexpr void append(std::uint32_t place, unsigned context, unsigned fine_context,
                                               std::uint32_t, unsigned symbol, Lane lane) {
    tables_.set_entry(tables_.entry_behind(place), context, fine_context, symbol, lane);
  }
  constexpr void appended(std::uint32_t count, bool ended) {
    tables_.appended(count, ended, [&](std::uint32_t batch) {
      X::lanes([&](auto lane) {
        for (auto b = static_cast<std::uint32_t>(lane); b < batch; b += kLanes) {
          const std::uint32_t entry = tables_.entry_of(b);
          note(b, tables_.probability_of(entry, lane), tables_.symbol_of(entry, lane), lane);
        }
      });
      noted_ += batch;
    });
  }

  /// What is noted of symbol i.
  template <class Lane>
  [[gnu::always_inline]] constexpr std::uint32_t noted_of(std::uint32_t i, Lane lane) const {
    return X::load(symbols_ + i, lane);
  }
  static constexpr std::uint32_t probability_of(std::uint32_t noted) { return noted % kLevelOne; }
  static constexpr unsigned symbol_of(std::uint32_t noted) { return noted / kLevelOne & 1; }
  static constexpr bool begins_batch(std::uint32_t noted) { return (noted & kFirst) != 0; }

 private:
  static constexpr std::uint32_t kFirst = 2 * kLevelOne;

  /// Symbol b of a batch.
  template <class Lane>
  [[gnu::always_inline]] constexpr void note(std::uint32_t b, std::uint32_t p, unsigned symbol, Lane lane) {
    X::store(symbols_ + noted_ + b, lane, static_cast<std::uint16_t>(p | symbol * kLevelOne | (b == 0 ? kFirst : 0)));
  }

  LaneLevelTables<X> tables_;
  std::uint16_t* symbols_;
  std::uint32_t noted_ = 0;
};

/// The words of one group of lanes, written backwards into bytes: [begin, at) is left.
template <class X>
class LaneLevelWords {
 public:
  constexpr LaneLevelWords(LaneLevelShared& shared, unsigned lanes, std::uint8_t* out, std::uint64_t begin,
                           std::uint64_t at)
      : shared_(shared), lanes_(lanes), out_(out), begin_(begin), at_(at) {}

  constexpr std::uint64_t at() const { return at_; }
  /// False where there was no room; what was written last is lost then.
  constexpr bool fits() const { return fits_; }

  constexpr void begin_group(unsigned group) {
    group_ = group;
    X::sync();
    X::lanes([&](auto lane) {
      if (lane < here()) X::store(shared_.states + first() + lane, lane, kLevelStateLow);
    });
    X::sync();
  }
  /// The first states: the lowest lane comes first, its high word before the low one.
  constexpr void end_group() {
    if (!take(2 * here())) return;
    X::lanes([&](auto lane) {
      if (lane >= here()) return;
      const std::uint32_t state = X::load(shared_.states + first() + lane, lane);
      const std::uint64_t to = at_ + 4 * static_cast<std::uint64_t>(lane);
      put(to, static_cast<std::uint16_t>(state >> 16));
      put(to + 2, static_cast<std::uint16_t>(state));
    });
  }

  /// All that the recorder noted, from the last symbol on.
  constexpr void put_all(const LaneLevelRecorder<X>& symbols) {
    for (std::uint32_t end = symbols.noted(); end > 0 && fits_;) {
      const std::uint32_t begin = batch_before(symbols, end);
      const std::uint32_t width = lanes_ < kLanes ? lanes_ : kLanes, count = end - begin;
      for (std::uint32_t b = (count - 1) / width * width;; b -= width) {
        if (b % lanes_ / kLanes == group_) step(symbols, begin + b, std::min(count - b, width), b % lanes_);
        if (b == 0) break;
      }
      end = begin;
    }
  }

 private:
  constexpr unsigned first() const { return group_ * kLevelGroupLanes; }
  constexpr unsigned here() const { return lanes_ < kLanes ? lanes_ : kLanes; }

  /// Where the batch begins that ends at `end`.
  static constexpr std::uint32_t batch_before(const LaneLevelRecorder<X>& symbols, std::uint32_t end) {
    for (std::uint32_t stop = end;;) {
      const std::uint32_t from = stop < kLanes ? 0 : stop - kLanes;
      const std::uint32_t firsts = ballot_of<X>([&](auto lane) {
        const std::uint32_t i = from + static_cast<std::uint32_t>(lane);
        return i < stop && LaneLevelRecorder<X>::begins_batch(symbols.noted_of(i, lane));
      });
      if (firsts != 0) return from + highest_bit(firsts);
      stop = from;
    }
  }
  static constexpr std::uint32_t highest_bit(std::uint32_t bits) { return bit_length(bits) - 1; }

  /// `there` symbols from the i-th on, of lanes from `first_lane` on.
  constexpr void step(const LaneLevelRecorder<X>& symbols, std::uint32_t i, std::uint32_t there, unsigned first_lane) {
    typename X::template vec<bool> full;
    typename X::template vec<std::uint16_t> words;
    X::lanes([&](auto lane) {
      std::uint16_t word = 0;
      bool has_word = false;
      if (lane < there) {
        const std::uint32_t noted = symbols.noted_of(i + static_cast<std::uint32_t>(lane), lane);
        std::uint32_t state = X::load(shared_.states + first_lane + lane, lane);
        has_word = put_level_symbol(state, LaneLevelRecorder<X>::probability_of(noted),
                                    LaneLevelRecorder<X>::symbol_of(noted), word);
        X::store(shared_.states + first_lane + lane, lane, state);
      }
      X::set(full, lane, has_word);
      X::set(words, lane, word);
    });
    const std::uint32_t put_away = X::ballot(full);
    if (put_away == 0 || !take(popcount(put_away))) return;
    X::lanes([&](auto lane) {
      if ((put_away >> lane & 1) == 0) return;
      const std::uint32_t before = popcount(put_away & first_lanes(static_cast<std::uint32_t>(lane)));
      put(at_ + 2 * std::uint64_t{before}, X::get(words, lane));
    });
  }

  constexpr bool take(std::uint32_t words) {
    fits_ = fits_ && at_ - begin_ >= 2 * std::uint64_t{words};
    if (fits_) at_ -= 2 * std::uint64_t{words};
    return fits_;
  }
  constexpr void put(std::uint64_t at, std::uint16_t word) const {
    out_[at] = static_cast<std::uint8_t>(word);
    out_[at + 1] = static_cast<std::uint8_t>(word >> 8);
  }

  LaneLevelShared& shared_;
  unsigned lanes_;
  std::uint8_t* out_;
  std::uint64_t begin_;
  std::uint64_t at_;
  unsigned group_ = 0;
  bool fits_ = true;
};

}  // namespace quern::kernels
