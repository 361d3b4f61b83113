// Parameters of the codec as bytes.
#include "codecs/autoencoder/params.h"

#include <bit>

#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"
#include "models/block_model.h"

namespace quern::codec::autoencoder {

Vector<std::uint8_t> write_params(const Params& params) {
  Vector<std::uint8_t> bytes;
  Writer out(bytes);
  for (const std::uint64_t extent : params.block) out.u8(static_cast<std::uint8_t>(std::bit_width(extent) - 1));
  models::write_model_reference(params, out);
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
  QUERN_ASSIGN_OR_RETURN(static_cast<models::ModelReference&>(params), models::read_model_reference(in));
  return params;
}

}  // namespace quern::codec::autoencoder
