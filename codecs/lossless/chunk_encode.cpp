// Encoding a chunk: keys, choice of differencing and dictionary on integer costs, then the smallest stored form.
#include <algorithm>
#include <bit>

#include "codecs/lossless/byte_planes.h"
#include "codecs/lossless/chunk.h"
#include "codecs/lossless/dictionary.h"
#include "codecs/lossless/differences.h"
#include "codecs/lossless/keys.h"
#include "codecs/lossless/section.h"
#include "libcompress/format/zstd_frame.h"

namespace quern::codec::lossless {
namespace {

// One element in so many decides on a chunk's differencing, and on the layout.
constexpr unsigned kCodingThinning = 16;
constexpr unsigned kEstimateThinning = 64;

/// All memory one call needs, and the steps that share it.
template <class U>
class ChunkEncoding {
 public:
  ChunkEncoding(const ChunkSpec& spec, Arena& arena)
      : spec_(spec),
        keys_(arena.take<U>(spec.most.elems())),
        ranks_(arena.take<U>(spec.most.elems())),
        folded_(arena.take<U>(spec.most.elems())),
        rows_(arena.take<U>(3 * (spec.most.width + 2))),
        section_(arena, spec.most),
        dictionary_(arena, spec.most.elems()) {}

  void load(const ConstBox3& in) {
    grid_ = {static_cast<std::size_t>(in.extents[0]), static_cast<std::size_t>(in.extents[1]),
             static_cast<std::size_t>(in.extents[2])};
    box_to_patterns(in, dtype_bytes(spec_.dtype), keys_);
    U any = 0;
    U differs = 0;
    for (std::size_t i = 0; i < grid_.elems(); ++i) {
      any |= keys_[i];
      differs |= keys_[i] ^ keys_[0];
    }
    constant_ = differs == 0;
    shift_ = constant_ ? 0 : static_cast<unsigned>(std::countr_zero(any));
    bits_ = 8 * static_cast<unsigned>(dtype_bytes(spec_.dtype)) - shift_;
  }

  bool constant() const { return constant_; }
  const U* patterns() const { return keys_; }
  std::size_t elems() const { return grid_.elems(); }

  /// Codes the chunk if that takes fewer than `limit` bytes; 0 if not. Uses up the patterns.
  std::size_t code(std::uint8_t* out, std::size_t limit) {
    patterns_to_keys(keys_, grid_.elems(), order_of(spec_.dtype), shift_, bits_);
    const OrdersChoice plain = choose_orders(keys_, grid_, bits_, kCodingThinning, rows_);
    if (dictionary_.build(keys_, grid_.elems(), bits_)) {
      const std::size_t written = code_ranks(plain, out, limit);
      if (written > 0) return written;
    }
    return code_values(keys_, bits_, plain.orders, 0, out, limit);
  }

  /// Turns the patterns back from the keys.
  void restore_patterns() {
    const std::size_t bytes = dtype_bytes(spec_.dtype);
    auto* raw = reinterpret_cast<std::uint8_t*>(folded_);
    store_row(keys_, grid_.elems(), order_of(spec_.dtype), shift_, bits_, bytes, raw);
    box_to_patterns(ConstBox3{raw, {1, 1, grid_.elems()}, {0, 0}}, bytes, keys_);
  }

  std::uint64_t estimate() {
    if (constant_) return 0;
    patterns_to_keys(keys_, grid_.elems(), order_of(spec_.dtype), shift_, bits_);
    const OrdersChoice choice = choose_orders(keys_, grid_, bits_, kEstimateThinning, rows_);
    return choice.cost * 256 / choice.sampled;
  }

 private:
  /// Estimated bits of the whole chunk from a sample's.
  std::uint64_t scaled(const OrdersChoice& choice) const { return choice.cost * grid_.elems() / choice.sampled; }

  /// Cost of the gaps in folded_ as tokens and raw bits, in bits.
  std::uint64_t gap_cost() const {
    Counts counts{};
    std::uint64_t raw = 0;
    for (std::size_t i = 0; i < dictionary_.size(); ++i) {
      unsigned count = 0;
      ++counts[token_of(folded_[i], count)];
      raw += count;
    }
    return raw + (entropy_cost(counts) >> 12);
  }

  std::size_t code_ranks(const OrdersChoice& plain, std::uint8_t* out, std::size_t limit) {
    const std::size_t size = dictionary_.size();
    const unsigned rank_bits = std::max(1u, static_cast<unsigned>(std::bit_width(size - 1)));
    dictionary_.ranks(keys_, grid_.elems(), ranks_);
    const OrdersChoice choice = choose_orders(ranks_, grid_, rank_bits, kCodingThinning, rows_);
    dictionary_.gaps(folded_);
    if (scaled(choice) + gap_cost() >= scaled(plain)) return 0;
    constexpr std::size_t kHead = 11;  // mode, shift, orders, entries, bytes
    const std::size_t dictionary_bytes = section_.encode(folded_, RowGrid{1, 1, size});
    if (kHead + dictionary_bytes >= limit) return 0;
    store_le(out + 3, static_cast<std::uint32_t>(size));
    store_le(out + 7, static_cast<std::uint32_t>(dictionary_bytes));
    section_.write(out + kHead);
    return code_values(ranks_, rank_bits, choice.orders, kHead - 3 + dictionary_bytes, out, limit);
  }

