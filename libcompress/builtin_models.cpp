// Models into streams that are there, and out of them: the one place that knows which codecs name models.
#include <utility>

#include <quern/models.h>

#include "codecs/autoencoder/autoencoder.h"
#include "codecs/autoencoder/params.h"
#include "codecs/stencil/parts/partition.h"
#include "codecs/stencil/rules.h"
#include "codecs/stencil/stencil.h"
#include "libcompress/format/grid/header.h"
#include "libcompress/format/grid/replace_params.h"
#include "models/model_file.h"

namespace quern {
namespace {

Result<Header> read_header_of(ByteSource& source) {
  QUERN_ASSIGN_OR_RETURN(ReadHeader read, read_header(source));
  return std::move(read.header);
}

Result<Header> read_own_header(std::span<const std::uint8_t> stream) {
  MemorySource source(stream);
  return read_header_of(source);
}

/// Parameters of a stream's codec after change(reference to the model), which returns a Status.
template <class Change>
Result<Vector<std::uint8_t>> changed_params(const Header& header, const Change& change) {
  if (header.codec_id == codec::autoencoder::kCodecId) {
    QUERN_ASSIGN_OR_RETURN(codec::autoencoder::Params params, codec::autoencoder::read_params(header.params));
    QUERN_RETURN_IF_ERROR(change(params));
    return codec::autoencoder::write_params(params);
  }
  if (header.codec_id == codec::stencil::kCodecId && !codec::stencil::names_parts(header.params)) {
    QUERN_ASSIGN_OR_RETURN(codec::stencil::StoredParams params,
                           codec::stencil::read_params(header.params, header.shape));
    if (!params.model) params.model.emplace();
    QUERN_RETURN_IF_ERROR(change(*params.model));
    Vector<std::uint8_t> reference;
    Writer writer(reference);
    models::write_model_reference(*params.model, writer);
    return codec::stencil::write_params(params.layout, reference);
  }
  return Status(StatusCode::unsupported, "the stream uses no model");
}

}  // namespace

Result<std::optional<StreamModel>> inspect_model(ByteSource& source) {
  QUERN_ASSIGN_OR_RETURN(const Header header, read_header_of(source));
  models::ModelReference reference;
  const auto changed = changed_params(header, [&](const models::ModelReference& found) {
    reference = found;
    return Status();
  });
  if (changed.status().code() == StatusCode::unsupported) return std::optional<StreamModel>();
  if (!changed.ok()) return changed.status();
  if (reference.place == models::ModelPlace::none) return std::optional<StreamModel>();
  StreamModel model{reference.place == models::ModelPlace::embedded, reference.id, reference.embedded.size()};
  if (model.embedded) {
    QUERN_ASSIGN_OR_RETURN(const models::KnownModel known, models::read_known_model(reference.embedded));
    model.id = known.id;
  }
  return std::optional<StreamModel>(model);
}

Status embed_model(std::span<const std::uint8_t> stream, const ModelSource& models, ByteSink& out) {
  QUERN_ASSIGN_OR_RETURN(const Header header, read_own_header(stream));
  Vector<std::uint8_t> half;
  QUERN_ASSIGN_OR_RETURN(const Vector<std::uint8_t> params,
                         changed_params(header, [&](models::ModelReference& reference) {
                           return models::embed_in(reference, models, half);
                         }));
  return replace_params(stream, params, out);
}

Result<Vector<std::uint8_t>> take_out_model(std::span<const std::uint8_t> stream, ByteSink& out) {
  QUERN_ASSIGN_OR_RETURN(const Header header, read_own_header(stream));
  Vector<std::uint8_t> file;
  QUERN_ASSIGN_OR_RETURN(const Vector<std::uint8_t> params,
                         changed_params(header, [&](models::ModelReference& reference) -> Status {
                           QUERN_ASSIGN_OR_RETURN(file, models::take_out_of(reference));
                           return {};
                         }));
  QUERN_RETURN_IF_ERROR(replace_params(stream, params, out));
  return file;
}

}  // namespace quern
