// Second moments in log space: an element's bin is predicted from the mean of its row (stored in the chunk) and of its
// column (stored in the side), from the bin of the base, and from how far the three elements above lie from their own
// prediction. Everything after the bins is integers.
#include <array>

#include "codecs/tensor/log_bins.h"
#include "codecs/tensor/lossy_chunk.h"
#include "codecs/tensor/solve.h"

namespace quern::codec::tensor {
namespace {

constexpr std::size_t kAbove = 3;   // rows above that a prediction looks at
constexpr std::int32_t kUnits = 4;  // means are kept in quarters of a bin
constexpr std::int32_t kMaxShare = 127;
constexpr std::int32_t kLeastShare = 3;          // of 64; smaller ones are 0
constexpr std::int64_t kMaxDeviation = 1 << 14;  // larger ones count as this when shares are fitted
constexpr std::int32_t kMaxMean = 1 << 22;

struct LogqModel {
  LogBins bins;
  std::uint64_t reach = 0;
  std::int32_t center = 0;      ///< a bin that stands for missing ones
  std::int32_t base_share = 0;  ///< in 1/64
  std::array<std::int32_t, kAbove> above_shares{};
  Vector<std::int32_t> column_means;  ///< empty: 0
  ResidualModel residuals;

  bool looks_above() const { return above_shares != std::array<std::int32_t, kAbove>{}; }
};

/// A chunk on its way: bins, what the base says of them, predictions.
struct LogqChunk {
  Vector<std::int32_t> bins;   ///< of the values; -1: special
  Vector<std::int32_t> known;  ///< the base's part of the prediction, in quarters of a bin
  Vector<std::int32_t> row_means;
  Vector<std::int32_t> residuals;
};

void find_bins(const LogBins& bins, std::span<const std::uint8_t> values, Vector<std::int32_t>& out) {
  out.resize(values.size() / 4);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::int32_t>(bins.find(bits_at(values, i)));
}

/// The base's bins in quarters of a bin from the center; 0 where it has none.
void find_base(const LogqModel& model, std::span<const std::uint8_t> base, Vector<std::int32_t>& out) {
  out.resize(base.size() / 4);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint32_t bin = model.bins.nearest_or_last(bits_at(base, i));
    out[i] = bin == LogBins::kNone ? 0 : (static_cast<std::int32_t>(bin) - model.center) * kUnits;
  }
}

void find_known(const LogqModel& model, std::span<const std::uint8_t> base, std::size_t elems,
                Vector<std::int32_t>& known) {
  if (model.base_share == 0) {
    known.assign(elems, 0);
    return;
  }
  find_base(model, base, known);
  for (std::int32_t& k : known) k = share(model.base_share, k);
}

std::int32_t rounded_mean(std::int64_t sum, std::int64_t count) {
  const std::int64_t twice = 2 * sum + count;
  return static_cast<std::int32_t>(twice / (2 * count) - (twice % (2 * count) < 0 ? 1 : 0));
}

/// Means over the regular elements of each row of what base and columns leave.
void find_row_means(const LogqModel& model, const PlanePiece& piece, LogqChunk& chunk) {
  chunk.row_means.resize(piece.rows());
  for_rows(piece, [&](std::size_t row, std::size_t column, std::size_t begin, std::size_t end) {
    std::int64_t sum = 0;
    std::int64_t count = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (chunk.bins[i] < 0) continue;
      const std::int32_t mean = model.column_means.empty() ? 0 : model.column_means[column + i - begin];
      sum += chunk.bins[i] * kUnits - chunk.known[i] - mean;
      ++count;
    }
    chunk.row_means[row] = count == 0 ? model.center * kUnits : rounded_mean(sum, count);
  });
}

