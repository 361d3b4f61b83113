// What the headers of all streams have in common, as bytes, for host and device code: magic, size, version, feature
// bits, the bound, who wrote it, the metadata section, the checksum. What stands between is each payload kind's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/bound.h>
#include <quern/compress.h>
#include <quern/dtype.h>

#include "kernels/common/xxh3.h"
#include "libcompress/core/rounding.h"
#include "libcompress/format/bytes.h"
#include "libcompress/format/fault.h"
#include "libcompress/format/frame/limits.h"

namespace quern {

inline constexpr std::uint8_t kFormatMajor = 0;
inline constexpr std::uint8_t kFormatMinor = 1;
/// Bytes that tell how long the header is: magic and header size.
inline constexpr std::size_t kHeaderPrefixBytes = 12;
inline constexpr std::size_t kHeaderChecksumBytes = 8;
/// Codec id of chunks that are all stored as they are; belongs to the container, not to a codec.
inline constexpr std::uint16_t kStoredCodecId = 0;

// Feature bits that must be understood; docs/format.md, appendix A.
/// Segments have level tables (grid/level_table.h).
inline constexpr std::uint64_t kLevelTables = 1;
/// The payload is records (records/), not an array.
inline constexpr std::uint64_t kRecords = 2;
/// Masks may be coded in rows and planes of the array's own axes (kernels/mask/view.h).
inline constexpr std::uint64_t kMaskViews = 8;
/// Masks may be coded by levels (kernels/mask/levels).
inline constexpr std::uint64_t kMaskLevels = 16;
/// Chunks may be predicted from those of another array, which the codec's parameters name.
inline constexpr std::uint64_t kReferences = 32;
/// Runs of slices of the leading axis are coded by themselves; the codec's parameters say which and how.
inline constexpr std::uint64_t kParts = 64;
/// Chunks may be predicted from groups of points that are not linear; the codec's parameters say so, too.
inline constexpr std::uint64_t kEdges = 128;
/// Chunks may be predicted by networks of a model, which the codec's parameters name.
inline constexpr std::uint64_t kNetworks = 256;
/// Those that codecs ask for.
inline constexpr std::uint64_t kCodecFeatures = kEdges | kNetworks;
inline constexpr std::uint64_t kKnownMustUnderstand =
    kLevelTables | kRecords | kMaskViews | kMaskLevels | kReferences | kParts | kCodecFeatures;

/// What stands first in every header.
struct StreamStart {
  std::uint8_t major = kFormatMajor;
  std::uint8_t minor = kFormatMinor;
  std::uint64_t must_understand = 0;
  std::uint64_t may_ignore = 0;
};

/// Who wrote a stream; informative.
struct WriterId {
  std::uint8_t implementation = 1;  ///< 1: this library
  std::uint8_t major = 0;
  std::uint8_t minor = 0;
  std::uint8_t patch = 0;
};

/// The metadata section as it lies in bytes somebody else owns.
struct MetadataView {
  std::span<const std::uint8_t> stored;
  std::uint64_t bytes = 0;  ///< of the metadata, unpacked; at most kMaxMetadataBytes
  bool is_packed = false;
};

/// True when the bytes begin as a stream does, as far as they go.
constexpr bool begins_like_stream(std::span<const std::uint8_t> bytes);
/// Bytes of the whole header, from its first kHeaderPrefixBytes. Checks magic and limit.
constexpr Fault header_size(std::span<const std::uint8_t> prefix, std::uint64_t& size);
/// Checks size and checksum of exactly one header and hands out what its checksum is of.
constexpr Fault open_header(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t>& body,
                            std::uint64_t& checksum);
/// Whether the header, in all its bytes, says that the payload is records. False where it is too short to say.
constexpr bool says_records(std::span<const std::uint8_t> header);

namespace detail {

// A byte no text file begins with, the name, 'X' for "experimental", then CR LF and a lone LF, which a conversion of
// line endings in either direction changes: 89 51 52 4E 58 0D 0A 0A.
inline constexpr std::uint64_t kMagic = UINT64_C(0x0A0A0D584E525189);
inline constexpr std::size_t kMagicBytes = 8;

// Beside the kinds of bounds.
inline constexpr std::uint8_t kEnforcedStored = 0x40;
inline constexpr std::uint8_t kRangeStored = 0x80;

/// `Bounded` has dtype, requested, enforced and range: an array's header, or one section of records.
template <class W, class Bounded>
constexpr void put_bound(W& out, const Bounded& header) {
  // The enforced value is the requested one unless the request had to be turned into another kind or number.
  const bool store_enforced =
      header.enforced.kind != BoundKind::lossless &&
      !(header.requested.kind == header.enforced.kind && header.requested.value == header.enforced.value);
  std::uint8_t flags = static_cast<std::uint8_t>(static_cast<unsigned>(header.requested.kind) |
                                                 static_cast<unsigned>(header.enforced.kind) << 3);
  if (store_enforced) flags |= kEnforcedStored;
  if (header.range) flags |= kRangeStored;
  out.u8(flags);
  if (header.requested.kind != BoundKind::lossless) out.f64(header.requested.value);
  if (store_enforced) out.f64(header.enforced.value);
  if (header.range) {
    out.f64(header.range->min);
    out.f64(header.range->max);
  }
}

template <class W>
constexpr void put_metadata(W& out, const MetadataView& metadata) {
  const std::uint64_t stored = metadata.stored.size();
  out.varint(stored << 1 | (metadata.is_packed ? 1 : 0));
  if (metadata.is_packed) out.varint(metadata.bytes);
  out.bytes(metadata.stored);
}

template <class W>
constexpr void put_stream_start(W& out, const StreamStart& start) {
  out.u8(start.major);
  out.u8(start.minor);
  out.varint(start.must_understand);
  out.varint(start.may_ignore);
}

template <class W>
constexpr void put_writer(W& out, const WriterId& writer) {
  out.u8(writer.implementation);
  out.u8(writer.major);
  out.u8(writer.minor);
  out.u8(writer.patch);
}

constexpr void read_stream_start(ByteReader& in, StreamStart& start) {
  start.major = in.u8();
  start.minor = in.u8();
  in.require(start.major == kFormatMajor && start.minor == kFormatMinor, FormatFault::other_version, start.major,
             start.minor);
  start.must_understand = in.varint();
  start.may_ignore = in.varint();
  in.require((start.must_understand & ~kKnownMustUnderstand) == 0, FormatFault::unknown_features,
             start.must_understand);
}

constexpr WriterId read_writer(ByteReader& in) {
  WriterId writer;
  writer.implementation = in.u8();
  writer.major = in.u8();
  writer.minor = in.u8();
  writer.patch = in.u8();
  return writer;
}

constexpr bool kind_is_enforceable(BoundKind kind) {
  return kind == BoundKind::lossless || kind == BoundKind::abs || kind == BoundKind::pwrel;
}

template <class Bounded>
constexpr void read_enforced(ByteReader& in, std::uint8_t flags, Bounded& header) {
  EnforcedBound& enforced = header.enforced;
  if ((flags & kEnforcedStored) != 0) {
    in.require(enforced.kind != BoundKind::lossless, FormatFault::lossless_with_value);
    enforced.value = in.f64();
  } else if (enforced.kind != BoundKind::lossless) {
    in.require(enforced.kind == header.requested.kind, FormatFault::enforced_bound_missing);
    enforced.value = header.requested.value;
  }
  if (enforced.kind != BoundKind::lossless)
    in.require(ErrorBound{enforced.kind, enforced.value}.check(header.dtype).ok() && enforced.value != 0,
               FormatFault::enforced_bound_impossible);
}

/// A reader that has a fault reads zeros, and the first fault stays.
template <class Bounded>
constexpr void read_bound(ByteReader& in, Bounded& header) {
  const std::uint8_t flags = in.u8();
  const auto requested = static_cast<std::uint8_t>(flags & 7);
  const auto enforced = static_cast<std::uint8_t>(flags >> 3 & 7);
  constexpr auto kLastKind = static_cast<std::uint8_t>(BoundKind::ratio);
  in.require(requested <= kLastKind && enforced <= kLastKind, FormatFault::unknown_bound_kind);
  header.requested.kind = static_cast<BoundKind>(requested);
  header.enforced.kind = static_cast<BoundKind>(enforced);
  in.require(kind_is_enforceable(header.enforced.kind), FormatFault::bound_kind_not_enforceable);
  if (!in.ok()) return;
  if (header.requested.kind != BoundKind::lossless) {
    header.requested.value = in.f64();
    in.require(header.requested.check(header.dtype).ok(), FormatFault::requested_bound_impossible);
  }
  read_enforced(in, flags, header);
  if ((flags & kRangeStored) == 0) return;
  ValueRange range;
  range.min = in.f64();
  range.max = in.f64();
  in.require(is_finite(range.min) && is_finite(range.max) && range.min <= range.max,
             FormatFault::value_range_impossible);
  header.range = range;
}

constexpr void read_metadata(ByteReader& in, MetadataView& metadata) {
  const std::uint64_t head = in.varint(kMaxMetadataBytes << 1 | 1);
  metadata.is_packed = (head & 1) != 0;
  metadata.bytes = metadata.is_packed ? in.varint(kMaxMetadataBytes) : head >> 1;
  metadata.stored = in.bytes(head >> 1);
}

/// Inside a header whose checksum holds, running out of bytes means that it was never valid.
constexpr Fault fault_in_fields(const ByteReader& in) {
  const FormatFault what = in.fault().what;
  if (what == FormatFault::too_few_bytes || what == FormatFault::ends_inside_number)
    return {FormatFault::header_ends_early};
  return in.fault();
}

}  // namespace detail

constexpr bool begins_like_stream(std::span<const std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size() && i < detail::kMagicBytes; ++i)
    if (bytes[i] != static_cast<std::uint8_t>(detail::kMagic >> (8 * i))) return false;
  return true;
}

