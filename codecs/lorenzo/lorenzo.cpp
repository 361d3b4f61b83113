// The lorenzo codec object: settings, plans, and the bridge from the pipeline's boxes to the kernels.
#include "codecs/lorenzo/lorenzo.h"

#include <algorithm>
#include <new>
#include <optional>
#include <type_traits>

#include "codecs/lorenzo/plan.h"
#include "codecs/lorenzo/rules.h"
#include "codecs/lorenzo/settings.h"
#include "kernels/lorenzo/cpu/lorenzo.h"

namespace quern::codec::lorenzo {
namespace {

using kernels::ChunkBox;
using kernels::ChunkRules;
using kernels::LorenzoKernels;

constexpr CodecInfo kInfo{kCodecId,
                          kCodecVersion,
                          "lorenzo",
                          "throughput: verified quantization, Lorenzo prediction, bit planes without zero bytes",
                          CodecTier::throughput,
                          true};

std::size_t tiles_in(const ChunkGrid& grid, kernels::TileShape tile) {
  const auto counts = kernels::tile_counts(ChunkBox{grid.chunk, {}}, tile);
  return counts[0] * counts[1] * counts[2];
}

/// The rules are all that kernels are told.
std::span<const std::uint8_t> bytes_of(const ChunkRules& rules) {
  static_assert(std::is_trivially_copyable_v<ChunkRules>);
  return {reinterpret_cast<const std::uint8_t*>(&rules), sizeof rules};
}

/// Instructions for what failed by others: any processor has them.
const LorenzoKernels& other_kernels() { return kernels::lorenzo_kernels(kernels::IsaLevel::baseline); }

std::optional<std::uint64_t> fault_of(std::size_t tile) {
  return tile == kernels::kNoTile ? std::nullopt : std::optional<std::uint64_t>(tile);
}

class LorenzoEncoder final : public ChunkEncoder {
 public:
  LorenzoEncoder(CodecPlan plan, const ChunkRules& rules, const LorenzoKernels& kernels, bool checks_faults)
      : plan_(std::move(plan)), rules_(rules), kernels_(kernels), checks_faults_(checks_faults) {}

  const CodecPlan& plan() const override { return plan_; }
  std::size_t max_chunk_bytes() const override {
    return kernels::max_lorenzo_chunk_bytes(rules_.element, tiles_in(plan_.grid, rules_.tile));
  }
  std::size_t scratch_bytes() const override {
    if (!checks_faults_) return kernels_.encode_scratch_bytes;
    return std::max(kernels_.check_scratch_bytes, other_kernels().encode_scratch_bytes);
  }
  Result<std::size_t> encode(const ConstBox3& in, std::span<std::uint8_t> out,
                             std::span<std::uint8_t> scratch) const override {
    return encode_by(kernels_, in, out, scratch);
  }
  bool checks_faults() const override { return checks_faults_; }
  std::optional<std::uint64_t> find_fault(const ConstBox3& in, std::span<const std::uint8_t> chunk,
                                          std::span<std::uint8_t> scratch) const override {
    return fault_of(kernels_.find_encode_fault(rules_, chunk.data(), chunk.size(), in.data,
                                               ChunkBox{in.extents, in.strides}, scratch.data()));
  }
  Result<std::size_t> encode_otherwise(const ConstBox3& in, std::span<std::uint8_t> out,
                                       std::span<std::uint8_t> scratch) const override {
    return encode_by(other_kernels(), in, out, scratch);
  }
  /// Devices do not check: a host that is to check encodes.
  std::span<const std::uint8_t> device_state() const override {
    return checks_faults_ ? std::span<const std::uint8_t>() : bytes_of(rules_);
  }

 private:
  Result<std::size_t> encode_by(const LorenzoKernels& kernels, const ConstBox3& in, std::span<std::uint8_t> out,
                                std::span<std::uint8_t> scratch) const {
    if (out.size() < max_chunk_bytes() || scratch.size() < scratch_bytes())
      return Status(StatusCode::destination_too_small, "lorenzo: {0} bytes are needed for a chunk",
                    static_cast<std::int64_t>(max_chunk_bytes()));
    return kernels.encode(rules_, in.data, ChunkBox{in.extents, in.strides}, out.data(), scratch.data());
  }

