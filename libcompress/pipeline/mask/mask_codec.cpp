// Stored form of a segment's mask: header bits, classes and verbatim values in one range coder.
#include <algorithm>
#include <exception>
#include <new>
#include <optional>

#include <quern/shape.h>

#include "libcompress/pipeline/mask/mask.h"
#include "libcompress/pipeline/mask/mask_walk.h"

namespace quern::mask {
namespace {

constexpr std::uint64_t kMaxCells = UINT64_C(1) << 48;  // sums of bytes stay far from 64 bits

std::optional<std::uint64_t> cells_of(const Extents& extents) {
  const auto plane = checked_multiply(extents[1], extents[2]);
  if (!plane) return std::nullopt;
  return checked_multiply(extents[0], *plane);
}

template <class Coder>
std::uint64_t code_word(Coder& coder, std::uint64_t value, std::size_t bytes) {
  std::uint64_t result = 0;
  for (std::size_t b = bytes; b-- > 0;) {
    result = (result << 8) | coder.direct(8, static_cast<unsigned>((value >> (8 * b)) & 0xFF));
  }
  return result;
}

std::uint64_t plane_hash(std::span<const std::uint8_t> cells) {
  std::uint64_t hash = UINT64_C(0x9E3779B97F4A7C15);
  std::size_t i = 0;
  for (; i + 8 <= cells.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, cells.data() + i, 8);
    hash = (hash ^ word) * UINT64_C(0xD6E8FEB86659FD93);
    hash ^= hash >> 32;
  }
  for (; i < cells.size(); ++i) hash = (hash ^ cells[i]) * UINT64_C(0xD6E8FEB86659FD93);
  return hash ^ (hash >> 32);
}

/// The distance at which most planes are repeated; 1 unless another is better.
std::uint64_t best_reference(std::span<const std::uint8_t> classes, const Extents& extents) {
  const std::uint64_t planes = extents[0], plane_cells = extents[1] * extents[2];
  if (planes < 3) return 1;
  Vector<std::uint64_t> hashes(planes);
  for (std::uint64_t i = 0; i < planes; ++i) hashes[i] = plane_hash(classes.subspan(i * plane_cells, plane_cells));
  std::uint64_t best = 1, best_equal = 0;
  for (std::uint64_t d = 1; d <= std::min(kMaxReferenceDistance, planes - 1); ++d) {
    std::uint64_t equal = 0;
    for (std::uint64_t i = 1; i < planes; ++i) equal += hashes[i] == hashes[i - (i >= d ? d : 1)];
    if (equal > best_equal) {
      best = d;
      best_equal = equal;
    }
  }
  return best;
}

Status check_for_encoding(const SegmentMask& mask, std::uint64_t cells) {
  const auto bad = [](const char* what) { return Status(StatusCode::invalid_argument, what); };
  if (mask.classes.size() != cells) return bad("mask does not have one class a cell");
  if (mask.specials.size() > kMaxSpecials) return bad("mask has too many special values");
  std::uint64_t masked = 0, verbatim = 0;
  for (const std::uint8_t c : mask.classes) {
    masked += c != 0;
    verbatim += c == kVerbatimClass;
    if (c > mask.specials.size() && c != kVerbatimClass) return bad("mask has a class without a value");
  }
  if (masked != mask.masked || verbatim != mask.verbatim.size()) return bad("mask counts do not agree");
  return {};
}

Status encode_unguarded(const SegmentMask& mask, const Extents& extents, DType dtype, Vector<std::uint8_t>& out) {
  if (mask.empty()) return {};
  const auto cells = cells_of(extents);
  if (!cells) return Status(StatusCode::invalid_argument, "extents of a mask overflow");
  QUERN_RETURN_IF_ERROR(check_for_encoding(mask, *cells));
  WalkShape shape;
  shape.set_extents(extents);
  shape.specials = mask.specials.size();
  shape.has_verbatim = !mask.verbatim.empty();
  shape.reference = best_reference(mask.classes, extents);

  BinaryEncoder coder(out);
  coder.direct(5, static_cast<unsigned>(shape.specials));
  coder.direct(1, shape.has_verbatim);
  coder.direct(6, static_cast<unsigned>(shape.reference - 1));
  for (const std::uint64_t bits : mask.specials) code_word(coder, bits, dtype_bytes(dtype));
  Walk<BinaryEncoder> walk(coder, shape);
  walk.classes(mask.classes);
  for (const std::uint64_t bits : mask.verbatim) walk.verbatim(bits, dtype_bytes(dtype));
  coder.finish();
  return {};
}

/// Why a walk over hostile bytes stopped, or that bytes are left.
Status decode_failure(const BinaryDecoder& coder) {
  if (!coder.in_bounds()) return Status(StatusCode::truncated, "mask ends too early");
  return Status(StatusCode::corrupt, "mask is not valid");
}

/// Of memory, for a verbatim cell.
constexpr std::uint64_t kVerbatimBytes = sizeof(std::uint64_t);

Status decode_verbatim(Walk<BinaryDecoder>& walk, const BinaryDecoder& coder, DType dtype, std::uint64_t max_bytes,
                       SegmentMask& mask) {
  const auto count = static_cast<std::uint64_t>(std::count(mask.classes.begin(), mask.classes.end(), kVerbatimClass));
  if (count == 0) return Status(StatusCode::corrupt, "mask announces verbatim values and has none");
  if (count > max_bytes / kVerbatimBytes)
    return Status(StatusCode::memory_limit, "mask needs more memory than allowed");
  mask.verbatim.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    mask.verbatim.push_back(walk.verbatim(0, dtype_bytes(dtype)));
    if (!coder.in_bounds()) return decode_failure(coder);
  }
  return {};
}

