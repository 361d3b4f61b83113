// Stored form of a segment's mask: header bits, classes and verbatim values in one range coder.
#include <algorithm>
#include <exception>
#include <new>
#include <optional>

#include <quern/shape.h>

#include "libcompress/pipeline/mask/level_codec.h"
#include "libcompress/pipeline/mask/mask.h"
#include "libcompress/pipeline/mask/walk_memory.h"

namespace quern::mask {
namespace {

constexpr std::uint64_t kMaxCells = UINT64_C(1) << 48;  // sums of bytes stay far from 64 bits

std::optional<std::uint64_t> cells_of(const Extents& extents) {
  const auto plane = checked_multiply(extents[1], extents[2]);
  if (!plane) return std::nullopt;
  return checked_multiply(extents[0], *plane);
}

using Models = kernels::OwnModels<kernels::MaskModels>;
using Decoder = kernels::RangeDecoder<Models>;

/// Bytes of an encoder at the end of a vector.
class AppendedBytes {
 public:
  explicit AppendedBytes(Vector<std::uint8_t>& out) : out_(out) {}
  void put(std::uint8_t byte) { out_.push_back(byte); }
  void carry() {
    std::size_t i = out_.size();
    while (++out_[--i] == 0) {
    }
  }
  static constexpr bool fits() { return true; }

 private:
  Vector<std::uint8_t>& out_;
};

Status check_for_encoding(const SegmentMask& mask, std::uint64_t cells) {
  const auto bad = [](const char* what) { return Status(StatusCode::invalid_argument, what); };
  if (mask.classes.size() != cells) return bad("mask does not have one class a cell");
  if (mask.specials.size() > kMaxSpecials) return bad("mask has too many special values");
  // In blocks whose counts fit a byte, so that the compiler can count in vectors.
  constexpr std::size_t kBlock = 240;
  std::uint64_t masked = 0, verbatim = 0;
  std::uint8_t nameless = 0;
  const auto last = static_cast<std::uint8_t>(mask.specials.size());
  for (std::size_t at = 0; at < mask.classes.size(); at += kBlock) {
    const std::size_t end = std::min(at + kBlock, mask.classes.size());
    std::uint8_t some = 0, apart = 0;
    for (std::size_t cell = at; cell < end; ++cell) {
      const std::uint8_t c = mask.classes[cell];
      some = static_cast<std::uint8_t>(some + (c != 0));
      apart = static_cast<std::uint8_t>(apart + (c == kVerbatimClass));
      nameless = static_cast<std::uint8_t>(nameless | ((c > last) & (c != kVerbatimClass)));
    }
    masked += some;
    verbatim += apart;
  }
  if (nameless != 0) return bad("mask has a class without a value");
  if (masked != mask.masked || verbatim != mask.verbatim.size()) return bad("mask counts do not agree");
  return {};
}

Status encode_unguarded(const SegmentMask& mask, const Extents& extents, DType dtype, Views views, MaskForm form,
                        Vector<std::uint8_t>& out) {
  if (mask.empty()) return {};
  const auto cells = cells_of(extents);
  if (!cells) return Status(StatusCode::invalid_argument, "extents of a mask overflow");
  QUERN_RETURN_IF_ERROR(check_for_encoding(mask, *cells));
  if (form == MaskForm::levels) return encode_levels(mask, extents, views, dtype, out);
  const kernels::MaskShape shape =
      encoding_shape(extents, views, mask.classes, mask.specials.size(), mask.verbatim.size());
  WalkMemory memory(shape);
  kernels::MaskModels models;
  AppendedBytes sink(out);
  put_view_of(shape.planes, extents, sink);
  kernels::RangeEncoder<Models, AppendedBytes> coder{Models(models), sink};
  kernels::write_mask(
      coder, shape, memory.get(),
      {mask.specials.data(), mask.classes.data(), mask.verbatim.data(), mask.verbatim.size(), dtype_bytes(dtype)});
  return {};
}

/// Why a walk over hostile bytes stopped, or that bytes are left.
Status decode_failure(const Decoder& coder) {
  if (!coder.good()) return Status(StatusCode::truncated, "mask ends too early");
  return Status(StatusCode::corrupt, "mask is not valid");
}

Status view_failure(kernels::MaskDamage damage) {
  if (damage == kernels::MaskDamage::truncated) return Status(StatusCode::truncated, "mask ends too early");
  return Status(StatusCode::corrupt, "mask has rows and planes that its segment cannot have");
}

/// Of memory, for a verbatim cell.
constexpr std::uint64_t kVerbatimBytes = sizeof(std::uint64_t);

Status decode_verbatim(Decoder& coder, const kernels::MaskAlphabet& alphabet, DType dtype, std::uint64_t max_bytes,
                       SegmentMask& mask) {
  const auto count = static_cast<std::uint64_t>(std::count(mask.classes.begin(), mask.classes.end(), kVerbatimClass));
  if (count == 0) return Status(StatusCode::corrupt, "mask announces verbatim values and has none");
  if (count > max_bytes / kVerbatimBytes)
    return Status(StatusCode::memory_limit, "mask needs more memory than allowed");
  mask.verbatim.reserve(count);
  kernels::MaskSymbols symbols(coder, alphabet);
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    before = symbols.verbatim(0, before, dtype_bytes(dtype));
    mask.verbatim.push_back(before);
    if (!coder.good()) return decode_failure(coder);
  }
  return {};
}

Result<SegmentMask> decode_unguarded(std::span<const std::uint8_t> in, const Extents& extents, DType dtype,
                                     std::uint64_t max_bytes, MaskForm most) {
  SegmentMask mask;
  if (in.empty()) return mask;
  const auto cells = cells_of(extents);
  if (!cells || *cells == 0) return Status(StatusCode::corrupt, "mask of a segment without cells");
  if (*cells > kMaxCells) return Status(StatusCode::memory_limit, "mask needs more memory than allowed");
  const kernels::StoredView view =
      kernels::read_view(in.data(), in.size(), kernels::MaskPlanes(extents), most == MaskForm::levels);
  if (view.damage != kernels::MaskDamage::none) return view_failure(view.damage);
  if (view.by_levels)
    return decode_levels(in.subspan(static_cast<std::size_t>(view.bytes)), view.planes, dtype, max_bytes);
  kernels::MaskShape shape(view.planes);
  const std::uint64_t needed = *cells + kernels::MaskWalkSizes(shape).bytes();
  if (needed > max_bytes) return Status(StatusCode::memory_limit, "mask needs more memory than allowed");
  const std::span<const std::uint8_t> coded = in.subspan(static_cast<std::size_t>(view.bytes));
  kernels::MaskModels models;
  Decoder coder{Models(models), coded.data(), coded.size()};
  if (!kernels::code_head(coder, shape.alphabet, shape.reference))
    return Status(StatusCode::corrupt, "mask has a bad number of special values");
  for (unsigned k = 0; k < shape.alphabet.specials; ++k)
    mask.specials.push_back(kernels::code_word(coder, 0, dtype_bytes(dtype)));
  if (!coder.good()) return decode_failure(coder);

  mask.classes.resize(*cells);
  WalkMemory memory(shape);
  kernels::MaskWalk walk(coder, shape, memory.get());
  if (!walk.classes(mask.classes.data())) return decode_failure(coder);
  if (shape.alphabet.has_verbatim)
    QUERN_RETURN_IF_ERROR(decode_verbatim(coder, shape.alphabet, dtype, max_bytes - needed, mask));
  if (!coder.good()) return decode_failure(coder);
  if (coder.has_more()) return Status(StatusCode::trailing_data, "bytes after the end of a mask");
  mask.masked = *cells - static_cast<std::uint64_t>(std::count(mask.classes.begin(), mask.classes.end(), 0));
  if (mask.masked == 0) return Status(StatusCode::corrupt, "mask without special cells");
  return mask;
}

}  // namespace

