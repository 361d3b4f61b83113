// Records of MCAP files (mcap.dev/spec): opcodes, and text and bytes with a length before them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <quern/memory.h>
#include <quern/status.h>

#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::lidar::mcap {

inline constexpr std::string_view kMagic("\x89MCAP0\r\n", 8);

enum Opcode : std::uint8_t {
  kHeader = 0x01,
  kFooter = 0x02,
  kSchema = 0x03,
  kChannel = 0x04,
  kMessage = 0x05,
  kChunk = 0x06,
  kMessageIndex = 0x07,
  kChunkIndex = 0x08,
  kStatistics = 0x0B,
  kSummaryOffset = 0x0E,
  kDataEnd = 0x0F,
};

/// Bytes of a record before its content: opcode and length.
inline constexpr std::uint64_t kRecordHead = 9;
/// Of a message's content before its data: channel, sequence, log time, publish time.
inline constexpr std::uint64_t kMessageHead = 22;

struct Record {
  std::uint8_t opcode = 0;
  std::uint64_t offset = 0;  ///< of the content, in the bytes that were walked over
  std::span<const std::uint8_t> content;
};

/// Records one after another.
class Walk {
 public:
  explicit Walk(std::span<const std::uint8_t> bytes, std::uint64_t begin = 0) : bytes_(bytes), at_(begin) {}

  /// Nothing at the end, and where a record is longer than what follows: is_cut() tells.
  std::optional<Record> next() {
    const std::uint64_t rest = bytes_.size() - at_;
    if (rest == 0) return std::nullopt;
    is_cut_ = true;
    if (rest < kRecordHead) return std::nullopt;
    Reader reader(bytes_.subspan(static_cast<std::size_t>(at_), kRecordHead));
    const auto opcode = reader.u8();
    const auto length = reader.u64();
    if (!opcode.ok() || !length.ok() || *length > rest - kRecordHead) return std::nullopt;
    is_cut_ = false;
    Record out{*opcode, at_ + kRecordHead, {}};
    out.content = bytes_.subspan(static_cast<std::size_t>(out.offset), static_cast<std::size_t>(*length));
    at_ = out.offset + *length;
    return out;
  }
  bool is_cut() const { return is_cut_; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::uint64_t at_ = 0;
  bool is_cut_ = false;
};

inline Result<std::string_view> read_text(Reader& reader) {
  QUERN_ASSIGN_OR_RETURN(const auto size, reader.u32());
  QUERN_ASSIGN_OR_RETURN(const auto bytes, reader.bytes(size));
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

inline void write_text(Writer& writer, std::string_view text) {
  writer.u32(static_cast<std::uint32_t>(text.size()));
  writer.bytes({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

}  // namespace quern::lidar::mcap
