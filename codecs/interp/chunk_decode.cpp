// Bytes to a chunk, or to its coarse points. The bytes are hostile: whatever they are, nothing is read or written out of
// bounds.
#include <algorithm>
#include <cstring>

#include "codecs/interp/chunk.h"
#include "codecs/interp/elements.h"
#include "codecs/interp/exceptions.h"
#include "codecs/interp/head.h"
#include "codecs/interp/level_coder.h"
#include "codecs/interp/sections.h"
#include "coding/stream_reader.h"
#include "coding/token_tables.h"
#include "libcompress/format/reader.h"

namespace quern::codec::interp {
namespace {

Status corrupt(const char* text) { return Status(StatusCode::corrupt, text); }

template <class Word>
class LevelDecoder {
 public:
  LevelDecoder(Arena& arena, const ChunkSpec& spec, const Extents& extents)
      : spec_(spec),
        grids_(arena, spec.tile, extents),
        columns_(arena, extents[2]),
        codes_(arena.take<std::int32_t>(extents[2] + kBatch + kRunStep)),
        spread_(arena.take<std::uint32_t>(extents[2] + kBatch + kRunStep)),
        bins_(arena.take<std::uint8_t>(extents[2] + kBatch + kRunStep)),
        tables_(arena.take<kernels::TokenTable>(kernels::kContextBins)) {}

  /// Decodes all levels down to `last`, and those below it in the same section, whose end is checked.
  Status run(const ChunkHead& head, const SectionBytes& sections, unsigned last) {
    coding::ServingTables serving{};
    QUERN_RETURN_IF_ERROR(coding::fill_token_tables(head.distributions, tables_, serving));
    const kernels::ResidualTables tables(tables_, serving);
    fraction_bits_ = head.values.fraction_bits;
    const unsigned top = spec_.tile.levels();
    unsigned level = top + 1;
    for (unsigned s = 0; s <= section_of(spec_.tile, last); ++s) {
      coding::StreamReader reader;
      QUERN_RETURN_IF_ERROR(reader.open(sections.bytes[s]));
      kernels::DecodeStreams streams(reader.used());
      place_ = 0;
      while (level > 0 && section_of(spec_.tile, level - 1) == s) {
        --level;
        if (level == top) {
          anchors(tables, streams);
          continue;
        }
        if (!grids_.adds_points(level)) continue;
        grids_[level].take(grids_[level + 1], *spec_.kernels);
        for (const std::uint8_t c : kernels::kInterpClassOrder)
          if ((c & ~spec_.tile.axes(level)) == 0) class_of(level, c, head.contexts[level][c - 1u], tables, streams);
      }
      if (streams.failed != 0) return corrupt("interp: a stream is too short");
      if (!streams.finished()) return corrupt("interp: a stream does not end where it should");
    }
    return {};
  }
  const LevelGrid<Word>& grid(unsigned level) const { return grids_[level]; }

 private:
  static constexpr std::size_t kBatch = 4096;  ///< codes that are decoded at once, about

  void decode(const kernels::ResidualTables& tables, kernels::DecodeStreams& streams, std::size_t count) {
    spec_.residuals->decode_residuals(streams, tables, bins_, count, place_, codes_);
    place_ += count;
  }

  void anchors(const kernels::ResidualTables& tables, kernels::DecodeStreams& streams) {
    const LevelGrid<Word>& grid = grids_[spec_.tile.levels()];
    const std::size_t columns = grid.shape.points[2];
    for_rows(grid.shape, 0, [&](ClassRow row) {
      std::memset(bins_, static_cast<int>(kernels::kInterpAnchorBin), columns);
      decode(tables, streams, columns);
      Word* const values = grid.values(row, 0);
      std::fill_n(grid.magnitudes(row, 0), columns, std::uint16_t{0});
      const bool first = row.z == 0 && row.y == 0;
      Word last = first ? Word{0} : *grid.values(row_before(row), 0);
      for (std::size_t x = 0; x < columns; ++x)
        values[x] = last = kernels::interp_value(last, codes_[x], fraction_bits_);
    });
  }