constexpr Fault header_size(std::span<const std::uint8_t> prefix, std::uint64_t& size) {
  if (!begins_like_stream(prefix)) return {FormatFault::not_a_stream};
  ByteReader in(prefix);
  in.skip(detail::kMagicBytes);
  size = in.u32();
  in.require(size >= kHeaderPrefixBytes + kHeaderChecksumBytes && size <= kMaxHeaderBytes,
             FormatFault::header_size_impossible, size, kMaxHeaderBytes);
  return in.fault();
}

constexpr Fault open_header(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t>& body,
                            std::uint64_t& checksum) {
  std::uint64_t size = 0;
  const Fault fault =
      header_size(bytes.first(bytes.size() < kHeaderPrefixBytes ? bytes.size() : kHeaderPrefixBytes), size);
  if (!fault.ok()) return fault;
  if (size != bytes.size()) return {FormatFault::header_incomplete, bytes.size(), size};
  body = bytes.first(bytes.size() - kHeaderChecksumBytes);
  ByteReader tail(bytes.last(kHeaderChecksumBytes));
  checksum = tail.u64();
  if (kernels::xxh3_64(body.data(), body.size()) != checksum) return {FormatFault::header_damaged};
  return {};
}

constexpr bool says_records(std::span<const std::uint8_t> header) {
  ByteReader in(header);
  in.skip(kHeaderPrefixBytes);
  in.skip(2);  // the version
  return (in.varint() & kRecords) != 0;
}

}  // namespace quern
