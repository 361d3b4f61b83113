#include "codecs/stencil/reference_chunk.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "codecs/stencil/exceptions.h"
#include "codecs/stencil/levels/chunk.h"
#include "codecs/stencil/range.h"
#include "libcompress/core/arena.h"
#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::codec::stencil {
namespace {

constexpr std::size_t kCheckBytes = sizeof(std::uint32_t);

std::size_t box_bytes(DType dtype, std::uint64_t elems) { return static_cast<std::size_t>(elems) * dtype_bytes(dtype); }

/// Puts the elements of a box side by side, and returns them as a box.
ConstBox3 gather_box(DType dtype, const ConstBox3& box, std::uint8_t* to) {
  const std::size_t width = dtype_bytes(dtype);
  const std::size_t row_bytes = static_cast<std::size_t>(box.extents[2]) * width;
  const auto rows = static_cast<std::size_t>(box.extents[0] * box.extents[1]);
  for (std::size_t r = 0; r < rows; ++r)
    std::memcpy(to + r * row_bytes, static_cast<const std::uint8_t*>(box.data) + row_offset(box, r) * width, row_bytes);
  return {to, box.extents, {box.extents[1] * box.extents[2], box.extents[2]}};
}

std::uint32_t reference_check(DType dtype, const ConstBox3& gathered) {
  return static_cast<std::uint32_t>(
      checksum64({static_cast<const std::uint8_t*>(gathered.data), box_bytes(dtype, gathered.elems())}));
}

void put_mode(Mode mode, std::uint32_t check, Writer& writer) {
  writer.u8(static_cast<std::uint8_t>(mode));
  writer.u32(check);
}

/// What is added to, or taken from, a difference: an element of the reference, or 0 for one that is no number.
template <class Element>
double reference_value(typename Element::Bits bits) {
  const double value = Element::value(bits);
  return value - value == 0 ? value : 0;
}

/// Differences are of the elements' own type. Half a spacing is lost when they are rounded to it, and half a spacing
/// when their sums with the reference are.
template <class Element>
class DifferenceWriter {
 public:
  using Bits = typename Element::Bits;

  DifferenceWriter(const EncodeSpec& spec, const ConstBox3& in, const ConstBox3& reference)
      : spec_(spec), in_(in), columns_(static_cast<std::size_t>(in.extents[2])) {
    const auto rows = static_cast<std::size_t>(in.extents[0] * in.extents[1]);
    differences_.resize(rows * columns_);
    Bits last = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      const Bits* const row = static_cast<const Bits*>(in.data) + row_offset(in, r);
      const Bits* const from = static_cast<const Bits*>(reference.data) + row_offset(reference, r);
      const std::uint8_t* const special = special_row(in, r);
      for (std::size_t x = 0; x < columns_; ++x) {
        if (special == nullptr || special[x] == 0) last = take(row[x], from[x], r * columns_ + x);
        differences_[r * columns_ + x] = last;
      }
    }
  }

  /// Appends exceptions and the chunk of differences; false when nothing keeps the bound, or is smaller than `most`.
  Result<bool> write(std::span<std::uint8_t> scratch, std::size_t most, Vector<std::uint8_t>& out) const {
    EncodeSpec inner = spec_;
    inner.bound = inner_bound();
    if (!(inner.bound > spec_.bound / 2) || exceptions_.size() > differences_.size() / 8) return false;
    ConstBox3 box = in_;
    box.data = differences_.data();
    box.strides = {in_.extents[1] * in_.extents[2], in_.extents[2]};
    Vector<std::uint8_t> chunk(max_chunk_bytes(inner));
    QUERN_ASSIGN_OR_RETURN(const std::size_t bytes, encode_chunk(inner, box, chunk, scratch));
    if (chunk[0] > static_cast<std::uint8_t>(Mode::lattice)) return false;
    Writer writer(out);
    write_exceptions(exceptions_, writer);
    if (out.size() + bytes >= most) return false;
    out.insert(out.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(bytes));
    return true;
  }

