// Signed numbers and hashes as drives and histories store them.
#pragma once

#include "kernels/common/bits.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"
#include "storage/content_hash.h"

namespace quern::lidar {

inline void write_signed(Writer& writer, std::int64_t value) {
  writer.varint(kernels::zigzag(static_cast<std::uint64_t>(value)));
}
/// Fails with `corrupt` beyond +-most.
inline Result<std::int64_t> read_signed(Reader& reader, std::int64_t most) {
  QUERN_ASSIGN_OR_RETURN(const auto folded, reader.varint(2 * static_cast<std::uint64_t>(most)));
  return static_cast<std::int64_t>(kernels::unzigzag(folded));
}

inline void write_hash(Writer& writer, const storage::ContentHash& hash) {
  writer.u64(hash.high);
  writer.u64(hash.low);
}
inline Result<storage::ContentHash> read_hash(Reader& reader) {
  storage::ContentHash hash;
  QUERN_ASSIGN_OR_RETURN(hash.high, reader.u64());
  QUERN_ASSIGN_OR_RETURN(hash.low, reader.u64());
  return hash;
}

}  // namespace quern::lidar
