// Small states.
#include "tests/faults/small_store.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace quern::testing {

using checkpoint::ElementType;
using checkpoint::Report;
using checkpoint::SaveOptions;
using checkpoint::SaveSession;
using checkpoint::Store;
using checkpoint::TensorSource;
using quern::AlignedBuffer;

namespace {

SmallTensor floats(const char* name, std::uint64_t step, float change, float scale) {
  SmallTensor out{name, {ElementType::f32, *Shape::try_make(std::vector<std::uint64_t>{9, 17})}, {}};
  std::vector<float> values(9 * 17);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = scale * (std::sin(static_cast<float>(i) * 0.37F) +
                         change * static_cast<float>(step) * static_cast<float>(i % 7));
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(values.data());
  out.values.assign(bytes, bytes + values.size() * 4);
  return out;
}

SmallTensor bf16_copy(const char* name, const SmallTensor& of) {
  SmallTensor out{name, {ElementType::bf16, of.what.shape}, {}};
  for (std::size_t i = 0; i + 4 <= of.values.size(); i += 4) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, of.values.data() + i, 4);
    bits += 0x7FFF + (bits >> 16 & 1);  // to nearest even
    out.values.push_back(static_cast<std::uint8_t>(bits >> 16));
    out.values.push_back(static_cast<std::uint8_t>(bits >> 24));
  }
  return out;
}

}  // namespace

std::vector<SmallTensor> small_state(std::uint64_t step) {
  std::vector<SmallTensor> out;
  out.push_back(floats("param.w", step, 1e-6F, 1.0F));
  out.push_back(floats("exp_avg.w", step, 1e-3F, 0.01F));
  out.push_back(floats("exp_avg_sq.w", step, 1e-5F, 1e-4F));
  out.push_back(bf16_copy("model.w", out[0]));
  out.push_back(floats("frozen", 0, 0, 3.0F));
  out.push_back(out.back());
  out.back().name = "frozen.tied";
  out.push_back({"empty", {ElementType::f32, *Shape::try_make(std::vector<std::uint64_t>{0, 4})}, {}});
  out.push_back({"scalar", {ElementType::i64, Shape()}, std::vector<std::uint8_t>(8, 0)});
  std::memcpy(out.back().values.data(), &step, 8);
  return out;
}

Status save_small(const Store& store, const SaveOptions& options, Report& report) {
  SerialRunner runner;
  QUERN_ASSIGN_OR_RETURN(const auto session, SaveSession::begin(store, options, runner, report));
  const auto state = small_state(options.step);
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (i % options.writers != options.writer) continue;
    TensorSource source;
    source.name = state[i].name;
    source.what = state[i].what;
    source.values = state[i].values;
    if (i == 3 && options.writers == 1) {
      source.companion = 0;
      source.companion_values = state[0].values;
    }
    const auto added = session->add_tensor(source, report);
    if (!added.ok()) return added.status();
  }
  const std::string blob = "step " + std::to_string(options.step);
  if (options.writer == 0)
    QUERN_RETURN_IF_ERROR(
        session->add_blob("rng", {reinterpret_cast<const std::uint8_t*>(blob.data()), blob.size()}, report));
  return session->commit(report).status();
}

Status save_small_lossy(const Store& store, const SaveOptions& options, Report& report) {
  SerialRunner runner;
  QUERN_ASSIGN_OR_RETURN(const auto session, SaveSession::begin(store, options, runner, report));
  const auto state = small_state(options.step);
  AlignedBuffer first, second;
  // What others need comes first: 2 is the second moment, 1 the first, 0 the weight.
  for (const std::uint32_t i : {2U, 1U, 0U, 3U, 4U, 5U, 6U, 7U}) {
    TensorSource source;
    source.number = i;
    source.name = state[i].name;
    source.what = state[i].what;
    source.values = state[i].values;
    if (i == 2) {
      source.lossy = checkpoint::LossyRequest{checkpoint::Mode::logq, 0.05};
      source.decoded = &second;
    } else if (i == 1) {
      source.lossy = checkpoint::LossyRequest{checkpoint::Mode::updq, 0.05};
      source.companion = 2;
      source.companion_values = second.span();
      source.decoded = &first;
    } else if (i == 0) {
      source.lossy = checkpoint::LossyRequest{checkpoint::Mode::ebq, 1e-3, true};
      source.moments = {1, 2};
      source.moment_values = {first.span(), second.span()};
    }
    const auto added = session->add_tensor(source, report);
    if (!added.ok()) return added.status();
    if (!added->fallback.empty()) return Status(StatusCode::internal, "a tensor was not stored with a loss");
  }
  return session->commit(report).status();
}

Result<std::vector<std::uint8_t>> restore_small(const Store& store, std::uint64_t step, Report& report) {
  SerialRunner runner;
  QUERN_ASSIGN_OR_RETURN(const auto manifest, store.at_step(step, report));
  checkpoint::Restorer restorer(store, runner);
  AlignedBuffer values;
  std::vector<std::uint8_t> out;
  for (std::size_t i = 0; i < manifest.tensors.size(); ++i) {
    QUERN_RETURN_IF_ERROR(restorer.tensor(manifest.name, i, values, report));
    const auto bytes = values.span();
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

Status check_small(const Store& store, std::uint64_t step, Report& report) {
  SerialRunner runner;
  QUERN_ASSIGN_OR_RETURN(const auto manifest, store.at_step(step, report));
  checkpoint::Restorer restorer(store, runner);
  const auto state = small_state(step);
  if (manifest.tensors.size() != state.size()) return Status(StatusCode::internal, "tensors are missing");
  AlignedBuffer values;
  for (const SmallTensor& tensor : state) {
    std::size_t index = 0;
    while (index < manifest.tensors.size() && std::string_view(manifest.tensors[index].name) != tensor.name) ++index;
    if (index == manifest.tensors.size()) return Status(StatusCode::internal, "a tensor is missing");
    QUERN_RETURN_IF_ERROR(restorer.tensor(manifest.name, index, values, report));
    if (manifest.tensors[index].what.shape != tensor.what.shape ||
        manifest.tensors[index].what.type != tensor.what.type || values.size() != tensor.values.size() ||
        (values.size() != 0 && std::memcmp(values.data(), tensor.values.data(), values.size()) != 0))
      return Status(StatusCode::internal, "a tensor came back wrong");
  }
  Vector<std::uint8_t> blob;
  QUERN_RETURN_IF_ERROR(restorer.blob(manifest.name, 0, blob, report));
  const std::string expected = "step " + std::to_string(step);
  if (std::string(blob.begin(), blob.end()) != expected) return Status(StatusCode::internal, "a blob came back wrong");
  return {};
}

}  // namespace quern::testing
