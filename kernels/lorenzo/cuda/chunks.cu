// The host functions of the chunk kernels.
#include "kernels/lorenzo/cuda/chunk_tiles.cuh"
#include "kernels/lorenzo/cuda/decode_room.h"
#include "kernels/lorenzo/cuda/launches.cuh"
#include "kernels/lorenzo/cuda/staged_launches.cuh"

namespace quern::kernels {
namespace {

cudaError_t check(const LorenzoChunks& chunks) {
  const std::uint64_t places = std::uint64_t{chunks.items} * chunks.chunks;
  const bool fits = chunks.tiles <= max_chunk_tiles(element_bytes(chunks.element)) && places <= 0x7fffffff;
  return fits ? cudaSuccess : cudaErrorInvalidValue;
}

bool nothing_to_do(const LorenzoChunks& chunks) { return chunks.items == 0 || chunks.chunks == 0 || chunks.tiles == 0; }

/// The same, and the number of places that may be coded.
LorenzoChunks with_coded(LorenzoChunks chunks) {
  if (chunks.coded == 0) chunks.coded = chunks.chunks;
  return chunks;
}

}  // namespace

bool lorenzo_cuda_serves(const ChunkRules& rules) {
  const auto element = static_cast<unsigned>(rules.element);
  const bool is_float = element >= 1 && element <= 4;
  const bool is_integer = (element >= 8 && element <= 11) || (element >= 16 && element <= 19);
  const bool known = rules.quantizer == QuantizerKind::pointwise
                         ? is_float
                         : (is_float || is_integer) && static_cast<unsigned>(rules.quantizer) <= 2;
  return known && rules.candidate_count <= kMaxCandidates;
}

cudaError_t lorenzo_encode_async(const LorenzoChunks& chunks, const LorenzoSlots& slots, const ScanRequest& scan,
                                 std::uint32_t* sizes, cudaStream_t stream) {
  cudaError_t error = check(chunks);
  if (error != cudaSuccess || nothing_to_do(chunks)) return error;
  const LorenzoLaunches& launches = lorenzo_launches(chunks.element);
  if (slots.parts.records == nullptr) return launches.encode(chunks, slots, scan, sizes, stream);
  LorenzoChunks others = chunks;
  others.list = slots.parts.list;
  others.listed = slots.parts.listed;
  error = chunks.element == Element::f32 ? encode_staged_tiles_async(chunks, slots, scan, stream)
                                         : encode_staged_elements_async(chunks, slots, scan, stream);
  if (error == cudaSuccess) error = size_chunks_async(chunks, slots, scan, sizes, stream);
  if (error == cudaSuccess) error = launches.encode(others, slots, {}, sizes, stream);
  return error;
}

std::uint64_t lorenzo_decode_workspace_bytes(const LorenzoChunks& chunks) {
  return DecodeRoom::bytes(with_coded(chunks));
}

cudaError_t lorenzo_decode_async(const LorenzoChunks& all, const StoredChunk* stored, void* workspace,
                                 std::uint32_t* damaged, cudaStream_t stream) {
  const cudaError_t error = check(all);
  if (error != cudaSuccess || nothing_to_do(all)) return error;
  const LorenzoChunks chunks = with_coded(all);
  if (DecodeRoom::job_count(chunks) > 0xffffffff) return cudaErrorInvalidValue;
  return lorenzo_launches(chunks.element).decode(chunks, stored, workspace, damaged, stream);
}

cudaError_t lorenzo_estimate_async(const LorenzoChunks& tiles, std::uint32_t* costs, cudaStream_t stream) {
  const cudaError_t error = check(tiles);
  if (error != cudaSuccess || nothing_to_do(tiles)) return error;
  return lorenzo_launches(tiles.element).sample(tiles, costs, nullptr, stream);
}

cudaError_t lorenzo_measure_async(const LorenzoChunks& tiles, std::uint32_t* bytes, cudaStream_t stream) {
  const cudaError_t error = check(tiles);
  if (error != cudaSuccess || nothing_to_do(tiles)) return error;
  return lorenzo_launches(tiles.element).sample(tiles, nullptr, bytes, stream);
}

}  // namespace quern::kernels
