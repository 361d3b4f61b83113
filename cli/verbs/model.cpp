// quern model: what a model file holds, and whether it is whole.
#include <fmt/format.h>

#include "cli/files/byte_streams.h"
#include "cli/messages/file_report.h"
#include "cli/verbs/verbs.h"
#include "models/sha256.h"
#include "surrogate/model.h"

namespace quern::cli {
namespace {

constexpr const char* kShipped = "quality (ships with quern)";

void print_info(const surrogate::Model& model, std::span<const std::uint8_t> bytes, const std::string& name,
                bool json) {
  const std::string id = models::hex(models::sha256(bytes));
  const Json record = Json::parse(model.record, nullptr, false);
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
  if (record.is_object()) {
    if (record.contains("runs")) text += fmt::format("  trained on {} runs", record["runs"].dump());
    if (record.contains("sha256")) text += fmt::format(" of {} arrays", record["sha256"].size());
    text += "\n";
    if (record.contains("later_steps"))
      for (const auto& [codec, errors] : record["later_steps"].items())
        text += fmt::format("  later steps, {}: {}\n", codec, errors.is_string() ? errors.get<std::string>() : "");
  }
  print_text(text);
}

}  // namespace

Exit run_model(const ModelArgs& args) {
  Mapping file;
  std::span<const std::uint8_t> bytes = surrogate::builtin_model();
  if (!args.file.empty()) {
    file = Mapping::of_file(args.file);
    bytes = file.bytes();
  }
  const std::string name = args.file.empty() ? kShipped : args.file;
  const surrogate::Model model = check(surrogate::read_model(bytes), Phase::decode, name);
  if (args.work == ModelWork::verify) {
    if (args.json) {
      print_json(Json{{"model", name}, {"sha256", models::hex(models::sha256(bytes))}, {"intact", true}});
    } else {
      print_text(fmt::format("{}: intact, {} codecs\n", name, model.codecs.size()));
    }
    return Exit::ok;
  }
  print_info(model, bytes, name, args.json);
  return Exit::ok;
}

}  // namespace quern::cli
