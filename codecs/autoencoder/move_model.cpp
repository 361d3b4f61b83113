// Models into streams that are there, and out of them.
#include <quern/models.h>

#include "codecs/autoencoder/autoencoder.h"
#include "codecs/autoencoder/params.h"
#include "codecs/autoencoder/plan.h"
#include "libcompress/format/grid/header.h"
#include "libcompress/format/grid/replace_params.h"

namespace quern {
namespace {

using codec::autoencoder::ModelPlace;
using codec::autoencoder::Params;

Result<Header> read_own_header(std::span<const std::uint8_t> stream) {
  MemorySource source(stream);
  QUERN_ASSIGN_OR_RETURN(ReadHeader read, read_header(source));
  if (read.header.codec_id != codec::autoencoder::kCodecId)
    return Status(StatusCode::unsupported, "the stream is of a codec that uses no model");
  return std::move(read.header);
}

}  // namespace

Status embed_model(std::span<const std::uint8_t> stream, const ModelSource& models, ByteSink& out) {
  QUERN_ASSIGN_OR_RETURN(const Header header, read_own_header(stream));
  QUERN_ASSIGN_OR_RETURN(Params params, codec::autoencoder::read_params(header.params));
  if (params.place == ModelPlace::none) return Status(StatusCode::unsupported, "the stream uses no model");
  if (params.place == ModelPlace::embedded) return replace_params(stream, header.params, out);
  QUERN_ASSIGN_OR_RETURN(const models::BlockModel model, codec::autoencoder::find_model(&models, params.id));
  const Vector<std::uint8_t> half = models::write_block_model(models::decoding_half(model));
  if (half.size() > models::kMostEmbeddedBytes)
    return Status(StatusCode::unsupported, "the model takes {0} bytes, and streams hold at most {1}: keep its file",
                  static_cast<std::int64_t>(half.size()), static_cast<std::int64_t>(models::kMostEmbeddedBytes));
  params.place = ModelPlace::embedded;
  params.embedded = half;
  return replace_params(stream, codec::autoencoder::write_params(params), out);
}

Result<Vector<std::uint8_t>> take_out_model(std::span<const std::uint8_t> stream, ByteSink& out) {
  QUERN_ASSIGN_OR_RETURN(const Header header, read_own_header(stream));
  QUERN_ASSIGN_OR_RETURN(Params params, codec::autoencoder::read_params(header.params));
  if (params.place == ModelPlace::none) return Status(StatusCode::unsupported, "the stream uses no model");
  if (params.place == ModelPlace::outside)
    return Status(StatusCode::missing_model, "the stream does not hold its model");
  QUERN_ASSIGN_OR_RETURN(const models::BlockModel model, models::read_block_model(params.embedded));
  Vector<std::uint8_t> file(params.embedded.begin(), params.embedded.end());
  params.place = ModelPlace::outside;
  params.id = models::model_id(model);
  QUERN_RETURN_IF_ERROR(replace_params(stream, codec::autoencoder::write_params(params), out));
  return file;
}

}  // namespace quern
