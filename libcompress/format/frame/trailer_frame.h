// The trailer (index | index size | stream size | check | magic) as arithmetic, for host and device code. Checksums are
// the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "libcompress/format/bytes.h"
#include "libcompress/format/fault.h"

namespace quern {

inline constexpr std::size_t kFooterBytes = 24;
/// At its end, what the check does not cover: itself and the magic.
inline constexpr std::size_t kFooterUncheckedBytes = 8;
/// 51 45 4E A8.
inline constexpr std::uint32_t kFooterMagic = 0xA84E4551;

struct Footer {
  std::uint64_t index_bytes = 0;
  std::uint64_t stream_bytes = 0;  ///< header, segments and trailer
  std::uint32_t check = 0;
};

/// The index is the varints of all segments' sizes. These follow it, with the check of everything before between them.
/// W is Writer or ByteWriter.
template <class W>
constexpr void put_footer_sizes(W& out, std::uint64_t index_bytes, std::uint64_t bytes_before) {
  out.u64(index_bytes);
  out.u64(bytes_before + index_bytes + kFooterBytes);
}
template <class W>
constexpr void put_footer_end(W& out, std::uint64_t checksum) {
  out.u32(static_cast<std::uint32_t>(checksum));
  out.u32(kFooterMagic);
}

/// Reads the last kFooterBytes of a stream; checks the magic and that the sizes are possible in themselves.
constexpr Fault read_footer(std::span<const std::uint8_t> bytes, Footer& footer) {
  if (bytes.size() < kFooterBytes) return {FormatFault::trailer_missing, bytes.size()};
  ByteReader in(bytes.last(kFooterBytes));
  footer.index_bytes = in.u64();
  footer.stream_bytes = in.u64();
  footer.check = in.u32();
  in.require(in.u32() == kFooterMagic, FormatFault::footer_missing);
  in.require(footer.stream_bytes >= kFooterBytes && footer.index_bytes <= footer.stream_bytes - kFooterBytes,
             FormatFault::footer_sizes_impossible);
  return in.fault();
}

/// Whether the index can have one size for each segment.
constexpr Fault check_index_bytes(const Footer& footer, std::uint64_t trailer_bytes, std::uint64_t segments) {
  if (footer.index_bytes != trailer_bytes - kFooterBytes || segments > footer.index_bytes)
    return {FormatFault::index_sizes_missing, segments};
  return {};
}

/// Walks over the segments' sizes in the index of a trailer.
class IndexWalk {
 public:
  /// `index` without the footer.
  constexpr IndexWalk(std::span<const std::uint8_t> index, const Footer& footer, std::uint64_t header_bytes)
      : in_(index), footer_(footer), offset_(header_bytes) {}

  /// Offset, from the start of the stream, of the end of the next segment. Meaningless when there is a fault.
  constexpr std::uint64_t next() {
    const std::uint64_t size = in_.varint(footer_.stream_bytes);
    in_.require(offset_ <= footer_.stream_bytes && size <= footer_.stream_bytes - offset_,
                FormatFault::index_above_stream);
    offset_ += size;
    return offset_;
  }
  /// After the last segment: nothing may be left, and the trailer must end the stream.
  constexpr void finish() {
    in_.expect_end();
    in_.require(offset_ + footer_.index_bytes + kFooterBytes == footer_.stream_bytes,
                FormatFault::index_not_the_stream);
  }
  /// The first thing that was wrong.
  constexpr const Fault& fault() const { return in_.fault(); }

 private:
  ByteReader in_;
  Footer footer_;
  std::uint64_t offset_;
};

}  // namespace quern
