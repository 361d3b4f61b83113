// Mode derived: a copy of 4-byte floats in 2 bytes, rounded to nearest, ties to even. Nothing is stored.
#include <algorithm>
#include <bit>
#include <cstring>

#include "codecs/tensor/mode_coder.h"
#include "kernels/common/bit_packing.h"
#include "kernels/common/bits.h"
#include "libcompress/core/run_tasks.h"

namespace quern::codec::tensor {
namespace {

void derive(ElementType type, std::span<const std::uint8_t> companion, std::uint8_t* out) {
  const std::size_t elems = companion.size() / 4;
  const auto master = [&](std::size_t i) {
    return std::bit_cast<float>(kernels::load_le<std::uint32_t>(companion.data() + 4 * i));
  };
  if (type == ElementType::bf16) {
    for (std::size_t i = 0; i < elems; ++i)
      kernels::store_le(out + 2 * i, static_cast<std::uint16_t>(kernels::float_to_bfloat(master(i))));
  } else {
    for (std::size_t i = 0; i < elems; ++i)
      kernels::store_le(out + 2 * i, static_cast<std::uint16_t>(kernels::float_to_half(master(i))));
  }
}

bool can_be_derived(ElementType type) { return type == ElementType::bf16 || type == ElementType::f16; }

Status cannot() { return Status(StatusCode::unsupported, "tensor: not a rounded copy of a companion of f32"); }

Status plan_derived(const TensorInputs& inputs, TaskRunner& runner, TensorPlan& plan) {
  if (!can_be_derived(plan.description.type) || inputs.companion.empty() || inputs.companion_type != ElementType::f32)
    return cannot();
  const TensorDescription& description = plan.description;
  return run_tasks(runner, static_cast<std::size_t>(description.chunks()), [&](std::size_t index) -> Status {
    constexpr std::size_t kBlock = 4096;
    std::uint8_t rounded[2 * kBlock];
    const std::size_t end = description.chunk_begin(index) + description.chunk_bytes(index);
    for (std::size_t at = description.chunk_begin(index); at < end; at += sizeof(rounded)) {
      const std::size_t bytes = std::min(sizeof(rounded), end - at);
      derive(description.type, inputs.companion.subspan(2 * at, 2 * bytes), rounded);
      if (std::memcmp(rounded, inputs.values.data() + at, bytes) != 0) return cannot();
    }
    return {};
  });
}

Result<std::size_t> encode(const TensorPlan&, const TensorInputs&, const ChunkInputs&, std::span<std::uint8_t>,
                           AlignedBuffer&) {
  return std::size_t{0};
}

Result<TensorNeeds> needs(const TensorDescription& description, std::span<const std::uint8_t> side) {
  if (!can_be_derived(description.type) || !side.empty())
    return Status(StatusCode::corrupt, "tensor: only bf16 and f16 are derived, and have no side");
  return TensorNeeds{.companion = true};
}

Status decode(const TensorDescription& description, std::span<const std::uint8_t>, const TensorInputs&,
              const ChunkInputs& chunk, std::span<const std::uint8_t> bytes, std::span<std::uint8_t> out,
              AlignedBuffer&) {
  if (!bytes.empty()) return Status(StatusCode::corrupt, "tensor: a derived chunk has no bytes");
  if (chunk.companion_type != ElementType::f32)
    return Status(StatusCode::invalid_argument, "tensor: copies are derived from f32");
  derive(description.type, chunk.companion, out.data());
  return {};
}

}  // namespace

const ModeCoder kDerivedCoder{Mode::derived, plan_derived, encode, needs, decode};

}  // namespace quern::codec::tensor
