// The steps of encoding a chunk before and after its points are coded: the same ones whether a CPU codes them or a
// device.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include <quern/codec.h>
#include <quern/memory.h>

#include "codecs/interp/chunk.h"
#include "codecs/interp/elements.h"
#include "codecs/interp/exceptions.h"
#include "codecs/interp/head.h"
#include "codecs/interp/value_format.h"
#include "coding/distribution_fit.h"
#include "coding/stream_writer.h"
#include "coding/token_cost.h"
#include "libcompress/format/writer.h"

namespace quern::codec::interp {

/// Rows of the elements of a chunk.
template <class Element>
class ChunkRows {
 public:
  using Bits = typename Element::Bits;

  explicit ChunkRows(const ConstBox3& in) : in_(in) {}
  std::size_t count() const { return static_cast<std::size_t>(in_.extents[0] * in_.extents[1]); }
  std::size_t columns() const { return static_cast<std::size_t>(in_.extents[2]); }
  const Bits* operator[](std::size_t r) const { return static_cast<const Bits*>(in_.data) + row_offset(in_, r); }
  const std::uint8_t* special(std::size_t r) const { return special_row(in_, r); }

  /// True when all elements have the same bits.
  bool constant() const {
    const Bits first = *(*this)[0];
    for (std::size_t r = 0; r < count(); ++r)
      for (std::size_t x = 0; x < columns(); ++x)
        if ((*this)[r][x] != first) return false;
    return true;
  }
  /// The format of the chunk's values; none when no codes serve them.
  std::optional<ChunkFormat> format(const ChunkSpec& spec) const {
    ChunkRange range;
    for (std::size_t r = 0; r < count(); ++r)
      add_range<Element>(*spec.kernels, (*this)[r], special(r), columns(), range);
    ChunkFormat format;
    if (!choose_format(range, spec.dtype, spec.bound, format)) return std::nullopt;
    return format;
  }

 private:
  const ConstBox3& in_;
};

/// How many streams pay for a section, as their logarithm, by the tokens of its symbols.
inline unsigned section_stream_bits(const coding::TokenCounts& tokens) {
  return coding::choose_stream_bits(coding::token_cost(tokens) >> 15);
}

/// Sets the distributions for the symbols of a chunk. False when it is no smaller than its elements then. Changes the
/// counts.
inline bool choose_distributions(coding::BinCounts& counts, std::size_t exception_bytes, std::size_t raw_bytes,
                                 ChunkHead& head) {
  if (exception_bytes >= raw_bytes) return false;
  const std::uint64_t bits = coding::fit_distributions(counts, head.distributions) >> 12;
  return bits / 8 + exception_bytes < raw_bytes;
}

/// What a coded chunk begins with, up to the sizes of sections.
template <class Bits>
Vector<std::uint8_t> begin_chunk(const ChunkHead& head, const kernels::InterpTile& tile, bool narrow,
                                 const Exceptions<Bits>& exceptions) {
  Vector<std::uint8_t> bytes;
  bytes.push_back(static_cast<std::uint8_t>(narrow ? Mode::narrow : Mode::wide));
  write_head(head, tile, bytes);
  write_exceptions(exceptions, bytes);
  return bytes;
}

/// Writes the chunk, of which `head` is what comes before the streams. Returns the count of bytes, 0 where it is larger
/// than its elements.
inline std::size_t end_chunk(const Vector<std::uint8_t>& head, const Vector<std::uint8_t>& payload,
                             std::size_t raw_bytes, std::span<std::uint8_t> out) {
  if (head.size() + payload.size() > std::min(raw_bytes, out.size())) return 0;
  std::memcpy(out.data(), head.data(), head.size());
  std::memcpy(out.data() + head.size(), payload.data(), payload.size());
  return head.size() + payload.size();
}

/// Words that the streams of a section share while a CPU writes it. No section is larger than the elements.
inline std::size_t stream_room_words(std::size_t raw_bytes) { return raw_bytes / 2 + coding::kSpareWords; }

}  // namespace quern::codec::interp
