// Reading and writing the pieces of a part in memory.
#include "checkpoint/store/part_format.h"

#include <algorithm>

#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::checkpoint {
namespace {

constexpr std::array<std::uint8_t, 8> kPartMagic = {0x9B, 'Q', 'C', 'P', '\r', '\n', 0x1A, '\n'};
constexpr std::array<std::uint8_t, 8> kEndMagic = {0x9B, 'Q', 'C', 'E', '\r', '\n', 0x1A, '\n'};
constexpr std::uint32_t kRecordMagic = 0x0D52519B;
constexpr std::uint64_t kMaxNameBytes = 1 << 16;
constexpr std::uint64_t kMaxSideBytes = UINT64_C(1) << 29;
constexpr std::size_t kMaxIdBytes = 64;

bool starts_with(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> magic) {
  return std::equal(magic.begin(), magic.end(), bytes.begin());
}

bool may_be(const Record& record) {
  const auto kind = static_cast<std::uint8_t>(record.kind);
  return kind >= 1 && kind <= 3 && record.body_bytes <= kMaxRecordBytes &&
         record.raw_bytes <= codec::tensor::kChunkBytes &&
         (record.kind == RecordKind::tensor) == (record.chunk == 0 && record.kind != RecordKind::blob);
}

}  // namespace

void write_part_header(const PartIdentity& identity, std::span<std::uint8_t, kPartHeaderBytes> out) {
  std::fill(out.begin(), out.end(), std::uint8_t{0});
  ByteWriter writer(out);
  writer.bytes(kPartMagic);
  writer.u16(kPartMajor);
  writer.u16(kPartMinor);
  writer.u32(identity.number);
  writer.u64(identity.step);
  writer.u8(static_cast<std::uint8_t>(identity.checkpoint.size()));
  writer.bytes({reinterpret_cast<const std::uint8_t*>(identity.checkpoint.data()), identity.checkpoint.size()});
  ByteWriter end(out.last<8>());
  end.u64(checksum64(out.first<kPartHeaderBytes - 8>()));
}

Result<PartIdentity> read_part_header(std::span<const std::uint8_t, kPartHeaderBytes> bytes) {
  if (!starts_with(bytes, kPartMagic)) return Status(StatusCode::bad_magic, "the file is not a part of a checkpoint");
  if (ByteReader(bytes.last<8>()).u64() != checksum64(bytes.first<kPartHeaderBytes - 8>()))
    return Status(StatusCode::checksum_mismatch, "the part's header is damaged");
  ByteReader reader(bytes.subspan(kPartMagic.size()));
  const std::uint16_t major = reader.u16(), minor = reader.u16();
  if (major != kPartMajor || minor > kPartMinor)
    return Status(StatusCode::unsupported_version, "the part has format {0}.{1}, which is newer than this quern", major,
                  minor);
  PartIdentity identity;
  identity.number = reader.u32();
  identity.step = reader.u64();
  const std::uint8_t length = reader.u8();
  if (length > kMaxIdBytes) return Status(StatusCode::corrupt, "the part's header is impossible");
  const auto id = reader.bytes(length);
  identity.checkpoint.assign(reinterpret_cast<const char*>(id.data()), id.size());
  return identity;
}

std::uint64_t record_checksum(const Record& record, std::span<const std::uint8_t> body) {
  const std::uint64_t first = static_cast<std::uint64_t>(record.tensor) << 32 | record.chunk;
  const std::uint64_t second = static_cast<std::uint64_t>(record.raw_bytes) << 32 | record.body_bytes;
  const std::uint64_t what = static_cast<std::uint64_t>(record.kind) << 8 | record.mode;
  return bound_checksum64(first, second, body) ^ (what * UINT64_C(0x9E3779B97F4A7C15));
}

void write_record_header(const Record& record, std::span<const std::uint8_t> body,
                         std::span<std::uint8_t, kRecordHeaderBytes> out) {
  ByteWriter writer(out);
  writer.u32(kRecordMagic);
  writer.u8(static_cast<std::uint8_t>(record.kind));
  writer.u8(record.mode);
  writer.u16(0);
  writer.u32(record.tensor);
  writer.u32(record.chunk);
  writer.u32(record.raw_bytes);
  writer.u32(record.body_bytes);
  writer.u64(record_checksum(record, body));
}

bool read_record_header(std::span<const std::uint8_t, kRecordHeaderBytes> bytes, Record& record,
                        std::uint64_t& checksum) {
  ByteReader reader(bytes);
  const std::uint32_t magic = reader.u32();
  record.kind = static_cast<RecordKind>(reader.u8());
  record.mode = reader.u8();
  const std::uint16_t reserved = reader.u16();
  record.tensor = reader.u32();
  record.chunk = reader.u32();
  record.raw_bytes = reader.u32();
  record.body_bytes = reader.u32();
  checksum = reader.u64();
  return magic == kRecordMagic && reserved == 0 && may_be(record);
}

Vector<std::uint8_t> make_index(std::span<const Record> records) {
  Vector<std::uint8_t> out;
  Writer writer(out);
  writer.varint(records.size());
  for (const Record& record : records) {
    writer.u8(static_cast<std::uint8_t>(record.kind));
    writer.u8(record.mode);
    writer.varint(record.tensor);
    writer.varint(record.chunk);
    writer.varint(record.raw_bytes);
    writer.varint(record.body_bytes);
  }
  while (out.size() % kRecordAlignment != 0) writer.u8(0);
  return out;
}