/// Means over rows of what base and row leave, of all chunks that are looked at.
Vector<std::int32_t> find_column_means(std::span<const PlanePiece> pieces, std::span<const LogqChunk> chunks,
                                       std::uint64_t width) {
  Vector<std::int64_t> sums(static_cast<std::size_t>(width));
  Vector<std::int64_t> counts(static_cast<std::size_t>(width));
  for (std::size_t c = 0; c < chunks.size(); ++c)
    for_rows(pieces[c], [&](std::size_t row, std::size_t column, std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        if (chunks[c].bins[i] < 0) continue;
        sums[column + i - begin] += chunks[c].bins[i] * kUnits - chunks[c].known[i] - chunks[c].row_means[row];
        ++counts[column + i - begin];
      }
    });
  Vector<std::int32_t> means(static_cast<std::size_t>(width));
  for (std::size_t i = 0; i < means.size(); ++i) means[i] = counts[i] == 0 ? 0 : rounded_mean(sums[i], counts[i]);
  return means;
}

/// Walks a chunk in order. `code(i, predicted bin)` returns the bin of an element, below 0 for special ones.
template <class Code>
void walk(const LogqModel& model, const PlanePiece& piece, const LogqChunk& chunk, const Code& code) {
  const bool above = model.looks_above();
  const auto width = static_cast<std::size_t>(std::min<std::uint64_t>(piece.width, piece.elems));
  Vector<std::int32_t> deviations(above ? piece.elems : 0);  // of bins from what row, column and base say
  for_rows(piece, [&](std::size_t row, std::size_t column, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::int32_t mean = model.column_means.empty() ? 0 : model.column_means[column + i - begin];
      const std::int32_t plain = chunk.row_means[row] + mean + chunk.known[i];
      std::int32_t predicted = plain;
      if (above && i >= width) {
        std::int64_t sum = 32;
        for (std::size_t a = 0; a < kAbove && i >= (a + 1) * width; ++a)
          sum += std::int64_t{model.above_shares[a]} * deviations[i - (a + 1) * width];
        predicted += static_cast<std::int32_t>(sum >> 6);
      }
      const std::int32_t bin = code(i, (predicted + kUnits / 2) >> 2);
      if (above && bin >= 0) deviations[i] = bin * kUnits - plain;
    }
  });
}

std::int32_t share_of(double x) {
  const double scaled = std::clamp(x * 64, -1.0 * kMaxShare, 1.0 * kMaxShare);
  const auto rounded = static_cast<std::int32_t>(scaled + (scaled < 0 ? -0.5 : 0.5));
  return std::abs(rounded) < kLeastShare ? 0 : rounded;
}

/// Least squares: deviations from row and column means, by those of the base and of the rows above.
void fit_shares(std::span<const PlanePiece> pieces, std::span<const LogqChunk> chunks, std::span<const LogqChunk> bases,
                LogqModel& model) {
  constexpr std::size_t kTerms = kAbove + 1;
  std::array<std::array<std::int64_t, kTerms + 1>, kTerms + 1> sums{};
  const auto deviation = [&](const LogqChunk& chunk, std::size_t row, std::size_t i, std::int32_t column_mean) {
    if (chunk.bins[i] < 0) return std::int64_t{0};
    return std::clamp<std::int64_t>(chunk.bins[i] * kUnits - chunk.known[i] - chunk.row_means[row] - column_mean,
                                    -kMaxDeviation, kMaxDeviation);
  };
  const std::uint64_t width = pieces[0].width;
  const Vector<std::int32_t> columns = find_column_means(pieces, chunks, width);
  Vector<std::int32_t> base_columns;
  if (!bases.empty()) base_columns = find_column_means(pieces, bases, width);
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    Vector<std::int64_t> own(pieces[c].elems);
    for_rows(pieces[c], [&](std::size_t row, std::size_t column, std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        own[i] = deviation(chunks[c], row, i, columns[column + i - begin]);
        if (chunks[c].bins[i] < 0) continue;
        std::array<std::int64_t, kTerms + 1> terms{};
        if (!bases.empty()) terms[0] = deviation(bases[c], row, i, base_columns[column + i - begin]);
        for (std::size_t a = 0; a < kAbove && i >= (a + 1) * width; ++a)
          terms[a + 1] = own[i - static_cast<std::size_t>((a + 1) * width)];
        terms[kTerms] = own[i];
        for (std::size_t k = 0; k < kTerms; ++k)
          for (std::size_t l = 0; l <= kTerms; ++l) sums[k][l] += terms[k] * terms[l];
      }
    });
  }
  std::array<std::array<double, kTerms + 1>, kTerms> system{};
  for (std::size_t k = 0; k < kTerms; ++k)
    for (std::size_t l = 0; l <= kTerms; ++l) system[k][l] = static_cast<double>(sums[k][l]);
  const auto solution = solve_symmetric<kTerms>(system);
  model.base_share = bases.empty() ? 0 : share_of(solution[0]);
  for (std::size_t a = 0; a < kAbove; ++a) model.above_shares[a] = share_of(solution[a + 1]);
}

