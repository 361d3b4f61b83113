// Who decodes chunks before the threads of a BatchDecoder do.
#pragma once

#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/status.h>

namespace quern {

/// A coded chunk whose checksum is right, and where it goes.
struct CheckedChunk {
  std::span<const std::uint8_t> bytes;
  MutableBox3 out;
  bool done = false;
};

/// Sets `done` for the chunks whose values it wrote. The threads decode the others, so whatever is wrong with a chunk
/// is found and named by the same code as ever.
class ChunkBatch {
 public:
  virtual ~ChunkBatch() = default;
  virtual Status decode_chunks(std::span<CheckedChunk> chunks) = 0;
};

}  // namespace quern
