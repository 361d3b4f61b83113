// Sample, plan, header.
#include "libcompress/pipeline/encode/setup.h"

#include <algorithm>
#include <array>

#include <quern/codec_features.h>

#include "libcompress/format/frame/trailer.h"
#include "libcompress/format/grid/limits.h"
#include "libcompress/format/grid/segment.h"
#include "libcompress/format/grid/stored_grid.h"
#include "libcompress/format/writer.h"
#include "libcompress/pipeline/boxes.h"
#include "libcompress/pipeline/encode/mask_setting.h"
#include "libcompress/pipeline/mask/mask_rules.h"

namespace quern {
namespace {

constexpr std::uint64_t kSampleBytes = UINT64_C(64) << 20;
// Of an array whose streams are worth reading in part.
constexpr std::uint64_t kLevelTableElems = UINT64_C(1) << 16;

// Special values are found and replaced box by box, as if each box were a segment.
class CleanSample final : public PlanSample {
 public:
  explicit CleanSample(const SetupRequest& request)
      : request_(request), raw_(request.sample.data, request.dtype, request.sample.elems()) {}

  std::uint64_t elems() const override { return raw_.elems(); }

  Result<ConstBox3> look(std::uint64_t first, const ConstBox3& place, void* room,
                         std::uint8_t* special_room) const override {
    QUERN_ASSIGN_OR_RETURN(const ConstBox3 box, raw_.look(first, place, room, special_room));
    QUERN_ASSIGN_OR_RETURN(const mask::MaskForm form, mask_form(*request_.options, request_.candidate.tier()));
    const mask::RepeatedRule rule{request_.options->find_repeated, request_.bound.enforced, {}, form};
    QUERN_ASSIGN_OR_RETURN(const mask::SegmentMask found,
                           mask::find_specials(box, request_.dtype, request_.options->fill_bits, rule));
    if (found.empty()) return box;
    const std::array<std::uint64_t, 2> strides{box.extents[1] * box.extents[2], box.extents[2]};
    gather(box, dtype_bytes(request_.dtype), static_cast<std::uint8_t*>(room));
    QUERN_RETURN_IF_ERROR(mask::fill_gaps({room, box.extents, strides}, request_.dtype, found));
    if (special_room == nullptr) return ConstBox3{room, box.extents, strides};
    std::copy(found.classes.begin(), found.classes.end(), special_room);
    return ConstBox3{room, box.extents, strides, special_room, strides};
  }