  /// Codes of many rows are decoded together; none sees another of its class.
  void class_of(unsigned level, unsigned c, kernels::InterpContext context, const kernels::ResidualTables& tables,
                kernels::DecodeStreams& streams) {
    const LevelGrid<Word>& grid = grids_[level];
    const std::size_t columns = grid.shape.columns(c);
    if (grid.shape.count(c) == 0) return;
    const ClassPredictor<Word> by(grid, c, spec_.predictors[level][c - 1], columns_);
    const std::size_t most = std::min<std::size_t>(std::max<std::size_t>(kBatch / columns, 1), batch_.size());
    std::size_t rows = 0;
    const auto finish = [&] {
      const std::size_t count = rows * columns;
      spec_.kernels->contexts(context, count, spread_);
      spec_.kernels->bins(spread_, count, bins_);
      decode(tables, streams, count);
      for (std::size_t r = 0; r < rows; ++r) {
        Word* const values = grid.values(batch_[r], c);
        by.predict(batch_[r], *spec_.kernels, values);
        spec_.kernels->rows<Word>().restore(codes_ + r * columns, run_length(columns), fraction_bits_, values,
                                            grid.magnitudes(batch_[r], c));
      }
      rows = 0;
    };
    for_rows(grid.shape, c, [&](ClassRow row) {
      by.spread(row, *spec_.kernels, spread_ + rows * columns);
      batch_[rows++] = row;
      if (rows == most) finish();
    });
    if (rows > 0) finish();
  }

  const ChunkSpec& spec_;
  LevelGrids<Word> grids_;
  ColumnWeights columns_;
  std::int32_t* codes_;
  std::uint32_t* spread_;
  std::uint8_t* bins_;
  kernels::TokenTable* tables_;
  std::array<ClassRow, 1024> batch_{};
  unsigned fraction_bits_ = 0;
  std::size_t place_ = 0;  ///< codes of the section so far
};

/// Decodes a chunk of these extents to the points of a level.
template <class Element>
class Decoder {
 public:
  using Bits = typename Element::Bits;

  Decoder(const ChunkSpec& spec, const std::array<std::uint64_t, 3>& extents, unsigned level, const MutableBox3& out,
          std::span<std::uint8_t> scratch)
      : spec_(spec),
        extents_(chunk_extents(extents)),
        shape_(spec.tile, level, extents_),
        out_(out),
        scratch_(scratch) {}

  Status run(std::span<const std::uint8_t> in) const {
    if (in.empty()) return corrupt("interp: a chunk is empty");
    const std::uint8_t mode = in[0];
    in = in.subspan(1);
    switch (static_cast<Mode>(mode)) {
      case Mode::raw: return raw(in);
      case Mode::constant: return constant(in);
      case Mode::narrow: return coded<std::int32_t>(in);
      case Mode::wide: return coded<std::int64_t>(in);
    }
    return corrupt("interp: a chunk of an unknown kind");
  }

 private:
  std::size_t elems() const { return extents_[0] * extents_[1] * extents_[2]; }
  Bits* row(std::size_t r) const { return static_cast<Bits*>(out_.data) + row_offset(out_, r); }

  Status raw(std::span<const std::uint8_t> in) const {
    if (in.size() != elems() * sizeof(Bits)) return corrupt("interp: a raw chunk has the wrong size");
    for (std::size_t r = 0; r < shape_.rows(); ++r) {
      const std::size_t z = r / shape_.points[1] * shape_.steps[0];
      const std::size_t y = r % shape_.points[1] * shape_.steps[1];
      for (std::size_t x = 0; x < shape_.points[2]; ++x)
        std::memcpy(row(r) + x, in.data() + ((z * extents_[1] + y) * extents_[2] + x * shape_.steps[2]) * sizeof(Bits),
                    sizeof(Bits));
    }
    return {};
  }

  Status constant(std::span<const std::uint8_t> in) const {
    if (in.size() != sizeof(Bits)) return corrupt("interp: a constant chunk has the wrong size");
    Bits value;
    std::memcpy(&value, in.data(), sizeof(value));
    for (std::size_t r = 0; r < shape_.rows(); ++r) std::fill_n(row(r), shape_.points[2], value);
    return {};
  }

