// References to models as bytes and as settings.
#include "models/model_reference.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "models/model_file.h"

namespace quern::models {
namespace {

std::optional<ModelId> parse_id(std::string_view text) {
  ModelId id{};
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  if (text.size() != 2 * id.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (digit(text[i]) < 0) return std::nullopt;
    id[i / 2] = static_cast<std::uint8_t>(id[i / 2] << 4 | digit(text[i]));
  }
  return id;
}

}  // namespace

void write_model_reference(const ModelReference& reference, Writer& out) {
  out.u8(static_cast<std::uint8_t>(reference.place));
  if (reference.place == ModelPlace::outside) out.bytes(reference.id);
  if (reference.place == ModelPlace::embedded) out.bytes(reference.embedded);
}

Result<ModelReference> read_model_reference(Reader& in) {
  ModelReference reference;
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t place, in.u8());
  if (place > static_cast<std::uint8_t>(ModelPlace::embedded))
    return Status(StatusCode::corrupt, "the stream has its model in the unknown place {0}", place);
  reference.place = static_cast<ModelPlace>(place);
  if (reference.place == ModelPlace::outside) {
    QUERN_ASSIGN_OR_RETURN(const auto id, in.bytes(reference.id.size()));
    std::copy(id.begin(), id.end(), reference.id.begin());
  }
  if (reference.place == ModelPlace::embedded) {
    QUERN_ASSIGN_OR_RETURN(reference.embedded, in.bytes(in.remaining()));
  }
  QUERN_RETURN_IF_ERROR(in.expect_end());
  return reference;
}

Result<bool> take_model_setting(std::string_view key, std::string_view value, ModelSettings& settings) {
  if (key == "model") {
    settings.has_model = value != "off";
    if (!settings.has_model) return true;
    const auto id = parse_id(value);
    if (!id)
      return Status(StatusCode::invalid_argument,
                    "model must be off or an id of 32 hexadecimal digits; quern model info tells it");
    settings.model = *id;
    return true;
  }
  if (key != "embed") return false;
  if (value != "auto" && value != "yes" && value != "no")
    return Status(StatusCode::invalid_argument, "embed must be auto, yes or no");
  settings.embed = value == "yes"  ? ModelSettings::Embed::yes
                   : value == "no" ? ModelSettings::Embed::no
                                   : ModelSettings::Embed::automatic;
  return true;
}

Result<Vector<std::uint8_t>> find_model_file(const ModelSource* source, const ModelId& id) {
  if (source == nullptr) return Status(StatusCode::missing_model, "the model of the stream was not found");
  QUERN_ASSIGN_OR_RETURN(Vector<std::uint8_t> bytes, source->find(id));
  QUERN_ASSIGN_OR_RETURN(const KnownModel model, read_known_model(bytes));
  if (model.id != id)
    return Status(StatusCode::checksum_mismatch, "the model that was found has another id than the one asked for");
  return bytes;
}

Status embed_in(ModelReference& reference, const ModelSource& source, Vector<std::uint8_t>& half) {
  if (reference.place == ModelPlace::none) return Status(StatusCode::unsupported, "the stream uses no model");
  if (reference.place == ModelPlace::embedded) return {};
  QUERN_ASSIGN_OR_RETURN(const Vector<std::uint8_t> file, find_model_file(&source, reference.id));
  QUERN_ASSIGN_OR_RETURN(KnownModel model, read_known_model(file));
  half = std::move(model.decoding);
  if (half.size() > kMostEmbeddedBytes)
    return Status(StatusCode::unsupported, "the model takes {0} bytes, and streams hold at most {1}: keep its file",
                  static_cast<std::int64_t>(half.size()), static_cast<std::int64_t>(kMostEmbeddedBytes));
  reference.place = ModelPlace::embedded;
  reference.embedded = half;
  return {};
}

Result<Vector<std::uint8_t>> take_out_of(ModelReference& reference) {
  if (reference.place == ModelPlace::none) return Status(StatusCode::unsupported, "the stream uses no model");
  if (reference.place == ModelPlace::outside)
    return Status(StatusCode::missing_model, "the stream does not hold its model");
  QUERN_ASSIGN_OR_RETURN(KnownModel model, read_known_model(reference.embedded));
  Vector<std::uint8_t> file(reference.embedded.begin(), reference.embedded.end());
  reference.place = ModelPlace::outside;
  reference.id = model.id;
  reference.embedded = {};
  return file;
}

}  // namespace quern::models
