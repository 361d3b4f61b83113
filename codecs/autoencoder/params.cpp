// Parameters of the codec as bytes.
#include "codecs/autoencoder/params.h"

#include <algorithm>
#include <bit>

#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"
#include "models/block_model.h"

namespace quern::codec::autoencoder {

Vector<std::uint8_t> write_params(const Params& params) {
  Vector<std::uint8_t> bytes;
  Writer out(bytes);
  for (const std::uint64_t extent : params.block) out.u8(static_cast<std::uint8_t>(std::bit_width(extent) - 1));
  out.u8(static_cast<std::uint8_t>(params.place));
  if (params.place == ModelPlace::outside) out.bytes(params.id);
  if (params.place == ModelPlace::embedded) out.bytes(params.embedded);
  return bytes;
}

Result<Params> read_params(std::span<const std::uint8_t> bytes) {
  Reader in(bytes);
  Params params;
  std::uint64_t elems = 1;
  for (std::uint64_t& extent : params.block) {
    QUERN_ASSIGN_OR_RETURN(const std::uint8_t log, in.u8());
    if (log > 12) return Status(StatusCode::corrupt, "autoencoder: blocks have an extent of 2^{0}", log);
    extent = std::uint64_t{1} << log;
    elems *= extent;
  }
  if (elems > models::kMostBlockElems) return Status(StatusCode::corrupt, "autoencoder: blocks are too large");
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t place, in.u8());
  if (place > static_cast<std::uint8_t>(ModelPlace::embedded))
    return Status(StatusCode::corrupt, "autoencoder: a model in the unknown place {0}", place);
  params.place = static_cast<ModelPlace>(place);
  if (params.place == ModelPlace::outside) {
    QUERN_ASSIGN_OR_RETURN(const auto id, in.bytes(params.id.size()));
    std::copy(id.begin(), id.end(), params.id.begin());
  }
  if (params.place == ModelPlace::embedded) {
    QUERN_ASSIGN_OR_RETURN(params.embedded, in.bytes(in.remaining()));
  }
  QUERN_RETURN_IF_ERROR(in.expect_end());
  return params;
}

}  // namespace quern::codec::autoencoder