  template <class Word>
  Status coded(std::span<const std::uint8_t> in) const {
    ChunkHead head;
    QUERN_RETURN_IF_ERROR(read_head(in, spec_.tile, head));
    QUERN_ASSIGN_OR_RETURN(const auto exceptions, take_exceptions<Bits>(in, elems()));
    SectionBytes sections;
    const unsigned all = section_count(spec_.tile);
    QUERN_RETURN_IF_ERROR(sections.open(in, all, shape_.level == 0 ? all : section_of(spec_.tile, shape_.level) + 1));
    Arena arena(scratch_.data());
    LevelDecoder<Word> decoder(arena, spec_, extents_);
    Word* const values = arena.take<Word>(shape_.points[2]);
    if (arena.used() > scratch_.size()) return Status(StatusCode::internal, "interp: scratch is too small for a chunk");
    QUERN_RETURN_IF_ERROR(decoder.run(head, sections, shape_.level));
    for (std::size_t r = 0; r < shape_.rows(); ++r) {
      decoder.grid(shape_.level).row({r / shape_.points[1], r % shape_.points[1]}, *spec_.kernels, values);
      to_elements<Element>(*spec_.kernels, values, shape_.points[2], head.values, row(r));
    }
    return for_exceptions<Bits>(exceptions, [&](std::size_t index, Bits bits) {
      const std::array<std::size_t, 3> place{index / extents_[2] / extents_[1], index / extents_[2] % extents_[1],
                                             index % extents_[2]};
      for (std::size_t a = 0; a < 3; ++a)
        if (place[a] % shape_.steps[a] != 0) return;
      row(place[0] / shape_.steps[0] * shape_.points[1] + place[1] / shape_.steps[1])[place[2] / shape_.steps[2]] =
          bits;
    });
  }

  const ChunkSpec& spec_;
  Extents extents_;
  LevelShape shape_;
  const MutableBox3& out_;
  std::span<std::uint8_t> scratch_;
};

}  // namespace

std::size_t decode_scratch_bytes(const ChunkSpec& spec) {
  Arena arena(nullptr);
  const Extents extents = chunk_extents(spec.most);
  const LevelDecoder<std::int64_t> decoder(arena, spec, extents);
  static_cast<void>(arena.take<std::int64_t>(extents[2]));
  return arena.used() + kScratchSpare;
}

Status decode_chunk(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& out,
                    std::span<std::uint8_t> scratch) {
  return decode_level(spec, in, out.extents, 0, out, scratch);
}

Status decode_level(const ChunkSpec& spec, std::span<const std::uint8_t> in,
                    const std::array<std::uint64_t, 3>& extents, unsigned level, const MutableBox3& out,
                    std::span<std::uint8_t> scratch) {
  return with_element(spec.dtype, [&](auto element) -> Status {
    return Decoder<decltype(element)>(spec, extents, level, out, scratch).run(in);
  });
}

Result<Vector<std::uint64_t>> level_cuts(const ChunkSpec& spec, std::span<const std::uint8_t> chunk, unsigned levels) {
  Vector<std::uint64_t> cuts;
  if (chunk.empty() ||
      (chunk[0] != static_cast<std::uint8_t>(Mode::narrow) && chunk[0] != static_cast<std::uint8_t>(Mode::wide)))
    return cuts;
  std::span<const std::uint8_t> in = chunk.subspan(1);
  ChunkHead head;
  QUERN_RETURN_IF_ERROR(read_head(in, spec.tile, head));
  const std::uint64_t elems = spec.most[0] * spec.most[1] * spec.most[2];
  QUERN_RETURN_IF_ERROR(with_element(spec.dtype, [&](auto element) -> Status {
    return take_exceptions<typename decltype(element)::Bits>(in, elems).status();
  }));
  const unsigned sections = section_count(spec.tile);
  SectionBytes bytes;
  QUERN_RETURN_IF_ERROR(bytes.open(in, sections, sections));
  for (unsigned level = levels; level > 0; --level) {
    const auto last = bytes.bytes[section_of(spec.tile, level)];
    cuts.push_back(static_cast<std::uint64_t>(last.data() + last.size() - chunk.data()));
  }
  return cuts;
}

}  // namespace quern::codec::interp
