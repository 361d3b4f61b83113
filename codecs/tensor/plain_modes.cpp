// The modes without arithmetic: elements as they are, and one element for all.
#include <cstring>

#include "codecs/tensor/mode_coder.h"

namespace quern::codec::tensor {
namespace {

Status plan_raw(const TensorInputs&, TaskRunner&, TensorPlan&) { return {}; }

Result<std::size_t> encode_raw(const TensorPlan&, const TensorInputs&, const ChunkInputs& chunk,
                               std::span<std::uint8_t> out, AlignedBuffer&) {
  std::memcpy(out.data(), chunk.values.data(), chunk.values.size());
  return chunk.values.size();
}

Result<TensorNeeds> needs_of_raw(const TensorDescription&, std::span<const std::uint8_t> side) {
  if (!side.empty()) return Status(StatusCode::corrupt, "tensor: raw has no side");
  return TensorNeeds{};
}

Status decode_raw(const TensorDescription&, std::span<const std::uint8_t>, const TensorInputs&, const ChunkInputs&,
                  std::span<const std::uint8_t> bytes, std::span<std::uint8_t> out, AlignedBuffer&) {
  if (bytes.size() != out.size()) return Status(StatusCode::corrupt, "tensor: a raw chunk has another size");
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return {};
}

Status plan_constant(const TensorInputs& inputs, TaskRunner&, TensorPlan& plan) {
  const std::size_t width = element_bytes(plan.description.type);
  const auto values = inputs.values;
  if (values.empty()) return Status(StatusCode::unsupported, "tensor: no element, hence no constant");
  // Equal to itself one element on: all are equal.
  if (std::memcmp(values.data(), values.data() + width, values.size() - width) != 0)
    return Status(StatusCode::unsupported, "tensor: the elements are not all the same");
  plan.side.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(width));
  return {};
}

Result<std::size_t> encode_constant(const TensorPlan&, const TensorInputs&, const ChunkInputs&, std::span<std::uint8_t>,
                                    AlignedBuffer&) {
  return std::size_t{0};
}

Result<TensorNeeds> needs_of_constant(const TensorDescription& description, std::span<const std::uint8_t> side) {
  if (side.size() != element_bytes(description.type))
    return Status(StatusCode::corrupt, "tensor: the side of a constant is one element");
  return TensorNeeds{};
}

Status decode_constant(const TensorDescription&, std::span<const std::uint8_t> side, const TensorInputs&,
                       const ChunkInputs&, std::span<const std::uint8_t> bytes, std::span<std::uint8_t> out,
                       AlignedBuffer&) {
  if (!bytes.empty()) return Status(StatusCode::corrupt, "tensor: a chunk of a constant has no bytes");
  std::memcpy(out.data(), side.data(), side.size());
  // What is filled doubles until all is.
  for (std::size_t filled = side.size(); filled < out.size();) {
    const std::size_t more = std::min(filled, out.size() - filled);
    std::memcpy(out.data() + filled, out.data(), more);
    filled += more;
  }
  return {};
}

}  // namespace

const ModeCoder kRawCoder{Mode::raw, plan_raw, encode_raw, needs_of_raw, decode_raw};
const ModeCoder kConstantCoder{Mode::constant, plan_constant, encode_constant, needs_of_constant, decode_constant};

}  // namespace quern::codec::tensor
