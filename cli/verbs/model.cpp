// quern model: what model files hold, whether they are whole, the half that decodes, and models of streams.
#include <fmt/format.h>

#include "cli/files/byte_streams.h"
#include "cli/files/safe_file.h"
#include "cli/messages/file_report.h"
#include "cli/models/model_errors.h"
#include "cli/models/model_files.h"
#include "cli/models/stream_models.h"
#include "cli/streams/stream_file.h"
#include "cli/verbs/verbs.h"
#include "models/block_model.h"
#include "models/level_model.h"
#include "models/sha256.h"
#include "surrogate/model.h"

namespace quern::cli {
namespace {

constexpr const char* kShipped = "quality (ships with quern)";
constexpr int kMostRecordDepth = 32;
constexpr std::size_t kMostRecordBytes = std::size_t{1} << 20;

/// What a model file says of its training; discarded where that is no JSON, nested too deep to print or too long. The
/// file may come from anyone.
Json record_of(const std::string& text) {
  if (text.size() > kMostRecordBytes) return Json(Json::value_t::discarded);
  bool too_deep = false;
  const auto keep = [&](int depth, Json::parse_event_t, Json&) {
    too_deep |= depth > kMostRecordDepth;
    return depth <= kMostRecordDepth;
  };
  Json record = Json::parse(text, keep, false);
  return too_deep ? Json(Json::value_t::discarded) : record;
}

/// A line for each member, without characters that control terminals.
std::string record_lines(const Json& record) {
  std::string text;
  if (record.is_object())
    for (const auto& [key, value] : record.items()) text += fmt::format("  {}: {}\n", Json(key).dump(), value.dump());
  return text;
}

void print_quality(const surrogate::Model& model, std::span<const std::uint8_t> bytes, const std::string& name,
                   bool json) {
  const std::string id = models::hex(models::sha256(bytes));
  const Json record = record_of(model.record);
  if (json) {
    Json out;
    out["model"] = name;
    out["bytes"] = bytes.size();
    out["sha256"] = id;
    out["inputs"] = model.inputs;
    out["bounds"] = {model.least_bound, model.largest_bound};
    out["codecs"] = Json::object();
    out["peers"] = Json::array();
    for (const auto& codec : model.codecs) {
      if (codec.foreign) {
        out["peers"].push_back(codec.codec);
      } else {
        out["codecs"][codec.codec] = codec.version;
      }
    }
    out["deep_features"] = model.deep.has_value();
    out["deep_features_usual"] = model.deep && model.deep->usual;
    out["record"] = record.is_discarded() ? Json(nullptr) : record;
    print_json(out);
    return;
  }
  std::string text = fmt::format("{}: {} bytes, SHA-256 {}\n  relative bounds {:.3g} to {:.3g}, {} inputs\n", name,
                                 bytes.size(), id, model.least_bound, model.largest_bound, model.inputs);
  for (const auto& codec : model.codecs) {
    const std::string experts = codec.experts.size() > 1 ? fmt::format(", {} experts", codec.experts.size()) : "";
    text += codec.foreign ? fmt::format("  peer {}{}\n", codec.codec, experts)
                          : fmt::format("  codec {} version {}{}\n", codec.codec, codec.version, experts);
  }
  if (model.deep)
    text += fmt::format("  deep features: {} numbers of {} patches, {}\n", surrogate::kDeepFeatures,
                        surrogate::kPatches, model.deep->usual ? "unless told otherwise" : "with --features deep");
  if (record.is_object()) {
    if (record.contains("runs")) text += fmt::format("  trained on {} runs", record["runs"].dump());
    if (record.contains("sha256")) text += fmt::format(" of {} arrays", record["sha256"].size());
    text += "\n";
    if (record.contains("later_steps"))
      for (const auto& [codec, errors] : record["later_steps"].items())
        text += fmt::format("  later steps, {}: {}\n", Json(codec).dump(), errors.dump());
  }
  print_text(text);
}

const char* name_of(models::BlockPredictorKind kind) {
  return kind == models::BlockPredictorKind::autoencoder ? "autoencoder" : "principal components";
}

void print_blocks(const models::BlockModel& model, std::size_t bytes, const std::string& name, bool json) {
  const Json record = record_of(model.record);
  const std::size_t decoding = models::write_block_model(models::decoding_half(model)).size();
  if (json) {
    Json out;
    out["model"] = name;
    out["bytes"] = bytes;
    out["id"] = id_text(models::model_id(model));
    out["decoding_bytes"] = decoding;
    out["block"] = model.block;
    out["predictors"] = Json::array();
    for (const auto& p : model.predictors)
      out["predictors"].push_back({{"kind", name_of(p.kind)},
                                   {"latents", p.latents()},
                                   {"products", kernels::network_products(p.decoder)},
                                   {"encodes", !p.encoder.layers.empty()}});
    out["record"] = record.is_discarded() ? Json(nullptr) : record;
    print_json(out);
    return;
  }
  std::string text =
      fmt::format("{}: {} bytes, of which a stream holds {}; id {}\n  codec autoencoder, blocks of {}x{}x{}\n", name,
                  bytes, decoding, id_text(models::model_id(model)), model.block[0], model.block[1], model.block[2]);
  for (const auto& p : model.predictors)
    text += fmt::format(
        "  {}: {} latents, {:.0f} products a value{}\n", name_of(p.kind), p.latents(),
        static_cast<double>(kernels::network_products(p.decoder)) / static_cast<double>(model.block_elems()),
        p.encoder.layers.empty() ? ", decodes only" : "");
  print_text(text + record_lines(record));
}

void print_levels(const models::LevelModel& model, std::size_t bytes, const std::string& name, bool json) {
  const Json record = record_of(model.record);
  const std::size_t decoding = models::write_level_model(models::without_record(model)).size();
  const std::string id = id_text(models::model_id(model));
  Json networks = Json::array();
  for (std::size_t c = 1; c < std::size_t{1} << model.axes; ++c)
    if (model.classes[c])
      networks.push_back({{"class", c},
                          {"neighbours", models::LevelModel::taps(*model.classes[c])},
                          {"products", kernels::network_products(*model.classes[c])}});
  if (json) {
    print_json(Json{{"model", name},
                    {"bytes", bytes},
                    {"id", id},
                    {"decoding_bytes", decoding},
                    {"axes", model.axes},
                    {"networks", networks},
                    {"record", record.is_discarded() ? Json(nullptr) : record}});
    return;
  }
  std::string text =
      fmt::format("{}: {} bytes, of which a stream holds {}; id {}\n  codec stencil, levels of {} axes\n", name, bytes,
                  decoding, id, model.axes);
  for (const Json& network : networks)
    text += fmt::format("  class {}: {} neighbours, {} products a value\n", network["class"].dump(),
                        network["neighbours"].dump(), network["products"].dump());
  print_text(text + record_lines(record));
}

void say_intact(const std::string& name, std::span<const std::uint8_t> bytes, bool json, const std::string& what) {
  if (json) {
    print_json(Json{{"model", name}, {"sha256", models::hex(models::sha256(bytes))}, {"intact", true}});
  } else {
    print_text(fmt::format("{}: intact, {}\n", name, what));
  }
}

/// The models of a folder that codecs take, by file.
Exit list_folder(const ModelArgs& args) {
  Json out = Json::array();
  for (const std::string& path : list_model_files(args.file)) {
    const Mapping file = Mapping::of_file(path);
    const auto model = models::read_known_model(file.bytes());
    const std::string id = model.ok() ? id_text(model->id) : "";
    if (args.json) {
      out.push_back({{"model", path}, {"id", model.ok() ? Json(id) : Json(nullptr)}});
    } else {
      print_text(model.ok() ? fmt::format("{}  {}\n", id, path)
                            : fmt::format("{:32}  {} ({})\n", "-", path, model.status().text()));
    }
  }
  if (args.json) print_json(out);
  return Exit::ok;
}

Exit strip(const ModelArgs& args, std::span<const std::uint8_t> file) {
  const models::KnownModel known = check_model(models::read_known_model(file), args.file);
  const Vector<std::uint8_t>& bytes = known.decoding;
  SafeFile out(args.output, {.replace = args.force});
  if (!write_all(out.descriptor(), bytes)) fail_errno(args.output, "write");
  out.commit();
  if (args.json) print_json(Json{{"model", args.output}, {"bytes", bytes.size()}, {"id", id_text(known.id)}});
  return Exit::ok;
}

}  // namespace

Exit run_model(const ModelArgs& args) {
  if (args.work == ModelWork::list && !args.file.empty()) return list_folder(args);
  if (args.work == ModelWork::embed) return embed_models(args);
  if (args.work == ModelWork::strip && is_stream_file(args.file)) {
    if (args.models.stores.empty())
      fail(Exit::usage, args.file + ": is a stream; name the folder that its model goes to with --model-store DIR");
    return take_out_models(args);
  }
  if (!args.models.stores.empty()) {
    static_cast<void>(Mapping::of_file(args.file));
    fail(Exit::usage, args.file + ": is no stream; leave --model-store out to strip a model file");
  }
  Mapping file;
  std::span<const std::uint8_t> bytes = surrogate::builtin_model();
  if (!args.file.empty()) {
    file = Mapping::of_file(args.file);
    bytes = file.bytes();
  }
  const std::string name = args.file.empty() ? kShipped : args.file;
  if (args.work == ModelWork::strip) return strip(args, bytes);
  if (models::model_kind(bytes) == models::kLevelModelKind) {
    const models::LevelModel model = check_model(models::read_level_model(bytes), name);
    if (args.work == ModelWork::verify) {
      say_intact(name, bytes, args.json, fmt::format("networks for {} axes", model.axes));
    } else {
      print_levels(model, bytes.size(), name, args.json);
    }
    return Exit::ok;
  }
  if (models::model_kind(bytes) == models::kBlockModelKind) {
    const models::BlockModel model = check_model(models::read_block_model(bytes), name);
    if (args.work == ModelWork::verify) {
      say_intact(name, bytes, args.json, fmt::format("{} predictors", model.predictors.size()));
    } else {
      print_blocks(model, bytes.size(), name, args.json);
    }
    return Exit::ok;
  }
  const surrogate::Model model = check_model(surrogate::read_model(bytes), name);
  if (args.work == ModelWork::verify) {
    say_intact(name, bytes, args.json, fmt::format("{} codecs", model.codecs.size()));
  } else {
    print_quality(model, bytes, name, args.json);
  }
  return Exit::ok;
}

}  // namespace quern::cli
