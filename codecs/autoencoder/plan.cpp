// Settings, the model, and whether it pays.
#include "codecs/autoencoder/plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/common/number_elements.h"
#include "libcompress/core/element_of.h"
#include "libcompress/core/sampled_chunks.h"
#include "libcompress/format/frame/limits.h"

namespace quern::codec::autoencoder {
namespace {

constexpr std::uint64_t kTriedChunks = 4;

/// Half the range of the finite ordinary values of the sample; 0 where there are none.
Result<double> half_range(const PlanRequest& request) {
  constexpr std::uint64_t kRow = std::uint64_t{1} << 16;
  const std::size_t width = dtype_bytes(request.dtype);
  const std::uint64_t elems = request.sample->elems();
  Vector<std::uint8_t> room(static_cast<std::size_t>(std::min(elems, kRow)) * width);
  Vector<std::uint8_t> special(static_cast<std::size_t>(std::min(elems, kRow)));
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (std::uint64_t first = 0; first < elems; first += kRow) {
    ConstBox3 place;
    place.extents = {1, 1, std::min(kRow, elems - first)};
    QUERN_ASSIGN_OR_RETURN(const ConstBox3 row, request.sample->look(first, place, room.data(), special.data()));
    kernels::with_number_element(element_of(request.dtype), [&](auto element) {
      using Element = decltype(element);
      const auto* const data = static_cast<const typename Element::Bits*>(row.data);
      for (std::uint64_t x = 0; x < row.extents[2]; ++x) {
        const double v = Element::value(data[x]);
        if (!(v - v == 0) || (row.special != nullptr && row.special[x] != 0)) continue;
        low = std::min(low, v);
        high = std::max(high, v);
      }
    });
  }
  const double half = high / 2 - low / 2;
  return half > 0 && half - half == 0 ? half : 0;
}

/// Bytes of some of the chunks that the sample holds whole, with and without the model, times those there are by those
/// tried. Where the sample holds none, a model is taken to pay.
Result<bool> model_pays(const PlanRequest& request, const EncodePlan& plan, std::uint64_t model_bytes) {
  const auto counts = plan.plan.grid.counts();
  EncodeSpec without = plan.spec;
  without.model = nullptr;
  Vector<std::uint8_t> out(max_chunk_bytes(plan.spec)), scratch(encode_scratch_bytes(plan.spec) + 64);
  const auto aligned = (64 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 64) % 64;
  const std::span<std::uint8_t> work = std::span<std::uint8_t>(scratch).subspan(aligned);
  std::uint64_t with_bytes = 0, without_bytes = 0;
  const auto encode = [&](const ConstBox3& box) -> Status {
    QUERN_ASSIGN_OR_RETURN(const std::size_t with, encode_chunk(plan.spec, box, out, work));
    QUERN_ASSIGN_OR_RETURN(const std::size_t bare, encode_chunk(without, box, out, work));
    with_bytes += with;
    without_bytes += bare;
    return {};
  };
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t tried, for_sampled_chunks(request, plan.plan.grid, kTriedChunks, encode));
  if (tried == 0) return true;
  return without_bytes > with_bytes &&
         (without_bytes - with_bytes) * (counts[0] * counts[1] * counts[2]) / tried > model_bytes;
}

Status add_model(const PlanRequest& request, const ParsedSettings& settings, const ModelSource* models,
                 EncodePlan& plan, Params& params, Vector<std::uint8_t>& embedded) {
  QUERN_ASSIGN_OR_RETURN(const models::BlockModel model, find_model(models, settings.model));
  if (!model.can_encode())
    return Status(StatusCode::invalid_argument,
                  "autoencoder: the model can only decode; name the file that quern train wrote");
  const std::size_t axes = model.block[0] > 1 ? 3 : model.block[1] > 1 ? 2 : 1;
  if (request.shape.rank() < axes)
    return Status(StatusCode::invalid_argument, "autoencoder: the model predicts blocks of {0} axes, the array has {1}",
                  static_cast<std::int64_t>(axes), static_cast<std::int64_t>(request.shape.rank()));
  std::copy(model.block.begin(), model.block.end(), params.block.begin());
  plan.model = std::make_unique<PreparedModel>(model);
  QUERN_ASSIGN_OR_RETURN(plan.spec.scale, half_range(request));
  params.place = ModelPlace::outside;
  params.id = settings.model;
  if (settings.embed == ParsedSettings::Embed::no) return {};
  static_assert(models::kMostEmbeddedBytes < kMaxParamsBytes);
  embedded = models::write_block_model(models::decoding_half(model));
  if (embedded.size() > models::kMostEmbeddedBytes && settings.embed == ParsedSettings::Embed::yes)
    return Status(StatusCode::invalid_argument,
                  "autoencoder: a model of {0} bytes is too large for a stream; keep it outside: --set embed=no, with "
                  "the model in a folder for --model-store",
                  static_cast<std::int64_t>(embedded.size()));
  params.place = ModelPlace::embedded;
  params.embedded = embedded;
  return {};
}

void set_grid(const PlanRequest& request, const Params& params, EncodePlan& plan) {
  plan.plan.grid = make_grid(request.shape, params.block);
  plan.spec.most = plan.plan.grid.chunk;
  plan.spec.block = params.block;
}

}  // namespace

