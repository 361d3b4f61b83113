// What the parts of logq share: the model of a tensor, and a chunk's bins with what is known of them.
#pragma once

#include <array>

#include "codecs/tensor/bounded/log_bins.h"
#include "codecs/tensor/bounded/lossy_chunk.h"

namespace quern::codec::tensor {

inline constexpr std::size_t kAbove = kernels::kLogRowsAbove;  ///< rows above that a prediction takes part of
inline constexpr std::int32_t kUnits = 4;                      ///< means are kept in quarters of a bin
inline constexpr std::int32_t kMaxMean = 1 << 22;
inline constexpr std::size_t kFlushRows = 64;  ///< numbers below 2^24 that 32 bits hold the sum of

struct LogqModel {
  LogBins bins;
  std::uint64_t reach = 0;
  std::int32_t center = 0;      ///< a bin that stands for missing ones
  std::int32_t base_share = 0;  ///< in 1/64
  std::array<std::int32_t, kAbove> above_shares{};
  Vector<std::int32_t> column_means;  ///< empty: 0
  ResidualModel residuals;

  bool takes_above() const { return above_shares != std::array<std::int32_t, kAbove>{}; }
};

void put_logq_side(const LogqModel& model, Vector<std::uint8_t>& side);
Status get_logq_side(const TensorDescription& description, std::span<const std::uint8_t> side, LogqModel& model);

inline const kernels::TensorLogKernels& log_kernels() { return kernels::tensor_log_kernels(kernels::best_isa()); }

/// A chunk on its way. Spans are of memory that the owner holds.
struct LogqChunk {
  PlanePiece piece;
  std::span<std::int32_t> bins;   ///< of the values; -1: special
  std::span<std::int32_t> known;  ///< the base's part of the prediction, in quarters of a bin; empty: 0
  Vector<std::int32_t> row_means;
  std::size_t special = 0;  ///< how many bins are -1
};

/// Zeros for a row of what is not there.
class LogqZeros {
 public:
  explicit LogqZeros(std::size_t width) : zeros_(width) {}

  const std::int32_t* or_zeros(std::span<const std::int32_t> numbers, std::size_t at) const {
    return numbers.empty() ? zeros_.data() : numbers.data() + at;
  }

 private:
  Vector<std::int32_t> zeros_;
};

inline std::size_t row_length(const PlanePiece& piece) {
  return static_cast<std::size_t>(std::min<std::uint64_t>(piece.width, piece.elems));
}

/// The base's bins in quarters of a bin from the center; 0 where it has none.
void find_base(const LogqModel& model, std::span<const std::uint8_t> base, std::span<std::int32_t> out);
/// The base's part of predictions.
void find_known(const LogqModel& model, std::span<const std::uint8_t> base, std::span<std::int32_t> known);

/// Means over the regular elements of each row of what base and columns leave.
void find_row_means(const LogqModel& model, const LogqZeros& zeros, LogqChunk& chunk);

/// Calls body(row, begin, count, deviations) for each row of a chunk, with what predictions of its elements are made
/// of; the body fills in the row's deviations. `memory` holds deviations_needed() numbers.
std::size_t deviations_needed(const PlanePiece& piece);
template <class Body>
void for_logq_rows(const LogqModel& model, const LogqZeros& zeros, const LogqChunk& chunk,
                   std::span<std::int32_t> memory, const Body& body);

/// Whether sums of shares of deviations may need more than 32 bits.
bool needs_wide_sums(const LogqModel& model, const LogqChunk& chunk);

/// Fits everything but the bins and the center to some chunks, whose bins are known.
Status fit_logq(std::span<LogqChunk> chunks, std::span<const std::span<const std::uint8_t>> bases, std::uint64_t width,
                LogqModel& model);

template <class Body>
void for_logq_rows(const LogqModel& model, const LogqZeros& zeros, const LogqChunk& chunk,
                   std::span<std::int32_t> memory, const Body& body) {
  kernels::LogRow parts;
  parts.width = row_length(chunk.piece);
  parts.wide = needs_wide_sums(model, chunk);
  std::copy(model.above_shares.begin(), model.above_shares.end(), parts.shares);
  // Above the first rows there are zeros.
  const std::size_t before = kAbove * parts.width;
  std::fill(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(before), 0);
  std::int32_t* const deviations = memory.data() + before;
  for_rows(chunk.piece, [&](std::size_t row, std::size_t column, std::size_t begin, std::size_t end) {
    parts.row_mean = chunk.row_means[row];
    parts.column_means = zeros.or_zeros(model.column_means, column);
    parts.known = zeros.or_zeros(chunk.known, begin);
    parts.above = deviations + begin - parts.width;
    body(parts, begin, end - begin, deviations + begin);
  });
}

}  // namespace quern::codec::tensor
