// A chunk to bytes.
#include <algorithm>
#include <cstring>
#include <utility>

#include "codecs/interp/chunk.h"
#include "codecs/interp/chunk_stages.h"
#include "codecs/interp/elements.h"
#include "codecs/interp/exceptions.h"
#include "codecs/interp/head.h"
#include "codecs/interp/level_coder.h"
#include "coding/stream_writer.h"
#include "coding/symbol_counts.h"
#include "coding/token_tables.h"
#include "libcompress/format/writer.h"

namespace quern::codec::interp {
namespace {

template <class Element, class Word>
class ChunkWriter {
 public:
  using Bits = typename Element::Bits;

  ChunkWriter(const ChunkSpec& spec, const ConstBox3& in, Arena& arena)
      : spec_(spec),
        in_(in),
        rows_(in),
        extents_(chunk_extents(in.extents)),
        coder_(arena, spec, extents_),
        counts_(arena),
        entries_(coding::take_entries(arena)),
        row_(arena.take<Word>(extents_[2])),
        back_(arena.take<Bits>(extents_[2])),
        room_(arena.take<std::uint16_t>(stream_room_words(coder_.elems() * sizeof(Bits)))) {}

  /// Returns the count of bytes, 0 where the chunk is no smaller than its elements.
  std::size_t write(const ChunkFormat& format, std::span<std::uint8_t> out) {
    head_.values = format.values;
    code();
    find_exceptions();
    const std::size_t raw_bytes = coder_.elems() * sizeof(Bits);
    coding::BinCounts bins{};
    std::array<unsigned, kOwnSections + 1> stream_bits{};
    const unsigned sections = section_count(spec_.tile);
    for (unsigned s = 0; s < sections; ++s) {
      counts_.clear();
      counts_.add(coder_.symbols + begin(s), begin(s + 1) - begin(s));
      stream_bits[s] = section_stream_bits(counts_.add_to(bins));
    }
    if (!choose_distributions(bins, exceptions_.size() * exception_bytes<Bits>(), raw_bytes, head_)) return 0;
    coding::fill_token_entries(head_.distributions, entries_);
    Vector<std::uint8_t> head = begin_chunk(head_, spec_.tile, format.narrow, exceptions_);
    Writer writer(head);
    Vector<std::uint8_t> payload;
    for (unsigned s = 0; s < sections; ++s) {
      const std::size_t before = payload.size();
      if (!write_section(s, stream_bits[s], payload, raw_bytes)) return 0;
      if (s + 1 < sections) writer.varint(payload.size() - before);
    }
    return end_chunk(head, payload, raw_bytes, out);
  }

 private:
  void code() {
    for (std::size_t r = 0; r < extents_[0] * extents_[1]; ++r) {
      to_units<Element>(*spec_.kernels, rows_[r], extents_[2], head_.values, coder_.targets + r * extents_[2]);
      if (in_.special != nullptr) std::memcpy(coder_.special + r * extents_[2], rows_.special(r), extents_[2]);
    }
    coder_.start(head_.values.fraction_bits, in_.special != nullptr);
    unsigned open = spec_.tile.levels();
    for_classes(spec_.tile, [&](unsigned level, unsigned c) {
      if (level != open) coder_.open(level);
      open = level;
      head_.contexts[level][c - 1] = coder_.code(c, spec_.predictors[level][c - 1]);
    });
  }

  /// The first code of a section.
  std::size_t begin(unsigned section) const {
    if (section == 0) return 0;
    const unsigned sections = section_count(spec_.tile);
    return section == sections ? coder_.elems() : coder_.first(sections - 1 - section);
  }

  void find_exceptions() {
    for (std::size_t r = 0; r < extents_[0] * extents_[1]; ++r) {
      coder_.values({r / extents_[1], r % extents_[1]}, row_);
      to_elements<Element>(*spec_.kernels, row_, extents_[2], head_.values, back_);
      const Bits* const from = rows_[r];
      if (clearly_kept<Element>(*spec_.kernels, from, back_, extents_[2], spec_.bound)) continue;
      const std::uint8_t* const special = rows_.special(r);
      for (std::size_t x = 0; x < extents_[2]; ++x) {
        if ((special != nullptr && special[x] != 0) || kernels::keeps_bound<Element>(from[x], back_[x], spec_.bound))
          continue;
        exceptions_.emplace_back(static_cast<std::uint32_t>(r * extents_[2] + x), from[x]);
      }
    }
  }