Result<ParsedSettings> parse_settings(const Settings& settings) {
  ParsedSettings parsed;
  for (const auto& [key, value] : settings) {
    QUERN_ASSIGN_OR_RETURN(const bool taken, models::take_model_setting(key, value, parsed));
    if (taken) continue;
    if (key == "isa") {
      if (value == "auto") continue;
      bool known = false;
      for (std::size_t i = 0; i < kernels::kIsaLevels; ++i) {
        const auto level = static_cast<kernels::IsaLevel>(i);
        if (value != kernels::isa_name(level)) continue;
        known = true;
        parsed.isa = level;
      }
      if (!known)
        return Status(StatusCode::invalid_argument, "autoencoder: isa must be auto, baseline, avx2 or avx512");
      if (!kernels::isa_available(parsed.isa))
        return Status(StatusCode::unsupported, "autoencoder: this processor cannot run the instruction set asked for");
    } else {
      return Status(StatusCode::unknown_setting, "autoencoder: unknown setting; it has model, embed and isa");
    }
  }
  return parsed;
}

Result<models::BlockModel> find_model(const ModelSource* models, const ModelId& id) {
  QUERN_ASSIGN_OR_RETURN(const Vector<std::uint8_t> bytes, models::find_model_file(models, id));
  return models::read_block_model(bytes);
}

Result<EncodePlan> make_plan(const PlanRequest& request, const ModelSource* models) {
  QUERN_ASSIGN_OR_RETURN(const ParsedSettings settings, parse_settings(request.settings));
  EncodePlan plan;
  plan.spec.dtype = request.dtype;
  plan.spec.bound = request.bound.value;
  plan.spec.residuals = &kernels::residual_kernels(settings.isa);
  plan.spec.networks = &kernels::network_kernels(settings.isa);
  Params params;
  params.block = usual_block(request.shape);
  Vector<std::uint8_t> embedded;
  if (settings.has_model) QUERN_RETURN_IF_ERROR(add_model(request, settings, models, plan, params, embedded));
  set_grid(request, params, plan);
  plan.spec.model = plan.model.get();
  if (params.place == ModelPlace::embedded && settings.embed == ParsedSettings::Embed::automatic) {
    bool pays = embedded.size() <= models::kMostEmbeddedBytes;
    if (pays) {
      QUERN_ASSIGN_OR_RETURN(pays, model_pays(request, plan, embedded.size()));
    }
    if (!pays) {
      params = {};
      params.block = usual_block(request.shape);
      plan.model.reset();
      plan.spec.model = nullptr;
      set_grid(request, params, plan);
    }
  }
  plan.plan.params = write_params(params);
  return plan;
}

}  // namespace quern::codec::autoencoder
