// The codec's face to the pipeline: settings, plan, params, checks on what callers hand in.
#include "codecs/lossless/lossless.h"

#include <charconv>
#include <new>

#include "codecs/lossless/chunk.h"
#include "codecs/lossless/layout.h"

namespace quern::codec::lossless {
namespace {

constexpr CodecInfo kInfo{
    2, 1, "lossless", "every bit back: integer differences, context-coded tokens, rANS", CodecTier::archive, true};
constexpr int kMaxZstdLevel = 19;

ChunkSpec make_spec(const ChunkGrid& grid, DType dtype, int zstd_level) {
  return {dtype,
          {static_cast<std::size_t>(grid.chunk[0]), static_cast<std::size_t>(grid.chunk[1]),
           static_cast<std::size_t>(grid.chunk[2])},
          zstd_level};
}

/// True when a box of these extents is a non-empty part of a chunk.
bool fits(const std::array<std::uint64_t, 3>& extents, const ChunkGrid& grid) {
  for (std::size_t a = 0; a < 3; ++a) {
    if (extents[a] == 0 || extents[a] > grid.chunk[a]) return false;
  }
  return true;
}

class Encoder final : public ChunkEncoder {
 public:
  Encoder(CodecPlan plan, const ChunkSpec& spec)
      : plan_(std::move(plan)), spec_(spec), scratch_bytes_(encode_scratch_bytes(spec)) {}

  const CodecPlan& plan() const override { return plan_; }
  std::size_t max_chunk_bytes() const override { return lossless::max_chunk_bytes(spec_); }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  Result<std::size_t> encode(const ConstBox3& in, std::span<std::uint8_t> out,
                             std::span<std::uint8_t> scratch) const override {
    if (!fits(in.extents, plan_.grid)) return Status(StatusCode::invalid_argument, "box is no chunk of the plan");
    if (out.size() < max_chunk_bytes()) return Status(StatusCode::destination_too_small, "chunk buffer is too small");
    if (scratch.size() < scratch_bytes_) return Status(StatusCode::invalid_argument, "scratch is too small");
    return encode_chunk(spec_, in, out, scratch);
  }

 private:
  CodecPlan plan_;
  ChunkSpec spec_;
  std::size_t scratch_bytes_;
};

class Decoder final : public ChunkDecoder {
 public:
  Decoder(const ChunkGrid& grid, const ChunkSpec& spec)
      : grid_(grid), spec_(spec), scratch_bytes_(decode_scratch_bytes(spec)) {}

  const ChunkGrid& grid() const override { return grid_; }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  Status decode(std::span<const std::uint8_t> in, const MutableBox3& out,
                std::span<std::uint8_t> scratch) const override {
    if (!fits(out.extents, grid_)) return Status(StatusCode::invalid_argument, "box is no chunk of the grid");
    if (scratch.size() < scratch_bytes_) return Status(StatusCode::invalid_argument, "scratch is too small");
    return decode_chunk(spec_, in, out, scratch);
  }

 private:
  ChunkGrid grid_;
  ChunkSpec spec_;
  std::size_t scratch_bytes_;
};

Result<int> zstd_level(const Settings& settings) {
  int level = 0;
  for (const auto& [key, value] : settings) {
    if (key != "zstd") return Status(StatusCode::unknown_setting, "lossless has one setting: zstd=1..19");
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, level);
    if (error != std::errc() || stop != end || level < 1 || level > kMaxZstdLevel) {
      return Status(StatusCode::invalid_argument, "zstd level must be a number from 1 to {0}", kMaxZstdLevel);
    }
  }
  return level;
}

class Codec final : public ArrayCodec {
 public:
  const CodecInfo& info() const override { return kInfo; }

  bool supports(DType, BoundKind kind) const override { return kind == BoundKind::lossless; }

  Result<std::unique_ptr<ChunkEncoder>> plan(const PlanRequest& request) const override {
    const bool exact = request.bound.kind == BoundKind::abs && request.bound.value == 0;
    if (!exact && !supports(request.dtype, request.bound.kind)) {
      return Status(StatusCode::unsupported, "lossless takes no bound but 0");
    }
    if (request.shape.elems() == 0 || request.sample->elems() == 0) {
      return Status(StatusCode::invalid_shape, "lossless needs at least one element");
    }
    QUERN_ASSIGN_OR_RETURN(const int level, zstd_level(request.settings));
    try {
      CodecPlan plan;
      QUERN_ASSIGN_OR_RETURN(plan.grid, choose_layout(request));
      plan.params = write_params(plan.grid, level > 0);
      const ChunkSpec spec = make_spec(plan.grid, request.dtype, level);
      return std::unique_ptr<ChunkEncoder>(std::make_unique<Encoder>(std::move(plan), spec));
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "no memory for a plan");
    }
  }

  Result<std::unique_ptr<ChunkDecoder>> open(const OpenRequest& request) const override {
    if (request.version != kInfo.version) {
      return Status(StatusCode::unsupported_version, "lossless version {0} is unknown", request.version);
    }
    ChunkGrid grid;
    bool zstd = false;
    QUERN_RETURN_IF_ERROR(read_params(request.params, request.shape, grid, zstd));
    try {
      return std::unique_ptr<ChunkDecoder>(
          std::make_unique<Decoder>(grid, make_spec(grid, request.dtype, zstd ? 1 : 0)));
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "no memory for a decoder");
    }
  }
};

}  // namespace

const ArrayCodec& lossless_codec() {
  static const Codec codec;
  return codec;
}

}  // namespace quern::codec::lossless
