// Broken streams of codec stencil with networks: the golden one, and other models there.
#include "models/level_model.h"
#include "tests/golden/broken_streams.h"

namespace quern::golden {
namespace {

Bytes golden_stream() {
  std::vector<GoldenFile> files;
  add_network_files(files);
  if (files.front().written.empty()) std::abort();
  return files.front().written;
}

}  // namespace

void add_network_cases(std::vector<MustFailCase>& cases) {
  constexpr std::size_t kModelAt = 5;  // behind merged axes, order, mark and place
  constexpr std::uint64_t kNetworks = 256;
  const Bytes stream = golden_stream();
  const auto add_model = [&](const char* name, const char* why,
                             const std::function<void(models::LevelModel&)>& change) {
    const auto with_model = [&](Header& h) {
      models::LevelModel model = must(models::read_level_model(std::span(h.params).subspan(kModelAt)));
      change(model);
      const Bytes bytes = models::write_level_model(model);
      h.params.resize(kModelAt);
      h.params.insert(h.params.end(), bytes.begin(), bytes.end());
    };
    cases.push_back({name, StatusCode::corrupt, why, with_header(stream, with_model)});
  };
  add_model("stencil_networks_record", "a model in the stream that has a record",
            [](models::LevelModel& model) { model.record = "{}"; });
  add_model("stencil_networks_class", "a class predicted by a network that the model has not",
            [](models::LevelModel& model) { model.classes[1].reset(); });
  add_model("stencil_networks_axes", "networks for three axes, in chunks of two",
            [](models::LevelModel& model) { model.axes = 3; });
  add_model("stencil_networks_wide", "a network of more inputs than points are known", [](models::LevelModel& model) {
    kernels::Network& network = *model.classes[2];
    network.in.channels = 65;
    network.layers[0].weights.assign(2 * 65, 1);
  });
  const auto add = [&](const char* name, const char* why, const std::function<void(Header&)>& change) {
    cases.push_back({name, StatusCode::corrupt, why, with_header(stream, change)});
  };
  add("stencil_networks_unannounced", "parameters name a model, and the header does not say so",
      [](Header& h) { h.must_understand &= ~kNetworks; });
  add("stencil_networks_none", "the header says that there is a model, and parameters name none",
      [](Header& h) { h.params.resize(3); });
  add("stencil_networks_place", "a model in an unknown place", [](Header& h) { h.params[4] = 3; });
  add("stencil_networks_nowhere", "a model that is nowhere", [](Header& h) {
    h.params.resize(5);
    h.params[4] = 0;
  });
  add("stencil_networks_planes", "networks for chunks in planes", [](Header& h) { h.params[2] = 2; });
}

}  // namespace quern::golden