  CodecPlan plan_;
  ChunkRules rules_;
  const LorenzoKernels& kernels_;
  bool checks_faults_;
};

class LorenzoDecoder final : public ChunkDecoder {
 public:
  LorenzoDecoder(const ChunkGrid& grid, const ChunkRules& rules, const LorenzoKernels& kernels)
      : grid_(grid), rules_(rules), kernels_(kernels) {}

  const ChunkGrid& grid() const override { return grid_; }
  std::size_t scratch_bytes() const override {
    return std::max(kernels_.decode_scratch_bytes, other_kernels().decode_scratch_bytes);
  }
  Status decode(std::span<const std::uint8_t> in, const MutableBox3& out,
                std::span<std::uint8_t> scratch) const override {
    return decode_by(kernels_, in, out, scratch);
  }
  bool can_find_faults() const override { return true; }
  std::optional<std::uint64_t> find_fault(std::span<const std::uint8_t> in, const ConstBox3& out,
                                          std::span<std::uint8_t> scratch) const override {
    return fault_of(kernels_.find_decode_fault(rules_, in.data(), in.size(), out.data,
                                               ChunkBox{out.extents, out.strides}, scratch.data()));
  }
  Status decode_otherwise(std::span<const std::uint8_t> in, const MutableBox3& out,
                          std::span<std::uint8_t> scratch) const override {
    return decode_by(other_kernels(), in, out, scratch);
  }
  std::span<const std::uint8_t> device_state() const override { return bytes_of(rules_); }

 private:
  Status decode_by(const LorenzoKernels& kernels, std::span<const std::uint8_t> in, const MutableBox3& out,
                   std::span<std::uint8_t> scratch) const {
    if (scratch.size() < scratch_bytes())
      return Status(StatusCode::destination_too_small, "lorenzo: {0} bytes of scratch are needed",
                    static_cast<std::int64_t>(scratch_bytes()));
    if (!kernels.decode(rules_, in.data(), in.size(), out.data, ChunkBox{out.extents, out.strides}, scratch.data()))
      return Status(StatusCode::corrupt, "lorenzo: the chunk's bytes do not make sense");
    return {};
  }

  ChunkGrid grid_;
  ChunkRules rules_;
  const LorenzoKernels& kernels_;
};

class LorenzoCodec final : public ArrayCodec {
 public:
  const CodecInfo& info() const override { return kInfo; }

  bool supports(DType dtype, BoundKind kind) const override {
    if (kind == BoundKind::pwrel) return is_float(dtype);
    return kind == BoundKind::abs || kind == BoundKind::lossless;
  }

  Result<std::unique_ptr<ChunkEncoder>> plan(const PlanRequest& request) const override {
    if (!supports(request.dtype, request.bound.kind))
      return Status(StatusCode::unsupported, "lorenzo: this kind of bound does not fit the element type");
    QUERN_ASSIGN_OR_RETURN(const ParsedSettings parsed, parse_settings(request.settings, request.shape));
    const LorenzoKernels& kernels = kernels::lorenzo_kernels(parsed.isa);
    try {
      QUERN_ASSIGN_OR_RETURN(const Choice choice, choose(request, parsed.layout ? &*parsed.layout : nullptr, kernels));
      CodecPlan plan;
      plan.grid = make_grid(request.shape, choice.layout, request.dtype);
      plan.params = write_params(choice.rules, choice.layout);
      return std::unique_ptr<ChunkEncoder>(
          new LorenzoEncoder(std::move(plan), choice.rules, kernels, parsed.checks_faults));
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "lorenzo: out of memory while planning");
    }
  }

  Result<std::unique_ptr<ChunkDecoder>> open(const OpenRequest& request) const override {
    if (request.version != kCodecVersion)
      return Status(StatusCode::unsupported_version, "lorenzo: version {0} is not known here; a newer quern reads it",
                    request.version);
    ChunkRules rules;
    Layout layout;
    QUERN_RETURN_IF_ERROR(read_params(request.params, request.dtype, request.shape, rules, layout));
    try {
      return std::unique_ptr<ChunkDecoder>(new LorenzoDecoder(make_grid(request.shape, layout, request.dtype), rules,
                                                              kernels::lorenzo_kernels(kernels::best_isa())));
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "lorenzo: out of memory while opening");
    }
  }
};

}  // namespace

const ArrayCodec& lorenzo_codec() {
  static const LorenzoCodec codec;
  return codec;
}

}  // namespace quern::codec::lorenzo
