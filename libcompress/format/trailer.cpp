// Writing and reading the trailer.
#include "libcompress/format/trailer.h"

#include <algorithm>
#include <array>

#include "libcompress/format/checksum.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern {
namespace {

constexpr std::array<std::uint8_t, 4> kFooterMagic{'Q', 'E', 'N', 0xA8};
constexpr std::size_t kUnchecked = 8;  // check and magic themselves

}  // namespace

void TrailerBuilder::add(std::uint64_t segment_bytes) {
  Writer(index_).varint(segment_bytes);
  ++segments_;
}

Vector<std::uint8_t> TrailerBuilder::finish(std::uint64_t header_checksum, std::uint64_t bytes_before) const {
  Vector<std::uint8_t> out;
  out.reserve(index_.size() + kFooterBytes);
  Writer w(out);
  w.bytes(index_);
  w.u64(index_.size());
  w.u64(bytes_before + index_.size() + kFooterBytes);
  w.u32(static_cast<std::uint32_t>(bound_checksum64(header_checksum, segments_, out)));
  w.bytes(kFooterMagic);
  return out;
}

Result<Footer> parse_footer(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < kFooterBytes)
    return Status(StatusCode::truncated, "the stream has no trailer: {0} bytes are left for it",
                  static_cast<std::int64_t>(bytes.size()));
  Reader in(bytes.last(kFooterBytes));
  Footer footer;
  QUERN_ASSIGN_OR_RETURN(footer.index_bytes, in.u64());
  QUERN_ASSIGN_OR_RETURN(footer.stream_bytes, in.u64());
  QUERN_ASSIGN_OR_RETURN(footer.check, in.u32());
  QUERN_ASSIGN_OR_RETURN(const auto magic, in.bytes(kFooterMagic.size()));
  if (!std::equal(magic.begin(), magic.end(), kFooterMagic.begin()))
    return Status(StatusCode::truncated, "the data does not end as a stream does; its end may be missing");
  if (footer.stream_bytes < kFooterBytes || footer.index_bytes > footer.stream_bytes - kFooterBytes)
    return Status(StatusCode::corrupt, "the trailer's sizes are impossible");
  return footer;
}

Result<Vector<std::uint64_t>> parse_trailer(std::span<const std::uint8_t> trailer, std::uint64_t header_checksum,
                                            std::uint64_t header_bytes, std::uint64_t segments) {
  QUERN_ASSIGN_OR_RETURN(const Footer footer, parse_footer(trailer));
  if (footer.index_bytes != trailer.size() - kFooterBytes || segments > footer.index_bytes)
    return Status(StatusCode::corrupt, "the trailer does not have one size for each of {0} segments",
                  static_cast<std::int64_t>(segments));
  const auto covered = trailer.first(trailer.size() - kUnchecked);
  if (static_cast<std::uint32_t>(bound_checksum64(header_checksum, segments, covered)) != footer.check)
    return Status(StatusCode::checksum_mismatch, "the trailer is damaged: its checksum does not match");
  Reader in(trailer.first(trailer.size() - kFooterBytes));
  Vector<std::uint64_t> offsets;
  offsets.reserve(static_cast<std::size_t>(segments) + 1);
  offsets.push_back(header_bytes);
  for (std::uint64_t s = 0; s < segments; ++s) {
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t size, in.varint(footer.stream_bytes));
    offsets.push_back(offsets.back() + size);
    if (offsets.back() > footer.stream_bytes)
      return Status(StatusCode::corrupt, "the trailer's sizes add up to more than the stream");
  }
  QUERN_RETURN_IF_ERROR(in.expect_end());
  if (offsets.back() + trailer.size() != footer.stream_bytes)
    return Status(StatusCode::corrupt, "the trailer's sizes do not add up to the stream");
  return offsets;
}

}  // namespace quern
