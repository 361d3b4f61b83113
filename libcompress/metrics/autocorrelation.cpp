// Rows are laid into a buffer with zeros between them, so that one loop per lag needs to know nothing of rows or gaps.
#include "libcompress/metrics/autocorrelation.h"

#include <algorithm>
#include <array>

#include "kernels/metrics/validity.h"
#include "libcompress/metrics/element.h"
#include "libcompress/metrics/error_pass.h"

namespace quern::metrics {
namespace {

constexpr std::uint64_t kBufferElems = 2048;
constexpr std::size_t kPartialSums = 8;

struct LagSums {
  std::array<double, kMaxLags + 1> products{};  ///< [0] is the sum of squares
  std::array<std::uint64_t, kMaxLags + 1> pairs{};
};

/// Centred errors of consecutive elements of an array; invalid ones are 0.
template <class E>
class Source {
 public:
  using Bits = typename E::Bits;
  Source(const ArrayView& original, const ArrayView& reconstructed, std::span<const std::uint64_t> fill_bits,
         const ErrorScale& scale)
      : x_(static_cast<const std::byte*>(original.data)),
        y_(static_cast<const std::byte*>(reconstructed.data)),
        validity_(fill_bits),
        scale_(scale) {}

  bool all_valid() const { return scale_.all_valid; }

  void read(std::uint64_t begin, std::uint64_t n, double* errors, std::uint8_t* valid) const {
    const std::byte* x = x_ + begin * sizeof(Bits);
    const std::byte* y = y_ + begin * sizeof(Bits);
    for (std::uint64_t i = 0; i < n; ++i)
      errors[i] = verifier::difference<E>(load<Bits>(x, i), load<Bits>(y, i)) * scale_.factor - scale_.mean;
    if (scale_.all_valid) return;
    for (std::uint64_t i = 0; i < n; ++i) {
      valid[i] = validity_.is_valid(load<Bits>(x, i));
      if (valid[i] == 0) errors[i] = 0.0;
    }
  }

 private:
  const std::byte* x_;
  const std::byte* y_;
  verifier::Validity<E> validity_;
  ErrorScale scale_;
};

/// Collects elements of rows and adds up products at all lags whenever it is full.
template <class E>
class LagAccumulator {
 public:
  LagAccumulator(const Source<E>& source, std::uint64_t row, unsigned lags, LagSums& sums)
      : source_(source), row_(row), lags_(lags), sums_(sums) {}

  void add(std::uint64_t begin, std::uint64_t end) {
    while (begin < end) {
      const std::uint64_t row_end = (begin / row_ + 1) * row_;
      const std::uint64_t n = std::min({row_end, end, begin + (kBufferElems - filled_)}) - begin;
      append(begin, n);
      begin += n;
      const std::uint64_t ahead = std::min<std::uint64_t>(row_end - begin, lags_);
      if (ahead != 0) {  // stopped within a row: the partners of the last elements are needed, but not as first ones
        source_.read(begin, ahead, errors_.data() + filled_, valid_.data() + filled_);
        clear(filled_ + ahead, lags_ - ahead);
        flush(filled_);
      } else {
        clear(filled_, lags_);
        if (filled_ + lags_ >= kBufferElems)
          flush(filled_);
        else
          filled_ += lags_;
      }
    }
    if (filled_ != 0) flush(filled_ - lags_);
  }

 private:
  void append(std::uint64_t begin, std::uint64_t n) {
    source_.read(begin, n, errors_.data() + filled_, valid_.data() + filled_);
    filled_ += n;
  }

  void clear(std::uint64_t at, std::uint64_t n) {
    std::fill_n(errors_.begin() + static_cast<std::ptrdiff_t>(at), n, 0.0);
    std::fill_n(valid_.begin() + static_cast<std::ptrdiff_t>(at), n, std::uint8_t{0});
  }

