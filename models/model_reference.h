// What streams of learned codecs say of their model, and what settings ask for. One form for all codecs:
// docs/format-model.md, chapter 5.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <quern/memory.h>
#include <quern/models.h>
#include <quern/status.h>

#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::models {

/// Where the model is.
enum class ModelPlace : std::uint8_t {
  none = 0,
  outside = 1,   ///< whoever reads the stream has it; the stream has its id
  embedded = 2,  ///< the stream has what decodes
};

struct ModelReference {
  ModelPlace place = ModelPlace::none;
  ModelId id{};                            ///< outside
  std::span<const std::uint8_t> embedded;  ///< a model file; belongs to who read or wrote the reference
};

void write_model_reference(const ModelReference& reference, Writer& out);
/// Takes all that is left. `corrupt` or `truncated` when it breaks a rule. The model file is not looked into.
Result<ModelReference> read_model_reference(Reader& in);

/// What settings say of a model.
struct ModelSettings {
  bool has_model = false;
  ModelId model{};
  enum class Embed : std::uint8_t { automatic, yes, no } embed = Embed::automatic;
};
/// Takes one of the settings `model` (off or an id) and `embed` (auto, yes, no). False for any other key;
/// `invalid_argument` where the value is none of these.
Result<bool> take_model_setting(std::string_view key, std::string_view value, ModelSettings& settings);

/// Bytes of the model file of that id, of any kind, checked; `missing_model` where there is none. `source` may be null.
/// May throw std::bad_alloc.
Result<Vector<std::uint8_t>> find_model_file(const ModelSource* source, const ModelId& id);

/// Puts what decodes of the model into a reference that has its id alone; `half` becomes its file, which the reference
/// refers to. One that holds it already stays as it is. Fails with missing_model, or with unsupported where there is no
/// model or it is too large.
Status embed_in(ModelReference& reference, const ModelSource& source, Vector<std::uint8_t>& half);
/// The other way round: leaves the id, and returns the model's file. A reference without the file fails with
/// missing_model.
Result<Vector<std::uint8_t>> take_out_of(ModelReference& reference);

}  // namespace quern::models
