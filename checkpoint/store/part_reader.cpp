// One part, read by index or scanned.
#include "checkpoint/store/part_reader.h"

#include <algorithm>

namespace quern::checkpoint {
namespace {

Status damaged(Report& report, std::string_view path, std::string_view what) {
  return fail(report, StatusCode::corrupt, join({path, ": ", what}));
}

}  // namespace

Result<PartReader> PartReader::open(FileSystem& files, String path, const PartIdentity& identity, const PartInfo& info,
                                    Report& report) {
  PartReader out;
  out.path_ = std::move(path);
  auto file = files.open(out.path_);
  if (!file.ok()) return fail_file(report, out.path_, "open it", file.status());
  out.file_ = std::move(file).value();
  const auto size = out.file_->size();
  if (!size.ok()) return fail_file(report, out.path_, "read it", size.status());
  if (*size != info.bytes)
    return damaged(report, out.path_,
                   join({"has ", decimal(*size), " bytes, the manifest says ", decimal(info.bytes)}));
  if (*size < kPartHeaderBytes + kRecordAlignment + kPartTrailerBytes)
    return damaged(report, out.path_, "too short for a part");
  Vector<std::uint8_t> header(kPartHeaderBytes);
  if (const Status status = read_fully(*out.file_, 0, header); !status.ok())
    return fail_file(report, out.path_, "read it", status);
  const auto found = read_part_header(std::span(header).first<kPartHeaderBytes>());
  if (!found.ok()) return fail_file(report, out.path_, "use it", found.status());
  Vector<std::uint8_t> expected(kPartHeaderBytes);
  write_part_header(identity, std::span(expected).first<kPartHeaderBytes>());
  if (header != expected) return damaged(report, out.path_, "belongs to another checkpoint");
  std::array<std::uint8_t, kPartTrailerBytes> end{};
  if (const Status status = read_fully(*out.file_, *size - end.size(), end); !status.ok())
    return fail_file(report, out.path_, "read it", status);
  const auto trailer = read_part_trailer(end);
  if (!trailer.ok()) return fail_file(report, out.path_, "use it", trailer.status());
  if (trailer->index_checksum != info.index_checksum || trailer->index_bytes > *size - kPartHeaderBytes - end.size())
    return damaged(report, out.path_, "its index is not the one the manifest names");
  Vector<std::uint8_t> index(static_cast<std::size_t>(trailer->index_bytes));
  const std::uint64_t index_begin = *size - end.size() - index.size();
  if (const Status status = read_fully(*out.file_, index_begin, index); !status.ok())
    return fail_file(report, out.path_, "read it", status);
  if (index_checksum(index) != info.index_checksum) return damaged(report, out.path_, "its index is damaged");
  auto records = read_index(index, index_begin);
  if (!records.ok()) return fail_file(report, out.path_, "use it", records.status());
  out.records_ = std::move(records).value();
  return out;
}

Status PartReader::read(std::size_t index, AlignedBuffer& room, std::span<const std::uint8_t>& content,
                        Report& report) const {
  if (index >= records_.size()) return damaged(report, path_, "has fewer records than the manifest says");
  const Record& record = records_[index];
  if (const Status sized = room.resize(record.end() - record.offset); !sized.ok()) return sized;
  if (const Status status = read_fully(*file_, record.offset, room.span()); !status.ok())
    return fail_file(report, path_, "read it", status);
  Record found;
  std::uint64_t checksum = 0;
  const std::size_t body_end = kRecordHeaderBytes + record.body_bytes;
  const std::span<const std::uint8_t> bytes = room.span();
  content = bytes.subspan(kRecordHeaderBytes, record.body_bytes);
  const bool good = read_record_header(bytes.first<kRecordHeaderBytes>(), found, checksum) && found.same_as(record) &&
                    checksum == record_checksum(record, content) &&
                    std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(body_end), bytes.end(),
                                [](std::uint8_t b) { return b == 0; });
  if (good) return {};
  return fail(report, StatusCode::checksum_mismatch,
              join({path_, ": record ", decimal(index), " at byte ", decimal(record.offset), " is damaged"}));
}

Status PartReader::read(std::size_t index, Vector<std::uint8_t>& body, Report& report) const {
  AlignedBuffer room;
  std::span<const std::uint8_t> content;
  QUERN_RETURN_IF_ERROR(read(index, room, content, report));
  body.assign(content.begin(), content.end());
  return {};
}

Result<Vector<Record>> scan_part(File& file) {
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t size, file.size());
  Vector<Record> records;
  Vector<std::uint8_t> body;
  std::array<std::uint8_t, kRecordHeaderBytes> header{};
  std::uint64_t at = kPartHeaderBytes;
  while (at + kRecordHeaderBytes <= size) {
    QUERN_RETURN_IF_ERROR(read_fully(file, at, header));
    Record record;
    std::uint64_t checksum = 0;
    record.offset = at;
    at += kRecordAlignment;
    if (!read_record_header(header, record, checksum) || record.end() > size) continue;
    body.resize(record.body_bytes);
    QUERN_RETURN_IF_ERROR(read_fully(file, record.offset + kRecordHeaderBytes, body));
    if (checksum != record_checksum(record, body)) continue;
    at = record.end();
    records.push_back(record);
  }
  return records;
}

Result<bool> rebuild_footer(FileSystem& files, std::string_view path, const PartInfo& info, std::uint64_t& footer_begin,
                            Vector<std::uint8_t>& footer, Report& report) {
  auto file = files.open(path);
  if (!file.ok()) return fail_file(report, path, "open it", file.status());
  const auto records = scan_part(*file.value());
  if (!records.ok()) return fail_file(report, path, "read it", records.status());
  footer_begin = records->empty() ? kPartHeaderBytes : records->back().end();
  footer = make_index(*records);
  const std::uint64_t checksum = index_checksum(footer);
  std::array<std::uint8_t, kPartTrailerBytes> trailer{};
  write_part_trailer({checksum, footer.size()}, trailer);
  footer.insert(footer.end(), trailer.begin(), trailer.end());
  return checksum == info.index_checksum && footer_begin + footer.size() == info.bytes;
}

}  // namespace quern::checkpoint
