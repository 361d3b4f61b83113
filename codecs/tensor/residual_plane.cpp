// Levels of rows and columns, tables of contexts, and the symbols of a chunk.
#include "codecs/tensor/residual_plane.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/core/residual_model.h"
#include "libcompress/format/bytes.h"

namespace quern::codec::tensor {
namespace {

constexpr std::size_t kLanes = 8;
constexpr std::uint32_t kFewSymbols = 400;  // a context of fewer shares its neighbour's table
constexpr std::size_t kSamplesToChoose = 2;
constexpr unsigned kMagnitudeUnits = 16;  // mean magnitudes are kept in sixteenths
constexpr std::int32_t kMaxMagnitudeSeen = 1 << 20;
constexpr std::int32_t kMaxColumnLevel = 1 << 10;

std::uint64_t seen(std::int32_t residual) {
  return static_cast<std::uint64_t>(std::min(std::abs(residual), kMaxMagnitudeSeen));
}

/// log2 of 1/16 + a mean magnitude, in quarters of an octave from 1/16.
std::int32_t level_of(std::uint64_t sum, std::uint64_t count) {
  if (count == 0) return 0;
  const std::uint64_t mean = sum * kMagnitudeUnits / count + 1;
  return static_cast<std::int32_t>((kernels::log2_fixed(static_cast<std::uint32_t>(mean)) + 512) >> 10);
}

unsigned context_of(std::int32_t level) {
  return static_cast<unsigned>(std::clamp(level >> 1, 0, static_cast<std::int32_t>(kContexts) - 1));
}

/// Levels of a piece's rows.
void find_row_levels(const PlanePiece& piece, std::span<const std::int32_t> residuals, Vector<std::int32_t>& levels) {
  levels.resize(piece.rows());
  for_rows(piece, [&](std::size_t row, std::size_t, std::size_t begin, std::size_t end) {
    std::uint64_t sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += seen(residuals[i]);
    levels[row] = level_of(sum, end - begin);
  });
}

/// The context of each element, whatever tables there are.
void find_contexts(const ResidualModel& model, const PlanePiece& piece, std::span<const std::int32_t> row_levels,
                   std::span<std::uint8_t> contexts) {
  for_rows(piece, [&](std::size_t row, std::size_t column, std::size_t begin, std::size_t end) {
    const std::int32_t level = model.row_levels ? row_levels[row] : model.base_level;
    if (model.column_levels.empty()) {
      std::fill(contexts.begin() + static_cast<std::ptrdiff_t>(begin),
                contexts.begin() + static_cast<std::ptrdiff_t>(end), static_cast<std::uint8_t>(context_of(level)));
      return;
    }
    const std::int32_t* const columns = model.column_levels.data() + column;
    for (std::size_t i = begin; i < end; ++i)
      contexts[i] = static_cast<std::uint8_t>(context_of(level + columns[i - begin]));
  });
}

using ContextCounts = std::array<SymbolCounts, kContexts>;

void count_symbols(const ResidualModel& model, std::span<const ResidualSample> samples, ContextCounts& counts) {
  counts = {};
  Vector<std::int32_t> rows;
  Vector<std::uint8_t> contexts;
  for (const ResidualSample& sample : samples) {
    if (model.row_levels) find_row_levels(sample.piece, sample.residuals, rows);
    contexts.resize(sample.residuals.size());
    find_contexts(model, sample.piece, rows, contexts);
    for (std::size_t i = 0; i < contexts.size(); ++i) ++counts[contexts[i]][symbol_of(sample.residuals[i]).symbol];
  }
}

/// Contexts of few symbols join the next one that has many, below or else above.
std::uint64_t fit_tables(ContextCounts& counts, ResidualModel& model) {
  std::array<std::uint64_t, kContexts> totals{};
  std::size_t fullest = 0;
  for (std::size_t c = 0; c < kContexts; ++c) {
    for (const std::uint32_t n : counts[c]) totals[c] += n;
    if (totals[c] > totals[fullest]) fullest = c;
  }
  std::array<std::size_t, kContexts> keeper{};
  std::size_t last = kContexts;
  for (std::size_t c = kContexts; c-- > 0;)
    if (totals[c] >= kFewSymbols || c == fullest) last = c;
  for (std::size_t c = 0; c < kContexts; ++c) {
    if (totals[c] >= kFewSymbols || c == fullest) last = c;
    keeper[c] = last;
  }
  for (std::size_t c = 0; c < kContexts; ++c)
    if (keeper[c] != c)
      for (std::size_t s = 0; s < kSymbols; ++s) counts[keeper[c]][s] += counts[c][s];
  model.tables.clear();
  Vector<std::uint8_t> stored;
  BitWriter writer(stored);
  std::uint64_t cost = 0;
  for (std::size_t c = 0; c < kContexts; ++c) {
    if (keeper[c] == c) {
      fit_frequencies(counts[c], model.tables.emplace_back());
      put_frequencies(model.tables.back(), writer);
      cost += coded_cost(counts[c], model.tables.back());
    }
    model.table_of[c] = static_cast<std::uint8_t>(model.tables.empty() ? 0 : model.tables.size() - 1);
  }
  return (cost >> 12) + stored.size() * 8;
}

std::uint64_t bits_of_numbers(std::span<const std::int32_t> numbers, std::int32_t center) {
  Vector<std::uint8_t> bytes;
  BitWriter writer(bytes);
  put_numbers(numbers, center, writer);
  return bytes.size() * 8;
}

Vector<std::int32_t> find_column_levels(std::span<const ResidualSample> samples, std::uint64_t width,
                                        std::int32_t base) {
  Vector<std::uint64_t> sums(static_cast<std::size_t>(width));
  Vector<std::uint64_t> counts(static_cast<std::size_t>(width));
  for (const ResidualSample& sample : samples)
    for_rows(sample.piece, [&](std::size_t, std::size_t column, std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        sums[column + i - begin] += seen(sample.residuals[i]);
        ++counts[column + i - begin];
      }
    });
  Vector<std::int32_t> levels(static_cast<std::size_t>(width));
  for (std::size_t c = 0; c < levels.size(); ++c) levels[c] = counts[c] == 0 ? 0 : level_of(sums[c], counts[c]) - base;
  return levels;
}

}  // namespace

