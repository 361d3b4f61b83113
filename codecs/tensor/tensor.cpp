// Checks of what callers and streams say, choice of the mode, and whole tensors as tasks of one chunk each.
#include "codecs/tensor/tensor.h"

#include <array>
#include <mutex>

#include "codecs/tensor/best_lossless.h"
#include "codecs/tensor/mode_coder.h"
#include "libcompress/core/run_tasks.h"

namespace quern::codec::tensor {
namespace {

constexpr std::array<const ModeCoder*, kModes> kCoders = {&kRawCoder,     &kConstantCoder, &kPlanesCoder, &kDeltaCoder,
                                                          &kDerivedCoder, nullptr,         &kEbqCoder,    &kUpdqCoder,
                                                          &kLogqCoder,    &kBlk8Coder,     &kBlk4Coder};
constexpr std::array<const char*, kModes> kNames = {"raw", "constant", "planes", "delta", "derived", "replay",
                                                    "ebq", "updq",     "logq",   "blk8",  "blk4"};

Status check_description(const TensorDescription& description) {
  if (!is_known_element(static_cast<std::uint8_t>(description.type)))
    return Status(StatusCode::invalid_argument, "tensor: {0} is no element type",
                  static_cast<std::int64_t>(description.type));
  return {};
}

Status wrong_size(const char* message, std::uint64_t is, std::uint64_t wanted) {
  return Status(StatusCode::invalid_argument, message, static_cast<std::int64_t>(is),
                static_cast<std::int64_t>(wanted));
}

/// Base and companion: absent or of so many elements.
Status check_neighbours(const TensorDescription& description, std::uint64_t elems, const TensorInputs& inputs) {
  const std::uint64_t bytes = elems * element_bytes(description.type);
  if (!inputs.base.empty() && inputs.base.size() != bytes)
    return wrong_size("tensor: the base has {0} bytes, not {1}", inputs.base.size(), bytes);
  for (const auto direction : {inputs.direction, inputs.base_direction})
    if (!direction.empty() && direction.size() != elems * sizeof(float))
      return wrong_size("tensor: a direction has {0} bytes, not {1}", direction.size(), elems * sizeof(float));
  if (inputs.companion.empty()) return {};
  if (!is_known_element(static_cast<std::uint8_t>(inputs.companion_type)))
    return Status(StatusCode::invalid_argument, "tensor: {0} is no element type",
                  static_cast<std::int64_t>(inputs.companion_type));
  const std::uint64_t wanted = elems * element_bytes(inputs.companion_type);
  if (inputs.companion.size() != wanted)
    return wrong_size("tensor: the companion has {0} bytes, not {1}", inputs.companion.size(), wanted);
  return {};
}

Status check_values(const TensorInputs& inputs, std::uint64_t bytes) {
  if (inputs.values.size() != bytes)
    return wrong_size("tensor: the values have {0} bytes, not {1}", inputs.values.size(), bytes);
  return {};
}

/// Bytes that the inputs of a chunk's coder hold.
std::uint64_t held_bytes(const TensorDescription& description, const TensorInputs& inputs, std::uint64_t index) {
  return inputs.of_chunk ? description.chunk_bytes(index) : description.bytes();
}

Status no_such_chunk(std::uint64_t index) {
  return Status(StatusCode::invalid_argument, "tensor: there is no chunk {0}", static_cast<std::int64_t>(index));
}

ChunkInputs cut(const TensorDescription& description, const TensorInputs& inputs, std::uint64_t index) {
  ChunkInputs chunk;
  const std::size_t width = element_bytes(description.type);
  chunk.index = index;
  chunk.first_elem = description.chunk_begin(index) / width;
  chunk.elems = description.chunk_bytes(index) / width;
  const auto piece = [&](std::span<const std::uint8_t> whole, std::size_t bytes) {
    if (whole.empty() || inputs.of_chunk) return whole;
    return whole.subspan(static_cast<std::size_t>(chunk.first_elem) * bytes, chunk.elems * bytes);
  };
  chunk.values = piece(inputs.values, width);
  chunk.base = piece(inputs.base, width);
  chunk.companion = piece(inputs.companion, element_bytes(inputs.companion_type));
  chunk.companion_type = inputs.companion_type;
  chunk.direction = piece(inputs.direction, sizeof(float));
  chunk.base_direction = piece(inputs.base_direction, sizeof(float));
  return chunk;
}

}  // namespace

AlignedBuffer TensorMemory::take() {
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) return {};
  AlignedBuffer scratch = std::move(spare_.back());
  spare_.pop_back();
  return scratch;
}
void TensorMemory::give_back(AlignedBuffer scratch) {
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(scratch));
}

