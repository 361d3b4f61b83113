// The tensor codec: a chunk's bytes and side, hostile, decode or fail inside their memory and take no more than the
// tensor's size demands; values come back bit for bit in every mode that takes them.
#include <vector>

#include "tests/fuzz/fuzz_common.h"
#include "tests/fuzz/tensor_input.h"

namespace {

using namespace quern;
using namespace quern::codec::tensor;

constexpr std::uint8_t kGuard = 0xC3;
constexpr std::size_t kMargin = 64;
constexpr std::uint64_t kMostMemory = UINT64_C(1) << 22;

void decode_hostile(fuzz::Feed& feed, const TensorDescription& description, Mode mode) {
  const std::size_t bytes = description.chunk_bytes(0);
  const auto base = fuzz::tensor_base(bytes);
  const auto companion = fuzz::tensor_base(4 * description.elems());
  const auto side = feed.take(feed.byte());
  std::vector<std::uint8_t> memory(bytes + 2 * kMargin, kGuard);
  TensorInputs inputs;
  inputs.base = base;
  inputs.companion = companion;
  const fuzz::AllocationWatch watch;
  {
    AlignedBuffer scratch;
    (void)decode_chunk(description, mode, side, 0, feed.rest(), inputs, std::span(memory).subspan(kMargin, bytes),
                       scratch);
  }
  QUERN_FUZZ_CHECK(watch.peak() <= kMostMemory);
  for (std::size_t i = 0; i < kMargin; ++i)
    QUERN_FUZZ_CHECK(memory[i] == kGuard && memory[memory.size() - 1 - i] == kGuard);
}

void round_trip(fuzz::Feed& feed, const TensorDescription& description, Mode mode, int zstd_level) {
  // The input again and again, so that short inputs fill tensors.
  const auto rest = feed.rest();
  std::vector<std::uint8_t> values(description.bytes());
  for (std::size_t i = 0; i < values.size() && !rest.empty(); ++i) values[i] = rest[i % rest.size()];
  const auto base = fuzz::tensor_base(values.size());
  TensorInputs inputs;
  inputs.values = values;
  inputs.base = base;
  TensorRequest request;
  request.zstd_level = zstd_level;
  if (zstd_level != 2) request.mode = mode;
  SerialRunner serial;
  const auto encoded = encode_tensor(description, request, inputs, serial);
  if (!encoded.ok()) {
    QUERN_FUZZ_CHECK(encoded.status().code() == StatusCode::unsupported);
    return;
  }
  QUERN_FUZZ_CHECK(encoded->total_bytes() <= values.size() + 8);
  std::vector<std::uint8_t> back(values.size(), kGuard);
  inputs.values = {};
  QUERN_FUZZ_CHECK(decode_tensor(description, *encoded, inputs, back, serial).ok());
  QUERN_FUZZ_CHECK(back == values);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Feed feed({data, size});
  const bool hostile = feed.byte() % 2 == 0;
  const ElementType type = fuzz::kTensorTypes[feed.byte() % std::size(fuzz::kTensorTypes)];
  const Mode mode = fuzz::kTensorModes[feed.byte() % std::size(fuzz::kTensorModes)];
  const std::uint64_t extents[] = {feed.raw<std::uint16_t>()};
  const int zstd_level = feed.byte() % 3;
  const auto shape = TensorShape::make(extents);
  QUERN_FUZZ_CHECK(shape.ok());
  const TensorDescription description{type, *shape};
  if (!hostile) {
    round_trip(feed, description, mode, zstd_level);
  } else if (description.chunks() > 0) {
    decode_hostile(feed, description, mode);
  }
  return 0;
}
