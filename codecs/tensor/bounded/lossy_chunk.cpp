// Frame of chunks of the bounded modes, and which of them a plan looks at.
#include "codecs/tensor/bounded/lossy_chunk.h"

#include "libcompress/core/scattered_sample.h"

namespace quern::codec::tensor {
namespace {

constexpr std::uint8_t kStoredMark = 0;
constexpr std::uint8_t kCodedMark = 1;
constexpr std::uint64_t kMostFitted = 8;

}  // namespace

Status check_bounded(const TensorDescription& description, bool bound_fits) {
  if (description.type != ElementType::f32)
    return Status(StatusCode::unsupported, "tensor: bounded modes take binary32 only");
  if (!bound_fits) return Status(StatusCode::invalid_bound, "tensor: the bound is out of the mode's range");
  return {};
}

Vector<std::uint64_t> chunks_to_fit(const TensorDescription& description) {
  const std::uint64_t chunks = description.chunks();
  const std::uint64_t count = std::min(chunks, kMostFitted);
  Vector<std::uint64_t> fitted;
  for (std::uint64_t i = 0; i < count; ++i) fitted.push_back(scattered_sample(chunks, count, i));
  return fitted;
}

PlanePiece piece_of(const TensorDescription& description, std::uint64_t chunk) {
  return {description.chunk_begin(chunk) / 4, description.chunk_bytes(chunk) / 4, plane_width(description)};
}

std::span<const std::uint8_t> bytes_of(const TensorDescription& description, std::uint64_t chunk,
                                       std::span<const std::uint8_t> whole) {
  if (whole.empty()) return whole;
  return whole.subspan(static_cast<std::size_t>(description.chunk_begin(chunk)), description.chunk_bytes(chunk));
}

Result<std::size_t> finish_chunk(const ChunkInputs& chunk, std::span<const std::uint8_t> head,
                                 std::span<const std::uint8_t> tail, std::span<std::uint8_t> out) {
  const auto raw = chunk.values;
  if (head.size() + tail.size() >= raw.size()) {
    out[0] = kStoredMark;
    std::memcpy(out.data() + 1, raw.data(), raw.size());
    if (!chunk.decoded.empty()) std::memcpy(chunk.decoded.data(), raw.data(), raw.size());
    return raw.size() + 1;
  }
  out[0] = kCodedMark;
  if (!head.empty()) std::memcpy(out.data() + 1, head.data(), head.size());
  if (!tail.empty()) std::memcpy(out.data() + 1 + head.size(), tail.data(), tail.size());
  return 1 + head.size() + tail.size();
}

Result<bool> begin_chunk(std::span<const std::uint8_t>& bytes, std::span<std::uint8_t> out) {
  const auto bad = [] { return Status(StatusCode::corrupt, "tensor: a chunk begins with no known mark"); };
  if (bytes.empty()) return bad();
  const std::uint8_t mark = bytes[0];
  bytes = bytes.subspan(1);
  if (mark == kCodedMark) return false;
  if (mark != kStoredMark || bytes.size() != out.size()) return bad();
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return true;
}

}  // namespace quern::codec::tensor