Status encode_mask(const SegmentMask& mask, const Extents& extents, DType dtype, Vector<std::uint8_t>& out, Views views,
                   MaskForm form) {
  const std::size_t size = out.size();
  try {
    return encode_unguarded(mask, extents, dtype, views, form, out);
  } catch (const std::bad_alloc&) {
    out.resize(size);
    return Status(StatusCode::out_of_memory, "no memory for a mask");
  }
}

bool is_by_levels(std::span<const std::uint8_t> in, const Extents& extents) {
  return kernels::read_view(in.data(), in.size(), kernels::MaskPlanes(extents), true).by_levels;
}

std::uint64_t decode_bytes(const Extents& extents, MaskForm most) {
  const kernels::MaskPlanes planes(extents);
  if (most == MaskForm::levels) return std::max(decode_bytes(extents), most_level_decode_bytes(planes));
  const std::uint64_t own = planes.cells == 0 ? 0 : kernels::MaskWalkSizes(kernels::MaskShape(planes)).bytes();
  return planes.cells * (1 + kVerbatimBytes) + std::max(own, kernels::MaskWalkSizes::bytes_of_views(planes.cells));
}

Result<SegmentMask> decode_mask(std::span<const std::uint8_t> in, const Extents& extents, DType dtype,
                                std::uint64_t max_bytes, MaskForm most) {
  try {
    return decode_unguarded(in, extents, dtype, max_bytes, most);
  } catch (const std::exception&) {
    return Status(StatusCode::out_of_memory, "no memory for a mask");
  }
}

}  // namespace quern::mask