 private:
  Bits take(Bits bits, Bits reference, std::size_t index) {
    const double value = Element::value(bits);
    if (!(value - value == 0) || (value == 0 && std::signbit(value))) {
      exceptions_.emplace_back(index, bits);
      return 0;
    }
    const double difference = value - reference_value<Element>(reference);
    largest_ = std::max(largest_, std::fabs(value));
    largest_difference_ = std::max(largest_difference_, std::fabs(difference));
    return Element::bits(difference);
  }
  static double half_spacing(double largest, DType dtype) {
    return largest > 0 ? std::ldexp(1.0, std::ilogb(largest) - fraction_bits_of(dtype) - 1) : 0;
  }
  /// What the bound leaves for the differences; 0 where sums might leave the type.
  double inner_bound() const {
    const double most = largest_ + 2 * spec_.bound;
    const double limit = spec_.dtype == DType::f64 ? std::numeric_limits<double>::max() / 4
                                                   : static_cast<double>(std::numeric_limits<float>::max()) / 4;
    if (!(most < limit) || !(largest_difference_ < limit)) return 0;
    // A little more than the two roundings: the sums here are rounded, too.
    const double lost = half_spacing(most, spec_.dtype) + half_spacing(largest_difference_, spec_.dtype);
    return (spec_.bound - lost * (1 + 0x1p-20)) * (1 - 0x1p-40);
  }

  const EncodeSpec& spec_;
  const ConstBox3& in_;
  std::size_t columns_;
  Vector<Bits> differences_;
  Vector<std::pair<std::uint64_t, Bits>> exceptions_;
  double largest_ = 0;
  double largest_difference_ = 0;
};

/// Writes the chunk in levels beside the reference; no bytes when that is no smaller than `most`.
template <class Element>
Result<bool> write_levels_beside(const EncodeSpec& spec, const ConstBox3& in, const ConstBox3& reference,
                                 std::span<std::uint8_t> scratch, std::size_t most, Vector<std::uint8_t>& out) {
  const ChunkRange range = chunk_range<Element>(in, spec.dtype, spec.bound, *spec.kernels, {&in, 1});
  PredictionFormat plain;
  if (range.ordinary == 0 || !choose_format(range, spec.dtype, spec.bound, plain)) return false;
  const LevelsValueFormat format = limited_levels_format(range, plain, in.special != nullptr);
  const std::size_t head = out.size();
  out.resize(head + max_chunk_bytes(spec));
  QUERN_ASSIGN_OR_RETURN(const std::size_t bytes,
                         encode_levels_after(spec, in, reference, format, narrow_values(range, format, spec.tightening),
                                             std::span(out).subspan(head), scratch));
  out.resize(head + bytes);
  return bytes != 0 && out.size() < most;
}

bool has_differences(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

/// Calls f(Element{}) for the types that have differences.
template <class F>
auto with_difference_element(DType dtype, F&& f) {
  return dtype == DType::f64 ? f(F64{}) : f(F32{});
}

Status decode_differences(const ChunkSpec& spec, std::span<const std::uint8_t> in, const ConstBox3& reference,
                          const MutableBox3& out, std::span<std::uint8_t> scratch) {
  if (!has_differences(spec.dtype))
    return Status(StatusCode::corrupt, "stencil: elements of this type have no differences");
  return with_difference_element(spec.dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    using Bits = typename Element::Bits;
    Reader reader(in);
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t exceptions, reader.varint(out.elems()));
    const Reader exceptions_at = reader;
    QUERN_RETURN_IF_ERROR(check_exceptions<Bits>(reader, exceptions, out.elems()));
    const auto chunk = in.last(reader.remaining());
    if (chunk.empty() || chunk[0] > static_cast<std::uint8_t>(Mode::lattice))
      return Status(StatusCode::corrupt, "stencil: a chunk of differences holds no chunk of them");
    QUERN_RETURN_IF_ERROR(decode_chunk(spec, chunk, out, scratch));
    const auto rows = static_cast<std::size_t>(out.extents[0] * out.extents[1]);
    for (std::size_t r = 0; r < rows; ++r) {
      Bits* const row = static_cast<Bits*>(out.data) + row_offset(out, r);
      const Bits* const from = static_cast<const Bits*>(reference.data) + row_offset(reference, r);
      // A sum of zeros is the positive one.
      for (std::size_t x = 0; x < out.extents[2]; ++x)
        row[x] = Element::bits(reference_value<Element>(from[x]) + Element::value(row[x]) + 0.0);
    }
    Reader again = exceptions_at;
    return put_exceptions<Bits>(again, exceptions, out.elems(), out);
  });
}

}  // namespace

