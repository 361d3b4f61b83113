// Residuals of rows to the lanes of a stream by the warps of a CTA: one warp encodes, a lane of the stream to each of
// its lanes, every lane's words downwards from the end of its room; then all warps copy them side by side.
#pragma once

#include <cstdint>

#include "kernels/core/bits.h"
#include "kernels/core/lane_level_rans.h"
#include "kernels/core/rans.h"
#include "kernels/core/raster_encode_program.h"
#include "kernels/core/residual_tokens.h"

namespace quern::kernels {

/// What the warps of a chunk share: for each distribution, start and frequency of every token.
struct LaneEncodeShared {
  std::uint32_t tokens[kContextLevels][kResidualTokens];  ///< start | frequency << 16
  std::uint32_t words[kMostLevelLanes];                   ///< of each lane
  std::uint8_t serving[kContextLevels];
};

template <class X>
constexpr void fill_encode_tables(const RowLanesProgram& program, const LevelStarts* starts, std::uint32_t warp,
                                  std::uint32_t warps, LaneEncodeShared& shared) {
  X::lanes([&](std::size_t lane) {
    if (warp == 0)
      for (std::size_t i = lane; i < kContextLevels; i += kLanes)
        X::store(&shared.serving[i], lane, program.serving[i]);
    for (std::uint32_t t = warp; t < program.table_count; t += warps)
      for (std::size_t i = lane; i < kResidualTokens; i += kLanes) {
        const std::uint32_t start = X::load(&starts[t].at[i], lane);
        const std::uint32_t end = X::load(&starts[t].at[i + 1], lane);
        X::store(&shared.tokens[t][i], lane, start | (end - start) << 16);
      }
  });
}

/// States of the lanes, and where their next words go.
template <class X>
class EncodedLanes {
 public:
  constexpr EncodedLanes(const RowLanesProgram& program, std::uint16_t* words) : program_(program), words_(words) {
    X::lanes([&](std::size_t lane) {
      X::set(state_, lane, kRansFloor);
      X::set(at_, lane, std::uint32_t{0});
      if (lane <= program.mask) X::set(at_, lane, room_end(lane));
    });
  }

  /// Puts a residual of at most kMaxMagnitude, as decoders take it from the other end.
  [[gnu::always_inline]] constexpr void put(std::int32_t code, unsigned token, std::uint32_t range, std::size_t lane) {
    std::uint32_t now = X::get(state_, lane);
    if (token != 0) {
      const auto magnitude = static_cast<std::uint32_t>(code < 0 ? -code : code);
      const std::uint32_t plain = (magnitude - token_base(token)) << 1 | (code < 0 ? 1u : 0u);
      unsigned count = token_open_bits(token) + 1;
      if (count > kRansPlainBits) {
        put_plain(now, plain >> kRansPlainBits, count - kRansPlainBits, lane);
        count = kRansPlainBits;
      }
      put_plain(now, plain & ((1u << count) - 1), count, lane);
    }
    const std::uint32_t start = range & 0xFFFF;
    const std::uint32_t frequency = range >> 16;
    // At least frequency * 2^(32 - 15).
    if (now >> (32 - kFrequencySumBits) >= frequency) put_word(now, lane);
    now += now / frequency * (kFrequencySum - frequency) + start;
    X::set(state_, lane, now);
  }

  /// Ends all lanes with their states; words[lane] becomes how many words a lane has.
  constexpr void finish(std::uint32_t* words) {
    X::lanes([&](std::size_t lane) {
      if (lane >= kMostLevelLanes) return;
      if (lane > program_.mask) return X::store(words + lane, lane, std::uint32_t{0});
      const std::uint32_t at = X::get(at_, lane) - kStateWords;
      const std::uint32_t now = X::get(state_, lane);
      X::store(words_ + at, lane, static_cast<std::uint16_t>(now));
      X::store(words_ + at + 1, lane, static_cast<std::uint16_t>(now >> 16));
      X::store(words + lane, lane, room_end(lane) - at);
    });
  }

