// Fits the model of logq: least squares for shares of the base and of the rows above, means of columns, and tables. All
// sums are of integers.
#include <algorithm>

#include "codecs/tensor/bounded/logq_model.h"
#include "codecs/tensor/solve.h"

namespace quern::codec::tensor {
namespace {

constexpr std::int32_t kMaxShare = 127;
constexpr std::int32_t kLeastShare = 3;          // of 64; smaller ones are 0
constexpr std::int32_t kMaxDeviation = 1 << 14;  // larger ones count as this when shares are fitted
constexpr std::size_t kTerms = kAbove + 1;       // the base, and the rows above

std::int32_t rounded_mean(std::int64_t sum, std::int64_t count) {
  const std::int64_t twice = 2 * sum + count;
  return static_cast<std::int32_t>(twice / (2 * count) - (twice % (2 * count) < 0 ? 1 : 0));
}

/// Means over rows of what base and row leave, of all sampled chunks.
Vector<std::int32_t> find_column_means(std::span<const LogqChunk> chunks, const LogqZeros& zeros, std::size_t width) {
  const auto& kernels = log_kernels();
  Vector<std::int64_t> sums(width);
  Vector<std::int32_t> part(width);
  Vector<std::uint32_t> counts(width);
  std::size_t rows = 0;
  const auto flush = [&] {
    for (std::size_t c = 0; c < width; ++c) sums[c] += part[c];
    std::fill(part.begin(), part.end(), 0);
    rows = 0;
  };
  for (const LogqChunk& chunk : chunks)
    for_rows(chunk.piece, [&](std::size_t row, std::size_t column, std::size_t begin, std::size_t end) {
      kernels.add_columns(chunk.bins.data() + begin, zeros.or_zeros(chunk.known, begin), chunk.row_means[row],
                          end - begin, part.data() + column, counts.data() + column);
      if (++rows == kFlushRows) flush();
    });
  flush();
  Vector<std::int32_t> means(width);
  for (std::size_t i = 0; i < width; ++i) means[i] = counts[i] == 0 ? 0 : rounded_mean(sums[i], counts[i]);
  return means;
}

/// Deviations of a chunk's bins from the means of row and column, as short numbers, behind zeros for three rows.
class Deviations {
 public:
  Status find(const LogqChunk& chunk, std::span<const std::int32_t> columns, const LogqZeros& zeros) {
    const std::size_t before = kAbove * row_length(chunk.piece);
    QUERN_RETURN_IF_ERROR(memory_.resize((before + chunk.piece.elems) * sizeof(std::int16_t)));
    auto* const all = reinterpret_cast<std::int16_t*>(memory_.data());
    std::fill(all, all + before, std::int16_t{0});
    first_ = all + before;
    most_ = 1;
    for_rows(chunk.piece, [&](std::size_t row, std::size_t column, std::size_t begin, std::size_t end) {
      most_ = std::max(most_, log_kernels().narrow(chunk.bins.data() + begin, zeros.or_zeros(chunk.known, begin),
                                                   chunk.row_means[row], columns.data() + column, end - begin,
                                                   kMaxDeviation, first_ + begin));
    });
    return {};
  }
  std::int16_t* first() const { return first_; }
  std::int32_t most() const { return most_; }

 private:
  AlignedBuffer memory_;
  std::int16_t* first_ = nullptr;
  std::int32_t most_ = 1;
};

using Sums = std::array<std::array<std::int64_t, kTerms + 1>, kTerms + 1>;

/// Products of an element's deviation, those above it and that of the base, summed over the regular elements.
class Products {
 public:
  /// `base`: null where there is none.
  Status add(const LogqChunk& chunk, const Deviations& own, const Deviations* base, Sums& sums) {
    constexpr std::size_t kBlock = 2048;
    const std::int64_t most = std::max(own.most(), base == nullptr ? 1 : base->most());
    // A quarter of a block's products is summed in 32 bits.
    const auto block = static_cast<std::size_t>(
        std::clamp<std::int64_t>((std::int64_t{1} << 33) / (most * most) - 16, 16, std::int64_t{kBlock}));
    const std::size_t width = row_length(chunk.piece);
    if (chunk.special != 0) QUERN_RETURN_IF_ERROR(masked_.resize(kTerms * kBlock * sizeof(std::int16_t)));
    for (std::size_t begin = 0; begin < chunk.piece.elems; begin += block) {
      const std::size_t count = std::min(block, chunk.piece.elems - begin);
      std::array<const std::int16_t*, kTerms + 1> terms{};
      if (base != nullptr) terms[0] = base->first() + begin;
      for (std::size_t a = 0; a < kAbove; ++a) terms[a + 1] = own.first() + begin - (a + 1) * width;
      terms[kTerms] = own.first() + begin;
      if (chunk.special != 0) mask(chunk, begin, count, terms);
      const std::size_t first = base == nullptr ? 1 : 0;
      for (std::size_t k = first; k < kTerms; ++k)
        for (std::size_t l = k; l <= kTerms; ++l) sums[k][l] += log_kernels().product(terms[k], terms[l], count);
    }
    return {};
  }

 private:
  /// Terms of special elements are 0; their own deviation is so already.
  void mask(const LogqChunk& chunk, std::size_t begin, std::size_t count,
            std::array<const std::int16_t*, kTerms + 1>& terms) {
    auto* to = reinterpret_cast<std::int16_t*>(masked_.data());
    const std::int32_t* const bins = chunk.bins.data() + begin;
    for (std::size_t t = 0; t < kTerms; ++t) {
      if (terms[t] == nullptr) continue;
      for (std::size_t i = 0; i < count; ++i)
        to[i] = static_cast<std::int16_t>(terms[t][i] & static_cast<std::int16_t>(~(bins[i] >> 31)));
      terms[t] = to;
      to += count;
    }
  }

