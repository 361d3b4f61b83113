#include "offload/sealed.h"

#include <algorithm>

namespace quern::offload {

void write_hash(Writer& out, const storage::ContentHash& hash) {
  out.u64(hash.low);
  out.u64(hash.high);
}

Result<storage::ContentHash> read_hash(Reader& in) {
  storage::ContentHash hash;
  QUERN_ASSIGN_OR_RETURN(hash.low, in.u64());
  QUERN_ASSIGN_OR_RETURN(hash.high, in.u64());
  return hash;
}

void seal(Vector<std::uint8_t>& bytes) {
  const storage::ContentHash hash = storage::content_hash(bytes);
  Writer out(bytes);
  write_hash(out, hash);
}

Result<std::span<const std::uint8_t>> open_sealed(std::span<const std::uint8_t> bytes,
                                                  std::span<const std::uint8_t> magic) {
  constexpr std::size_t kSealBytes = 16;
  if (bytes.size() < magic.size() + kSealBytes || !std::equal(magic.begin(), magic.end(), bytes.begin()))
    return Status(StatusCode::bad_magic, "this is no file of an offloaded optimizer state");
  const auto body = bytes.first(bytes.size() - kSealBytes);
  Reader end(bytes.last(kSealBytes));
  QUERN_ASSIGN_OR_RETURN(const storage::ContentHash sealed, read_hash(end));
  if (sealed != storage::content_hash(body))
    return Status(StatusCode::checksum_mismatch, "this file of the offloaded state is damaged");
  return body.subspan(magic.size());
}

}  // namespace quern::offload
