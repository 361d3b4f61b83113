// The bytes of a part: a header of 4 KiB, records aligned to 8 bytes, an index of them, and a trailer of 24 bytes. Each
// record says what it is and carries a checksum, so that a part can be read without its index and without a manifest.
// docs/format-checkpoint.md is the specification.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "checkpoint/safetensors/element_names.h"
#include "libcompress/core/buffer.h"
#include "libcompress/format/bytes.h"

namespace quern::checkpoint {

inline constexpr std::size_t kPartHeaderBytes = 4096;
inline constexpr std::size_t kRecordHeaderBytes = 32;
inline constexpr std::size_t kPartTrailerBytes = 24;
inline constexpr std::size_t kRecordAlignment = 8;
inline constexpr std::uint64_t kMaxRecordBytes = UINT64_C(1) << 30;  ///< of a body
inline constexpr std::uint64_t kMaxIndexBytes = UINT64_C(1) << 30;
inline constexpr std::uint16_t kPartMajor = 0;
inline constexpr std::uint16_t kPartMinor = 1;

constexpr std::uint64_t align_record(std::uint64_t bytes) {
  return (bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
}

enum class RecordKind : std::uint8_t {
  tensor = 1,  ///< name, type, shape, side, and the tensor's first chunk
  chunk = 2,   ///< a further chunk
  blob = 3,    ///< a piece of opaque bytes
};

/// A record as header and index tell it.
struct Record {
  RecordKind kind = RecordKind::chunk;
  std::uint8_t mode = 0;     ///< codec::tensor::Mode; 0 for blobs
  std::uint32_t tensor = 0;  ///< which tensor or blob of this part
  std::uint32_t chunk = 0;
  std::uint32_t raw_bytes = 0;   ///< decoded bytes of the chunk
  std::uint32_t body_bytes = 0;  ///< what lies behind the record's header
  std::uint64_t offset = 0;      ///< of its header in the part; not stored

  std::uint64_t end() const { return offset + align_record(kRecordHeaderBytes + std::uint64_t{body_bytes}); }
  bool same_as(const Record& other) const {
    return kind == other.kind && mode == other.mode && tensor == other.tensor && chunk == other.chunk &&
           raw_bytes == other.raw_bytes && body_bytes == other.body_bytes;
  }
};

/// What a part says of itself.
struct PartIdentity {
  String checkpoint;
  std::uint64_t step = 0;
  std::uint32_t number = 0;
};

/// What a manifest says of a part.
struct PartInfo {
  std::uint64_t bytes = 0;
  std::uint64_t index_checksum = 0;
};

/// What stands in the body of a tensor's first record before the first chunk.
struct TensorHead {
  String name;
  TensorDescription what;  ///< of the piece that is stored
  bool is_piece = false;
  Shape whole;  ///< is_piece: of the tensor it is cut from
  Box box;      ///< is_piece: where it was cut
  Vector<std::uint8_t> side;
};

void write_part_header(const PartIdentity& identity, std::span<std::uint8_t, kPartHeaderBytes> out);
/// Fails when a byte of the header is not as it must be.
Result<PartIdentity> read_part_header(std::span<const std::uint8_t, kPartHeaderBytes> bytes);

void write_record_header(const Record& record, std::span<const std::uint8_t> body,
                         std::span<std::uint8_t, kRecordHeaderBytes> out);
/// Reads what can be told from the header alone; true when it may be one. `checksum` is that of the body.
bool read_record_header(std::span<const std::uint8_t, kRecordHeaderBytes> bytes, Record& record,
                        std::uint64_t& checksum);
/// What the checksum of a record with that body is.
std::uint64_t record_checksum(const Record& record, std::span<const std::uint8_t> body);

/// Index and trailer of records in order.
Vector<std::uint8_t> make_index(std::span<const Record> records);
std::uint64_t index_checksum(std::span<const std::uint8_t> index);
/// Records with their offsets; they must fill the part from its header to `index_begin`.
Result<Vector<Record>> read_index(std::span<const std::uint8_t> index, std::uint64_t index_begin);

struct PartTrailer {
  std::uint64_t index_checksum = 0;
  std::uint64_t index_bytes = 0;
};
void write_part_trailer(const PartTrailer& trailer, std::span<std::uint8_t, kPartTrailerBytes> out);
Result<PartTrailer> read_part_trailer(std::span<const std::uint8_t, kPartTrailerBytes> bytes);

Vector<std::uint8_t> make_tensor_head(const TensorHead& head);
/// Reads the head at the start of `body` and leaves the first chunk.
Result<TensorHead> read_tensor_head(std::span<const std::uint8_t>& body);

}  // namespace quern::checkpoint