std::uint64_t plane_width(const TensorDescription& description) {
  constexpr std::uint64_t kEnough = 64;
  constexpr std::uint64_t kOtherwise = 256;
  std::uint64_t width = 1;
  for (std::size_t axis = description.shape.rank(); axis-- > 1 && width < kEnough;) width *= description.shape[axis];
  return width < kEnough ? kOtherwise : width;
}

std::uint64_t fit_residuals(std::span<const ResidualSample> samples, std::uint64_t width, ResidualModel& model) {
  std::uint64_t sum = 0;
  std::uint64_t elems = 0;
  for (const ResidualSample& sample : samples) {
    for (const std::int32_t residual : sample.residuals) sum += seen(residual);
    elems += sample.residuals.size();
  }
  const std::int32_t base = level_of(sum, elems);
  Vector<std::int32_t> columns;
  if (width <= kMaxPlaneColumns && elems >= 4 * width) columns = find_column_levels(samples, width, base);
  const std::uint64_t column_bits = bits_of_numbers(columns, 0);

  // Which levels pay is found on the first samples.
  const auto few = samples.first(std::min(samples.size(), kSamplesToChoose));
  std::uint64_t few_elems = 0;
  std::uint64_t row_bits = 0;
  Vector<std::int32_t> rows;
  for (const ResidualSample& sample : few) {
    find_row_levels(sample.piece, sample.residuals, rows);
    row_bits += bits_of_numbers(rows, base);
    few_elems += sample.residuals.size();
  }
  const std::uint64_t times = few_elems == 0 ? 1 : (elems + few_elems - 1) / few_elems;
  Vector<ContextCounts> counts(1);
  ResidualModel best;
  std::uint64_t least = UINT64_MAX;
  for (unsigned choice = 0; choice < 4; ++choice) {
    if ((choice & 2) != 0 && columns.empty()) break;
    ResidualModel candidate;
    candidate.base_level = static_cast<std::uint8_t>(base);
    candidate.row_levels = (choice & 1) != 0;
    if ((choice & 2) != 0) candidate.column_levels = columns;
    count_symbols(candidate, few, counts[0]);
    const std::uint64_t cost = (fit_tables(counts[0], candidate) + (candidate.row_levels ? row_bits : 0)) * times +
                               ((choice & 2) != 0 ? column_bits : 0);
    if (cost >= least) continue;
    least = cost;
    best = std::move(candidate);
  }
  if (few.size() < samples.size()) {
    count_symbols(best, samples, counts[0]);
    fit_tables(counts[0], best);
  }
  model = std::move(best);
  return least;
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

void encode_residuals(const ResidualModel& model, const PlanePiece& piece, std::span<const std::int32_t> residuals,
                      std::span<const std::uint32_t> special, Vector<std::uint8_t>& out) {
  Vector<std::int32_t> rows;
  if (model.row_levels) {
    find_row_levels(piece, residuals, rows);
    for (std::int32_t& level : rows) level = std::min<std::int32_t>(level, kLevels - 1);
    BitWriter writer(out);
    put_numbers(rows, model.base_level, writer);
  }
  Vector<std::uint8_t> contexts(piece.elems);
  find_contexts(model, piece, rows, contexts);
  Vector<EncodeTable> tables(model.tables.size());
  for (std::size_t t = 0; t < tables.size(); ++t) make_encode_table(model.tables[t], tables[t]);

  // The last element first: words are written downwards. At most four words an element: symbol and 31 open bits.
  Vector<std::uint16_t> words(piece.elems * 4 + 2 * kLanes);
  std::uint16_t* const end = words.data() + words.size();
  std::uint16_t* at = end;
  std::array<std::uint32_t, kLanes> states;
  states.fill(kernels::kRansFloor);
  std::size_t next_special = special.size();
  std::size_t place = piece.elems - special.size();  // among coded elements
  for (std::size_t i = piece.elems; i-- > 0;) {
    if (next_special > 0 && special[next_special - 1] == i) {
      --next_special;
      continue;
    }
    --place;
    std::uint32_t& state = states[place % kLanes];
    const EncodeTable& table = tables[model.table_of[contexts[i]]];
    ResidualSymbol symbol = symbol_of(residuals[i]);
    if (table[symbol.symbol].frequency == 0)
      symbol = {kernels::zigzag(static_cast<std::uint32_t>(residuals[i])), kEscape,
                static_cast<std::uint8_t>(open_bits_of(kEscape))};
    if (symbol.open_bits > kernels::kRansPlainBits) {
      kernels::rans_encode_plain(state, symbol.open >> 16, symbol.open_bits - 16u, at);
      kernels::rans_encode_plain(state, symbol.open & 0xffffu, 16, at);
    } else if (symbol.open_bits != 0) {
      kernels::rans_encode_plain(state, symbol.open, symbol.open_bits, at);
    }
    kernels::rans_encode<kTableBits>(state, table[symbol.symbol], at);
  }
  for (const std::uint32_t state : states) {
    for (unsigned shift = 0; shift < 32; shift += 8) out.push_back(static_cast<std::uint8_t>(state >> shift));
  }
  for (; at != end; ++at) {
    out.push_back(static_cast<std::uint8_t>(*at));
    out.push_back(static_cast<std::uint8_t>(*at >> 8));
  }
}

Status decode_residuals(const ResidualModel& model, const PlanePiece& piece, std::span<const std::uint8_t> bytes,
                        std::span<const std::uint32_t> special, std::span<std::int32_t> residuals) {
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
  Vector<std::uint8_t> contexts(piece.elems);
  find_contexts(model, piece, rows, contexts);
  Vector<DecodeTable> tables(model.tables.size());
  for (std::size_t t = 0; t < tables.size(); ++t) make_decode_table(model.tables[t], tables[t]);
  std::array<const DecodeTable*, kContexts> table_of{};
  for (std::size_t c = 0; c < kContexts; ++c) table_of[c] = &tables[model.table_of[c]];

  ByteReader head(bytes);
  std::array<std::uint32_t, kLanes> states{};
  for (std::uint32_t& state : states) state = head.u32();
  if (!head.ok()) return status_of(head.fault());
  kernels::RansSource source;
  source.at = bytes.data() + head.position();
  source.end = bytes.data() + bytes.size() - head.remaining() % 2;
  if (head.remaining() % 2 != 0) return bad("tensor: half a word at the end of a chunk");

  std::size_t next_special = 0;
  std::size_t place = 0;
  for (std::size_t i = 0; i < piece.elems; ++i) {
    if (next_special < special.size() && special[next_special] == i) {
      ++next_special;
      residuals[i] = 0;
      continue;
    }
    std::uint32_t& state = states[place++ % kLanes];
    const std::uint32_t entry = (*table_of[contexts[i]])[state & (kTableSum - 1)];
    source.state = ((entry >> 8 & 0xfff) + 1) * (state >> kTableBits) + (entry >> 20);
    source.refill();
    const unsigned symbol = entry & 0xff;
    const unsigned open_bits = open_bits_of(symbol);
    std::uint32_t open = 0;
    if (open_bits > kernels::kRansPlainBits) {
      open = source.take_plain(16);
      open |= source.take_plain(open_bits - 16) << 16;
    } else if (open_bits != 0) {
      open = source.take_plain(open_bits);
    }
    state = source.state;
    residuals[i] = residual_of(symbol, open);
  }
  for (const std::uint32_t state : states)
    if (state != kernels::kRansFloor) return bad("tensor: symbols of a chunk do not end where they began");
  if (source.failed || source.at != source.end) return bad("tensor: a chunk has words too few or too many");
  return {};
}

}  // namespace quern::codec::tensor
