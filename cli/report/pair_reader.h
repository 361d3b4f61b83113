// Elements of two arrays as binary64, a run at a time, with invalid ones as NaN.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <quern/array.h>

namespace quern::report {

/// One run of elements. `original` and `error` are NaN where the original is not finite or is a fill value; `error` is
/// original - reconstructed, and not finite where the reconstruction is not.
struct PairRun {
  std::vector<double> original;
  std::vector<double> reconstructed;
  std::vector<double> error;
};

class PairReader {
 public:
  /// Arrays of equal dtype and shape; neither they nor the fill values are copied.
  PairReader(const ArrayView& original, const ArrayView& reconstructed, std::span<const std::uint64_t> fill_bits)
      : original_(original), reconstructed_(reconstructed), fill_bits_(fill_bits) {}

  const Shape& shape() const { return original_.shape; }
  /// Elements begin, begin + stride, ... ; `run` is resized to `n`.
  void read(std::uint64_t begin, std::uint64_t n, std::uint64_t stride, PairRun& run) const;

 private:
  ArrayView original_;
  ArrayView reconstructed_;
  std::span<const std::uint64_t> fill_bits_;
};

}  // namespace quern::report
