// What jobs of all layouts are made of: tables of distributions, exceptions, words of lanes, and the memory that
// they lie in side by side.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>

#include <quern/memory.h>

#include "codecs/stencil/elements.h"
#include "codecs/stencil/exceptions.h"
#include "coding/distributions.h"
#include "coding/stream_reader.h"
#include "kernels/common/job_task.h"
#include "kernels/stencil/level_job.h"
#include "kernels/stencil/raster_encode_job.h"

namespace quern::codec::stencil {

static_assert(kernels::kMostLevelLanes == kernels::kMaxStreams);

struct JobParts {
  Vector<kernels::LevelStarts> starts;
  Vector<kernels::LevelException> exceptions;
  Vector<std::uint8_t> words;

  /// Distributions of the context bins that have one, and which of them serves each; false when there is none.
  bool take_starts(const coding::Distributions& distributions, std::uint8_t* serving) {
    const auto bins = coding::serving_bins(distributions);
    std::array<std::uint8_t, kernels::kContextBins> number{};
    for (std::size_t b = 0; b < kernels::kContextBins; ++b) {
      if (bins[b] == kernels::kContextBins) return false;
      const kernels::TokenDistribution& bin = distributions[b];
      if (bin.tokens == 0) continue;
      number[b] = static_cast<std::uint8_t>(starts.size());
      kernels::TokenStarts sums{};
      kernels::fill_token_starts(bin, sums);
      kernels::LevelStarts& to = starts.emplace_back();
      std::fill(std::begin(to.at), std::end(to.at), std::uint16_t{0xFFFF});
      std::copy_n(sums.begin(), bin.tokens + std::size_t{1}, to.at);
    }
    for (std::size_t b = 0; b < kernels::kContextBins; ++b) serving[b] = number[bins[b]];
    return true;
  }

  /// Exceptions of a chunk of `elems` elements, which is below 2^32; false when they are damaged.
  bool take_exceptions(DType dtype, Reader& reader, std::uint64_t elems) {
    const auto count = reader.varint(elems);
    if (!count.ok()) return false;
    return with_element(dtype, [&](auto element) {
      using Bits = typename decltype(element)::Bits;
      return walk_exceptions<Bits>(reader, *count, elems,
                                   [&](std::uint64_t index, Bits bits) {
                                     exceptions.push_back({bits, static_cast<std::uint32_t>(index)});
                                   })
          .ok();
    });
  }

  void take_streams(const coding::StreamReader& streams, kernels::LevelSection& section) {
    constexpr std::size_t kStateBytes = 4;
    section.mask = static_cast<std::uint32_t>(streams.mask);
    for (std::size_t stream = 0; stream <= streams.mask; ++stream) {
      section.begins[stream] = static_cast<std::uint32_t>(words.size() / 2);
      words.insert(words.end(), streams.sources[stream].at - kStateBytes, streams.sources[stream].end);
    }
    section.begins[streams.mask + 1] = static_cast<std::uint32_t>(words.size() / 2);
  }
};

/// Rooms of lanes, as each residual may take the most words.
inline void set_lane_rooms(const Vector<kernels::RowSection>& sections, kernels::RowLanesJob& job) {
  const std::uint32_t lanes = job.mask + 1;
  job.section_count = static_cast<std::uint32_t>(sections.size());
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    std::uint32_t words = kernels::kStateWords;
    for (const kernels::RowSection& section : sections) {
      const auto rows_below = [&](std::uint32_t row) { return (row + lanes - 1 - lane) / lanes; };
      const std::uint32_t rows = rows_below(section.rows_before + section.rows) - rows_below(section.rows_before);
      words += rows * section.columns * kernels::kMostResidualWords;
    }
    job.rooms[lane + 1] = job.rooms[lane] + words;
  }
}

/// A job as it grows at the end of `out`.
class JobAppender {
 public:
  JobAppender(Vector<std::uint8_t>& out, std::size_t head_bytes) : out_(out) {
    begin_ = static_cast<std::size_t>(kernels::job_aligned(out.size()));
    out.resize(begin_ + head_bytes);
  }
  /// Appends a table; bytes from the job's begin to it.
  template <class T>
  std::uint32_t add(const Vector<T>& table) {
    constexpr std::size_t kAlignment = 16;
    const std::size_t at = (out_.size() - begin_ + kAlignment - 1) / kAlignment * kAlignment;
    out_.resize(begin_ + at + table.size() * sizeof(T));
    if (!table.empty()) std::memcpy(out_.data() + begin_ + at, table.data(), table.size() * sizeof(T));
    return static_cast<std::uint32_t>(at);
  }
  std::uint32_t bytes() const { return static_cast<std::uint32_t>(out_.size() - begin_); }
  template <class Head>
  void set_head(const Head& head) {
    std::memcpy(out_.data() + begin_, &head, sizeof head);
  }

 private:
  Vector<std::uint8_t>& out_;
  std::size_t begin_ = 0;
};

/// Appends the program that writes lanes; kind, mask, codes, symbols, words and which distribution serves where are
/// set.
inline void append_lanes_job(const Vector<kernels::RowSection>& sections, const JobParts& parts,
                             kernels::RowLanesJob& lanes, Vector<std::uint8_t>& out) {
  set_lane_rooms(sections, lanes);
  lanes.table_count = static_cast<std::uint32_t>(parts.starts.size());
  JobAppender job(out, sizeof lanes);
  lanes.sections = job.add(sections);
  lanes.starts = job.add(parts.starts);
  lanes.head.bytes = job.bytes();
  job.set_head(lanes);
}

}  // namespace quern::codec::stencil
