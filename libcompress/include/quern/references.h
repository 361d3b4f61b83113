// What codecs offer that predict the chunks of an array from those of an earlier one, its reference: faces beside
// ArrayCodec, ChunkEncoder and ChunkDecoder, found by dynamic_cast. The pipeline hands out the reference's values; which
// array that is, streams say by the hash of its values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <quern/codec.h>
#include <quern/status.h>

namespace quern {

/// The array that a stream was predicted from.
struct ReferenceId {
  std::uint64_t hash = 0;  ///< XXH3-64, seed 0, of its decoded elements in C order, little-endian
  std::uint8_t depth =
      1;  ///< references one after the other until the stream of a key step, which has none; at least 1

  friend bool operator==(const ReferenceId&, const ReferenceId&) = default;
};

/// A ChunkEncoder whose plan was made by ReferenceCodec::plan_beside is one of these, too.
class ReferenceChunkEncoder {
 public:
  virtual ~ReferenceChunkEncoder() = default;
  /// As ChunkEncoder::encode, with the elements of the reference in the same box, special ones as they are. A chunk that
  /// is smaller alone does not need them to be decoded.
  virtual Result<std::size_t> encode_beside(const ConstBox3& in, const ConstBox3& reference,
                                            std::span<std::uint8_t> out, std::span<std::uint8_t> scratch) const = 0;
};

/// A ChunkDecoder whose parameters name a reference is one of these, too.
class ReferenceChunkDecoder {
 public:
  virtual ~ReferenceChunkDecoder() = default;
  virtual const ReferenceId& reference() const = 0;
  /// As ChunkDecoder::decode. Fails with `reference_missing` where the chunk was predicted from other elements.
  virtual Status decode_beside(std::span<const std::uint8_t> in, const ConstBox3& reference, const MutableBox3& out,
                               std::span<std::uint8_t> scratch) const = 0;
};

/// An ArrayCodec that can do so is one of these, too.
class ReferenceCodec {
 public:
  virtual ~ReferenceCodec() = default;
  /// A plan as the earlier stream's, whose parameters (with or without a reference) are `params`, for an array of the
  /// same type and shape; its chunks have the same boxes. Settings that ask for another layout are not heeded.
  virtual Result<std::unique_ptr<ChunkEncoder>> plan_beside(const PlanRequest& request,
                                                            std::span<const std::uint8_t> params,
                                                            const ReferenceId& reference) const = 0;
};

}  // namespace quern
