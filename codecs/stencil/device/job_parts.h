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
#include "coding/job_streams.h"
#include "kernels/common/job_task.h"
#include "kernels/stencil/level_job.h"
#include "kernels/stencil/raster_encode_job.h"

namespace quern::codec::stencil {

using coding::JobAppender;

struct JobParts : coding::JobStreams {
  Vector<kernels::JobException> exceptions;

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
