#include "lidar/history/segment.h"

#include <algorithm>
#include <array>
#include <new>

#include "libcompress/format/frame/checksum.h"
#include "lidar/history/stored_numbers.h"

namespace quern::lidar {
namespace {

using storage::ContentHash;
using storage::File;
using storage::Report;

constexpr std::array<std::uint8_t, 8> kMagic = {0x9B, 'Q', 'H', 'S', '\r', '\n', 0x1A, '\n'};
constexpr std::array<std::uint8_t, 8> kEndMagic = {0x9B, 'Q', 'H', 'Z', '\r', '\n', 0x1A, '\n'};
constexpr std::uint64_t kHeadBytes = 10;  ///< magic and version
constexpr std::uint16_t kVersion = 1;
constexpr std::uint64_t kPartHeadBytes = 20;  ///< size, hash
constexpr std::uint64_t kEntryBytes = 32;
constexpr std::uint64_t kTrailerBytes = 24;  ///< bytes of the index, its checksum, magic

Status corrupt(const char* what) { return Status(StatusCode::corrupt, what); }

Vector<std::uint8_t> index_of(std::span<const PartPlace> places) {
  Vector<std::uint8_t> out;
  Writer writer(out);
  for (const PartPlace& place : places) {
    write_hash(writer, place.hash);
    writer.u64(place.offset);
    writer.u64(place.bytes);
  }
  return out;
}

Result<Vector<PartPlace>> read_index(File& file, std::uint64_t size) {
  if (size < kHeadBytes + kTrailerBytes) return corrupt("a segment is too short");
  Vector<std::uint8_t> bytes(kTrailerBytes);
  QUERN_RETURN_IF_ERROR(storage::read_fully(file, size - kTrailerBytes, bytes));
  Reader trailer(bytes);
  QUERN_ASSIGN_OR_RETURN(const auto index_bytes, trailer.u64());
  QUERN_ASSIGN_OR_RETURN(const auto checksum, trailer.u64());
  QUERN_ASSIGN_OR_RETURN(const auto magic, trailer.bytes(kEndMagic.size()));
  const std::uint64_t parts_end = size - kTrailerBytes - std::min(index_bytes, size - kTrailerBytes);
  if (!std::equal(magic.begin(), magic.end(), kEndMagic.begin()) || index_bytes % kEntryBytes != 0 ||
      parts_end < kHeadBytes)
    return corrupt("the end of a segment is damaged");
  Vector<std::uint8_t> index(static_cast<std::size_t>(index_bytes));
  QUERN_RETURN_IF_ERROR(storage::read_fully(file, parts_end, index));
  if (checksum64(index) != checksum) return Status(StatusCode::checksum_mismatch, "the index of a segment is damaged");
  Reader reader(index);
  Vector<PartPlace> places;
  while (!reader.at_end()) {
    PartPlace place;
    QUERN_ASSIGN_OR_RETURN(place.hash, read_hash(reader));
    QUERN_ASSIGN_OR_RETURN(place.offset, reader.u64());
    QUERN_ASSIGN_OR_RETURN(place.bytes, reader.u64());
    if (place.offset < kHeadBytes + kPartHeadBytes || place.offset > parts_end ||
        place.bytes > parts_end - place.offset)
      return corrupt("the index of a segment points behind its parts");
    places.push_back(place);
  }
  return places;
}

/// Part after part, up to the first that is not whole.
Vector<PartPlace> walk(File& file, std::uint64_t size) {
  Vector<PartPlace> places;
  std::uint64_t at = kHeadBytes;
  while (size - std::min(at, size) > kPartHeadBytes) {
    std::array<std::uint8_t, kPartHeadBytes> head;
    if (!storage::read_fully(file, at, head).ok()) break;
    Reader reader(head);
    const auto bytes = reader.u32();
    const auto hash = read_hash(reader);
    if (*bytes > size - at - kPartHeadBytes) break;
    const PartPlace place{*hash, at + kPartHeadBytes, *bytes};
    if (!read_part_bytes(file, place).ok()) break;
    places.push_back(place);
    at = place.offset + place.bytes;
  }
  return places;
}

}  // namespace

SegmentWriter::~SegmentWriter() {
  if (file_ == nullptr || finished_) return;
  try {
    (void)files_.remove(path_);
  } catch (const std::bad_alloc&) {
    // The next writer removes it.
  }
}

Status SegmentWriter::write(std::span<const std::uint8_t> bytes, Report& report) {
  const Status status = storage::write_fully(*file_, at_, bytes);
  if (!status.ok()) return storage::fail_file(report, path_, "write it", status);
  at_ += bytes.size();
  return {};
}

Status SegmentWriter::add(const ContentHash& hash, std::span<const std::uint8_t> bytes, Report& report) {
  Vector<std::uint8_t> head;
  Writer writer(head);
  if (file_ == nullptr) {
    auto file = files_.create(path_);
    if (!file.ok()) return storage::fail_file(report, path_, "create it", file.status());
    file_ = std::move(file).value();
    writer.bytes(kMagic);
    writer.u16(kVersion);
  }
  writer.u32(static_cast<std::uint32_t>(bytes.size()));
  write_hash(writer, hash);
  QUERN_RETURN_IF_ERROR(write(head, report));
  places_.push_back({hash, at_, bytes.size()});
  return write(bytes, report);
}

Result<ContentHash> SegmentWriter::finish(Report& report) {
  Vector<std::uint8_t> end = index_of(places_);
  const ContentHash name = storage::content_hash(end);
  const std::uint64_t checksum = checksum64(end);
  const std::uint64_t index_bytes = end.size();
  Writer writer(end);
  writer.u64(index_bytes);
  writer.u64(checksum);
  writer.bytes(kEndMagic);
  QUERN_RETURN_IF_ERROR(write(end, report));
  const Status synced = file_->sync();
  if (!synced.ok()) return storage::fail_file(report, path_, "sync it", synced);
  finished_ = true;
  return name;
}

Result<Vector<PartPlace>> read_segment(File& file, bool& whole) {
  QUERN_ASSIGN_OR_RETURN(const auto size, file.size());
  auto places = read_index(file, size);
  if (!places.ok() && places.status().code() == StatusCode::io_error) return places.status();
  std::array<std::uint8_t, kHeadBytes> head;
  Vector<std::uint8_t> expected;
  Writer writer(expected);
  writer.bytes(kMagic);
  writer.u16(kVersion);
  whole =
      places.ok() && storage::read_fully(file, 0, head).ok() && std::equal(head.begin(), head.end(), expected.begin());
  if (places.ok()) return places;
  return walk(file, size);
}

ContentHash segment_name(std::span<const PartPlace> places) { return storage::content_hash(index_of(places)); }

bool heads_hold(File& file, std::span<const PartPlace> places) {
  std::array<std::uint8_t, kPartHeadBytes> head;
  for (const PartPlace& place : places) {
    if (!storage::read_fully(file, place.offset - kPartHeadBytes, head).ok()) return false;
    Reader reader(head);
    const auto bytes = reader.u32();
    const auto hash = read_hash(reader);
    if (*bytes != place.bytes || *hash != place.hash) return false;
  }
  return true;
}

Result<Vector<std::uint8_t>> read_part_bytes(File& file, const PartPlace& place) {
  Vector<std::uint8_t> bytes(static_cast<std::size_t>(place.bytes));
  QUERN_RETURN_IF_ERROR(storage::read_fully(file, place.offset, bytes));
  if (storage::content_hash(bytes) != place.hash)
    return Status(StatusCode::checksum_mismatch, "the bytes of a part are not those of its name");
  return bytes;
}

}  // namespace quern::lidar
