// Residuals to the interleaved streams of a warp: most warps of a thread block look up all that the step of a residual
// needs but the state, to one of two buffers in shared memory, while one warp takes these steps for the buffer before, a
// stream to each of its lanes, every stream's words downwards from the end of its room. Which residuals lie in which
// lane is the caller's matter.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/lanes.h"
#include "kernels/entropy/context_bin.h"
#include "kernels/entropy/encoded_streams.h"
#include "kernels/entropy/job_streams.h"
#include "kernels/entropy/rans.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/entropy/token_distribution.h"

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

/// From residual to residual of a lane in a buffer: one more than lanes, so that neither way collides.
constexpr std::uint32_t put_stride(std::uint32_t mask) { return mask + 2; }

template <class X, class Job>
constexpr void fill_encode_tables(const Job& job, const StreamStarts* starts, std::uint32_t warp, std::uint32_t warps,
                                  LaneEncodeShared& shared) {
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

/// What a residual does to its lane. `busy` becomes true where that changes the state.
template <class X>
[[gnu::always_inline]] constexpr LanePut put_of(const LaneEncodeShared& shared, std::uint32_t symbol, std::int32_t code,
                                                std::size_t lane, bool& busy) {
  const unsigned token = symbol % kTokenStride;
  const std::uint32_t table = X::load(&shared.serving[symbol / kTokenStride], lane);
  LanePut put;
  put.range = X::load(&shared.tokens[table][token], lane);
  put.reciprocal = 0xFFFFFFFFu / (put.range >> 16);
  if (token != 0) {
    const auto magnitude = magnitude_of(code);
    put.plain = (magnitude - token_base(token)) << 1 | static_cast<std::uint32_t>(code < 0);
    put.plain_bits = token_open_bits(token) + 1;
  }
  busy = busy || token != 0 || put.range >> 16 != kFrequencySum;
  return put;
}

/// States of the lanes, and where their next words go. A job says how many lanes there are (`mask` is one less) and the
/// words before each lane's room and behind the last (`rooms`).
template <class X, class Job>
class EncodedLanes {
 public:
  constexpr EncodedLanes(const Job& job, std::uint16_t* words) : job_(job), words_(words) {
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

  const Job& job_;
  std::uint16_t* words_;
  typename X::template vec<std::uint32_t> state_;
  typename X::template vec<std::uint32_t> at_;
};

/// Says whether what a warp looked up for a buffer changes states.
template <class X>
constexpr void note_busy(const typename X::template vec<bool>& busy, std::uint32_t buffer, std::uint32_t warp,
                         LaneEncodeShared& shared) {
  const std::uint32_t any = X::any(busy) ? 1 : 0;
  X::lanes([&](std::size_t lane) {
    if (lane == 0) X::store(&shared.busy[buffer % 2][warp], lane, any);
  });
}

/// Takes the steps of a buffer of `columns` residuals a lane, by one warp; `warps` looked it up.
template <class X, class Job>
constexpr void put_buffer(const Job& job, std::uint32_t buffer, std::uint32_t columns, std::uint32_t warps,
                          const LaneEncodeShared& shared, EncodedLanes<X, Job>& out) {
  std::uint32_t busy = 0;
  for (std::uint32_t w = 0; w < warps; ++w) busy |= X::load_same(&shared.busy[buffer % 2][w]);
  if (busy == 0) return;
  X::lanes([&](std::size_t lane) {
    if (lane <= job.mask) out.put_all(shared.puts[buffer % 2] + lane, columns, put_stride(job.mask), lane);
  });
}

}  // namespace quern::kernels
