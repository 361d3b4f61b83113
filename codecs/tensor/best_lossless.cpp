// What costs nothing is tried first; then pieces from all over the tensor are coded in each mode, and the sizes
// compared.
#include "codecs/tensor/best_lossless.h"

#include <algorithm>
#include <cstring>

#include "libcompress/core/scattered_sample.h"

namespace quern::codec::tensor {
namespace {

constexpr std::size_t kPieces = 8;
constexpr std::size_t kPieceBytes = 32768;
/// A base must save this part of the planes' bytes: whoever decodes has to fetch it.
constexpr std::size_t kWorthBase = 128;
/// Planes must save this part of the raw bytes.
constexpr std::size_t kWorthPlanes = 256;

/// Pieces of the values and of the base, one behind the other, as a small tensor.
struct Sample {
  TensorDescription description;
  AlignedBuffer values;
  AlignedBuffer base;

  TensorInputs inputs() const {
    TensorInputs all;
    all.values = {values.data(), values.size()};
    all.base = {base.data(), base.size()};
    return all;
  }
};

Status take_sample(const TensorDescription& description, const TensorInputs& inputs, Sample& sample) {
  const std::size_t width = element_bytes(description.type);
  const std::uint64_t pieces = description.bytes() / kPieceBytes;
  const bool all = pieces <= kPieces;
  const auto bytes = all ? static_cast<std::size_t>(description.bytes()) : kPieces * kPieceBytes;
  const std::uint64_t extents[] = {bytes / width};
  QUERN_ASSIGN_OR_RETURN(sample.description.shape, TensorShape::make(extents));
  sample.description.type = description.type;
  const auto gather = [&](std::span<const std::uint8_t> from, AlignedBuffer& to) -> Status {
    if (from.empty()) return {};
    QUERN_RETURN_IF_ERROR(to.resize(bytes));
    if (all) {
      std::memcpy(to.data(), from.data(), bytes);
      return {};
    }
    for (std::size_t p = 0; p < kPieces; ++p)
      std::memcpy(to.data() + p * kPieceBytes, from.data() + scattered_sample(pieces, kPieces, p) * kPieceBytes,
                  kPieceBytes);
    return {};
  };
  QUERN_RETURN_IF_ERROR(gather(inputs.values, sample.values));
  return gather(inputs.base, sample.base);
}

Result<std::size_t> coded_bytes(const TensorPlan& plan, const Sample& sample, AlignedBuffer& out,
                                AlignedBuffer& scratch) {
  TensorPlan small{sample.description, plan.request, plan.mode, plan.side};
  return encode_chunk(small, sample.inputs(), 0, out.span(), scratch);
}

/// True when the mode can code the tensor; the plan is that mode's then.
Result<bool> try_plan(Mode mode, const TensorInputs& inputs, TaskRunner& runner, TensorPlan& plan) {
  TensorPlan tried{plan.description, plan.request, mode, {}};
  const Status status = mode_coder(mode)->plan(inputs, runner, tried);
  if (status.code() == StatusCode::unsupported) return false;
  QUERN_RETURN_IF_ERROR(status);
  plan = std::move(tried);
  return true;
}

}  // namespace

Status plan_best_lossless(const TensorInputs& inputs, TaskRunner& runner, TensorPlan& plan) {
  plan.mode = Mode::raw;
  plan.side.clear();
  if (plan.description.elems() == 0) return {};
  for (const Mode mode : {Mode::constant, Mode::derived}) {
    QUERN_ASSIGN_OR_RETURN(const bool possible, try_plan(mode, inputs, runner, plan));
    if (possible) return {};
  }
  Sample sample;
  QUERN_RETURN_IF_ERROR(take_sample(plan.description, inputs, sample));
  AlignedBuffer out;
  AlignedBuffer scratch;
  QUERN_RETURN_IF_ERROR(out.resize(chunk_bound(sample.description, 0)));
  std::size_t least = sample.values.size() - sample.values.size() / kWorthPlanes;

  TensorPlan other = plan;
  QUERN_RETURN_IF_ERROR(try_plan(Mode::planes, inputs, runner, other).status());
  QUERN_ASSIGN_OR_RETURN(std::size_t bytes, coded_bytes(other, sample, out, scratch));
  if (bytes < least) {
    least = bytes;
    plan = other;
  }
  QUERN_ASSIGN_OR_RETURN(const bool has_base, try_plan(Mode::delta, inputs, runner, other));
  if (!has_base) return {};
  QUERN_ASSIGN_OR_RETURN(bytes, coded_bytes(other, sample, out, scratch));
  if (bytes + other.side.size() < least - least / kWorthBase) plan = std::move(other);
  return {};
}

}  // namespace quern::codec::tensor