  void flush(std::uint64_t n) {
    for (unsigned lag = 0; lag <= lags_; ++lag) {
      sums_.products[lag] += product(n, lag);
      if (source_.all_valid()) continue;
      std::uint64_t pairs = 0;
      for (std::uint64_t i = 0; i < n; ++i) pairs += valid_[i] & valid_[i + lag];
      sums_.pairs[lag] += pairs;
    }
    filled_ = 0;
  }

  double product(std::uint64_t n, unsigned lag) const {
    std::array<double, kPartialSums> lanes{};
    const double* first = errors_.data();
    const double* second = errors_.data() + lag;
    std::uint64_t i = 0;
    for (; i + kPartialSums <= n; i += kPartialSums)
      for (std::size_t lane = 0; lane < kPartialSums; ++lane) lanes[lane] += first[i + lane] * second[i + lane];
    for (; i < n; ++i) lanes[i % kPartialSums] += first[i] * second[i];
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
  }

  const Source<E>& source_;
  std::uint64_t row_;
  unsigned lags_;
  LagSums& sums_;
  std::uint64_t filled_ = 0;
  std::array<double, kBufferElems + 2 * kMaxLags> errors_;
  std::array<std::uint8_t, kBufferElems + 2 * kMaxLags> valid_;
};

struct LagTotals {
  std::array<verifier::CompensatedSum, kMaxLags + 1> products;
  std::array<std::uint64_t, kMaxLags + 1> pairs{};
};

template <class E>
Status add_blocks(const Source<E>& source, std::uint64_t elems, std::uint64_t row, unsigned lags, TaskRunner& runner,
                  Progress& progress, LagTotals& totals) {
  const auto body = [&](std::uint64_t block, LagSums& sums) {
    LagAccumulator<E> accumulator(source, row, lags, sums);
    accumulator.add(block * kBlockElems, std::min(elems, (block + 1) * kBlockElems));
  };
  const auto fold = [&](const LagSums& sums) {
    for (unsigned lag = 0; lag <= lags; ++lag) {
      totals.products[lag].add(sums.products[lag]);
      totals.pairs[lag] += sums.pairs[lag];
    }
  };
  return for_blocks<LagSums>(block_count(elems), kBlockElems, runner, progress, body, fold);
}

}  // namespace

Result<Vector<double>> error_autocorrelation(const ArrayView& original, const ArrayView& reconstructed,
                                             std::span<const std::uint64_t> fill_bits, unsigned lags,
                                             const ErrorScale& scale, TaskRunner& runner, Progress& progress) {
  const std::uint64_t elems = original.elems();
  const std::size_t rank = original.shape.rank();
  const std::uint64_t row = rank == 0 ? 1 : original.shape[rank - 1];
  Vector<double> correlation(lags, 0.0);
  if (elems == 0 || row < 2) return correlation;
  const auto used = static_cast<unsigned>(std::min<std::uint64_t>(lags, row - 1));
  LagTotals totals;
  const Status status = visit_dtype(original.dtype, [&](auto type) {
    using E = typename decltype(type)::Element;
    const Source<E> source(original, reconstructed, fill_bits, scale);
    return add_blocks(source, elems, row, used, runner, progress, totals);
  });
  if (!status.ok()) return status;
  if (scale.all_valid)
    for (unsigned lag = 0; lag <= used; ++lag) totals.pairs[lag] = elems / row * (row - lag);
  if (totals.pairs[0] == 0) return correlation;
  const double variance = totals.products[0].value() / static_cast<double>(totals.pairs[0]);
  // Below this, what is left of a constant error is the rounding of its mean.
  if (!(variance > scale.mean * scale.mean * 0x1p-96)) return correlation;
  for (unsigned lag = 1; lag <= used; ++lag)
    if (totals.pairs[lag] != 0)
      correlation[lag - 1] = totals.products[lag].value() / static_cast<double>(totals.pairs[lag]) / variance;
  return correlation;
}

}  // namespace quern::metrics
