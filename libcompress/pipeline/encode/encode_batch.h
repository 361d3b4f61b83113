// Who encodes chunks before the threads of a BatchEncoder do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/status.h>

namespace quern {

/// A chunk that is to be coded, with its special elements, and where its bytes go: ChunkEncoder::max_chunk_bytes.
struct ChunkToEncode {
  enum class State : std::uint8_t { left, coded, raw };

  ConstBox3 in;
  std::span<std::uint8_t> place;
  State state = State::left;
  std::size_t bytes = 0;  ///< of a coded one
};

/// Sets `state` for the chunks that it encoded, or that are to be stored raw: the bytes, and the decision, are those of
/// ChunkEncoder::encode. The threads encode those that are left.
class EncodeBatch {
 public:
  virtual ~EncodeBatch() = default;
  virtual Status encode_chunks(std::span<ChunkToEncode> chunks) = 0;
};

}  // namespace quern