Status missing_reference(const ReferenceId& reference) {
  return Status(StatusCode::reference_missing,
                "the stream was predicted from the array whose values have the hash {0.x}; it is missing, or has other "
                "values now",
                static_cast<std::int64_t>(reference.hash));
}

std::size_t encode_beside_scratch_bytes(const EncodeSpec& spec) {
  return std::max(encode_scratch_bytes(spec), levels_after_encode_scratch_bytes(spec));
}

Result<std::size_t> encode_chunk_beside(const EncodeSpec& spec, const ConstBox3& in, const ConstBox3& reference,
                                        std::span<std::uint8_t> out, std::span<std::uint8_t> scratch) {
  QUERN_ASSIGN_OR_RETURN(std::size_t best, encode_chunk(spec, in, out, scratch));
  if (out[0] == static_cast<std::uint8_t>(Mode::constant) || best <= 1 + kCheckBytes) return best;
  Vector<std::uint8_t> gathered(box_bytes(spec.dtype, in.elems()));
  const ConstBox3 given = gather_box(spec.dtype, reference, gathered.data());
  const std::uint32_t check = reference_check(spec.dtype, given);
  const auto consider = [&](Mode mode, const auto& write) -> Status {
    Vector<std::uint8_t> chunk;
    Writer writer(chunk);
    put_mode(mode, check, writer);
    QUERN_ASSIGN_OR_RETURN(const bool smaller, write(chunk));
    if (!smaller) return {};
    std::memcpy(out.data(), chunk.data(), chunk.size());
    best = chunk.size();
    return {};
  };
  QUERN_RETURN_IF_ERROR(consider(Mode::beside, [&](Vector<std::uint8_t>& chunk) {
    return with_element(spec.dtype, [&](auto element) {
      return write_levels_beside<decltype(element)>(spec, in, given, scratch, best, chunk);
    });
  }));
  // In levels the fit has found the weight of the reference, which differences take for 1.
  if (has_differences(spec.dtype) && !spec.form.levels)
    QUERN_RETURN_IF_ERROR(consider(Mode::differences, [&](Vector<std::uint8_t>& chunk) {
      return with_difference_element(spec.dtype, [&](auto element) {
        return DifferenceWriter<decltype(element)>(spec, in, given).write(scratch, best, chunk);
      });
    }));
  return best;
}

std::size_t decode_beside_scratch_bytes(const ChunkSpec& spec) {
  Arena arena(nullptr);
  static_cast<void>(arena.take<std::uint8_t>(spec.raw_bytes()));
  return arena.used() + std::max(decode_scratch_bytes(spec), levels_after_decode_scratch_bytes(spec));
}

Status decode_chunk_beside(const ChunkSpec& spec, std::span<const std::uint8_t> in, const ConstBox3& reference,
                           const MutableBox3& out, std::span<std::uint8_t> scratch) {
  const std::uint8_t mode = in.empty() ? 0 : in[0];
  const bool differences = mode == static_cast<std::uint8_t>(Mode::differences);
  if (!differences && mode != static_cast<std::uint8_t>(Mode::beside)) return decode_chunk(spec, in, out, scratch);
  Arena arena(scratch.data());
  std::uint8_t* const room = arena.take<std::uint8_t>(box_bytes(spec.dtype, out.elems()));
  if (arena.used() > scratch.size()) return Status(StatusCode::internal, "stencil: scratch is too small for a chunk");
  Reader reader(in.subspan(1));
  QUERN_ASSIGN_OR_RETURN(const std::uint32_t check, reader.u32());
  const ConstBox3 given = gather_box(spec.dtype, reference, room);
  if (reference_check(spec.dtype, given) != check)
    return Status(StatusCode::reference_missing,
                  "a chunk was predicted from other values than the step before has here");
  const auto content = in.subspan(1 + kCheckBytes);
  const auto rest = scratch.subspan(arena.used());
  return differences ? decode_differences(spec, content, given, out, rest)
                     : decode_levels_after(spec, content, given, out, rest);
}

}  // namespace quern::codec::stencil
