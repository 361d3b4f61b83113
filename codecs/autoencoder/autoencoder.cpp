// The codec's face to the pipeline: plans and parameters, checks on what callers hand in.
#include "codecs/autoencoder/autoencoder.h"

#include <new>
#include <utility>

#include "codecs/autoencoder/chunk.h"
#include "codecs/autoencoder/params.h"
#include "codecs/autoencoder/plan.h"

namespace quern::codec::autoencoder {
namespace {

constexpr CodecInfo kInfo{
    kCodecId,         kCodecVersion,
    "autoencoder",    "blocks that networks of a trained model describe (AE-SZ); never chosen by auto",
    CodecTier::named, false};

/// True when a box of these extents is a non-empty part of a chunk.
bool fits(const Extents& extents, const ChunkGrid& grid) {
  for (std::size_t a = 0; a < 3; ++a) {
    if (extents[a] == 0 || extents[a] > grid.chunk[a]) return false;
  }
  return true;
}

class Encoder final : public ChunkEncoder {
 public:
  explicit Encoder(EncodePlan plan) : plan_(std::move(plan)), scratch_bytes_(encode_scratch_bytes(plan_.spec)) {}

  const CodecPlan& plan() const override { return plan_.plan; }
  std::size_t max_chunk_bytes() const override { return autoencoder::max_chunk_bytes(plan_.spec); }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  Result<std::size_t> encode(const ConstBox3& in, std::span<std::uint8_t> out,
                             std::span<std::uint8_t> scratch) const override {
    if (!fits(in.extents, plan_.plan.grid)) return Status(StatusCode::invalid_argument, "box is no chunk of the plan");
    if (out.size() < max_chunk_bytes()) return Status(StatusCode::destination_too_small, "chunk buffer is too small");
    if (scratch.size() < scratch_bytes_) return Status(StatusCode::invalid_argument, "scratch is too small");
    return encode_chunk(plan_.spec, in, out, scratch);
  }

 private:
  EncodePlan plan_;
  std::size_t scratch_bytes_;
};

class Decoder final : public ChunkDecoder {
 public:
  Decoder(const ChunkGrid& grid, const ChunkSpec& spec, std::unique_ptr<const PreparedModel> model)
      : grid_(grid), spec_(spec), model_(std::move(model)), scratch_bytes_(decode_scratch_bytes(spec)) {
    spec_.model = model_.get();
  }

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
  std::unique_ptr<const PreparedModel> model_;
  std::size_t scratch_bytes_;
};

class Codec final : public ArrayCodec {
 public:
  explicit Codec(const ModelSource* models) : models_(models) {}

  const CodecInfo& info() const override { return kInfo; }
  bool supports(DType dtype, BoundKind kind) const override {
    return kind == BoundKind::abs && dtype != DType::i64 && dtype != DType::u64;
  }

  Result<std::unique_ptr<ChunkEncoder>> plan(const PlanRequest& request) const override {
    if (!supports(request.dtype, request.bound.kind) || !(request.bound.value > 0))
      return Status(StatusCode::unsupported,
                    "autoencoder takes absolute bounds above 0 on floating-point types and integers of up to 32 bits");
    if (request.shape.elems() == 0 || request.sample->elems() == 0)
      return Status(StatusCode::invalid_shape, "autoencoder needs at least one element");
    if (request.prequantized) return Status(StatusCode::unsupported, "autoencoder makes no idempotent streams");
    try {
      QUERN_ASSIGN_OR_RETURN(EncodePlan plan, make_plan(request, models_));
      return std::unique_ptr<ChunkEncoder>(std::make_unique<Encoder>(std::move(plan)));
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "no memory for a plan");
    }
  }

  Result<std::unique_ptr<ChunkDecoder>> open(const OpenRequest& request) const override {
    if (request.version != kInfo.version)
      return Status(StatusCode::unsupported_version, "autoencoder version {0} is unknown", request.version);
    if (!supports(request.dtype, request.bound.kind))
      return Status(StatusCode::corrupt, "autoencoder: elements of a type that it does not take");
    try {
      return make_decoder(request);
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "no memory for a decoder");
    }
  }

 private:
  Result<std::unique_ptr<ChunkDecoder>> make_decoder(const OpenRequest& request) const {
    QUERN_ASSIGN_OR_RETURN(const Params params, read_params(request.params));
    ChunkSpec spec;
    spec.dtype = request.dtype;
    spec.block = params.block;
    spec.residuals = &kernels::residual_kernels(kernels::best_isa());
    spec.networks = &kernels::network_kernels(kernels::best_isa());
    const ChunkGrid grid = make_grid(request.shape, params.block);
    spec.most = grid.chunk;
    std::unique_ptr<const PreparedModel> model;
    if (params.place != ModelPlace::none) {
      Result<models::BlockModel> found = params.place == ModelPlace::embedded
                                             ? models::read_block_model(params.embedded)
                                             : find_model(models_, params.id);
      // Chunks without networks decode all the same, and what the header says can be told.
      spec.model_missing = found.status().code() == StatusCode::missing_model;
      if (!found.ok() && !spec.model_missing) return found.status();
      if (found.ok()) {
        for (std::size_t a = 0; a < 3; ++a)
          if (found->block[a] != params.block[a])
            return Status(StatusCode::corrupt, "autoencoder: the model is for blocks of another size");
        if (params.place == ModelPlace::embedded && !models::is_decoding_half(*found))
          return Status(StatusCode::corrupt, "autoencoder: the model of a stream has more than what decodes");
        model = std::make_unique<PreparedModel>(*found);
      }
    }
    return std::unique_ptr<ChunkDecoder>(std::make_unique<Decoder>(grid, spec, std::move(model)));
  }

  const ModelSource* models_;
};

}  // namespace

const ArrayCodec& autoencoder_codec() {
  static const Codec codec(nullptr);
  return codec;
}

std::unique_ptr<ArrayCodec> autoencoder_codec_with(const ModelSource& models) {
  return std::make_unique<Codec>(&models);
}

}  // namespace quern::codec::autoencoder