 private:
  const SetupRequest& request_;
  PlainSample raw_;
};

Header common_header(const SetupRequest& request) {
  Header header;
  header.dtype = request.dtype;
  header.shape = request.shape;
  header.requested = request.options->bound;
  if (header.requested.kind == BoundKind::lossless) header.requested.value = 0;
  header.enforced = request.bound.enforced;
  header.range = request.bound.range;
  header.writer = this_writer();
  header.fill_bits = request.options->fill_bits;
  header.metadata = request.options->metadata;
  return header;
}

/// Bytes that a segment and each of its chunks cost beside the values, at most.
struct Framing {
  std::uint64_t per_segment = 0;
  std::uint64_t per_chunk = 0;
};

Framing framing_of(const SegmentLayout& layout) {
  const std::uint64_t largest = max_segment_bytes(layout, 0);
  const std::uint64_t mask_size_bytes = varint_bytes(layout.max_segment_elems() * dtype_bytes(layout.dtype()));
  return {segment_framing_bytes(layout, 0) - 1 + mask_size_bytes + level_size_room(layout) + varint_bytes(largest),
          segment_framing_bytes(layout, 1) - segment_framing_bytes(layout, 0)};
}

Status finish_setup(StreamSetup& setup) {
  if (!check_grid(setup.header.grid, setup.header.shape).ok())
    return Status(StatusCode::internal, "the codec's chunk grid does not fit the array");
  QUERN_ASSIGN_OR_RETURN(setup.header_bytes, serialize_header(setup.header));
  setup.layout = SegmentLayout(setup.header.grid, setup.header.dtype, setup.header.has_level_tables());
  return {};
}

Status make_encoder(const ArrayCodec& codec, const PlanRequest& plan, const StepReference* reference,
                    StreamSetup& setup) {
  if (reference == nullptr) {
    QUERN_ASSIGN_OR_RETURN(setup.encoder, codec.plan(plan));
    return {};
  }
  const auto* const able = dynamic_cast<const ReferenceCodec*>(&codec);
  if (able == nullptr) return Status(StatusCode::unsupported, "the codec predicts nothing from another array");
  QUERN_ASSIGN_OR_RETURN(setup.encoder, able->plan_beside(plan, reference->params, reference->id));
  setup.beside = dynamic_cast<const ReferenceChunkEncoder*>(setup.encoder.get());
  if (setup.beside == nullptr) return Status(StatusCode::internal, "the codec's encoder takes no reference");
  setup.reference = reference->values;
  setup.header.must_understand |= kReferences;
  return {};
}

}  // namespace

std::uint64_t sample_elems(DType dtype, const Shape& shape) {
  return std::min(shape.elems(), kSampleBytes / dtype_bytes(dtype));
}

Status check_options(DType dtype, const CompressOptions& options, const Registry& registry) {
  QUERN_RETURN_IF_ERROR(options.bound.check(dtype));
  if (options.codec != "auto" && registry.by_name(options.codec) == nullptr)
    return Status(StatusCode::unknown_codec, "there is no codec of that name; `quern list codecs` names them");
  return check_options(dtype, options);
}

Status check_options(DType dtype, const CompressOptions& options) {
  QUERN_RETURN_IF_ERROR(options.bound.check(dtype));
  if (options.goal != "ratio" && options.goal != "psnr" && options.goal != "speed")
    return Status(StatusCode::invalid_argument, "the goal must be ratio, psnr or speed");
  if (options.effort < 1 || options.effort > 9)
    return Status(StatusCode::invalid_argument, "the effort is {0}; it must be a number from 1 to 9",
                  static_cast<std::int64_t>(options.effort));
  QUERN_RETURN_IF_ERROR(mask_form(options, CodecTier::throughput).status());
  if (options.codec == "auto")
    for (const auto& [key, value] : options.settings)
      if (key == "verify")
        return Status(StatusCode::invalid_argument, "verify is a setting of single codecs: name one, as lorenzo");
  const BoundKind kind = options.bound.kind;
  if (options.idempotent &&
      (kind == BoundKind::psnr || kind == BoundKind::ratio || (kind == BoundKind::rel && !options.range)))
    return Status(
        StatusCode::invalid_argument,
        "idempotent=1 takes a bound that does not depend on the data: abs, pwrel or lossless; rel with a range");
  if (options.fill_bits.size() > kMaxFillValues)
    return Status(StatusCode::invalid_argument, "{0} fill values are declared; {1} is the limit",
                  static_cast<std::int64_t>(options.fill_bits.size()), static_cast<std::int64_t>(kMaxFillValues));
  const std::size_t bits = 8 * dtype_bytes(dtype);
  for (const std::uint64_t fill : options.fill_bits)
    if (bits < 64 && fill >> bits != 0)
      return Status(StatusCode::invalid_argument, "a fill value has more than the {0} bits of the element type",
                    static_cast<std::int64_t>(bits));
  if (options.metadata.size() > kMaxMetadataBytes)
    return Status(StatusCode::invalid_argument, "the metadata has {0} bytes; {1} is the limit",
                  static_cast<std::int64_t>(options.metadata.size()), static_cast<std::int64_t>(kMaxMetadataBytes));
  if (options.range && !(options.range->min <= options.range->max && options.range->max - options.range->max == 0 &&
                         options.range->min - options.range->min == 0))
    return Status(StatusCode::invalid_argument, "the given range must be two finite numbers, the smaller first");
  return {};
}

std::uint64_t worst_stream_bytes(const SegmentLayout& layout, std::uint64_t header_bytes) {
  const std::uint64_t bytes = header_bytes + kFooterBytes;
  if (layout.segments() == 0) return bytes;
  const auto& extents = layout.grid().extents;
  const Framing framing = framing_of(layout);
  return bytes + layout.segments() * framing.per_segment + layout.chunks() * framing.per_chunk +
         extents[0] * extents[1] * extents[2] * dtype_bytes(layout.dtype());
}

Result<StreamSetup> make_stored_setup(const SetupRequest& request) {
  StreamSetup setup;
  setup.header = common_header(request);
  setup.header.codec_id = kStoredCodecId;
  setup.header.codec_version = 1;
  setup.codec_name = "stored";
  setup.header.grid = stored_grid(request.shape.elems(), request.dtype);
  QUERN_RETURN_IF_ERROR(finish_setup(setup));
  return setup;
}

Result<StreamSetup> make_setup(const SetupRequest& asked, TaskRunner& runner, std::uint64_t max_chunks) {
  SetupRequest request = asked;
  const ArrayCodec* codec = request.candidate.codec;
  // A codec chosen because it keeps every bit is not told of a bound.
  if (codec == nullptr || !codec->supports(request.dtype, request.bound.enforced.kind)) request.bound.enforced = {};
  if (codec == nullptr || request.shape.elems() == 0) return make_stored_setup(request);
  StreamSetup setup;
  setup.header = common_header(request);
  setup.header.codec_id = codec->info().id;
  setup.header.codec_version = codec->info().version;
  setup.codec_name = codec->info().name;
  setup.all_ordinary = request.bound.all_ordinary;
  {
    const CleanSample sample(request);
    PlanRequest plan;
    plan.dtype = request.dtype;
    plan.shape = request.shape;
    plan.bound = request.bound.enforced;
    plan.goal = request.options->bound.kind == BoundKind::psnr ? "psnr" : request.options->goal;
    plan.effort = request.options->effort;
    plan.max_chunks = max_chunks;
    plan.memory_limit = request.memory_limit;
    plan.prequantized = request.options->idempotent;
    plan.sample = &sample;
    plan.runner = &runner;
    if (request.candidate.takes_settings) plan.settings = codec_settings(request.options->settings);
    plan.settings.insert(plan.settings.end(), request.candidate.alternative.begin(),
                         request.candidate.alternative.end());
    QUERN_RETURN_IF_ERROR(make_encoder(*codec, plan, request.reference, setup));
  }
  setup.parted = dynamic_cast<const PartedChunkEncoder*>(setup.encoder.get());
  if (setup.parted != nullptr) setup.header.must_understand |= kParts;
  if (const auto* const forms = dynamic_cast<const CodecFeatures*>(setup.encoder.get()))
    setup.header.must_understand |= forms->features();
  setup.header.grid = setup.encoder->plan().grid;
  setup.header.params = setup.encoder->plan().params;
  if (setup.encoder->levels() > 0 && request.shape.elems() >= kLevelTableElems)
    setup.header.must_understand |= kLevelTables;
  const bool may_mask =
      mask::may_have_mask(request.dtype, request.options->fill_bits.size(), request.options->find_repeated);
  if (may_mask) setup.mask_views = mask::MaskViews(request.shape.extents(), setup.header.grid.extents);
  if (setup.mask_views.count > 0) setup.header.must_understand |= kMaskViews;
  QUERN_ASSIGN_OR_RETURN(const mask::MaskForm form, mask_form(*request.options, request.candidate.tier()));
  if (may_mask && form == mask::MaskForm::levels) setup.header.must_understand |= kMaskLevels;
  QUERN_RETURN_IF_ERROR(finish_setup(setup));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t limit,
                         max_stream_bytes(request.dtype, request.shape, request.options->metadata.size()));
  const std::uint64_t worst = worst_stream_bytes(setup.layout, setup.header_bytes.size());
  setup.must_save = worst > limit ? worst - limit : 0;
  return setup;
}

