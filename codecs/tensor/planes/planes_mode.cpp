// Mode planes: the elements' bytes by significance, each plane coded for itself.
#include "codecs/tensor/planes/chunk_words.h"

namespace quern::codec::tensor {
namespace {

Status plan_planes(const TensorInputs&, TaskRunner&, TensorPlan&) { return {}; }

Result<std::size_t> encode(const TensorPlan& plan, const TensorInputs&, const ChunkInputs& chunk,
                           std::span<std::uint8_t> out, AlignedBuffer& scratch) {
  const PlaneWords words = words_of_elements(plan.description.type, chunk.elems);
  QUERN_RETURN_IF_ERROR(scratch.resize(encode_scratch_bytes(words)));
  QUERN_ASSIGN_OR_RETURN(const std::size_t coded, encode_planes(words, chunk.values.data(), plan.request.zstd_level,
                                                                out.subspan(1, chunk.values.size()), scratch.span()));
  return finish_chunk(chunk.values, coded, out.data());
}

Result<TensorNeeds> needs(const TensorDescription&, std::span<const std::uint8_t> side) {
  if (!side.empty()) return Status(StatusCode::corrupt, "tensor: planes have no side");
  return TensorNeeds{};
}

Status decode(const TensorDescription& description, std::span<const std::uint8_t>, const TensorInputs&,
              const ChunkInputs& chunk, std::span<const std::uint8_t> bytes, std::span<std::uint8_t> out,
              AlignedBuffer& scratch) {
  QUERN_ASSIGN_OR_RETURN(const bool coded, begin_chunk(bytes, out));
  if (!coded) return {};
  const PlaneWords words = words_of_elements(description.type, chunk.elems);
  QUERN_RETURN_IF_ERROR(scratch.resize(decode_scratch_bytes(words)));
  return decode_planes(words, bytes.subspan(1), out.data(), scratch.span());
}

}  // namespace

const ModeCoder kPlanesCoder{Mode::planes, plan_planes, encode, needs, decode};

}  // namespace quern::codec::tensor
