// Models found, and held against none.
#include "codecs/stencil/networks/model_use.h"

#include <cstdint>
#include <utility>

#include "codecs/stencil/levels/view.h"
#include "libcompress/core/sampled_chunks.h"
#include "libcompress/format/frame/limits.h"

namespace quern::codec::stencil {
namespace {

constexpr std::uint64_t kTriedChunks = 2;
constexpr std::uint64_t kLeastGain = 256;  // one part in so many pays the time that networks take

Result<std::unique_ptr<const ArrayNetworks>> prepare(const models::LevelModel& model, kernels::IsaLevel isa) {
  auto array = std::make_unique<ArrayNetworks>();
  QUERN_ASSIGN_OR_RETURN(array->networks, LevelNetworks::make(model, kernels::network_kernels(isa)));
  array->of_chunks.networks = array->networks.get();
  return std::unique_ptr<const ArrayNetworks>(std::move(array));
}

/// Whether full chunks have points that the networks predict.
bool predicts_any(const LevelNetworks& networks, const EncodeSpec& spec) {
  ConstBox3 box;
  box.extents = spec.most;
  const LevelAxes axes = LevelsView(box, spec.form).axes;
  for (std::size_t c = 1; c < std::size_t{1} << networks.axes(); ++c)
    if (networks.predicts(axes, 0, c) && axes.exists(c, 0)) return true;
  return false;
}

/// Bytes that chunks of the sample take less with networks, times those there are by those tried; the most there are
/// where the sample holds none, 0 where the gain is below 1 part in kLeastGain.
Result<std::uint64_t> bytes_gained(const PlanRequest& request, const ChunkGrid& grid, const EncodeSpec& spec,
                                   const ArrayNetworks& networks) {
  EncodeSpec with = spec;
  with.networks = &networks.of_chunks;
  const auto counts = grid.counts();
  Vector<std::uint8_t> out(max_chunk_bytes(with)), scratch(encode_scratch_bytes(with) + 64);
  const auto aligned = (64 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 64) % 64;
  const std::span<std::uint8_t> work = std::span<std::uint8_t>(scratch).subspan(aligned);
  std::uint64_t with_bytes = 0;
  std::uint64_t without_bytes = 0;
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t tried,
                         for_sampled_chunks(request, grid, kTriedChunks, [&](const ConstBox3& box) -> Status {
                           QUERN_ASSIGN_OR_RETURN(const std::size_t better, encode_chunk(with, box, out, work));
                           QUERN_ASSIGN_OR_RETURN(const std::size_t plain, encode_chunk(spec, box, out, work));
                           with_bytes += better;
                           without_bytes += plain;
                           return {};
                         }));
  if (tried == 0) return UINT64_MAX;
  if (with_bytes + without_bytes / kLeastGain >= without_bytes) return std::uint64_t{0};
  return (without_bytes - with_bytes) * (counts[0] * counts[1] * counts[2]) / tried;
}

}  // namespace

Result<std::unique_ptr<const ArrayNetworks>> open_networks(const models::ModelReference& reference,
                                                           const ModelSource* models, kernels::IsaLevel isa) {
  if (reference.place == models::ModelPlace::none)
    return Status(StatusCode::corrupt, "stencil: the stream is to have a model, and names none");
  if (reference.place == models::ModelPlace::embedded) {
    QUERN_ASSIGN_OR_RETURN(const models::LevelModel model, models::read_level_model(reference.embedded));
    if (!model.record.empty())
      return Status(StatusCode::corrupt, "stencil: the model of a stream has more than what decodes");
    return prepare(model, isa);
  }
  const Result<Vector<std::uint8_t>> file = models::find_model_file(models, reference.id);
  if (file.status().code() == StatusCode::missing_model) return std::make_unique<const ArrayNetworks>();
  if (!file.ok()) return file.status();
  QUERN_ASSIGN_OR_RETURN(const models::LevelModel model, models::read_level_model(*file));
  return prepare(model, isa);
}

Result<ChosenNetworks> choose_networks(const PlanRequest& request, const models::ModelSettings& settings,
                                       const ModelSource* models, kernels::IsaLevel isa, const ChunkGrid& grid,
                                       const EncodeSpec& spec) {
  using Embed = models::ModelSettings::Embed;
  QUERN_ASSIGN_OR_RETURN(const Vector<std::uint8_t> file, models::find_model_file(models, settings.model));
  QUERN_ASSIGN_OR_RETURN(const models::LevelModel model, models::read_level_model(file));
  if (!spec.form.levels || spec.form.sequential) return ChosenNetworks{};
  QUERN_ASSIGN_OR_RETURN(auto networks, prepare(model, isa));
  if (!predicts_any(*networks->networks, spec)) return ChosenNetworks{};
  const Vector<std::uint8_t> embedded = models::write_level_model(models::without_record(model));
  static_assert(models::kMostEmbeddedBytes < kMaxParamsBytes);
  const bool fits = embedded.size() <= models::kMostEmbeddedBytes;
  if (!fits && settings.embed == Embed::yes)
    return Status(StatusCode::invalid_argument,
                  "stencil: a model of {0} bytes is too large for a stream; keep it outside: --set embed=no, with the "
                  "model in a folder for --model-store",
                  static_cast<std::int64_t>(embedded.size()));
  if (!fits && settings.embed == Embed::automatic) return ChosenNetworks{};
  models::ModelReference reference;
  reference.place = settings.embed == Embed::no ? models::ModelPlace::outside : models::ModelPlace::embedded;
  reference.id = settings.model;
  reference.embedded = embedded;
  ChosenNetworks chosen;
  Writer writer(chosen.reference);
  models::write_model_reference(reference, writer);
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t gained, bytes_gained(request, grid, spec, *networks));
  // Who wants the model inside says that it pays; chunks that it makes no smaller do without it all the same.
  const std::uint64_t price = settings.embed == Embed::yes ? 0 : chosen.reference.size();
  if (gained <= price) return ChosenNetworks{};
  chosen.networks = std::move(networks);
  return chosen;
}

}  // namespace quern::codec::stencil
