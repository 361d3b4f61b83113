// The stored form of models for levels.
#include "models/level_model.h"

#include "models/network_bytes.h"

namespace quern::models {
namespace {

/// Null, or why the network is none for a point.
const char* check_point_network(const kernels::Network& network) {
  if (network.in.places() != 1 || network.in.channels < 3 || network.in.channels > kMostLevelTaps + 1)
    return "a network of the model has an unknown number of inputs";
  if (network.out().elems() != 1) return "a network of the model has more than one output";
  for (const kernels::NetworkLayer& layer : network.layers)
    if (layer.kind != kernels::LayerKind::convolution || layer.width != std::array<std::uint8_t, 3>{1, 1, 1} ||
        layer.step != std::array<std::uint8_t, 3>{1, 1, 1})
      return "a network of the model reads more than one place";
  if (kernels::network_products(network) > kMostPointProducts || kernels::network_elems(network) > kMostPointElems)
    return "a network of the model is too large for points";
  return nullptr;
}

}  // namespace

Vector<std::uint8_t> write_level_model(const LevelModel& model) {
  Vector<std::uint8_t> bytes;
  Writer out(bytes);
  begin_model_file(kLevelModelKind, out);
  out.u8(model.axes);
  write_record(model.record, out);
  for (std::size_t c = 1; c < std::size_t{1} << model.axes; ++c) {
    out.u8(model.classes[c] ? 1 : 0);
    if (model.classes[c]) write_network(*model.classes[c], out);
  }
  seal_model_file(bytes);
  return bytes;
}

Result<LevelModel> read_level_model(std::span<const std::uint8_t> bytes) {
  QUERN_ASSIGN_OR_RETURN(Reader in, open_model_file(bytes, kLevelModelKind));
  LevelModel model;
  QUERN_ASSIGN_OR_RETURN(model.axes, in.u8());
  if (model.axes < 2 || model.axes > kMostLevelAxes)
    return Status(StatusCode::corrupt, "the model is for {0} axes; levels have networks for 2 and 3", model.axes);
  QUERN_ASSIGN_OR_RETURN(model.record, read_record(in));
  std::size_t networks = 0;
  for (std::size_t c = 1; c < std::size_t{1} << model.axes; ++c) {
    QUERN_ASSIGN_OR_RETURN(const std::uint8_t present, in.u8());
    if (present > 1) return Status(StatusCode::corrupt, "the model's flag of a network is {0}", present);
    if (present == 0) continue;
    QUERN_ASSIGN_OR_RETURN(model.classes[c], read_network(in));
    if (const char* const wrong = check_point_network(*model.classes[c]); wrong != nullptr)
      return Status(StatusCode::corrupt, wrong);
    ++networks;
  }
  if (networks == 0) return Status(StatusCode::corrupt, "the model has no network");
  QUERN_RETURN_IF_ERROR(in.expect_end());
  return model;
}

LevelModel without_record(const LevelModel& model) {
  LevelModel bare = model;
  bare.record.clear();
  return bare;
}

ModelId model_id(const LevelModel& model) { return id_of_file(write_level_model(without_record(model))); }

}  // namespace quern::models