Result<StreamSetup> make_cautious_setup(const SetupRequest& request, const StreamSetup& refused, TaskRunner& runner) {
  const std::uint64_t raw = request.shape.elems() * dtype_bytes(request.dtype);
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t limit,
                         max_stream_bytes(request.dtype, request.shape, request.options->metadata.size()));
  const std::uint64_t fixed = raw + refused.header_bytes.size() + kFooterBytes;
  if (limit > fixed) {
    // Larger chunks may have wider entries; segments are rarely less than a quarter full.
    const Framing framing = framing_of(refused.layout);
    const std::uint64_t chunk_bytes = framing.per_chunk + 1 + framing.per_segment / (kMaxSegmentChunks / 4);
    QUERN_ASSIGN_OR_RETURN(StreamSetup setup, make_setup(request, runner, (limit - fixed) / chunk_bytes));
    if (setup.must_save == 0 || setup.layout.segments() == 1) return setup;
  }
  return make_stored_setup(request);
}

Result<std::uint64_t> max_stream_bytes(DType dtype, const Shape& shape, std::size_t metadata_bytes) {
  const auto raw = checked_multiply(shape.elems(), dtype_bytes(dtype));
  if (!raw || *raw > UINT64_C(1) << 63)
    return Status(StatusCode::invalid_shape, "the array has more bytes than 64-bit sizes can hold");
  return *raw + 256 + *raw / 1000 + metadata_bytes;
}

}  // namespace quern
