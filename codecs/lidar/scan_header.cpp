#include "codecs/lidar/scan_header.h"

#include "codecs/lidar/prediction/expected_sites.h"
#include "kernels/common/bits.h"
#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::codec::lidar {
namespace {

constexpr unsigned kTypeShift = 2;
constexpr std::uint8_t kCentredFlag = 0x10;
constexpr std::uint8_t kRaysFlag = 0x20;
constexpr std::uint8_t kWholeUnitsFlag = 0x40;
constexpr std::uint8_t kPredictedFlag = 0x80;
constexpr std::int64_t kMostOrigin = INT64_C(1) << 41;
constexpr std::uint64_t kMostSpacing = kMostMaxError;

void put_part(Writer& out, const PartEntry& part) {
  out.varint(part.bytes);
  out.u32(part.check);
}
Status read_part(Reader& in, PartEntry& part) {
  QUERN_ASSIGN_OR_RETURN(part.bytes, in.varint());
  QUERN_ASSIGN_OR_RETURN(part.check, in.u32());
  return {};
}

void put_block(Writer& out, const ScanHeader& header, const BlockEntry& block) {
  for (const std::int64_t at : block.origin) out.varint(kernels::zigzag(static_cast<std::uint64_t>(at)));
  out.u8(static_cast<std::uint8_t>(block.depth));
  out.varint(block.cubes);
  if (header.counted()) out.varint(block.points);
  put_part(out, block.part);
}
Status read_block(Reader& in, const ScanHeader& header, BlockEntry& block) {
  for (std::int64_t& at : block.origin) {
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t folded, in.varint(2 * kMostOrigin));
    at = static_cast<std::int64_t>(kernels::unzigzag(folded));
  }
  QUERN_ASSIGN_OR_RETURN(block.depth, in.u8());
  QUERN_ASSIGN_OR_RETURN(block.cubes, in.varint(kMostPoints));
  if (header.counted()) {
    QUERN_ASSIGN_OR_RETURN(block.points, in.varint(kMostPoints));
  }
  if (block.depth > kMostDepth || block.cubes == 0)
    return Status(StatusCode::corrupt, "a block of a scan has depth {0} and {1} cubes", block.depth,
                  static_cast<std::int64_t>(block.cubes));
  return read_part(in, block.part);
}

Status read_kind(Reader& in, ScanHeader& header) {
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t version, in.u8());
  if (version < kScanVersion || version > kKnowingScanVersion)
    return Status(StatusCode::unsupported_version, "this scan has version {0}; known are 1 to {1}", version,
                  kKnowingScanVersion);
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t kind, in.u8());
  const unsigned mode = kind & 3;
  const unsigned type = kind >> kTypeShift & 3;
  if (mode > 2 || type > 1) return Status(StatusCode::corrupt, "a scan has unknown mode or type ({0})", kind);
  header.mode = static_cast<Mode>(mode);
  header.scale.type = static_cast<CoordinateType>(type);
  header.lattice.centred = (kind & kCentredFlag) != 0;
  header.rays = (kind & kRaysFlag) != 0;
  header.whole_units = (kind & kWholeUnitsFlag) != 0;
  header.predicted = (kind & kPredictedFlag) != 0;
  header.weighed = version >= kWeighedScanVersion;
  header.knowing = version == kKnowingScanVersion;
  if (header.weighed && !header.predicted)
    return Status(StatusCode::corrupt, "a scan of version {0} has no prediction", version);
  return {};
}

Status read_numbers(Reader& in, ScanHeader& header) {
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t per_metre, in.varint((1U << 28) - 1));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t spacing, in.varint(kMostSpacing));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t max_error, in.varint(kMostMaxError));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t achieved, in.varint(kMostMaxError));
  QUERN_ASSIGN_OR_RETURN(header.source_points, in.varint(kMostPoints));
  QUERN_ASSIGN_OR_RETURN(header.points, in.varint(kMostPoints));
  QUERN_ASSIGN_OR_RETURN(header.dropped, in.varint(header.source_points));
  QUERN_ASSIGN_OR_RETURN(header.verbatim, in.varint(header.points));
  if (per_metre == 0 || spacing == 0) return Status(StatusCode::corrupt, "a scan has a scale of 0");
  header.scale.per_metre = static_cast<std::uint32_t>(per_metre);
  header.lattice.spacing = static_cast<std::int64_t>(spacing);
  header.max_error = static_cast<std::uint32_t>(max_error);
  header.achieved_error = static_cast<std::uint32_t>(achieved);
  if (header.predicted) {
    QUERN_ASSIGN_OR_RETURN(header.prediction_check, in.u32());
  }
  return {};
}

