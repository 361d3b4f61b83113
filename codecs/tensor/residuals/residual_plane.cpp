// What all chunks share of a plane of residuals, and the symbols of a chunk.
#include "codecs/tensor/residuals/residual_plane.h"

#include <algorithm>
#include <bit>

#include "codecs/tensor/residuals/residual_levels.h"
#include "libcompress/format/bytes.h"

namespace quern::codec::tensor {
namespace {

constexpr std::int32_t kMaxColumnLevel = 1 << 10;
constexpr std::size_t kWordsEach = 4;  // at most, of a residual: of its symbol and of 31 open bits

/// Moves what is not special to the front; returns how many there are.
template <class T>
std::size_t close_up(std::span<T> values, std::span<const std::uint32_t> special) {
  std::size_t to = 0;
  std::size_t from = 0;
  const auto move_until = [&](std::size_t end) {
    if (to != from) std::copy(values.begin() + from, values.begin() + end, values.begin() + to);
    to += end - from;
  };
  for (const std::uint32_t place : special) {
    move_until(place);
    from = std::size_t{place} + 1;
  }
  move_until(values.size());
  return to;
}

/// The reverse, for residuals: special ones are 0.
void spread_out(std::span<std::int32_t> residuals, std::span<const std::uint32_t> special) {
  std::size_t from = residuals.size() - special.size();
  std::size_t to = residuals.size();
  for (std::size_t s = special.size(); s-- > 0;) {
    const std::size_t place = special[s];
    const std::size_t count = to - place - 1;
    std::copy_backward(residuals.begin() + (from - count), residuals.begin() + from, residuals.begin() + to);
    from -= count;
    residuals[place] = 0;
    to = place;
  }
}

}  // namespace

std::uint64_t plane_width(const TensorDescription& description) {
  constexpr std::uint64_t kEnough = 64;
  constexpr std::uint64_t kOtherwise = 256;
  std::uint64_t width = 1;
  for (std::size_t axis = description.shape.rank(); axis-- > 1 && width < kEnough;) width *= description.shape[axis];
  return width < kEnough ? kOtherwise : width;
}

void put_model(const ResidualModel& model, BitWriter& writer) {
  writer.put(model.row_levels ? 1 : 0, 1);
  writer.put(model.column_levels.empty() ? 0 : 1, 1);
  writer.put(model.base_level, 7);
  if (!model.column_levels.empty()) put_numbers(model.column_levels, 0, writer);
  // A bit for each context: whether it begins a table. The contexts before the first share it.
  for (std::size_t c = 0; c < kContexts; ++c)
    writer.put(c > 0 && model.table_of[c] != model.table_of[c - 1] ? 1 : 0, 1);
  for (const Frequencies& table : model.tables) put_frequencies(table, writer);
}

Status get_model(BitReader& reader, std::uint64_t width, ResidualModel& model) {
  const auto bad = [](const char* text) { return Status(StatusCode::corrupt, text); };
  model = {};
  model.row_levels = reader.get(1) != 0;
  const bool columns = reader.get(1) != 0;
  model.base_level = static_cast<std::uint8_t>(reader.get(7));
  if (columns) {
    if (width > kMaxPlaneColumns) return bad("tensor: levels of too many columns");
    model.column_levels.resize(static_cast<std::size_t>(width));
    get_numbers(model.column_levels, 0, reader);
    for (const std::int32_t level : model.column_levels)
      if (level < -kMaxColumnLevel || level > kMaxColumnLevel) return bad("tensor: a column's level is out of range");
  }
  std::uint8_t table = 0;
  for (std::size_t c = 0; c < kContexts; ++c) {
    if (reader.get(1) != 0) ++table;
    model.table_of[c] = table;
  }
  if (model.table_of[0] != 0) return bad("tensor: the first context begins no table");
  model.tables.resize(table + 1u);
  for (Frequencies& frequencies : model.tables)
    if (!get_frequencies(reader, frequencies)) return bad("tensor: frequencies of a context do not add up");
  if (reader.failed()) return bad("tensor: the side is cut short");
  return {};
}

std::size_t encoder_scratch_bytes(std::size_t elems) {
  return elems * (1 + 2 * kWordsEach) + kContexts * sizeof(kernels::TensorEncodeTable) + 256;
}
std::size_t decoder_scratch_bytes(std::size_t elems) { return elems + kContexts * sizeof(kernels::TensorDecodeTable); }

std::span<const std::uint8_t> encode_residuals(const ResidualModel& model, const PlanePiece& piece,
                                               std::span<std::int32_t> residuals,
                                               std::span<const std::uint32_t> special, ChunkScratch& scratch,
                                               Vector<std::uint8_t>& head) {
  Vector<std::int32_t> rows;
  if (model.row_levels) {
    find_row_levels(piece, residuals, rows);
    for (std::int32_t& level : rows) level = std::min<std::int32_t>(level, kLevels - 1);
    BitWriter writer(head);
    put_numbers(rows, model.base_level, writer);
  }
  const auto numbers = scratch.take<std::uint8_t>(piece.elems);
  find_tables(piece, rows, model.column_levels, model.base_level, model.table_of, numbers);
  const auto tables = scratch.take<kernels::TensorEncodeTable>(model.tables.size());
  for (std::size_t t = 0; t < tables.size(); ++t) make_encode_table(model.tables[t], tables[t]);

  kernels::TensorEncodeJob job;
  job.count = piece.elems;
  if (!special.empty()) {
    close_up(residuals, special);
    job.count = close_up(numbers, special);
  }
  job.residuals = residuals.data();
  job.tables = numbers.data();
  job.table = tables.data();
  constexpr std::size_t kStateBytes = sizeof(job.states);
  const auto words = scratch.take<std::uint8_t>(2 * (job.count * kWordsEach + kernels::kTensorWordSlack) + kStateBytes);
  auto* const end = reinterpret_cast<std::uint16_t*>(words.data() + words.size() / 2 * 2);
  job.words = end;
  std::fill(std::begin(job.states), std::end(job.states), kernels::kRansFloor);
  residual_kernels().encode(job);
  if constexpr (std::endian::native == std::endian::big)
    for (auto* word = job.words; word != end; ++word) *word = static_cast<std::uint16_t>(*word << 8 | *word >> 8);
  auto* const first = reinterpret_cast<std::uint8_t*>(job.words) - kStateBytes;
  for (std::size_t i = 0; i < kernels::kTensorStates; ++i)
    for (std::size_t k = 0; k < 4; ++k) first[4 * i + k] = static_cast<std::uint8_t>(job.states[i] >> (8 * k));
  return {first, reinterpret_cast<std::uint8_t*>(end)};
}

Status decode_residuals(const ResidualModel& model, const PlanePiece& piece, std::span<const std::uint8_t> bytes,
                        std::span<const std::uint32_t> special, ChunkScratch& scratch,
                        std::span<std::int32_t> residuals) {
  const auto bad = [](const char* text) { return Status(StatusCode::corrupt, text); };
  Vector<std::int32_t> rows;
  if (model.row_levels) {
    // Fewer bits than rows can only be damage; so memory is bounded by what is there.
    if (piece.rows() / 8 > bytes.size()) return bad("tensor: levels of rows are cut short");
    rows.resize(piece.rows());
    BitReader reader(bytes, kMostGolombWidth);
    get_numbers(rows, model.base_level, reader);
    if (reader.failed()) return bad("tensor: levels of rows are cut short");
    for (const std::int32_t level : rows)
      if (level < 0 || level >= static_cast<std::int32_t>(kLevels)) return bad("tensor: a row's level is out of range");
    bytes = bytes.subspan(reader.bytes_used());
  }
  const auto numbers = scratch.take<std::uint8_t>(piece.elems);
  find_tables(piece, rows, model.column_levels, model.base_level, model.table_of, numbers);
  const auto tables = scratch.take<kernels::TensorDecodeTable>(model.tables.size());
  for (std::size_t t = 0; t < tables.size(); ++t) make_decode_table(model.tables[t], tables[t]);

  ByteReader head(bytes);
  kernels::TensorDecodeJob job;
  for (std::uint32_t& state : job.states) state = head.u32();
  if (!head.ok()) return status_of(head.fault());
  job.source.at = bytes.data() + head.position();
  job.source.end = bytes.data() + bytes.size() - head.remaining() % 2;
  if (head.remaining() % 2 != 0) return bad("tensor: half a word at the end of a chunk");
  job.residuals = residuals.data();
  job.count = special.empty() ? piece.elems : close_up(numbers, special);
  job.tables = numbers.data();
  job.table = tables.data();
  residual_kernels().decode(job);
  for (const std::uint32_t state : job.states)
    if (state != kernels::kRansFloor) return bad("tensor: symbols of a chunk do not end where they began");
  if (job.source.failed || job.source.at != job.source.end) return bad("tensor: a chunk has words too few or too many");
  if (!special.empty()) spread_out(residuals, special);
  return {};
}

}  // namespace quern::codec::tensor
