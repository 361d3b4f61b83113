// Decoding a chunk from hostile bytes. Every size is compared with what the grid says before anything is written.
#include <algorithm>
#include <bit>

#include "codecs/lossless/byte_planes.h"
#include "codecs/lossless/chunk.h"
#include "codecs/lossless/differences.h"
#include "codecs/lossless/keys.h"
#include "codecs/lossless/section.h"
#include "libcompress/format/zstd_frame.h"

namespace quern::codec::lossless {
namespace {

constexpr Status kCorrupt(StatusCode::corrupt, "lossless chunk is malformed");

std::uint8_t* row_address(const MutableBox3& box, std::size_t z, std::size_t y, std::size_t elem_bytes) {
  return static_cast<std::uint8_t*>(box.data) + (z * box.strides[0] + y * box.strides[1]) * elem_bytes;
}

/// Stored elements to native ones.
void load_elements(const std::uint8_t* in, std::size_t count, std::size_t elem_bytes, std::uint8_t* out) {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(out, in, count * elem_bytes);
  } else {
    for (std::size_t i = 0; i < count; ++i, in += elem_bytes, out += elem_bytes) {
      std::reverse_copy(in, in + elem_bytes, out);
    }
  }
}

void scatter(const std::uint8_t* elements, const RowGrid& grid, std::size_t elem_bytes, const MutableBox3& out) {
  for (std::size_t z = 0; z < grid.planes; ++z) {
    for (std::size_t y = 0; y < grid.rows; ++y, elements += grid.width * elem_bytes) {
      load_elements(elements, grid.width, elem_bytes, row_address(out, z, y, elem_bytes));
    }
  }
}

void fill_constant(const std::uint8_t* element, const RowGrid& grid, std::size_t elem_bytes, const MutableBox3& out) {
  for (std::size_t z = 0; z < grid.planes; ++z) {
    for (std::size_t y = 0; y < grid.rows; ++y) {
      std::uint8_t* row = row_address(out, z, y, elem_bytes);
      for (std::size_t x = 0; x < grid.width; ++x) load_elements(element, 1, elem_bytes, row + x * elem_bytes);
    }
  }
}

template <class U>
class ChunkDecoding {
 public:
  ChunkDecoding(const ChunkSpec& spec, Arena& arena)
      : spec_(spec),
        keys_(arena.take<U>(spec.most.elems())),
        entries_(arena.take<U>(spec.most.elems())),
        row_(arena.take<U>(spec.most.width)),
        section_(arena, spec.most) {}

  /// `in` begins behind the mode byte.
  Status decode(std::span<const std::uint8_t> in, const RowGrid& grid, const MutableBox3& out) {
    if (in.size() < 2) return Status(StatusCode::corrupt, "lossless chunk ends in its head");
    const unsigned width = 8 * static_cast<unsigned>(dtype_bytes(spec_.dtype));
    const unsigned shift = in[0];
    const bool ranked = (in[1] & kDictionaryFlag) != 0;
    const auto packed = static_cast<std::uint8_t>(in[1] & ~kDictionaryFlag);
    if (shift >= width || !Orders::valid(packed)) return kCorrupt;
    in = in.subspan(2);
    unsigned bits = width - shift;
    std::size_t entries = 0;
    if (ranked) {
      QUERN_RETURN_IF_ERROR(read_dictionary(in, grid.elems(), bits, entries));
      bits = std::max(1u, static_cast<unsigned>(std::bit_width(entries - 1)));
    }
    QUERN_RETURN_IF_ERROR(section_.open(in, grid, bits));
    const Orders orders = Orders::unpack(packed);
    for (std::size_t z = 0; z < grid.planes; ++z) {
      for (std::size_t y = 0; y < grid.rows; ++y) {
        U* keys = keys_ + (z * grid.rows + y) * grid.width;
        QUERN_RETURN_IF_ERROR(section_.next_row(keys));
        restore_row(keys_, grid, z, y, orders, low_mask<U>(bits));
        if (ranked && !look_up(keys, grid.width, entries)) return kCorrupt;
        store_row(ranked ? row_ : keys, grid.width, order_of(spec_.dtype), shift, width - shift, width / 8,
                  row_address(out, z, y, width / 8));
      }
    }
    return section_.finish();
  }