  bool write_section(unsigned s, unsigned stream_bits, Vector<std::uint8_t>& out, std::size_t raw_bytes) {
    const std::size_t from = begin(s);
    const std::size_t count = begin(s + 1) - from;
    for (unsigned bits = stream_bits + 1; bits-- > 0;) {
      coding::StreamWriter streams({room_, stream_room_words(raw_bytes)}, bits);
      if (!streams.encode(*spec_.residuals, entries_, coder_.symbols + from, coder_.codes + from, count, 0) ||
          !streams.finish())
        continue;
      Writer writer(out);
      writer.u8(static_cast<std::uint8_t>(bits));
      streams.append_sizes(writer);
      streams.append_words(out);
      return true;
    }
    return false;
  }

  const ChunkSpec& spec_;
  const ConstBox3& in_;
  ChunkRows<Element> rows_;
  Extents extents_;
  LevelCoder<Word> coder_;
  coding::SymbolCounts counts_;
  kernels::ResidualEntries entries_;
  Word* row_;
  Bits* back_;
  std::uint16_t* room_;
  ChunkHead head_;
  Exceptions<Bits> exceptions_;
};

template <class Element>
class Encoder {
 public:
  using Bits = typename Element::Bits;

  Encoder(const ChunkSpec& spec, const ConstBox3& in) : spec_(spec), in_(in), rows_(in) {}

  Result<std::size_t> run(std::span<std::uint8_t> out, std::span<std::uint8_t> scratch) const {
    if (rows_.constant()) {
      out[0] = static_cast<std::uint8_t>(Mode::constant);
      std::memcpy(out.data() + 1, in_.data, sizeof(Bits));
      return 1 + sizeof(Bits);
    }
    std::size_t bytes = 0;
    if (const auto format = rows_.format(spec_)) {
      QUERN_ASSIGN_OR_RETURN(bytes, format->narrow ? coded<std::int32_t>(*format, out, scratch)
                                                   : coded<std::int64_t>(*format, out, scratch));
    }
    return bytes > 0 ? bytes : raw(out);
  }

 private:
  template <class Word>
  Result<std::size_t> coded(const ChunkFormat& format, std::span<std::uint8_t> out,
                            std::span<std::uint8_t> scratch) const {
    Arena arena(scratch.data());
    ChunkWriter<Element, Word> writer(spec_, in_, arena);
    if (arena.used() > scratch.size()) return Status(StatusCode::internal, "interp: scratch is too small for a chunk");
    return writer.write(format, out);
  }
  std::size_t raw(std::span<std::uint8_t> out) const {
    out[0] = static_cast<std::uint8_t>(Mode::raw);
    const std::size_t bytes = rows_.columns() * sizeof(Bits);
    for (std::size_t r = 0; r < rows_.count(); ++r) std::memcpy(out.data() + 1 + r * bytes, rows_[r], bytes);
    return 1 + rows_.count() * bytes;
  }

  const ChunkSpec& spec_;
  const ConstBox3& in_;
  ChunkRows<Element> rows_;
};

}  // namespace

std::size_t encode_scratch_bytes(const ChunkSpec& spec) {
  const ConstBox3 full{nullptr, spec.most};
  return with_element(spec.dtype, [&](auto element) {
    Arena arena(nullptr);
    const ChunkWriter<decltype(element), std::int64_t> writer(spec, full, arena);
    return arena.used() + kScratchSpare;
  });
}

Result<std::size_t> encode_chunk(const ChunkSpec& spec, const ConstBox3& in, std::span<std::uint8_t> out,
                                 std::span<std::uint8_t> scratch) {
  return with_element(spec.dtype, [&](auto element) -> Result<std::size_t> {
    return Encoder<decltype(element)>(spec, in).run(out, scratch);
  });
}

}  // namespace quern::codec::interp
