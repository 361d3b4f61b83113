// Level tables as bytes.
#include "libcompress/format/grid/level_table.h"

#include <algorithm>

#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern {
namespace {

/// Reads the entry of one chunk of `size` bytes.
Status read_entry(Reader& reader, std::uint64_t size, unsigned level, ChunkBeginning& out) {
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t count, reader.varint(kMaxLevelCuts));
  // Without cuts the chunk counts as a whole.
  const std::size_t wanted = static_cast<std::size_t>(count - std::min<std::uint64_t>(level, count));
  out.bytes = size;
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t more, reader.varint(size));
    at += more;
    if (more == 0 || at >= size) return Status(StatusCode::corrupt, "the beginnings of a chunk do not grow within it");
    if (i == wanted) out.bytes = at;
  }
  for (std::size_t i = 0; i < std::max<std::uint64_t>(count, 1); ++i) {
    QUERN_ASSIGN_OR_RETURN(const std::uint32_t check, reader.u32());
    if (i == wanted) out.check = check;
  }
  return {};
}

}  // namespace

std::uint32_t level_check(std::span<const std::uint8_t> beginning) {
  return static_cast<std::uint32_t>(checksum64(beginning));
}

void put_level_table(std::span<const ChunkPiece> chunks, std::span<const LevelCuts> cuts, Vector<std::uint8_t>& out) {
  Writer w(out);
  for (std::size_t k = 0; k < chunks.size(); ++k) {
    if (chunks[k].form == ChunkForm::masked) continue;
    w.varint(cuts[k].count);
    for (std::size_t i = 0; i < cuts[k].count; ++i) w.varint(cuts[k].bytes[i] - (i > 0 ? cuts[k].bytes[i - 1] : 0));
    for (std::size_t i = 0; i < cuts[k].count; ++i)
      w.u32(level_check(chunks[k].bytes.first(static_cast<std::size_t>(cuts[k].bytes[i]))));
    if (cuts[k].count == 0) w.u32(level_check(chunks[k].bytes));
  }
}

Status read_level_table(const ParsedSegment& segment, std::uint64_t number, unsigned level,
                        std::array<ChunkBeginning, kMaxSegmentChunks>& out) {
  Reader reader(segment.level_table);
  Status read;
  for (std::size_t k = 0; k < segment.count && read.ok(); ++k) {
    out[k] = {};
    if (segment.chunks[k].form != ChunkForm::masked) read = read_entry(reader, segment.sizes[k], level, out[k]);
  }
  if (read.ok()) read = reader.expect_end();
  if (read.ok()) return {};
  return Status(StatusCode::corrupt, "segment {0}: its level table is not as it should be",
                static_cast<std::int64_t>(number));
}

}  // namespace quern
