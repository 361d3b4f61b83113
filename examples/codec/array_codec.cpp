// The array as one row, cut into chunks of equal length. Parameters: block u8 (a power of two).
#include "examples/codec/array_codec.h"

#include <algorithm>

#include "examples/codec/packed_values.h"

namespace quern::codec::packing {
namespace {

constexpr std::uint16_t kVersion = 1;
constexpr std::uint64_t kChunkBytes = UINT64_C(1) << 16;

constexpr CodecInfo kInfo{
    kArrayCodecId,         kVersion, "packing", "differences in blocks of equal width (an example)",
    CodecTier::throughput, false};

/// Follows from shape and type alone, as the format demands of grids.
ChunkGrid grid_of(const Shape& shape, DType dtype) {
  const std::uint64_t elems = shape.elems();
  const std::uint64_t chunk = std::clamp<std::uint64_t>(elems, 1, kChunkBytes / dtype_bytes(dtype));
  return {{1, 1, elems}, {1, 1, chunk}};
}

/// Chunks are runs of consecutive elements. Special values need no care: the pipeline has replaced them.
template <class Box>
std::uint64_t bytes_of(const Box& box, DType dtype) {
  return box.elems() * dtype_bytes(dtype);
}

class Encoder final : public ChunkEncoder {
 public:
  explicit Encoder(const PlanRequest& request)
      : plan_{grid_of(request.shape, request.dtype), {}}, run_{request.dtype, request.bound, {}} {
    plan_.params.push_back(static_cast<std::uint8_t>(run_.packing.block_log2));
  }

  const CodecPlan& plan() const override { return plan_; }
  std::size_t max_chunk_bytes() const override {
    return static_cast<std::size_t>(most_encoded_bytes(run_, plan_.grid.chunk[2] * dtype_bytes(run_.dtype)));
  }
  std::size_t scratch_bytes() const override { return 0; }
  Result<std::size_t> encode(const ConstBox3& in, std::span<std::uint8_t> out, std::span<std::uint8_t>) const override {
    const auto* const data = static_cast<const std::uint8_t*>(in.data);
    // There may be more room than was asked for, and no chunk may take it.
    const std::size_t bytes =
        encode_values(run_, {data, static_cast<std::size_t>(bytes_of(in, run_.dtype))}, out.first(max_chunk_bytes()));
    if (bytes == 0) return Status(StatusCode::internal, "a chunk does not fit the room that the codec asked for");
    return bytes;
  }

 private:
  CodecPlan plan_;
  ValueRun run_;
};

class Decoder final : public ChunkDecoder {
 public:
  Decoder(const OpenRequest& request, unsigned block_log2)
      : grid_(grid_of(request.shape, request.dtype)), run_{request.dtype, request.bound, {block_log2, 1}} {}

  const ChunkGrid& grid() const override { return grid_; }
  std::size_t scratch_bytes() const override { return 0; }
  Status decode(std::span<const std::uint8_t> in, const MutableBox3& out, std::span<std::uint8_t>) const override {
    auto* const data = static_cast<std::uint8_t*>(out.data);
    return decode_values(run_, in, {data, static_cast<std::size_t>(bytes_of(out, run_.dtype))});
  }

 private:
  ChunkGrid grid_;
  ValueRun run_;
};

class Codec final : public ArrayCodec {
 public:
  const CodecInfo& info() const override { return kInfo; }
  bool supports(DType, BoundKind kind) const override { return kind == BoundKind::lossless || kind == BoundKind::abs; }

  Result<std::unique_ptr<ChunkEncoder>> plan(const PlanRequest& request) const override {
    if (!request.settings.empty()) return Status(StatusCode::unknown_setting, "the codec packing takes no settings");
    return std::unique_ptr<ChunkEncoder>(std::make_unique<Encoder>(request));
  }

  Result<std::unique_ptr<ChunkDecoder>> open(const OpenRequest& request) const override {
    if (request.version != kVersion)
      return Status(StatusCode::unsupported_version, "the codec packing has version {0}, not {1}", kVersion,
                    request.version);
    const bool known =
        request.params.size() == 1 && request.params[0] >= kLeastBlockLog2 && request.params[0] <= kMostBlockLog2;
    if (!known) return Status(StatusCode::corrupt, "the parameters of the codec packing are not as they should be");
    return std::unique_ptr<ChunkDecoder>(std::make_unique<Decoder>(request, request.params[0]));
  }
};

}  // namespace

const ArrayCodec& array_codec() {
  static const Codec codec;
  return codec;
}

}  // namespace quern::codec::packing
