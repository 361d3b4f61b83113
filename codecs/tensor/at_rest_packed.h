// Weights and moments at rest, entropy coded: the form for storage that is slower than coding. Lossless: codes, headers
// and weights come back bit for bit, so a state is the same whatever form its files have. Chunks are independent
// but for their order: each says how many bytes lie beside the slots of its tiles.
#pragma once

#include "codecs/tensor/at_rest.h"

namespace quern::codec::tensor {

inline constexpr std::uint64_t kPackedValues = 4 * kernels::kAtRestTile;  ///< of a chunk

constexpr std::size_t packed_chunks(std::uint64_t values) {
  return static_cast<std::size_t>((values + kPackedValues - 1) / kPackedValues);
}
/// Bytes that a chunk never exceeds, as long as no block keeps anything beside its slot.
constexpr std::uint64_t most_packed_bytes(std::uint64_t chunk_values, const AtRestForm& form) {
  const std::uint64_t blocks = (chunk_values + kernels::kAtRestBlock - 1) / kernels::kAtRestBlock;
  return 4 * chunk_values + blocks * (4 + kernels::at_rest_slot_bytes(form)) + 512;
}

/// Codes the chunks of one range after another; may then take another range. Keeps some MiB of scratch. One thread at
/// a time.
class AtRestPacker {
 public:
  /// Replaces `out` by the coded chunk of that number. Begin with chunk 0 and leave none out. `weights`: of the whole
  /// range. `internal` where the chunk is not the next one.
  Status pack(const AtRestMoments& moments, const float* weights, std::size_t chunk, Vector<std::uint8_t>& out);
  /// Decodes all of `in`; order as above. At most `most_beside` bytes lie beside the slots in all. Any bytes may come:
  /// fails with `corrupt` where they are no chunk. After a failure, and before the last chunk, the moments are of no
  /// use.
  Status unpack(std::span<const std::uint8_t> in, std::size_t chunk, std::uint64_t most_beside, float* weights,
                AtRestMoments& moments);

 private:
  struct Tiles;
  Result<Tiles> next_tiles(const AtRestMoments& moments, std::size_t chunk);

  AlignedBuffer scratch_;
  Vector<std::uint8_t> gathered_;
  std::size_t next_chunk_ = 0;
  std::size_t beside_at_ = 0;
};

}  // namespace quern::codec::tensor
