// What a stream spends on special values, found without decoding any other value.
#pragma once

#include <cstdint>

#include <quern/execution.h>
#include <quern/status.h>
#include <quern/stream_io.h>

namespace quern {

/// Elements of a stream that are masked, by kind, and what the masks cost. NaN and Inf count as such even when they
/// were declared as fill values.
struct MaskSurvey {
  std::uint64_t nan_elems = 0;
  std::uint64_t infinite_elems = 0;
  std::uint64_t fill_elems = 0;       ///< equal to a declared fill value (compared by value: -0 equals 0)
  std::uint64_t repeated_elems = 0;   ///< values that the encoder found worth masking by itself
  std::uint64_t mask_bytes = 0;       ///< mask sections of all segments
  std::uint64_t masked_segments = 0;  ///< segments with a mask section
  std::uint64_t level_masks = 0;      ///< of these, the masks that are coded by levels
  std::uint64_t empty_chunks = 0;     ///< chunks without bytes of their own: every element is masked
  std::uint64_t raw_chunks = 0;       ///< chunks stored as they are

  std::uint64_t elems() const { return nan_elems + infinite_elems + fill_elems + repeated_elems; }
};

/// Walks the segments of the stream that begins at `offset` of a source that can seek, and decodes their masks. Chunks
/// are passed over unread, so what they hold is not checked. Fails as decoding would on a damaged header, table or
/// mask. Memory: one mask a thread. Time O(elements of segments with a mask + segments).
Result<MaskSurvey> survey_masks(ByteSource& source, const Execution& execution, std::uint64_t offset = 0);

}  // namespace quern
