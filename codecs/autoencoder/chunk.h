// One chunk to bytes and back. The stored form is specified in docs/format-autoencoder.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/dtype.h>
#include <quern/status.h>

#include "codecs/autoencoder/blocks.h"
#include "codecs/autoencoder/prepared_model.h"
#include "kernels/entropy/cpu/residual_kernels.h"
#include "kernels/network/cpu/products.h"

namespace quern::codec::autoencoder {

/// First byte of a chunk.
enum class Mode : std::uint8_t {
  raw = 0,       ///< the elements, little-endian
  constant = 1,  ///< one element
  blocks = 2,    ///< numbers of blocks, and residuals
};

/// What all chunks of an array share.
struct ChunkSpec {
  DType dtype = DType::f32;
  Extents most{1, 1, 1};  ///< extents of a full chunk
  Extents block{1, 1, 1};
  const PreparedModel* model = nullptr;  ///< null: there is none, or it is missing
  bool model_missing = false;            ///< decoders: the stream has one, and it was not found
  const kernels::ResidualKernels* residuals = nullptr;
  const kernels::NetworkKernels* networks = nullptr;

  std::size_t elems() const { return static_cast<std::size_t>(most[0] * most[1] * most[2]); }
  std::size_t raw_bytes() const { return elems() * dtype_bytes(dtype); }
};

/// What encoders know besides.
struct EncodeSpec : ChunkSpec {
  double bound = 0;
  double scale = 0;  ///< half the range of the array: what 2^unit_bits of a network stands for
};

inline std::size_t max_chunk_bytes(const ChunkSpec& spec) { return 1 + spec.raw_bytes(); }

std::size_t encode_scratch_bytes(const EncodeSpec& spec);
/// Writes at most max_chunk_bytes to `out` and returns the count. `in` is no larger than spec.most along any axis.
/// May throw std::bad_alloc.
Result<std::size_t> encode_chunk(const EncodeSpec& spec, const ConstBox3& in, std::span<std::uint8_t> out,
                                 std::span<std::uint8_t> scratch);

std::size_t decode_scratch_bytes(const ChunkSpec& spec);
/// Fills `out`, or fails with `corrupt`, or `missing_model` where the chunk needs it. May throw std::bad_alloc.
Status decode_chunk(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& out,
                    std::span<std::uint8_t> scratch);

}  // namespace quern::codec::autoencoder