Result<SegmentMask> decode_unguarded(std::span<const std::uint8_t> in, const Extents& extents, DType dtype,
                                     std::uint64_t max_bytes) {
  SegmentMask mask;
  if (in.empty()) return mask;
  const auto cells = cells_of(extents);
  if (!cells || *cells == 0) return Status(StatusCode::corrupt, "mask of a segment without cells");
  WalkShape shape;
  shape.set_extents(extents);
  const std::uint64_t needed = *cells > kMaxCells ? UINT64_MAX : *cells + Walk<BinaryDecoder>::scratch_bytes(shape);
  if (needed > max_bytes) return Status(StatusCode::memory_limit, "mask needs more memory than allowed");
  BinaryDecoder coder(in);
  shape.specials = coder.direct(5);
  shape.has_verbatim = coder.direct(1) != 0;
  shape.reference = coder.direct(6) + 1;
  if (shape.specials > kMaxSpecials || (shape.specials == 0 && !shape.has_verbatim)) {
    return Status(StatusCode::corrupt, "mask has a bad number of special values");
  }
  for (std::size_t k = 0; k < shape.specials; ++k) mask.specials.push_back(code_word(coder, 0, dtype_bytes(dtype)));
  if (!coder.in_bounds()) return decode_failure(coder);

  mask.classes.resize(*cells);
  Walk<BinaryDecoder> walk(coder, shape);
  if (!walk.classes(mask.classes)) return decode_failure(coder);
  if (shape.has_verbatim) QUERN_RETURN_IF_ERROR(decode_verbatim(walk, coder, dtype, max_bytes - needed, mask));
  if (!coder.in_bounds()) return decode_failure(coder);
  if (coder.has_more()) return Status(StatusCode::trailing_data, "bytes after the end of a mask");
  mask.masked = *cells - static_cast<std::uint64_t>(std::count(mask.classes.begin(), mask.classes.end(), 0));
  if (mask.masked == 0) return Status(StatusCode::corrupt, "mask without special cells");
  return mask;
}

}  // namespace

Status encode_mask(const SegmentMask& mask, const Extents& extents, DType dtype, Vector<std::uint8_t>& out) {
  const std::size_t size = out.size();
  try {
    return encode_unguarded(mask, extents, dtype, out);
  } catch (const std::bad_alloc&) {
    out.resize(size);
    return Status(StatusCode::out_of_memory, "no memory for a mask");
  }
}

std::uint64_t decode_bytes(const Extents& extents) {
  WalkShape shape;
  shape.set_extents(extents);
  return extents[0] * extents[1] * extents[2] * (1 + kVerbatimBytes) + Walk<BinaryDecoder>::scratch_bytes(shape);
}

Result<SegmentMask> decode_mask(std::span<const std::uint8_t> in, const Extents& extents, DType dtype,
                                std::uint64_t max_bytes) {
  try {
    return decode_unguarded(in, extents, dtype, max_bytes);
  } catch (const std::exception&) {
    return Status(StatusCode::out_of_memory, "no memory for a mask");
  }
}

}  // namespace quern::mask
