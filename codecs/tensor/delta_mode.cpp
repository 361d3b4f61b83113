// Mode delta: differences of bit patterns to the base, which for 4-byte floats may be scaled first, by planes. The side
// of 4-byte floats is the factor; other types have none.
#include <bit>

#include "codecs/tensor/delta_scale.h"
#include "codecs/tensor/planes/chunk_words.h"
#include "libcompress/format/bytes.h"

namespace quern::codec::tensor {
namespace {

Status plan_delta(const TensorInputs& inputs, TaskRunner&, TensorPlan& plan) {
  if (inputs.base.empty()) return Status(StatusCode::unsupported, "tensor: no base to take differences to");
  if (plan.description.type != ElementType::f32) return {};
  const float scale = fit_scale(inputs.values, inputs.base);
  plan.side.resize(4);
  ByteWriter(plan.side).u32(std::bit_cast<std::uint32_t>(scale));
  return {};
}

Result<kernels::Reference> read_side(ElementType type, std::span<const std::uint8_t> side) {
  if (side.size() != (type == ElementType::f32 ? 4u : 0u))
    return Status(StatusCode::corrupt, "tensor: the side of differences has another size");
  if (side.empty()) return kernels::Reference{};
  const auto scale = std::bit_cast<float>(ByteReader(side).u32());
  if (!is_scale(scale)) return Status(StatusCode::corrupt, "tensor: a base is scaled out of range");
  return kernels::Reference{scale};
}

Result<std::size_t> encode(const TensorPlan& plan, const TensorInputs&, const ChunkInputs& chunk,
                           std::span<std::uint8_t> out, AlignedBuffer& scratch) {
  const ElementType type = plan.description.type;
  QUERN_ASSIGN_OR_RETURN(const kernels::Reference rule, read_side(type, plan.side));
  const PlaneWords words = words_of_differences(type, chunk.elems, chunk.base.data());
  // Differences wait behind what the planes take.
  const std::size_t planes = encode_scratch_bytes(words);
  QUERN_RETURN_IF_ERROR(scratch.resize(planes + chunk.values.size()));
  std::uint8_t* const differences = scratch.data() + planes;
  kernels::plane_kernels(kernels::best_isa())
      .subtract(chunk.values.data(), chunk.base.data(), words.count, words.width, rule, differences);
  QUERN_ASSIGN_OR_RETURN(const std::size_t coded,
                         encode_planes(words, differences, plan.request.zstd_level, out.subspan(1, chunk.values.size()),
                                       scratch.span().first(planes)));
  return finish_chunk(chunk.values, coded, out.data());
}

Result<TensorNeeds> needs(const TensorDescription& description, std::span<const std::uint8_t> side) {
  QUERN_RETURN_IF_ERROR(read_side(description.type, side).status());
  return TensorNeeds{.base = true};
}

Status decode(const TensorDescription& description, std::span<const std::uint8_t> side, const TensorInputs&,
              const ChunkInputs& chunk, std::span<const std::uint8_t> bytes, std::span<std::uint8_t> out,
              AlignedBuffer& scratch) {
  QUERN_ASSIGN_OR_RETURN(const kernels::Reference rule, read_side(description.type, side));
  QUERN_ASSIGN_OR_RETURN(const bool coded, begin_chunk(bytes, out));
  if (!coded) return {};
  const PlaneWords words = words_of_differences(description.type, chunk.elems, chunk.base.data());
  QUERN_RETURN_IF_ERROR(scratch.resize(decode_scratch_bytes(words)));
  QUERN_RETURN_IF_ERROR(decode_planes(words, bytes.subspan(1), out.data(), scratch.span()));
  kernels::plane_kernels(kernels::best_isa()).add(out.data(), chunk.base.data(), words.count, words.width, rule);
  return {};
}

}  // namespace

const ModeCoder kDeltaCoder{Mode::delta, plan_delta, encode, needs, decode};

}  // namespace quern::codec::tensor
