// Other parameters of the codec in a stream that is there.
#pragma once

#include <cstdint>
#include <span>

#include <quern/status.h>
#include <quern/stream_io.h>

namespace quern {

/// Writes an array's stream anew with these codec parameters, which must mean the same to its chunks. `stream` is one
/// whole stream. Chunks, masks and level tables keep their bytes; each segment is checked, and sealed under the new
/// header. What was written before a failure is no stream. O(bytes); memory: the largest segment.
Status replace_params(std::span<const std::uint8_t> stream, std::span<const std::uint8_t> params, ByteSink& out);

}  // namespace quern