void put_side(const LogqModel& model, Vector<std::uint8_t>& side) {
  append_varint(model.reach, side);
  append_varint(kernels::zigzag(static_cast<std::uint64_t>(model.bins.first())), side);
  append_varint(model.bins.count(), side);
  if (model.bins.count() == 0) return;
  append_varint(static_cast<std::uint64_t>(model.center), side);
  append_number(static_cast<std::uint8_t>(model.base_share), 1, side);
  for (const std::int32_t s : model.above_shares) append_number(static_cast<std::uint8_t>(s), 1, side);
  BitWriter writer(side);
  writer.put(model.column_means.empty() ? 0 : 1, 1);
  if (!model.column_means.empty()) put_numbers(model.column_means, 0, writer);
  put_model(model.residuals, writer);
}

Status get_side(const TensorDescription& description, std::span<const std::uint8_t> side, LogqModel& model) {
  QUERN_RETURN_IF_ERROR(check_bounded(description, true));
  const auto bad = [](const char* text) { return Status(StatusCode::corrupt, text); };
  ByteReader reader(side);
  model.reach = reader.varint();
  const auto first = static_cast<std::int64_t>(kernels::unzigzag(reader.varint()));
  const std::uint64_t count = reader.varint();
  if (!reader.ok()) return status_of(reader.fault());
  QUERN_ASSIGN_OR_RETURN(model.bins, LogBins::make(model.reach, first, count));
  if (count == 0) {
    reader.expect_end();
    return status_of(reader.fault());
  }
  model.center = static_cast<std::int32_t>(reader.varint(count - 1));
  model.base_share = static_cast<std::int8_t>(reader.u8());
  for (std::int32_t& s : model.above_shares) s = static_cast<std::int8_t>(reader.u8());
  if (!reader.ok()) return status_of(reader.fault());
  const std::uint64_t width = plane_width(description);
  BitReader bits(reader.bytes(reader.remaining()), kMostGolombWidth);
  if (bits.get(1) != 0) {
    if (width > kMaxPlaneColumns) return bad("tensor: means of too many columns");
    model.column_means.resize(static_cast<std::size_t>(width));
    get_numbers(model.column_means, 0, bits);
    for (const std::int32_t mean : model.column_means)
      if (mean < -kMaxMean || mean > kMaxMean) return bad("tensor: the mean of a column is out of range");
  }
  return get_model(bits, width, model.residuals);
}

