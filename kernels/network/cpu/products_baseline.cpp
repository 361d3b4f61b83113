// The reference: one product after another.
#include "kernels/network/cpu/products.h"

namespace quern::kernels {
namespace {

void products(const std::int16_t* inputs, std::size_t places, std::size_t pairs, const std::int16_t* weights,
              const std::int32_t* bias, std::size_t rows, std::int32_t* sums) {
  for (std::size_t p = 0; p < places; ++p) {
    const std::int16_t* const in = inputs + p * 2 * pairs;
    for (std::size_t first = 0; first < rows; first += kProductRows) {
      const std::int16_t* at = weights + first * 2 * pairs;
      std::int32_t sum[kProductRows];
      for (std::size_t r = 0; r < kProductRows; ++r) sum[r] = bias[first + r];
      for (std::size_t k = 0; k < pairs; ++k, at += 2 * kProductRows)
        for (std::size_t r = 0; r < kProductRows; ++r) sum[r] += at[2 * r] * in[2 * k] + at[2 * r + 1] * in[2 * k + 1];
      for (std::size_t r = 0; r < kProductRows; ++r) sums[p * rows + first + r] = sum[r];
    }
  }
}

constexpr NetworkKernels kKernels{&products};

}  // namespace

const NetworkKernels& network_kernels_baseline();
const NetworkKernels& network_kernels_baseline() { return kKernels; }

}  // namespace quern::kernels