std::uint64_t index_checksum(std::span<const std::uint8_t> index) { return checksum64(index); }

Result<Vector<Record>> read_index(std::span<const std::uint8_t> index, std::uint64_t index_begin) {
  const Status corrupt(StatusCode::corrupt, "the part's index is impossible");
  ByteReader reader(index);
  constexpr std::size_t kLeastEntryBytes = 6;
  const std::uint64_t count = reader.varint();
  if (!reader.ok() || count > reader.remaining() / kLeastEntryBytes) return corrupt;
  Vector<Record> records;
  records.reserve(static_cast<std::size_t>(count));
  std::uint64_t at = kPartHeaderBytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    Record record;
    record.kind = static_cast<RecordKind>(reader.u8());
    record.mode = reader.u8();
    record.tensor = static_cast<std::uint32_t>(reader.varint(UINT32_MAX));
    record.chunk = static_cast<std::uint32_t>(reader.varint(UINT32_MAX));
    record.raw_bytes = static_cast<std::uint32_t>(reader.varint(UINT32_MAX));
    record.body_bytes = static_cast<std::uint32_t>(reader.varint(UINT32_MAX));
    record.offset = at;
    if (!reader.ok() || !may_be(record) || record.end() > index_begin) return corrupt;
    at = record.end();
    records.push_back(record);
  }
  if (at != index_begin || index.size() % kRecordAlignment != 0 || reader.remaining() >= kRecordAlignment)
    return corrupt;
  while (reader.remaining() != 0)
    if (reader.u8() != 0) return corrupt;
  return records;
}

void write_part_trailer(const PartTrailer& trailer, std::span<std::uint8_t, kPartTrailerBytes> out) {
  ByteWriter writer(out);
  writer.u64(trailer.index_checksum);
  writer.u64(trailer.index_bytes);
  writer.bytes(kEndMagic);
}

Result<PartTrailer> read_part_trailer(std::span<const std::uint8_t, kPartTrailerBytes> bytes) {
  if (!starts_with(bytes.last<8>(), kEndMagic))
    return Status(StatusCode::truncated, "the part does not end as parts do: it was cut short or damaged");
  ByteReader reader(bytes);
  PartTrailer trailer;
  trailer.index_checksum = reader.u64();
  trailer.index_bytes = reader.u64();
  if (trailer.index_bytes == 0 || trailer.index_bytes > kMaxIndexBytes || trailer.index_bytes % kRecordAlignment != 0)
    return Status(StatusCode::corrupt, "the part's trailer is impossible");
  return trailer;
}

Vector<std::uint8_t> make_tensor_head(const TensorHead& head) {
  Vector<std::uint8_t> out;
  Writer writer(out);
  writer.varint(head.name.size());
  writer.bytes({reinterpret_cast<const std::uint8_t*>(head.name.data()), head.name.size()});
  writer.u8(static_cast<std::uint8_t>(head.what.type));
  writer.u8(static_cast<std::uint8_t>(head.what.shape.rank() | (head.is_piece ? 0x80U : 0U)));
  for (const std::uint64_t extent : head.what.shape.extents()) writer.varint(extent);
  if (head.is_piece) {
    for (const std::uint64_t extent : head.whole.extents()) writer.varint(extent);
    for (std::size_t a = 0; a < head.box.rank; ++a) writer.varint(head.box.begin[a]);
  }
  writer.varint(head.side.size());
  writer.bytes(head.side);
  return out;
}

Result<TensorHead> read_tensor_head(std::span<const std::uint8_t>& body) {
  const Status corrupt(StatusCode::corrupt, "the first record of a tensor is impossible");
  ByteReader reader(body);
  TensorHead head;
  const auto name = reader.bytes(reader.varint(kMaxNameBytes));
  head.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  const std::uint8_t type = reader.u8();
  const std::uint8_t rank_byte = reader.u8();
  head.is_piece = (rank_byte & 0x80) != 0;
  const std::size_t rank = rank_byte & 0x7F;
  if (!reader.ok() || rank > kMaxRank || !codec::tensor::is_known_element(type)) return corrupt;
  head.what.type = static_cast<ElementType>(type);
  std::array<std::uint64_t, kMaxRank> extents{};
  const auto read_shape = [&]() {
    for (std::size_t a = 0; a < rank; ++a) extents[a] = reader.varint();
    return Shape::try_make({extents.data(), rank});
  };
  const auto shape = read_shape();
  if (!reader.ok() || !shape) return corrupt;
  head.what.shape = *shape;
  if (head.is_piece) {
    const auto whole = read_shape();
    if (!reader.ok() || !whole) return corrupt;
    head.whole = *whole;
    head.box.rank = rank;
    for (std::size_t a = 0; a < rank; ++a) {
      head.box.begin[a] = reader.varint();
      const std::uint64_t left = head.whole[a] - std::min(head.whole[a], head.box.begin[a]);
      if (!reader.ok() || head.what.shape[a] > left) return corrupt;
      head.box.end[a] = head.box.begin[a] + head.what.shape[a];
    }
  }
  const auto side = reader.bytes(reader.varint(kMaxSideBytes));
  if (!reader.ok()) return corrupt;
  head.side.assign(side.begin(), side.end());
  body = body.subspan(reader.position());
  return head;
}

}  // namespace quern::checkpoint
