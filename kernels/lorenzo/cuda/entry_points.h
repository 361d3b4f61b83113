// Entry points of the lorenzo kernels on CUDA: chunks of arrays in device memory, bytes as on the CPU. Nothing here
// allocates or waits; everything is queued on the caller's stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/common/cuda/chunk.h"
#include "kernels/lorenzo/chunk_task.h"
#include "kernels/lorenzo/tile_record.h"

namespace quern::kernels {

/// The chunks that one call codes: those of `items` arrays of one element type, which have rules of their own and
/// `chunks` places each. Pointers are to device memory, where earlier kernels may still be writing.
struct LorenzoChunks {
  Element element = Element::f32;
  std::uint32_t shapes = 0;  ///< bit S: the rules of some item may name tile shape S
  std::uint32_t tiles = 0;   ///< of a chunk, at most
  std::uint32_t items = 0;
  std::uint32_t chunks = 0;             ///< places of an item
  const std::uint8_t* rules = nullptr;  ///< those of item i begin rules_stride * i bytes from here
  std::size_t rules_stride = 0;
  const CudaChunk* at = nullptr;  ///< items * chunks places
  /// Decoding: places of an item that may be coded, which come before the others; 0: all of them may.
  std::uint32_t coded = 0;
  /// Encoding: not all places but the `*listed` ones that `list` names, each once.
  const std::uint32_t* list = nullptr;
  const std::uint32_t* listed = nullptr;
};

/// Whether there are kernels for these rules: every element type, tile shape and quantizer that the format has.
bool lorenzo_cuda_serves(const ChunkRules& rules);

/// What encoding in parts takes in device memory. Nothing when `records` is null: chunks are then encoded as a whole.
struct LorenzoParts {
  TileRecord* records = nullptr;    ///< of each tile of each place
  std::uint32_t* list = nullptr;    ///< places whose chunks are not made of parts
  std::uint32_t* listed = nullptr;  ///< how many
  /// By slot: where the joined chunk goes; null if it goes nowhere. Encoding clears them.
  std::uint8_t** targets = nullptr;
};

/// Element types and quantizers whose chunks may be encoded in parts. Not those that would gain nothing: tiles under a
/// point-wise bound have signs; the words of most lossless binary32 and binary64 tiles are too far apart; and numbers of
/// 16 bits are rounded once more after decoding, so that most of their tiles have exceptions under an absolute bound.
constexpr bool lorenzo_has_parts(Element element, QuantizerKind quantizer) {
  if (quantizer == QuantizerKind::exact) return element != Element::f32 && element != Element::f64;
  return quantizer == QuantizerKind::absolute && element != Element::f16 && element != Element::bf16;
}
constexpr bool lorenzo_has_parts(const ChunkRules& rules) { return lorenzo_has_parts(rules.element, rules.quantizer); }
/// Bytes of records, list and its length for that many places, and these in memory that begins at a multiple of 16.
std::uint64_t lorenzo_parts_bytes(Element element, std::uint64_t places);
LorenzoParts lorenzo_parts(std::uint8_t* memory, Element element, std::uint64_t places);

/// A place of its own for each chunk: slot s at `at` + s * `bytes`, multiples of 4.
struct LorenzoSlots {
  std::uint8_t* at = nullptr;
  std::uint64_t bytes = 0;  ///< not fewer than a chunk's values take
  LorenzoParts parts;
};

/// Encodes each chunk to its slot s; sizes[s] becomes its bytes. Where sizes[s] has kChunkInParts, the slot holds the
/// payloads of its tiles, which lorenzo_join_async makes the chunk of. What the slot holds of a chunk that would take as
/// many bytes as its values is undefined; its size is then some such number. Empty places change nothing.
/// cudaErrorInvalidValue when the chunks have more tiles than the format allows or there are 2^31 places.
cudaError_t lorenzo_encode_async(const LorenzoChunks& chunks, const LorenzoSlots& slots, const ScanRequest& scan,
                                 std::uint32_t* sizes, cudaStream_t stream);

/// After that call, with the same chunks and slots: writes each chunk in parts to its target, which lies outside of the
/// slots.
cudaError_t lorenzo_join_async(const LorenzoChunks& chunks, const LorenzoSlots& slots, cudaStream_t stream);

/// Bytes of device memory that a call of lorenzo_decode_async works in, at a multiple of 16: 48 for each tile of the
/// chunks that may be coded, and 4 for each place.
std::uint64_t lorenzo_decode_workspace_bytes(const LorenzoChunks& chunks);

/// Decodes what is stored of chunk q into its box, which has no codec to ask where the form is plain. damaged[q]
/// becomes 1 for bytes that no encoder writes, and the box's content is then undefined, else 0. Of places that are
/// empty or have nothing stored nothing is written but damaged[q] = 0. cudaErrorInvalidValue as above, and where there
/// are 2^32 tiles.
cudaError_t lorenzo_decode_async(const LorenzoChunks& chunks, const StoredChunk* stored, void* workspace,
                                 std::uint32_t* damaged, cudaStream_t stream);

/// Places that are single tiles: bytes that tile q would take under each predictor, estimated, to the kPredictors
/// numbers from costs + q * kPredictors on, UINT32_MAX where a predictor does not fit. Numbers of empty places are left
/// alone.
cudaError_t lorenzo_estimate_async(const LorenzoChunks& tiles, std::uint32_t* costs, cudaStream_t stream);

/// Places that are single tiles: bytes of tile q as a chunk of its own, under the candidates of its array's rules. The
/// slot of place q is q.
cudaError_t lorenzo_measure_async(const LorenzoChunks& tiles, std::uint32_t* bytes, cudaStream_t stream);

}  // namespace quern::kernels