Status plan_logq(const TensorInputs& inputs, TaskRunner&, TensorPlan& plan) {
  const double r = plan.request.bound;
  const TensorDescription& description = plan.description;
  QUERN_RETURN_IF_ERROR(check_bounded(description, r >= kMinLogBound && r <= kMaxLogBound));
  std::uint32_t lowest = UINT32_MAX;
  std::uint32_t highest = 0;
  for (std::size_t i = 0; i < inputs.values.size() / 4; ++i) {
    const std::uint32_t bits = bits_at(inputs.values, i);
    if (!is_positive_bits(bits)) continue;
    lowest = std::min(lowest, bits);
    highest = std::max(highest, bits);
  }
  LogqModel model;
  model.reach = reach_of(r);
  if (highest != 0) model.bins = LogBins::covering(model.reach, lowest, highest);
  if (model.bins.count() == 0) {
    put_side(model, plan.side);
    return {};
  }
  const std::uint64_t width = plane_width(description);
  const Vector<std::uint64_t> fitted = chunks_to_fit(description);
  Vector<PlanePiece> pieces;
  Vector<LogqChunk> chunks(fitted.size());
  Vector<LogqChunk> bases(inputs.base.empty() ? 0 : fitted.size());
  std::int64_t sum = 0;
  std::int64_t regular = 0;
  for (std::size_t c = 0; c < fitted.size(); ++c) {
    pieces.push_back(piece_of(description, fitted[c]));
    find_bins(model.bins, bytes_of(description, fitted[c], inputs.values), chunks[c].bins);
    for (const std::int32_t bin : chunks[c].bins) {
      sum += bin < 0 ? 0 : bin;
      regular += bin < 0 ? 0 : 1;
    }
  }
  model.center = regular == 0 ? 0 : static_cast<std::int32_t>(sum / regular);
  for (std::size_t c = 0; c < fitted.size(); ++c) {
    chunks[c].known.assign(pieces[c].elems, 0);
    find_row_means(model, pieces[c], chunks[c]);
    if (bases.empty()) continue;
    // The base as if it were coded by itself: how far it lies from its own means.
    find_base(model, bytes_of(description, fitted[c], inputs.base), bases[c].bins);
    for (std::int32_t& bin : bases[c].bins) bin = bin / kUnits + model.center;
    bases[c].known.assign(pieces[c].elems, 0);
    find_row_means(model, pieces[c], bases[c]);
  }
  if (width <= kMaxPlaneColumns) fit_shares(pieces, chunks, bases, model);
  bases.clear();

  // With the shares known: means of what they leave.
  std::uint64_t elems = 0;
  for (std::size_t c = 0; c < fitted.size(); ++c) {
    find_known(model, bytes_of(description, fitted[c], inputs.base), pieces[c].elems, chunks[c].known);
    find_row_means(model, pieces[c], chunks[c]);
    elems += pieces[c].elems;
  }
  if (width <= kMaxPlaneColumns && elems >= 4 * width) {
    model.column_means = find_column_means(pieces, chunks, width);
    for (std::size_t c = 0; c < fitted.size(); ++c) find_row_means(model, pieces[c], chunks[c]);
  }
  Vector<ResidualSample> samples;
  for (std::size_t c = 0; c < fitted.size(); ++c) {
    chunks[c].residuals.assign(pieces[c].elems, 0);
    walk(model, pieces[c], chunks[c], [&](std::size_t i, std::int32_t predicted) {
      if (chunks[c].bins[i] >= 0) chunks[c].residuals[i] = chunks[c].bins[i] - predicted;
      return chunks[c].bins[i];
    });
    samples.push_back({pieces[c], chunks[c].residuals});
  }
  QUERN_RETURN_IF_ERROR(fit_residuals(samples, width, model.residuals).status());
  put_side(model, plan.side);
  return {};
}

Result<std::size_t> encode_logq(const TensorPlan& plan, const TensorInputs&, const ChunkInputs& input,
                                std::span<std::uint8_t> out, AlignedBuffer& memory) {
  LogqModel model;
  QUERN_RETURN_IF_ERROR(get_side(plan.description, plan.side, model));
  const PlanePiece piece = piece_of(plan.description, input.index);
  LogqChunk chunk;
  find_bins(model.bins, input.values, chunk.bins);
  SpecialRuns special;
  for (std::size_t i = 0; i < piece.elems; ++i)
    if (chunk.bins[i] < 0) special.add(static_cast<std::uint32_t>(i), bits_at(input.values, i));
  Vector<std::uint8_t> coded;
  std::span<const std::uint8_t> tail;
  special.write(coded);
  ChunkScratch scratch(memory);
  QUERN_RETURN_IF_ERROR(scratch.reserve(encoder_scratch_bytes(input.elems), 3));
  if (model.bins.count() != 0) {
    find_known(model, input.base, piece.elems, chunk.known);
    find_row_means(model, piece, chunk);
    BitWriter writer(coded);
    put_numbers(chunk.row_means, model.center * kUnits, writer);
    chunk.residuals.assign(piece.elems, 0);
    walk(model, piece, chunk, [&](std::size_t i, std::int32_t predicted) {
      if (chunk.bins[i] >= 0) chunk.residuals[i] = chunk.bins[i] - predicted;
      return chunk.bins[i];
    });
    tail = encode_residuals(model.residuals, piece, chunk.residuals, special.places(), scratch, coded);
  }
  return finish_chunk(input, coded, tail, out);
}