  AlignedBuffer masked_;
};

std::int32_t share_of(double x) {
  const double scaled = std::clamp(x * 64, -1.0 * kMaxShare, 1.0 * kMaxShare);
  const auto rounded = static_cast<std::int32_t>(scaled + (scaled < 0 ? -0.5 : 0.5));
  return std::abs(rounded) < kLeastShare ? 0 : rounded;
}

/// Least squares: deviations from row and column means, by those of the base and of the rows above. `columns`: means of
/// columns of the chunks.
Status fit_shares(std::span<const LogqChunk> chunks, std::span<const LogqChunk> bases,
                  std::span<const std::int32_t> columns, const LogqZeros& zeros, LogqModel& model) {
  Vector<std::int32_t> base_columns;
  if (!bases.empty()) base_columns = find_column_means(bases, zeros, columns.size());
  Sums sums{};
  Deviations own;
  Deviations base;
  Products products;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    QUERN_RETURN_IF_ERROR(own.find(chunks[c], columns, zeros));
    if (!bases.empty()) QUERN_RETURN_IF_ERROR(base.find(bases[c], base_columns, zeros));
    QUERN_RETURN_IF_ERROR(products.add(chunks[c], own, bases.empty() ? nullptr : &base, sums));
  }
  std::array<std::array<double, kTerms + 1>, kTerms> system{};
  for (std::size_t k = 0; k < kTerms; ++k)
    for (std::size_t l = 0; l <= kTerms; ++l) system[k][l] = static_cast<double>(sums[std::min(k, l)][std::max(k, l)]);
  const auto solution = solve_symmetric<kTerms>(system);
  model.base_share = bases.empty() ? 0 : share_of(solution[0]);
  for (std::size_t a = 0; a < kAbove; ++a) model.above_shares[a] = share_of(solution[a + 1]);
  return {};
}

/// Bins of the bases as if these were coded by themselves: how far they lie from their own means.
Status take_bases(std::span<const LogqChunk> chunks, std::span<const std::span<const std::uint8_t>> bases,
                  const LogqModel& model, const LogqZeros& zeros, Vector<AlignedBuffer>& memory,
                  Vector<LogqChunk>& out) {
  for (std::size_t c = 0; c < bases.size(); ++c) {
    LogqChunk& base = out.emplace_back();
    base.piece = chunks[c].piece;
    QUERN_RETURN_IF_ERROR(memory.emplace_back().resize(base.piece.elems * sizeof(std::int32_t)));
    base.bins = {reinterpret_cast<std::int32_t*>(memory.back().data()), base.piece.elems};
    find_base(model, bases[c], base.bins);
    for (std::int32_t& bin : base.bins) bin = bin / kUnits + model.center;
    find_row_means(model, zeros, base);
  }
  return {};
}

}  // namespace

Status fit_logq(std::span<LogqChunk> chunks, std::span<const std::span<const std::uint8_t>> bases, std::uint64_t width,
                LogqModel& model) {
  std::size_t longest = 0;
  std::uint64_t elems = 0;
  std::size_t most = 0;
  for (const LogqChunk& chunk : chunks) {
    longest = std::max(longest, row_length(chunk.piece));
    most = std::max(most, chunk.piece.elems);
    elems += chunk.piece.elems;
  }
  const LogqZeros zeros(longest);
  for (LogqChunk& chunk : chunks) find_row_means(model, zeros, chunk);
  Vector<AlignedBuffer> known(chunks.size());
  Vector<std::int32_t> columns;
  if (width <= kMaxPlaneColumns) {
    columns = find_column_means(chunks, zeros, static_cast<std::size_t>(width));
    Vector<AlignedBuffer> memory;
    Vector<LogqChunk> base_chunks;
    QUERN_RETURN_IF_ERROR(take_bases(chunks, bases, model, zeros, memory, base_chunks));
    QUERN_RETURN_IF_ERROR(fit_shares(chunks, base_chunks, columns, zeros, model));
  }

  // With the shares known: means of what they leave.
  if (model.base_share != 0) {
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      QUERN_RETURN_IF_ERROR(known[c].resize(chunks[c].piece.elems * sizeof(std::int32_t)));
      chunks[c].known = {reinterpret_cast<std::int32_t*>(known[c].data()), chunks[c].piece.elems};
      find_known(model, bases[c], chunks[c].known);
      find_row_means(model, zeros, chunks[c]);
    }
    columns.clear();
  }
  if (width <= kMaxPlaneColumns && elems >= 4 * width) {
    if (columns.empty()) columns = find_column_means(chunks, zeros, static_cast<std::size_t>(width));
    model.column_means = std::move(columns);
    for (LogqChunk& chunk : chunks) find_row_means(model, zeros, chunk);
  }
  AlignedBuffer deviations;
  QUERN_RETURN_IF_ERROR(deviations.resize((most + kAbove * longest) * sizeof(std::int32_t)));
  Vector<ResidualSample> samples;
  for (LogqChunk& chunk : chunks) {
    // Residuals take the place of the bins.
    for_logq_rows(model, zeros, chunk,
                  {reinterpret_cast<std::int32_t*>(deviations.data()), deviations_needed(chunk.piece)},
                  [&](const kernels::LogRow& row, std::size_t begin, std::size_t count, std::int32_t* row_deviations) {
                    log_kernels().residuals(row, count, chunk.bins.data() + begin, row_deviations);
                  });
    samples.push_back({chunk.piece, chunk.bins});
  }
  return fit_residuals(samples, width, model.residuals).status();
}

}  // namespace quern::codec::tensor