Status read_blocks(Reader& in, ScanHeader& header) {
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t blocks, in.varint(std::min<std::uint64_t>(kMostBlocks, in.remaining())));
  if (header.predicted && (blocks == 0 || blocks > kMostExpectingBlocks))
    return Status(StatusCode::corrupt, "a scan of {0} blocks cannot have a prediction",
                  static_cast<std::int64_t>(blocks));
  header.blocks.resize(static_cast<std::size_t>(blocks));
  std::uint64_t cubes = 0;
  std::uint64_t points = 0;
  for (BlockEntry& block : header.blocks) {
    QUERN_RETURN_IF_ERROR(read_block(in, header, block));
    cubes += block.cubes;
    points += block.points;
  }
  if (header.rays ? blocks != 0
                  : cubes > header.points || (header.counted() && points + header.verbatim != header.points))
    return Status(StatusCode::corrupt, "the blocks of a scan do not hold its {0} points",
                  static_cast<std::int64_t>(header.points));
  return {};
}

Status read_columns(Reader& in, ScanHeader& header) {
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t columns, in.varint(kMostColumns));
  header.columns.resize(static_cast<std::size_t>(columns));
  for (ColumnEntry& column : header.columns) {
    QUERN_ASSIGN_OR_RETURN(column.element_bytes, in.u8());
    const unsigned width = column.element_bytes;
    if (width != 1 && width != 2 && width != 4 && width != 8)
      return Status(StatusCode::corrupt, "a column has elements of {0} bytes", width);
    QUERN_RETURN_IF_ERROR(read_part(in, column.part));
  }
  return {};
}

/// The parts fill what follows the header.
Status check_parts(const ScanHeader& header, std::uint64_t room) {
  const auto fits = [&](const PartEntry& part) {
    if (part.bytes > room) return false;
    room -= part.bytes;
    return true;
  };
  bool good = true;
  for (const BlockEntry& block : header.blocks) good = good && fits(block.part);
  good = good && fits(header.order) && fits(header.residuals) && fits(header.verbatim_part);
  for (const ColumnEntry& column : header.columns) good = good && fits(column.part);
  if (!good) return Status(StatusCode::truncated, "a scan ends before its parts do");
  if (room != 0) return Status(StatusCode::trailing_data, "{0} bytes follow a scan", static_cast<std::int64_t>(room));
  return {};
}

}  // namespace

PartEntry entry_of(std::span<const std::uint8_t> part) {
  return {part.size(), static_cast<std::uint32_t>(checksum64(part))};
}

Vector<std::uint8_t> serialize_scan_header(const ScanHeader& header) {
  Vector<std::uint8_t> bytes;
  Writer out(bytes);
  out.u8(header.knowing ? kKnowingScanVersion : header.weighed ? kWeighedScanVersion : kScanVersion);
  out.u8(static_cast<std::uint8_t>(
      static_cast<unsigned>(header.mode) | static_cast<unsigned>(header.scale.type) << kTypeShift |
      (header.lattice.centred ? kCentredFlag : 0) | (header.rays ? kRaysFlag : 0) |
      (header.whole_units ? kWholeUnitsFlag : 0) | (header.predicted ? kPredictedFlag : 0)));
  out.varint(header.scale.per_metre);
  out.varint(static_cast<std::uint64_t>(header.lattice.spacing));
  out.varint(header.max_error);
  out.varint(header.achieved_error);
  out.varint(header.source_points);
  out.varint(header.points);
  out.varint(header.dropped);
  out.varint(header.verbatim);
  if (header.predicted) out.u32(header.prediction_check);
  out.varint(header.blocks.size());
  for (const BlockEntry& block : header.blocks) put_block(out, header, block);
  put_part(out, header.order);
  put_part(out, header.residuals);
  put_part(out, header.verbatim_part);
  out.varint(header.columns.size());
  for (const ColumnEntry& column : header.columns) {
    out.u8(column.element_bytes);
    put_part(out, column.part);
  }
  out.u64(checksum64(bytes));
  return bytes;
}

Result<ScanHeader> parse_scan_header(std::span<const std::uint8_t> stream) {
  Reader in(stream);
  ScanHeader header;
  QUERN_RETURN_IF_ERROR(read_kind(in, header));
  QUERN_RETURN_IF_ERROR(read_numbers(in, header));
  QUERN_RETURN_IF_ERROR(read_blocks(in, header));
  QUERN_RETURN_IF_ERROR(read_part(in, header.order));
  QUERN_RETURN_IF_ERROR(read_part(in, header.residuals));
  QUERN_RETURN_IF_ERROR(read_part(in, header.verbatim_part));
  QUERN_RETURN_IF_ERROR(read_columns(in, header));
  const std::uint64_t expected = checksum64(stream.first(in.position()));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t stored, in.u64());
  if (stored != expected) return Status(StatusCode::checksum_mismatch, "the header of a scan is damaged");
  header.header_bytes = in.position();
  QUERN_RETURN_IF_ERROR(check_parts(header, in.remaining()));
  return header;
}

}  // namespace quern::codec::lidar
