// Residuals of rows to the lanes of a stream by the warps of a CTA, some columns of the rows that lanes are at by turns
// (kernels/entropy/warp/stream_encode.h). Then all warps copy the words side by side.
#pragma once

#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/entropy/warp/stream_encode.h"
#include "kernels/stencil/raster_encode_job.h"
#include "kernels/stencil/warp/raster_grid.h"
#include "kernels/stencil/warp/residual_streams.h"

namespace quern::kernels {

/// The buffers that the rows of a section make, from the last to the first.
struct LaneBuffers {
  RowSection section;
  std::uint32_t lanes = 1;
  std::uint32_t stride = 2;   ///< from column to column
  std::uint32_t columns = 1;  ///< of a buffer at most
  std::uint32_t row_buffers = 1;
  std::uint32_t turns_before = 0;  ///< that have none of the section's rows
  std::uint32_t count = 1;

  constexpr LaneBuffers(const RowLanesJob& job, const RowSection& of)
      : section(of), lanes(job.mask + 1), stride(put_stride(job.mask)) {
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
  /// How many the buffer has.
  constexpr std::uint32_t column_count(std::uint32_t buffer) const {
    const std::uint32_t left = section.columns - first_column(buffer);
    return left < columns ? left : columns;
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
        bool used = false;
        put = put_of<X>(shared, symbol, X::load(codes + index, lane), lane, used);
        if (used) X::set(busy, lane, true);
      }
      X::store(puts + (x - begin) * buffers.stride + to, lane, put);
    });
  }
  note_busy<X>(busy, buffer, warp, shared);
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
  EncodedLanes<X, RowLanesJob> out(job, words);
  for (std::uint32_t s = job.section_count; s-- > 0;) {
    const LaneBuffers buffers(job, sections[s]);
    for (std::uint32_t buffer = 0; buffer <= buffers.count; ++buffer) {
      block.all([&](std::uint32_t warp, std::uint32_t warps) {
        // The first warp looks up nothing if there are others.
        const std::uint32_t own = warps > 1 ? 1 : 0;
        if (buffer < buffers.count && warp >= own)
          fill_put_buffer<X>(job, codes, symbols, buffers, buffer, warp - own, warps - own, shared);
        if (buffer > 0 && warp == 0)
          put_buffer<X>(job, buffer - 1, buffers.column_count(buffer - 1), warps - own, shared, out);
      });
    }
  }
  block.first([&] { out.finish(shared.words); });
  block.all([&](std::uint32_t warp, std::uint32_t warps) { copy_row_lanes<X>(task, job, words, warp, warps, shared); });
}

}  // namespace quern::kernels
