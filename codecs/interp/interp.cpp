// The codec's face to the pipeline: plan, params, coarse levels, checks on what callers hand in.
#include "codecs/interp/interp.h"

#include <algorithm>
#include <memory>
#include <new>

#include "codecs/interp/array_levels.h"
#include "codecs/interp/chunk.h"
#include "codecs/interp/device/state.h"
#include "codecs/interp/plan.h"
#include "codecs/interp/rules.h"
#include "codecs/interp/settings.h"

namespace quern::codec::interp {
namespace {

constexpr CodecInfo kInfo{
    kCodecId,         kCodecVersion,
    "interp",         "ratio on devices: interpolation by levels in tiles, contexts from coded neighbours, rANS",
    CodecTier::named, false};

/// True when a box of these extents is a non-empty part of a chunk.
bool fits(const std::array<std::uint64_t, 3>& extents, const ChunkGrid& grid) {
  for (std::size_t a = 0; a < 3; ++a)
    if (extents[a] == 0 || extents[a] > grid.chunk[a]) return false;
  return true;
}

class Encoder final : public ChunkEncoder {
 public:
  Encoder(CodecPlan plan, const ChunkSpec& spec, unsigned levels)
      : plan_(std::move(plan)), spec_(spec), levels_(levels), scratch_bytes_(encode_scratch_bytes(spec)) {}

  const CodecPlan& plan() const override { return plan_; }
  std::size_t max_chunk_bytes() const override { return interp::max_chunk_bytes(spec_); }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  std::span<const std::uint8_t> device_state() const override { return encoder_state(spec_); }
  Result<std::size_t> encode(const ConstBox3& in, std::span<std::uint8_t> out,
                             std::span<std::uint8_t> scratch) const override {
    if (!fits(in.extents, plan_.grid))
      return Status(StatusCode::invalid_argument, "interp: the box is no chunk of the plan");
    if (out.size() < max_chunk_bytes() || scratch.size() < scratch_bytes_)
      return Status(StatusCode::destination_too_small, "interp: {0} bytes are needed for a chunk",
                    static_cast<std::int64_t>(max_chunk_bytes()));
    try {
      return encode_chunk(spec_, in, out, scratch);
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "interp: out of memory while encoding");
    }
  }
  unsigned levels() const override { return levels_; }
  Result<Vector<std::uint64_t>> level_cuts(std::span<const std::uint8_t> chunk,
                                           const std::array<std::uint64_t, 3>&) const override {
    try {
      return interp::level_cuts(spec_, chunk, std::min(levels_, section_count(spec_.tile) - 1));
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "interp: out of memory while encoding");
    }
  }

 private:
  CodecPlan plan_;
  ChunkSpec spec_;
  unsigned levels_;
  std::size_t scratch_bytes_;
};

class Decoder final : public ChunkDecoder {
 public:
  Decoder(const Shape& shape, const Layout& layout, const ChunkGrid& grid, const ChunkSpec& spec)
      : shape_(shape),
        layout_(layout),
        grid_(grid),
        spec_(spec),
        levels_(count_levels(shape, layout)),
        scratch_bytes_(decode_scratch_bytes(spec)),
        device_state_(spec) {}

  const ChunkGrid& grid() const override { return grid_; }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  std::span<const std::uint8_t> device_state() const override { return device_state_.bytes(); }
  Status decode(std::span<const std::uint8_t> in, const MutableBox3& out,
                std::span<std::uint8_t> scratch) const override {
    if (!fits(out.extents, grid_))
      return Status(StatusCode::invalid_argument, "interp: the box is no chunk of the grid");
    if (scratch.size() < scratch_bytes_) return too_little();
    return decode_chunk(spec_, in, out, scratch);
  }
  unsigned levels() const override { return levels_; }
  LevelForm level_form(unsigned level) const override { return array_level(shape_, layout_, level); }
  Status decode_level(std::span<const std::uint8_t> in, const MutableBox3& chunk, unsigned level,
                      const MutableBox3& out, std::span<std::uint8_t> scratch) const override {
    if (level == 0 || level > levels_) return Status(StatusCode::unsupported, "interp: there is no such level");
    if (!fits(chunk.extents, grid_))
      return Status(StatusCode::invalid_argument, "interp: the box is no chunk of the grid");
    if (scratch.size() < scratch_bytes_) return too_little();
    return interp::decode_level(spec_, in, chunk.extents, level, out, scratch);
  }