const char* mode_name(Mode mode) {
  const auto number = static_cast<std::size_t>(mode);
  return number < kModes ? kNames[number] : "unknown";
}

const ModeCoder* mode_coder(Mode mode) {
  const auto number = static_cast<std::size_t>(mode);
  return number < kModes ? kCoders[number] : nullptr;
}

Result<TensorPlan> plan_tensor(const TensorDescription& description, const TensorRequest& request,
                               const TensorInputs& inputs, TaskRunner& runner) {
  QUERN_RETURN_IF_ERROR(check_description(description));
  if (inputs.of_chunk) return Status(StatusCode::invalid_argument, "tensor: a plan takes whole tensors");
  QUERN_RETURN_IF_ERROR(check_values(inputs, description.bytes()));
  QUERN_RETURN_IF_ERROR(check_neighbours(description, description.elems(), inputs));
  TensorPlan plan{description, request, Mode::raw, {}};
  if (!request.mode) {
    QUERN_RETURN_IF_ERROR(plan_best_lossless(inputs, runner, plan));
    return plan;
  }
  const ModeCoder* const coder = mode_coder(*request.mode);
  if (coder == nullptr)
    return Status(StatusCode::unsupported, "tensor: mode {0} is not available",
                  static_cast<std::int64_t>(*request.mode));
  plan.mode = *request.mode;
  QUERN_RETURN_IF_ERROR(coder->plan(inputs, runner, plan));
  return plan;
}

Result<TensorPlan> plan_tensor(const TensorDescription& description, const TensorRequest& request,
                               const TensorInputs& inputs) {
  SerialRunner serial;
  return plan_tensor(description, request, inputs, serial);
}

std::size_t chunk_bound(const TensorDescription& description, std::uint64_t index) {
  return index < description.chunks() ? description.chunk_bytes(index) + kChunkSlack : 0;
}

Result<std::size_t> encode_chunk(const TensorPlan& plan, const TensorInputs& inputs, std::uint64_t index,
                                 std::span<std::uint8_t> out, AlignedBuffer& scratch, std::span<std::uint8_t> decoded) {
  if (index >= plan.description.chunks()) return no_such_chunk(index);
  const std::uint64_t held = held_bytes(plan.description, inputs, index);
  QUERN_RETURN_IF_ERROR(check_values(inputs, held));
  QUERN_RETURN_IF_ERROR(check_neighbours(plan.description, held / element_bytes(plan.description.type), inputs));
  if (out.size() < chunk_bound(plan.description, index))
    return Status(StatusCode::destination_too_small, "tensor: {0} bytes are too few for a chunk",
                  static_cast<std::int64_t>(out.size()));
  ChunkInputs chunk = cut(plan.description, inputs, index);
  if (!decoded.empty() && decoded.size() != chunk.values.size())
    return wrong_size("tensor: a chunk is decoded into {0} bytes, not {1}", decoded.size(), chunk.values.size());
  const ModeCoder& coder = *mode_coder(plan.mode);
  if (coder.gives_decoded) chunk.decoded = decoded;
  QUERN_ASSIGN_OR_RETURN(const std::size_t size, coder.encode(plan, inputs, chunk, out, scratch));
  if (!decoded.empty() && !coder.gives_decoded)
    QUERN_RETURN_IF_ERROR(
        decode_chunk(plan.description, plan.mode, plan.side, index, out.first(size), inputs, decoded, scratch));
  return size;
}

Result<TensorNeeds> tensor_needs(const TensorDescription& description, Mode mode, std::span<const std::uint8_t> side) {
  QUERN_RETURN_IF_ERROR(check_description(description));
  const ModeCoder* const coder = mode_coder(mode);
  if (coder == nullptr)
    return Status(StatusCode::unsupported, "tensor: mode {0} is not available", static_cast<std::int64_t>(mode));
  return coder->needs(description, side);
}

Status decode_chunk(const TensorDescription& description, Mode mode, std::span<const std::uint8_t> side,
                    std::uint64_t index, std::span<const std::uint8_t> bytes, const TensorInputs& inputs,
                    std::span<std::uint8_t> out, AlignedBuffer& scratch) {
  QUERN_ASSIGN_OR_RETURN(const TensorNeeds needs, tensor_needs(description, mode, side));
  if (index >= description.chunks()) return no_such_chunk(index);
  QUERN_RETURN_IF_ERROR(
      check_neighbours(description, held_bytes(description, inputs, index) / element_bytes(description.type), inputs));
  if (out.size() != description.chunk_bytes(index))
    return wrong_size("tensor: a chunk is decoded into {0} bytes, not {1}", out.size(), description.chunk_bytes(index));
  if (needs.base && inputs.base.empty())
    return Status(StatusCode::invalid_argument, "tensor: decoding takes the base, which is missing");
  if (needs.companion && inputs.companion.empty())
    return Status(StatusCode::invalid_argument, "tensor: decoding takes the companion, which is missing");
  if ((needs.direction && inputs.direction.empty()) || (needs.base_direction && inputs.base_direction.empty()))
    return Status(StatusCode::invalid_argument, "tensor: decoding takes the optimizer's direction, which is missing");
  TensorInputs known = inputs;
  known.values = {};
  return mode_coder(mode)->decode(description, side, known, cut(description, known, index), bytes, out, scratch);
}