 private:
  [[gnu::always_inline]] constexpr std::uint32_t room_end(std::size_t lane) const {
    return static_cast<std::uint32_t>(lane_room_begin(program_, static_cast<std::uint32_t>(lane) + 1));
  }
  [[gnu::always_inline]] constexpr void put_word(std::uint32_t& now, std::size_t lane) {
    const std::uint32_t at = X::get(at_, lane) - 1;
    X::store(words_ + at, lane, static_cast<std::uint16_t>(now));
    X::set(at_, lane, at);
    now >>= 16;
  }
  [[gnu::always_inline]] constexpr void put_plain(std::uint32_t& now, std::uint32_t bits, unsigned count,
                                                  std::size_t lane) {
    if (now >> (32 - count) != 0) put_word(now, lane);
    now = now << count | bits;
  }

  const RowLanesProgram& program_;
  std::uint16_t* words_;
  typename X::template vec<std::uint32_t> state_;
  typename X::template vec<std::uint32_t> at_;
};

/// The rows of all lanes from the last to the first, by one warp.
template <class X>
constexpr void encode_row_lanes(const RowLanesProgram& program, const std::int32_t* codes, const std::uint16_t* symbols,
                                std::uint16_t* words, LaneEncodeShared& shared) {
  const std::uint32_t lanes = program.mask + 1;
  EncodedLanes<X> out(program, words);
  for (std::uint32_t turn = (program.rows + lanes - 1) / lanes; turn-- > 0;) {
    for (std::uint32_t x = program.columns; x-- > 0;) {
      X::lanes([&](std::size_t lane) {
        const std::uint32_t row = turn * lanes + static_cast<std::uint32_t>(lane);
        if (lane > program.mask || row >= program.rows) return;
        const std::size_t index = std::size_t{row} * program.columns + x;
        const std::uint32_t symbol = X::load(symbols + index, lane);
        if (symbol == kNoSymbol) return;
        const unsigned token = symbol % kTokenPlaces;
        const std::uint32_t table = X::load(&shared.serving[symbol / kTokenPlaces], lane);
        const std::int32_t code = token == 0 ? 0 : X::load(codes + index, lane);
        out.put(code, token, X::load(&shared.tokens[table][token], lane), lane);
      });
    }
  }
  out.finish(shared.words);
}

/// The lanes' words side by side, if there is room.
template <class X>
constexpr void copy_row_lanes(const EncodeTask& task, const RowLanesProgram& program, const std::uint16_t* words,
                              std::uint32_t warp, std::uint32_t warps, const LaneEncodeShared& shared) {
  auto* const out = static_cast<std::uint16_t*>(task.elements);
  std::uint64_t total = 0;
  for (std::uint32_t l = 0; l <= program.mask; ++l) total += X::load_same(shared.words + l);
  if (warp == 0) {
    auto* const answer = static_cast<RowLanesAnswer*>(task.answer);
    X::lanes([&](std::size_t lane) {
      if (lane < kMostLevelLanes) X::store(answer->words + lane, lane, X::load(shared.words + lane, lane));
    });
  }
  if (total > program.most_words) return;
  std::uint32_t to = 0;
  for (std::uint32_t l = 0; l <= program.mask; ++l) {
    const std::uint32_t count = X::load_same(shared.words + l);
    const std::uint16_t* const from = words + lane_room_begin(program, l + 1) - count;
    X::lanes([&](std::size_t lane) {
      for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < count; i += warps * kLanes)
        X::store(out + to + i, lane, X::load(from + i, lane));
    });
    to += count;
  }
}

/// A template of the task, as constexpr functions else may not cast bytes.
template <class X, class Team, class Task>
constexpr void write_row_lanes(Team& team, const Task& task, LaneEncodeShared& shared) {
  const auto& program = *reinterpret_cast<const RowLanesProgram*>(task.program);
  auto* const words = reinterpret_cast<std::uint16_t*>(task.work + program.words);
  team.all([&](std::uint32_t warp, std::uint32_t warps) {
    fill_encode_tables<X>(program, reinterpret_cast<const LevelStarts*>(task.program + program.starts), warp, warps,
                          shared);
  });
  team.first([&] {
    encode_row_lanes<X>(program, reinterpret_cast<const std::int32_t*>(task.work + program.codes),
                        reinterpret_cast<const std::uint16_t*>(task.work + program.symbols), words, shared);
  });
  team.all(
      [&](std::uint32_t warp, std::uint32_t warps) { copy_row_lanes<X>(task, program, words, warp, warps, shared); });
}

}  // namespace quern::kernels
