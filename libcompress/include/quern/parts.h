// What codecs offer that code runs of slices of an array's leading axis by themselves, as parts: faces beside
// ChunkEncoder and ChunkDecoder, found by dynamic_cast. Parts are for arrays that hold unlike things side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/compress.h>
#include <quern/memory.h>
#include <quern/status.h>

namespace quern {

/// A run of slices of an array's leading axis that is coded by itself.
struct ArrayPart {
  std::uint64_t slices = 1;
  String layout;  ///< how the codec walks it, as its setting `layout` would say it
};

/// A ChunkEncoder whose chunks have different parts is one of these, too.
class PartedChunkEncoder {
 public:
  virtual ~PartedChunkEncoder() = default;
  /// As ChunkEncoder::encode, of the chunk of that number in the stream, from 0. Where the plan is one beside a
  /// reference, with the reference's elements in the same box, else with null.
  virtual Result<std::size_t> encode_numbered(std::uint64_t number, const ConstBox3& in, const ConstBox3* reference,
                                              std::span<std::uint8_t> out, std::span<std::uint8_t> scratch) const = 0;
};

/// A ChunkDecoder whose parameters name parts is one of these, too.
class PartedChunkDecoder {
 public:
  virtual ~PartedChunkDecoder() = default;
  /// In the order of the leading axis; their slices add up to its extent. May throw std::bad_alloc.
  virtual Vector<ArrayPart> parts() const = 0;
};

/// The parts of the stream at the source's position, from its header alone; empty where it is coded as one.
Result<Vector<ArrayPart>> inspect_parts(ByteSource& source, const Registry& registry);

}  // namespace quern