Result<TensorNeeds> needs_of_logq(const TensorDescription& description, std::span<const std::uint8_t> side) {
  QUERN_RETURN_IF_ERROR(check_bounded(description, true));
  ByteReader reader(side);
  reader.varint();
  reader.varint();
  TensorNeeds needs;
  if (reader.varint() != 0) {
    reader.varint();
    needs.base = reader.u8() != 0;
  }
  if (!reader.ok()) return status_of(reader.fault());
  return needs;
}

Status decode_logq(const TensorDescription& description, std::span<const std::uint8_t> side, const TensorInputs&,
                   const ChunkInputs& input, std::span<const std::uint8_t> bytes, std::span<std::uint8_t> out,
                   AlignedBuffer& memory) {
  QUERN_ASSIGN_OR_RETURN(const bool stored, begin_chunk(bytes, out));
  if (stored) return {};
  LogqModel model;
  QUERN_RETURN_IF_ERROR(get_side(description, side, model));
  const PlanePiece piece = piece_of(description, input.index);
  ByteReader reader(bytes);
  SpecialRuns special;
  QUERN_RETURN_IF_ERROR(special.read(reader, piece.elems));
  std::span<const std::uint8_t> rest = reader.bytes(reader.remaining());
  bool inside = true;
  if (model.bins.count() != 0) {
    LogqChunk chunk;
    ChunkScratch scratch(memory);
    QUERN_RETURN_IF_ERROR(scratch.reserve(decoder_scratch_bytes(piece.elems), 2));
    find_known(model, input.base, piece.elems, chunk.known);
    if (piece.rows() / 8 > rest.size()) return Status(StatusCode::corrupt, "tensor: means of rows are cut short");
    chunk.row_means.resize(piece.rows());
    BitReader bits(rest, kMostGolombWidth);
    get_numbers(chunk.row_means, model.center * kUnits, bits);
    for (const std::int32_t mean : chunk.row_means) inside = inside && mean >= -kMaxMean && mean <= kMaxMean;
    if (bits.failed() || !inside) return Status(StatusCode::corrupt, "tensor: means of rows are no means");
    chunk.residuals.resize(piece.elems);
    QUERN_RETURN_IF_ERROR(
        decode_residuals(model.residuals, piece, rest.subspan(bits.bytes_used()), special.places(), scratch, chunk.residuals));
    const std::uint32_t* const values = model.bins.values().data();
    const std::uint32_t count = model.bins.count();
    const auto places = special.places();
    std::size_t next = 0;
    walk(model, piece, chunk, [&](std::size_t i, std::int32_t predicted) {
      if (next < places.size() && places[next] == i) {
        ++next;
        return -1;
      }
      std::uint32_t bin = static_cast<std::uint32_t>(predicted) + static_cast<std::uint32_t>(chunk.residuals[i]);
      inside = inside && bin < count;
      bin = bin < count ? bin : 0;
      put_bits(out, i, values[bin]);
      return static_cast<std::int32_t>(bin);
    });
  } else if (special.places().size() != piece.elems || !rest.empty()) {
    inside = false;
  }
  if (!inside) return Status(StatusCode::corrupt, "tensor: a bin is out of range");
  for (std::size_t s = 0; s < special.places().size(); ++s) put_bits(out, special.places()[s], special.bits()[s]);
  return {};
}

}  // namespace

const ModeCoder kLogqCoder{Mode::logq, plan_logq, encode_logq, needs_of_logq, decode_logq};

}  // namespace quern::codec::tensor
