// The codes of a chunk to the streams of its sections, by the warps of a thread block (kernels/entropy/warp/
// stream_encode.h), section after section; then all words side by side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/lanes.h"
#include "kernels/entropy/warp/stream_encode.h"
#include "kernels/interp/interp_encode_job.h"

namespace quern::kernels {

/// What the warps of a chunk share.
struct InterpWriteMemory {
  LaneEncodeShared lanes;
  InterpWriteResult written;
};

template <class X>
class InterpStreams {
 public:
  /// A template, as constexpr functions else may not cast bytes.
  template <class Task>
  constexpr InterpStreams(const Task& task, InterpWriteMemory& memory)
      : job_(*reinterpret_cast<const InterpWriteJob*>(task.job)),
        starts_(reinterpret_cast<const StreamStarts*>(task.job + job_.starts)),
        codes_(reinterpret_cast<const std::int32_t*>(task.work + job_.codes)),
        symbols_(reinterpret_cast<const std::uint16_t*>(task.work + job_.symbols)),
        words_(reinterpret_cast<std::uint16_t*>(task.work + job_.words)),
        out_(static_cast<std::uint16_t*>(task.elements)),
        result_(*static_cast<InterpWriteResult*>(task.result)),
        memory_(memory) {}

  template <class Block>
  constexpr void run(Block& block) const {
    block.all([&](std::uint32_t warp, std::uint32_t warps) {
      fill_encode_tables<X>(job_, starts_, warp, warps, memory_.lanes);
      X::lanes([&](std::size_t lane) {
        if (warp != 0) return;
        for (std::uint32_t s = job_.section_count; s < kInterpMostSections; ++s)
          X::store(&memory_.written.words[s][lane], lane, std::uint32_t{0});
      });
    });
    for (std::uint32_t s = 0; s < job_.section_count; ++s) write(block, s);
    block.all([&](std::uint32_t warp, std::uint32_t warps) { copy(warp, warps); });
  }

 private:
  /// Buffers hold so many codes of each stream of a section.
  static constexpr std::uint32_t columns_of(const InterpWriteSection& section) {
    return LaneEncodeShared::kPuts / put_stride(section.mask);
  }

  template <class Block>
  constexpr void write(Block& block, std::uint32_t number) const {
    const InterpWriteSection& section = job_.sections[number];
    const std::uint32_t columns = (section.count + section.mask) / (section.mask + 1);
    const std::uint32_t in_buffer = columns_of(section);
    const std::uint32_t buffers = (columns + in_buffer - 1) / in_buffer;
    EncodedLanes<X, InterpWriteSection> out(section, words_);
    // From the last codes to the first.
    for (std::uint32_t buffer = 0; buffer <= buffers; ++buffer) {
      block.all([&](std::uint32_t warp, std::uint32_t warps) {
        // The first warp looks up nothing if there are others.
        const std::uint32_t own = warps > 1 ? 1 : 0;
        if (buffer < buffers && warp >= own)
          look_up(section, buffer, (buffers - 1 - buffer) * in_buffer, columns, warp - own, warps - own);
        if (buffer > 0 && warp == 0) {
          const std::uint32_t left = columns - (buffers - buffer) * in_buffer;
          put_buffer<X>(section, buffer - 1, left < in_buffer ? left : in_buffer, warps - own, memory_.lanes, out);
        }
      });
    }
    block.first([&] { out.finish(memory_.written.words[number]); });
  }

  /// Codes from column `first` on, as many as a buffer holds or there are `columns`.
  constexpr void look_up(const InterpWriteSection& section, std::uint32_t buffer, std::uint32_t first,
                         std::uint32_t columns, std::uint32_t warp, std::uint32_t warps) const {
    const unsigned bits = static_cast<unsigned>(popcount(section.mask));
    const std::uint32_t stride = put_stride(section.mask);
    const std::uint32_t most = columns_of(section);
    const std::uint32_t slots = (columns - first < most ? columns - first : most) << bits;
    const std::uint32_t begin = first << bits;
    const std::int32_t* const codes = codes_ + section.first;
    const std::uint16_t* const symbols = symbols_ + section.first;
    LanePut* const puts = memory_.lanes.puts[buffer % 2];
    typename X::template vec<bool> busy;
    X::lanes([&](std::size_t lane) {
      bool any = false;
      for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < slots; i += warps * kLanes) {
        LanePut put = kNoPut;
        if (begin + i < section.count)
          put =
              put_of<X>(memory_.lanes, X::load(symbols + begin + i, lane), X::load(codes + begin + i, lane), lane, any);
        X::store(puts + (i >> bits) * stride + (i & section.mask), lane, put);
      }
      X::set(busy, lane, any);
    });
    note_busy<X>(busy, buffer, warp, memory_.lanes);
  }

  constexpr void copy(std::uint32_t warp, std::uint32_t warps) const {
    std::uint64_t total = 0;
    for (std::uint32_t s = 0; s < job_.section_count; ++s)
      for (std::uint32_t l = 0; l <= job_.sections[s].mask; ++l) total += X::load_same(&memory_.written.words[s][l]);
    if (warp == 0) {
      X::lanes([&](std::size_t lane) {
        for (std::uint32_t s = 0; s < kInterpMostSections; ++s)
          X::store(&result_.words[s][lane], lane, X::load(&memory_.written.words[s][lane], lane));
      });
    }
    if (total > job_.most_words) return;
    std::uint32_t to = 0;
    for (std::uint32_t s = 0; s < job_.section_count; ++s) {
      const InterpWriteSection& section = job_.sections[s];
      for (std::uint32_t l = 0; l <= section.mask; ++l) {
        const std::uint32_t count = X::load_same(&memory_.written.words[s][l]);
        const std::uint16_t* const from = words_ + section.rooms[l + 1] - count;
        X::lanes([&](std::size_t lane) {
          for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < count; i += warps * kLanes)
            X::store(out_ + to + i, lane, X::load(from + i, lane));
        });
        to += count;
      }
    }
  }

  const InterpWriteJob& job_;
  const StreamStarts* starts_;
  const std::int32_t* codes_;
  const std::uint16_t* symbols_;
  std::uint16_t* words_;
  std::uint16_t* out_;
  InterpWriteResult& result_;
  InterpWriteMemory& memory_;
};

/// Writes the streams of a chunk.
template <class X, class Block>
constexpr void write_interp_streams(Block& block, const EncodeTask& task, InterpWriteMemory& memory) {
  InterpStreams<X>(task, memory).run(block);
}

}  // namespace quern::kernels