  /// Writes the head and, behind `between` bytes that are there already, the section of `values`.
  std::size_t code_values(const U* values, unsigned bits, const Orders& orders, std::size_t between, std::uint8_t* out,
                          std::size_t limit) {
    difference_all(values, grid_, orders, bits, rows_, folded_);
    const std::size_t begin = 3 + between;
    const std::size_t bytes = section_.encode(folded_, grid_);
    if (begin + bytes >= limit) return 0;
    out[0] = static_cast<std::uint8_t>(Mode::coded);
    out[1] = static_cast<std::uint8_t>(shift_);
    out[2] = static_cast<std::uint8_t>(orders.packed() | (between > 0 ? kDictionaryFlag : 0));
    section_.write(out + begin);
    return begin + bytes;
  }

  ChunkSpec spec_;
  U* keys_;
  U* ranks_;
  U* folded_;
  U* rows_;
  SectionEncoder<U> section_;
  Dictionary<U> dictionary_;
  RowGrid grid_;
  unsigned shift_ = 0;
  unsigned bits_ = 0;
  bool constant_ = false;
};

template <class U>
void store_elements(const U* patterns, std::size_t count, std::size_t elem_bytes, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    switch (elem_bytes) {
      case 1: out[i] = static_cast<std::uint8_t>(patterns[i]); break;
      case 2: store_le(out + 2 * i, static_cast<std::uint16_t>(patterns[i])); break;
      case 4: store_le(out + 4 * i, static_cast<std::uint32_t>(patterns[i])); break;
      default: store_le(out + 8 * i, static_cast<std::uint64_t>(patterns[i])); break;
    }
  }
}

/// Replaces the `best` bytes in `out` (0: none yet) by a zstd form where one is smaller; returns what is there then.
template <class U>
Result<std::size_t> pack_if_smaller(const ChunkSpec& spec, const ChunkEncoding<U>& encoding, std::size_t best,
                                    std::span<std::uint8_t> out, Arena& arena) {
  const std::size_t elem_bytes = dtype_bytes(spec.dtype);
  const std::size_t raw_bytes = encoding.elems() * elem_bytes;
  auto* elements = arena.take<std::uint8_t>(spec.raw_bytes());
  auto* planes = arena.take<std::uint8_t>(spec.raw_bytes());
  auto* packed = arena.take<std::uint8_t>(spec.raw_bytes());
  store_elements(encoding.patterns(), encoding.elems(), elem_bytes, elements);
  split_planes({elements, raw_bytes}, elem_bytes, planes);
  for (const Mode mode : {Mode::zstd, Mode::zstd_planes}) {
    const std::uint8_t* data = mode == Mode::zstd ? elements : planes;
    QUERN_ASSIGN_OR_RETURN(const std::size_t bytes, zstd_pack({data, raw_bytes}, spec.zstd_level, {packed, raw_bytes}));
    if (bytes == 0 || 1 + bytes >= (best > 0 ? best : 1 + raw_bytes)) continue;
    out[0] = static_cast<std::uint8_t>(mode);
    std::memcpy(out.data() + 1, packed, bytes);
    best = 1 + bytes;
  }
  return best;
}

template <class U>
Result<std::size_t> encode_as(const ChunkSpec& spec, const ConstBox3& in, std::span<std::uint8_t> out, Arena& arena) {
  ChunkEncoding<U> encoding(spec, arena);
  const std::size_t elem_bytes = dtype_bytes(spec.dtype);
  encoding.load(in);
  if (encoding.constant()) {
    out[0] = static_cast<std::uint8_t>(Mode::constant);
    store_elements(encoding.patterns(), 1, elem_bytes, out.data() + 1);
    return 1 + elem_bytes;
  }
  const std::size_t raw_bytes = encoding.elems() * elem_bytes;
  std::size_t best = encoding.code(out.data(), 1 + raw_bytes);
  if (best > 0 && spec.zstd_level == 0) return best;
  encoding.restore_patterns();
  if (spec.zstd_level > 0) {
    QUERN_ASSIGN_OR_RETURN(best, pack_if_smaller(spec, encoding, best, out, arena));
  }
  if (best > 0) return best;
  out[0] = static_cast<std::uint8_t>(Mode::raw);
  store_elements(encoding.patterns(), encoding.elems(), elem_bytes, out.data() + 1);
  return 1 + raw_bytes;
}

/// Memory that encode_as takes, counted by an arena without memory.
template <class U>
std::size_t scratch_of(const ChunkSpec& spec) {
  Arena arena;
  const ChunkEncoding<U> encoding(spec, arena);
  if (spec.zstd_level > 0) {
    arena.take<std::uint8_t>(spec.raw_bytes());
    arena.take<std::uint8_t>(spec.raw_bytes());
    arena.take<std::uint8_t>(spec.raw_bytes());
  }
  return arena.used();
}

bool wide(const ChunkSpec& spec) { return dtype_bytes(spec.dtype) == 8; }

}  // namespace

std::size_t encode_scratch_bytes(const ChunkSpec& spec) {
  return wide(spec) ? scratch_of<std::uint64_t>(spec) : scratch_of<std::uint32_t>(spec);
}

Result<std::size_t> encode_chunk(const ChunkSpec& spec, const ConstBox3& in, std::span<std::uint8_t> out,
                                 std::span<std::uint8_t> scratch) {
  Arena arena(scratch);
  return wide(spec) ? encode_as<std::uint64_t>(spec, in, out, arena) : encode_as<std::uint32_t>(spec, in, out, arena);
}

std::uint64_t estimate_chunk(const ChunkSpec& spec, const ConstBox3& in, std::span<std::uint8_t> scratch) {
  Arena arena(scratch);
  if (wide(spec)) {
    ChunkEncoding<std::uint64_t> encoding(spec, arena);
    encoding.load(in);
    return encoding.estimate();
  }
  ChunkEncoding<std::uint32_t> encoding(spec, arena);
  encoding.load(in);
  return encoding.estimate();
}

}  // namespace quern::codec::lossless