 private:
  Status too_little() const {
    return Status(StatusCode::destination_too_small, "interp: {0} bytes of scratch are needed",
                  static_cast<std::int64_t>(scratch_bytes_));
  }

  Shape shape_;
  Layout layout_;
  ChunkGrid grid_;
  ChunkSpec spec_;
  unsigned levels_;
  std::size_t scratch_bytes_;
  DeviceState device_state_;
};

ChunkSpec chunk_spec(DType dtype, const ChunkGrid& grid, const Layout& layout, const Predictors& predictors,
                     double bound, kernels::IsaLevel isa) {
  return {dtype,
          grid.chunk,
          layout.tile,
          predictors,
          bound,
          &kernels::interp_kernels(isa),
          &kernels::residual_kernels(isa)};
}

class Codec final : public ArrayCodec {
 public:
  const CodecInfo& info() const override { return kInfo; }

  bool supports(DType dtype, BoundKind kind) const override { return interp::supports(dtype, kind); }

  Result<std::unique_ptr<ChunkEncoder>> plan(const PlanRequest& request) const override {
    if (!supports(request.dtype, request.bound.kind) || !(request.bound.value > 0))
      return Status(StatusCode::unsupported, "interp takes absolute bounds above 0, and no 64-bit integers");
    if (request.prequantized)
      return Status(StatusCode::unsupported, "interp makes no idempotent streams; lorenzo and stencil do");
    if (request.shape.elems() == 0 || request.sample->elems() == 0)
      return Status(StatusCode::invalid_shape, "interp needs at least one element");
    QUERN_ASSIGN_OR_RETURN(const ParsedSettings parsed, parse_settings(request.settings, request.shape));
    try {
      QUERN_ASSIGN_OR_RETURN(const Choice choice, choose(request, parsed.layout, kernels::interp_kernels(parsed.isa),
                                                         kernels::residual_kernels(parsed.isa)));
      CodecPlan plan;
      plan.grid = make_grid(request.shape, choice.layout);
      plan.params = write_params(choice.layout, choice.predictors);
      const ChunkSpec spec =
          chunk_spec(request.dtype, plan.grid, choice.layout, choice.predictors, request.bound.value, parsed.isa);
      return std::unique_ptr<ChunkEncoder>(
          std::make_unique<Encoder>(std::move(plan), spec, count_levels(request.shape, choice.layout)));
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "interp: out of memory while planning");
    }
  }

  Result<std::unique_ptr<ChunkDecoder>> open(const OpenRequest& request) const override {
    if (request.version != kCodecVersion)
      return Status(StatusCode::unsupported_version, "interp: version {0} is not known here; a newer quern reads it",
                    request.version);
    if (!supports(request.dtype, BoundKind::abs))
      return Status(StatusCode::corrupt, "interp: elements of this type have no coded form");
    Layout layout;
    Predictors predictors{};
    QUERN_RETURN_IF_ERROR(read_params(request.params, request.shape, layout, predictors));
    const ChunkGrid grid = make_grid(request.shape, layout);
    try {
      return std::unique_ptr<ChunkDecoder>(std::make_unique<Decoder>(
          request.shape, layout, grid, chunk_spec(request.dtype, grid, layout, predictors, 0, kernels::best_isa())));
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "interp: out of memory while opening");
    }
  }
};

}  // namespace

const ArrayCodec& interp_codec() {
  static const Codec codec;
  return codec;
}

}  // namespace quern::codec::interp
