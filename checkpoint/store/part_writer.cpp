// One part, written in order.
#include "checkpoint/store/part_writer.h"

namespace quern::checkpoint {
namespace {

constexpr std::size_t kFlushBytes = std::size_t{1} << 20;

}  // namespace

Result<PartWriter> PartWriter::create(FileSystem& files, String path, const PartIdentity& identity, Report& report) {
  PartWriter out;
  auto file = files.create(path);
  if (!file.ok()) return fail_file(report, path, "create it", file.status());
  out.path_ = std::move(path);
  out.file_ = std::move(file).value();
  out.pending_.resize(kPartHeaderBytes);
  write_part_header(identity, std::span(out.pending_).first<kPartHeaderBytes>());
  return out;
}

Status PartWriter::flush(Report& report) {
  const Status status = write_fully(*file_, written_, pending_);
  if (!status.ok()) return fail_file(report, path_, "write it", status);
  written_ += pending_.size();
  pending_.clear();
  return {};
}

Status PartWriter::append(std::span<const std::uint8_t> bytes, Report& report) {
  pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  return pending_.size() < kFlushBytes ? Status() : flush(report);
}

Status PartWriter::add(Record record, std::span<const std::uint8_t> first, std::span<const std::uint8_t> second,
                       Report& report) {
  const std::uint64_t body_bytes = std::uint64_t{first.size()} + second.size();
  if (body_bytes > kMaxRecordBytes)
    return fail(report, StatusCode::unsupported, join({path_, ": a record would be larger than 1 GiB"}));
  body_.assign(first.begin(), first.end());
  body_.insert(body_.end(), second.begin(), second.end());
  record.body_bytes = static_cast<std::uint32_t>(body_bytes);
  record.offset = bytes();
  records_.push_back(record);
  std::array<std::uint8_t, kRecordHeaderBytes> header{};
  write_record_header(record, body_, header);
  QUERN_RETURN_IF_ERROR(append(header, report));
  body_.resize(static_cast<std::size_t>(record.end() - record.offset - kRecordHeaderBytes));  // zeros to the alignment
  return append(body_, report);
}

Status PartWriter::add_ready(Record record, std::span<const std::uint8_t> bytes, Report& report) {
  record.offset = this->bytes();
  records_.push_back(record);
  if (bytes.size() < kFlushBytes / 4) return append(bytes, report);
  if (!pending_.empty()) QUERN_RETURN_IF_ERROR(flush(report));
  const Status status = write_fully(*file_, written_, bytes);
  if (!status.ok()) return fail_file(report, path_, "write it", status);
  written_ += bytes.size();
  return {};
}

Status PartWriter::go_back(const Mark& mark, Report& report) {
  if (mark.bytes == bytes()) return {};
  records_.resize(mark.records);
  if (mark.bytes >= written_) {
    pending_.resize(static_cast<std::size_t>(mark.bytes - written_));
    return {};
  }
  pending_.clear();
  written_ = mark.bytes;
  const Status cut = file_->cut(written_);
  return cut.ok() ? cut : fail_file(report, path_, "cut it", cut);
}

Result<PartInfo> PartWriter::finish(Report& report) {
  const Vector<std::uint8_t> index = make_index(records_);
  PartInfo info;
  info.index_checksum = index_checksum(index);
  std::array<std::uint8_t, kPartTrailerBytes> trailer{};
  write_part_trailer({info.index_checksum, index.size()}, trailer);
  QUERN_RETURN_IF_ERROR(append(index, report));
  QUERN_RETURN_IF_ERROR(append(trailer, report));
  QUERN_RETURN_IF_ERROR(flush(report));
  const Status synced = file_->sync();
  if (!synced.ok()) return fail_file(report, path_, "sync it", synced);
  info.bytes = written_;
  return info;
}

}  // namespace quern::checkpoint