Status encode_tensor(const TensorDescription& description, const TensorRequest& request, const TensorInputs& inputs,
                     TaskRunner& runner, TensorMemory& memory, EncodedTensor& encoded,
                     std::span<std::uint8_t> decoded) {
  QUERN_ASSIGN_OR_RETURN(TensorPlan plan, plan_tensor(description, request, inputs, runner));
  if (!decoded.empty() && decoded.size() != description.bytes())
    return wrong_size("tensor: {0} bytes are there for a tensor of {1}", decoded.size(), description.bytes());
  const auto chunks = static_cast<std::size_t>(description.chunks());
  constexpr std::size_t kRoom = EncodedTensor::kRoom;
  encoded.mode = plan.mode;
  encoded.sizes.assign(chunks, 0);
  // Two modes say all in their side.
  const bool has_chunks = plan.mode != Mode::constant && plan.mode != Mode::derived && chunks > 0;
  if (has_chunks) {
    QUERN_RETURN_IF_ERROR(encoded.memory.resize((chunks - 1) * kRoom + chunk_bound(description, chunks - 1)));
    const auto room = encoded.memory.span();
    QUERN_RETURN_IF_ERROR(run_tasks(runner, chunks, [&](std::size_t i) -> Status {
      AlignedBuffer scratch = memory.take();
      const auto piece = decoded.empty() ? decoded
                                         : decoded.subspan(static_cast<std::size_t>(description.chunk_begin(i)),
                                                           description.chunk_bytes(i));
      QUERN_ASSIGN_OR_RETURN(encoded.sizes[i], encode_chunk(plan, inputs, i, room.subspan(i * kRoom), scratch, piece));
      memory.give_back(std::move(scratch));
      return {};
    }));
  }
  encoded.side = std::move(plan.side);
  if (!has_chunks && !decoded.empty()) return decode_tensor(description, encoded, inputs, decoded, runner, memory);
  return {};
}

Result<EncodedTensor> encode_tensor(const TensorDescription& description, const TensorRequest& request,
                                    const TensorInputs& inputs, TaskRunner& runner) {
  TensorMemory memory;
  EncodedTensor encoded;
  QUERN_RETURN_IF_ERROR(encode_tensor(description, request, inputs, runner, memory, encoded));
  return encoded;
}

Status decode_tensor(const TensorDescription& description, const EncodedTensor& encoded, const TensorInputs& inputs,
                     std::span<std::uint8_t> out, TaskRunner& runner, TensorMemory& memory) {
  QUERN_RETURN_IF_ERROR(check_description(description));
  if (out.size() != description.bytes())
    return wrong_size("tensor: {0} bytes are there for a tensor of {1}", out.size(), description.bytes());
  const auto chunks = static_cast<std::size_t>(description.chunks());
  if (encoded.sizes.size() != chunks)
    return Status(StatusCode::invalid_argument, "tensor: {0} chunks are there, not {1}",
                  static_cast<std::int64_t>(encoded.sizes.size()), static_cast<std::int64_t>(chunks));
  if (chunks == 0) return tensor_needs(description, encoded.mode, encoded.side).status();
  return run_tasks(runner, chunks, [&](std::size_t i) -> Status {
    AlignedBuffer scratch = memory.take();
    const auto piece = out.subspan(static_cast<std::size_t>(description.chunk_begin(i)), description.chunk_bytes(i));
    QUERN_RETURN_IF_ERROR(
        decode_chunk(description, encoded.mode, encoded.side, i, encoded.chunk(i), inputs, piece, scratch));
    memory.give_back(std::move(scratch));
    return {};
  });
}

Status decode_tensor(const TensorDescription& description, const EncodedTensor& encoded, const TensorInputs& inputs,
                     std::span<std::uint8_t> out, TaskRunner& runner) {
  TensorMemory memory;
  return decode_tensor(description, encoded, inputs, out, runner, memory);
}

}  // namespace quern::codec::tensor