 private:
  /// Reads the dictionary and drops it from the front of `in`.
  Status read_dictionary(std::span<const std::uint8_t>& in, std::size_t elems, unsigned bits, std::size_t& entries) {
    if (in.size() < 8) return kCorrupt;
    entries = load_le<std::uint32_t>(in.data());
    const std::size_t bytes = load_le<std::uint32_t>(in.data() + 4);
    if (entries == 0 || entries > elems || bytes > in.size() - 8) return kCorrupt;
    QUERN_RETURN_IF_ERROR(section_.open(in.subspan(8, bytes), RowGrid{1, 1, entries}, bits));
    QUERN_RETURN_IF_ERROR(section_.next_row(entries_));
    QUERN_RETURN_IF_ERROR(section_.finish());
    const U mask = low_mask<U>(bits);
    for (std::size_t i = 1; i < entries; ++i) {
      // The gap is below 2^bits and so is the entry before; an entry past the last key is malformed.
      if (entries_[i] >= mask - entries_[i - 1]) return kCorrupt;
      entries_[i] += entries_[i - 1] + 1;
    }
    in = in.subspan(8 + bytes);
    return {};
  }

  bool look_up(const U* ranks, std::size_t count, std::size_t entries) {
    U highest = 0;
    for (std::size_t x = 0; x < count; ++x) highest = std::max(highest, ranks[x]);
    if (highest >= entries) return false;
    for (std::size_t x = 0; x < count; ++x) row_[x] = entries_[ranks[x]];
    return true;
  }

  ChunkSpec spec_;
  U* keys_;
  U* entries_;
  U* row_;
  SectionDecoder<U> section_;
};

template <class U>
std::size_t scratch_of(const ChunkSpec& spec) {
  Arena arena;
  const ChunkDecoding<U> decoding(spec, arena);
  return arena.used();
}

Status decode_packed(const ChunkSpec& spec, Mode mode, std::span<const std::uint8_t> in, const RowGrid& grid,
                     const MutableBox3& out, std::span<std::uint8_t> scratch) {
  if (spec.zstd_level == 0) return Status(StatusCode::corrupt, "zstd chunk in an array that declares none");
  Arena arena(scratch);
  const std::size_t elem_bytes = dtype_bytes(spec.dtype);
  const std::size_t raw_bytes = grid.elems() * elem_bytes;
  auto* unpacked = arena.take<std::uint8_t>(spec.raw_bytes());
  auto* joined = arena.take<std::uint8_t>(spec.raw_bytes());
  QUERN_RETURN_IF_ERROR(zstd_unpack(in, {unpacked, raw_bytes}));
  if (mode == Mode::zstd_planes) {
    join_planes({unpacked, raw_bytes}, elem_bytes, joined);
    unpacked = joined;
  }
  scatter(unpacked, grid, elem_bytes, out);
  return {};
}

}  // namespace

std::size_t decode_scratch_bytes(const ChunkSpec& spec) {
  const std::size_t coded =
      dtype_bytes(spec.dtype) == 8 ? scratch_of<std::uint64_t>(spec) : scratch_of<std::uint32_t>(spec);
  return std::max(coded, 2 * (spec.raw_bytes() + 64));
}

Status decode_chunk(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& out,
                    std::span<std::uint8_t> scratch) {
  const RowGrid grid{static_cast<std::size_t>(out.extents[0]), static_cast<std::size_t>(out.extents[1]),
                     static_cast<std::size_t>(out.extents[2])};
  if (in.empty()) return Status(StatusCode::corrupt, "lossless chunk is empty");
  const std::size_t elem_bytes = dtype_bytes(spec.dtype);
  const auto mode = static_cast<Mode>(in[0]);
  in = in.subspan(1);
  switch (mode) {
    case Mode::raw:
      if (in.size() != grid.elems() * elem_bytes) return kCorrupt;
      scatter(in.data(), grid, elem_bytes, out);
      return {};
    case Mode::constant:
      if (in.size() != elem_bytes) return kCorrupt;
      fill_constant(in.data(), grid, elem_bytes, out);
      return {};
    case Mode::coded: {
      Arena arena(scratch);
      if (elem_bytes == 8) return ChunkDecoding<std::uint64_t>(spec, arena).decode(in, grid, out);
      return ChunkDecoding<std::uint32_t>(spec, arena).decode(in, grid, out);
    }
    case Mode::zstd:
    case Mode::zstd_planes: return decode_packed(spec, mode, in, grid, out, scratch);
  }
  return Status(StatusCode::corrupt, "lossless chunk of an unknown mode");
}

}  // namespace quern::codec::lossless
