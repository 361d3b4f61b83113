// Fits levels of rows and columns and tables of symbols to some chunks of a tensor.
#include <algorithm>

#include "codecs/tensor/residuals/residual_levels.h"
#include "codecs/tensor/residuals/residual_plane.h"

namespace quern::codec::tensor {
namespace {

constexpr std::uint32_t kFewSymbols = 400;  // a context of fewer shares its neighbour's table
constexpr std::size_t kSamplesToChoose = 2;
constexpr unsigned kChoices = 4;  // bit 0: rows have levels; bit 1: columns have

using ContextCounts = std::array<SymbolCounts, kContexts>;

constexpr std::array<std::uint8_t, kContexts> make_each_its_own() {
  std::array<std::uint8_t, kContexts> own{};
  for (std::size_t c = 0; c < kContexts; ++c) own[c] = static_cast<std::uint8_t>(c);
  return own;
}
constexpr std::array<std::uint8_t, kContexts> kEachItsOwn = make_each_its_own();

/// Levels of all rows of the samples, and counts of their symbols under a choice of levels.
class Samples {
 public:
  explicit Samples(std::span<const ResidualSample> samples) : samples_(samples), rows_(samples.size()) {
    for (std::size_t s = 0; s < samples.size(); ++s) {
      sum_ += find_row_levels(samples[s].piece, samples[s].residuals, rows_[s]);
      elems_ += samples[s].residuals.size();
      longest_ = std::max(longest_, samples[s].residuals.size());
    }
    symbols_.resize(samples.size());
  }
  std::uint64_t elems() const { return elems_; }
  std::int32_t base_level() const { return level_of(sum_, elems_); }
  std::span<const std::int32_t> rows(std::size_t sample) const { return rows_[sample]; }

  /// Adds counts of the samples begin .. end - 1.
  Status count(const ResidualModel& model, std::size_t begin, std::size_t end, ContextCounts& counts) {
    QUERN_RETURN_IF_ERROR(contexts_.resize(longest_));
    for (std::size_t s = begin; s < end; ++s) {
      const std::size_t elems = samples_[s].residuals.size();
      QUERN_RETURN_IF_ERROR(find_symbols(s));
      find_tables(samples_[s].piece, model.row_levels ? rows(s) : std::span<const std::int32_t>(), model.column_levels,
                  model.base_level, kEachItsOwn, contexts_.span());
      residual_kernels().count(symbols_[s].data(), contexts_.data(), elems, counts[0].data());
    }
    return {};
  }

  /// Levels of columns, beside that of all.
  Vector<std::int32_t> column_levels(std::size_t width) const {
    constexpr std::size_t kRowsToFlush = 2048;  // magnitudes of 2^20 that 32 bits hold the sum of
    const auto& kernels = residual_kernels();
    const std::int32_t base = base_level();
    Vector<std::uint64_t> sums(width);
    Vector<std::uint32_t> part(width);
    Vector<std::uint64_t> begun(width + 1);  // rows that begin in a column, less those that end before it
    std::size_t rows = 0;
    const auto flush = [&] {
      for (std::size_t c = 0; c < width; ++c) sums[c] += part[c];
      std::fill(part.begin(), part.end(), 0u);
      rows = 0;
    };
    for (const ResidualSample& sample : samples_)
      for_rows(sample.piece, [&](std::size_t, std::size_t column, std::size_t begin, std::size_t end) {
        kernels.add_magnitudes(sample.residuals.data() + begin, end - begin, kMaxMagnitudeSeen, part.data() + column);
        ++begun[column];
        --begun[column + end - begin];
        if (++rows == kRowsToFlush) flush();
      });
    flush();
    Vector<std::int32_t> levels(width);
    std::uint64_t count = 0;
    for (std::size_t c = 0; c < width; ++c) {
      count += begun[c];
      levels[c] = count == 0 ? 0 : level_of(sums[c], count) - base;
    }
    return levels;
  }

 private:
  Status find_symbols(std::size_t sample) {
    if (symbols_[sample].size() != 0) return {};
    const auto residuals = samples_[sample].residuals;
    QUERN_RETURN_IF_ERROR(symbols_[sample].resize(residuals.size()));
    residual_kernels().symbols(residuals.data(), residuals.size(), symbols_[sample].data());
    return {};
  }

  std::span<const ResidualSample> samples_;
  Vector<Vector<std::int32_t>> rows_;
  Vector<AlignedBuffer> symbols_;
  AlignedBuffer contexts_;
  std::uint64_t sum_ = 0;
  std::uint64_t elems_ = 0;
  std::size_t longest_ = 0;
};

/// Contexts of few symbols join the next one that has many, below or else above.
std::uint64_t fit_tables(ContextCounts counts, ResidualModel& model) {
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
    if (keeper[c] != c && totals[c] != 0)
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

}  // namespace

Result<std::uint64_t> fit_residuals(std::span<const ResidualSample> given, std::uint64_t width, ResidualModel& model) {
  Samples samples(given);
  const std::uint64_t elems = samples.elems();
  const std::int32_t base = samples.base_level();
  Vector<std::int32_t> columns;
  if (width <= kMaxPlaneColumns && elems >= 4 * width) columns = samples.column_levels(static_cast<std::size_t>(width));
  const std::uint64_t column_bits = bits_of_numbers(columns, 0);

  // Which levels pay is found on the first samples.
  const std::size_t few = std::min(given.size(), kSamplesToChoose);
  std::uint64_t few_elems = 0;
  std::uint64_t row_bits = 0;
  for (std::size_t s = 0; s < few; ++s) {
    row_bits += bits_of_numbers(samples.rows(s), base);
    few_elems += given[s].residuals.size();
  }
  const std::uint64_t times = few_elems == 0 ? 1 : (elems + few_elems - 1) / few_elems;
  const auto candidate_of = [&](unsigned choice) {
    ResidualModel candidate;
    candidate.base_level = static_cast<std::uint8_t>(base);
    candidate.row_levels = (choice & 1) != 0;
    if ((choice & 2) != 0) candidate.column_levels = columns;
    return candidate;
  };
  // Counts of each choice. Without levels, all contexts are one.
  Vector<ContextCounts> counts(kChoices);
  for (unsigned choice = 1; choice < (columns.empty() ? 2 : kChoices); ++choice)
    QUERN_RETURN_IF_ERROR(samples.count(candidate_of(choice), 0, few, counts[choice]));
  SymbolCounts& all = counts[0][kernels::tensor_context(static_cast<std::uint8_t>(base))];
  for (const SymbolCounts& context : counts[1])
    for (std::size_t s = 0; s < kSymbols; ++s) all[s] += context[s];

  std::uint64_t least = UINT64_MAX;
  unsigned best = 0;
  for (unsigned choice = 0; choice < kChoices; ++choice) {
    if ((choice & 2) != 0 && columns.empty()) break;
    ResidualModel candidate = candidate_of(choice);
    const std::uint64_t cost = (fit_tables(counts[choice], candidate) + (candidate.row_levels ? row_bits : 0)) * times +
                               ((choice & 2) != 0 ? column_bits : 0);
    if (cost >= least) continue;
    least = cost;
    best = choice;
    model = std::move(candidate);
  }
  if (few < given.size()) {
    QUERN_RETURN_IF_ERROR(samples.count(model, few, given.size(), counts[best]));
    fit_tables(counts[best], model);
  }
  return least;
}

}  // namespace quern::codec::tensor
