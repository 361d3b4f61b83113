// Residuals of rows to the lanes of a stream by the warps of a CTA. Some columns of the rows that lanes are at, by
// turns into two buffers: most warps look up all that the step of a residual needs but the state, while one warp takes
// these steps for the buffer before, a lane of the stream to each of its lanes, every lane's words downwards from the
// end of its room. Then all warps copy the words side by side.
#pragma once

#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/entropy/rans.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/stencil/raster_encode_job.h"
#include "kernels/stencil/warp/raster_grid.h"
#include "kernels/stencil/warp/residual_streams.h"

namespace quern::kernels {

/// What a residual does to the state of its lane: first the bits without a model, then its token.
struct alignas(16) LanePut {
  std::uint32_t range = 0;       ///< start | frequency << 16
  std::uint32_t reciprocal = 0;  ///< floor((2^32 - 1) / frequency)
  std::uint32_t plain = 0;
  std::uint32_t plain_bits = 0;
};
/// For no residual, and for a token that is certain: the state stays.
inline constexpr LanePut kNoPut{kFrequencySum << 16, 0xFFFFFFFFu >> kFrequencySumBits, 0, 0};

/// What the warps of a chunk share: for each distribution, start and frequency of every token; and the two buffers.
struct LaneEncodeShared {
  static constexpr std::uint32_t kPuts = 32 * (kMostStreamLanes + 1);
  LanePut puts[2][kPuts];
  std::uint32_t busy[2][kMaxBlockWarps];                ///< not 0: what a warp looked up changes states
  std::uint32_t tokens[kContextBins][kResidualTokens];  ///< start | frequency << 16
  std::uint32_t words[kMostStreamLanes];                ///< of each lane
  std::uint8_t serving[kContextBins];
};

template <class X>
constexpr void fill_encode_tables(const RowLanesJob& job, const StreamStarts* starts, std::uint32_t warp,
                                  std::uint32_t warps, LaneEncodeShared& shared) {
  X::lanes([&](std::size_t lane) {
    if (warp == 0)
      for (std::size_t i = lane; i < kContextBins; i += kLanes) X::store(&shared.serving[i], lane, job.serving[i]);
    for (std::uint32_t t = warp; t < job.table_count; t += warps)
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
  constexpr EncodedLanes(const RowLanesJob& job, std::uint16_t* words) : job_(job), words_(words) {
    X::lanes([&](std::size_t lane) {
      X::set(state_, lane, kRansFloor);
      X::set(at_, lane, std::uint32_t{0});
      if (lane <= job.mask) X::set(at_, lane, room_end(lane));
    });
  }

  /// Puts what lies `stride` after each other, the last first, as decoders take it from the other end.
  [[gnu::always_inline]] constexpr void put_all(const LanePut* puts, std::uint32_t count, std::uint32_t stride,
                                                std::size_t lane) {
    std::uint32_t now = X::get(state_, lane);
    std::uint32_t at = X::get(at_, lane);
    LanePut next = X::load(puts + (count - 1) * stride, lane);
    for (std::uint32_t i = count; i-- > 0;) {
      const LanePut put = next;
      if (i > 0) next = X::load(puts + (i - 1) * stride, lane);
      if (put.plain_bits != 0) {
        std::uint32_t bits = put.plain_bits;
        if (bits > kRansPlainBits) {
          put_plain(now, at, put.plain >> kRansPlainBits, bits - kRansPlainBits, lane);
          bits = kRansPlainBits;
        }
        put_plain(now, at, put.plain & ((1u << bits) - 1), bits, lane);
      }
      const std::uint32_t frequency = put.range >> 16;
      // At least frequency * 2^(32 - 15).
      if (now >> (32 - kFrequencySumBits) >= frequency) put_word(now, at, lane);
      // now / frequency is this quotient or the next.
      auto quotient = static_cast<std::uint32_t>(std::uint64_t{now} * put.reciprocal >> 32);
      std::uint32_t rest = now - quotient * frequency;
      if (rest >= frequency) {
        rest -= frequency;
        ++quotient;
      }
      now = (quotient << kFrequencySumBits) + rest + (put.range & 0xFFFF);
    }
    X::set(state_, lane, now);
    X::set(at_, lane, at);
  }

  /// Ends all lanes with their states; words[lane] becomes how many words a lane has.
  constexpr void finish(std::uint32_t* words) {
    X::lanes([&](std::size_t lane) {
      if (lane >= kMostStreamLanes) return;
      if (lane > job_.mask) return X::store(words + lane, lane, std::uint32_t{0});
      const std::uint32_t at = X::get(at_, lane) - kStateWords;
      const std::uint32_t now = X::get(state_, lane);
      X::store(words_ + at, lane, static_cast<std::uint16_t>(now));
      X::store(words_ + at + 1, lane, static_cast<std::uint16_t>(now >> 16));
      X::store(words + lane, lane, room_end(lane) - at);
    });
  }

 private:
  [[gnu::always_inline]] constexpr std::uint32_t room_end(std::size_t lane) const {
    return X::load(&job_.rooms[lane + 1], lane);
  }
  [[gnu::always_inline]] constexpr void put_word(std::uint32_t& now, std::uint32_t& at, std::size_t lane) {
    --at;
    X::store(words_ + at, lane, static_cast<std::uint16_t>(now));
    now >>= 16;
  }
  [[gnu::always_inline]] constexpr void put_plain(std::uint32_t& now, std::uint32_t& at, std::uint32_t bits,
                                                  std::uint32_t count, std::size_t lane) {
    if (now >> (32 - count) != 0) put_word(now, at, lane);
    now = now << count | bits;
  }

  const RowLanesJob& job_;
  std::uint16_t* words_;
  typename X::template vec<std::uint32_t> state_;
  typename X::template vec<std::uint32_t> at_;
};

/// The buffers that the rows of a section make, from the last to the first.
struct LaneBuffers {
  RowSection section;
  std::uint32_t lanes = 1;
  std::uint32_t stride = 2;   ///< from column to column: one more than lanes, so that neither way collides
  std::uint32_t columns = 1;  ///< of a buffer at most
  std::uint32_t row_buffers = 1;
  std::uint32_t turns_before = 0;  ///< that have none of the section's rows
  std::uint32_t count = 1;

  constexpr LaneBuffers(const RowLanesJob& job, const RowSection& of)
      : section(of), lanes(job.mask + 1), stride(lanes + 1) {
    columns = LaneEncodeShared::kPuts / stride;
    row_buffers = (section.columns + columns - 1) / columns;
    turns_before = section.rows_before / lanes;
    const std::uint32_t turns = (section.rows_before + section.rows + lanes - 1) / lanes - turns_before;
    count = turns * row_buffers;
  }
  /// Rows are counted over all sections.
  constexpr std::uint32_t first_row(std::uint32_t buffer) const {
    return (turns_before + (count - 1 - buffer) / row_buffers) * lanes;
  }
  constexpr std::uint32_t first_column(std::uint32_t buffer) const {
    return (count - 1 - buffer) % row_buffers * columns;
  }
};

/// Looks up a buffer's residuals; `warp` of `warps` that do so.
template <class X>
constexpr void fill_put_buffer(const RowLanesJob& job, const std::int32_t* codes, const std::uint16_t* symbols,
                               const LaneBuffers& buffers, std::uint32_t buffer, std::uint32_t warp,
                               std::uint32_t warps, LaneEncodeShared& shared) {
  const std::uint32_t begin = buffers.first_column(buffer);
  const RowSection& section = buffers.section;
  const std::uint32_t end = begin + buffers.columns < section.columns ? begin + buffers.columns : section.columns;
  LanePut* const puts = shared.puts[buffer % 2];
  const std::uint32_t blocks = (end - begin + kLanes - 1) / kLanes;
  typename X::template vec<bool> busy;
  X::lanes([&](std::size_t lane) { X::set(busy, lane, false); });
  for (std::uint32_t t = warp; t < buffers.lanes * blocks; t += warps) {
    const std::uint32_t to = t / blocks;
    // Rows of sections before are beyond the end.
    const std::uint32_t row = buffers.first_row(buffer) + to - section.rows_before;
    X::lanes([&](std::size_t lane) {
      const std::uint32_t x = begin + t % blocks * kLanes + static_cast<std::uint32_t>(lane);
      if (x >= end) return;
      LanePut put = kNoPut;
      const std::size_t index = section.first + (job.by_points ? std::size_t{x} * section.rows + row
                                                               : std::size_t{row} * section.columns + x);
      const std::uint32_t symbol = row < section.rows ? X::load(symbols + index, lane) : std::uint16_t{kNoSymbol};
      if (symbol != kNoSymbol) {
        const unsigned token = symbol % kTokenStride;
        const std::uint32_t table = X::load(&shared.serving[symbol / kTokenStride], lane);
        const std::int32_t code = X::load(codes + index, lane);
        put.range = X::load(&shared.tokens[table][token], lane);
        put.reciprocal = 0xFFFFFFFFu / (put.range >> 16);
        if (token != 0) {
          const auto magnitude = magnitude_of(code);
          put.plain = (magnitude - token_base(token)) << 1 | static_cast<std::uint32_t>(code < 0);
          put.plain_bits = token_open_bits(token) + 1;
        }
        if (token != 0 || put.range >> 16 != kFrequencySum) X::set(busy, lane, true);
      }
      X::store(puts + (x - begin) * buffers.stride + to, lane, put);
    });
  }
  const std::uint32_t any = X::any(busy) ? 1 : 0;
  X::lanes([&](std::size_t lane) {
    if (lane == 0) X::store(&shared.busy[buffer % 2][warp], lane, any);
  });
}

/// Takes a buffer's steps, by one warp; `warps` looked it up.
template <class X>
constexpr void put_buffer(const RowLanesJob& job, const LaneBuffers& buffers, std::uint32_t buffer, std::uint32_t warps,
                          const LaneEncodeShared& shared, EncodedLanes<X>& out) {
  std::uint32_t busy = 0;
  for (std::uint32_t w = 0; w < warps; ++w) busy |= X::load_same(&shared.busy[buffer % 2][w]);
  if (busy == 0) return;
  const std::uint32_t left = buffers.section.columns - buffers.first_column(buffer);
  X::lanes([&](std::size_t lane) {
    if (lane <= job.mask)
      out.put_all(shared.puts[buffer % 2] + lane, left < buffers.columns ? left : buffers.columns, buffers.stride,
                  lane);
  });
}

/// The lanes' words side by side, if there is room.
template <class X>
constexpr void copy_row_lanes(const EncodeTask& task, const RowLanesJob& job, const std::uint16_t* words,
                              std::uint32_t warp, std::uint32_t warps, const LaneEncodeShared& shared) {
  auto* const out = static_cast<std::uint16_t*>(task.elements);
  std::uint64_t total = 0;
  for (std::uint32_t l = 0; l <= job.mask; ++l) total += X::load_same(shared.words + l);
  if (warp == 0) {
    auto* const result = static_cast<RowLanesResult*>(task.result);
    X::lanes([&](std::size_t lane) {
      if (lane < kMostStreamLanes) X::store(result->words + lane, lane, X::load(shared.words + lane, lane));
    });
  }
  if (total > job.most_words) return;
  std::uint32_t to = 0;
  for (std::uint32_t l = 0; l <= job.mask; ++l) {
    const std::uint32_t count = X::load_same(shared.words + l);
    const std::uint16_t* const from = words + X::load_same(&job.rooms[l + 1]) - count;
    for (std::uint32_t first = warp * kRasterBlock; first < count; first += warps * kRasterBlock) {
      X::lanes([&](std::size_t lane) {
        std::uint32_t some[kRasterLanePoints] = {};
        for_lane_points(first, count, lane,
                        [&](std::size_t i, std::uint32_t at) { some[i] = X::load(from + at, lane); });
        for_lane_points(first, count, lane, [&](std::size_t i, std::uint32_t at) {
          X::store(out + to + at, lane, static_cast<std::uint16_t>(some[i]));
        });
      });
    }
    to += count;
  }
}

/// A template of the task, as constexpr functions else may not cast bytes.
template <class X, class Block, class Task>
constexpr void write_row_lanes(Block& block, const Task& task, LaneEncodeShared& shared) {
  const auto& job = *reinterpret_cast<const RowLanesJob*>(task.job);
  auto* const words = reinterpret_cast<std::uint16_t*>(task.work + job.words);
  block.all([&](std::uint32_t warp, std::uint32_t warps) {
    fill_encode_tables<X>(job, reinterpret_cast<const StreamStarts*>(task.job + job.starts), warp, warps, shared);
  });
  const auto* const codes = reinterpret_cast<const std::int32_t*>(task.work + job.codes);
  const auto* const symbols = reinterpret_cast<const std::uint16_t*>(task.work + job.symbols);
  const auto* const sections = reinterpret_cast<const RowSection*>(task.job + job.sections);
  EncodedLanes<X> out(job, words);
  for (std::uint32_t s = job.section_count; s-- > 0;) {
    const LaneBuffers buffers(job, sections[s]);
    for (std::uint32_t buffer = 0; buffer <= buffers.count; ++buffer) {
      block.all([&](std::uint32_t warp, std::uint32_t warps) {
        // The first warp looks up nothing if there are others.
        const std::uint32_t own = warps > 1 ? 1 : 0;
        if (buffer < buffers.count && warp >= own)
          fill_put_buffer<X>(job, codes, symbols, buffers, buffer, warp - own, warps - own, shared);
        if (buffer > 0 && warp == 0) put_buffer<X>(job, buffers, buffer - 1, warps - own, shared, out);
      });
    }
  }
  block.first([&] { out.finish(shared.words); });
  block.all([&](std::uint32_t warp, std::uint32_t warps) { copy_row_lanes<X>(task, job, words, warp, warps, shared); });
}

}  // namespace quern::kernels
