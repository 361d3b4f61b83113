// Sixteen products at a time: an instruction multiplies pairs of 16-bit integers and adds each pair.
#include <immintrin.h>

#include <cstring>

#include "kernels/network/cpu/products.h"

namespace quern::kernels {
namespace {

/// Sums of eight rows at `Places` places.
template <std::size_t Places>
[[gnu::always_inline]] inline void sum_rows(const std::int16_t* inputs, std::size_t pairs, const std::int16_t* weights,
                                            const std::int32_t* bias, std::size_t rows, std::int32_t* sums) {
  __m256i sum[Places];
  for (std::size_t p = 0; p < Places; ++p) sum[p] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bias));
  for (std::size_t k = 0; k < pairs; ++k) {
    const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights + k * 2 * kProductRows));
    for (std::size_t p = 0; p < Places; ++p) {
      std::int32_t pair = 0;
      std::memcpy(&pair, inputs + (p * pairs + k) * 2, sizeof pair);
      sum[p] = _mm256_add_epi32(sum[p], _mm256_madd_epi16(w, _mm256_set1_epi32(pair)));
    }
  }
  for (std::size_t p = 0; p < Places; ++p) _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + p * rows), sum[p]);
}

void products(const std::int16_t* inputs, std::size_t places, std::size_t pairs, const std::int16_t* weights,
              const std::int32_t* bias, std::size_t rows, std::int32_t* sums) {
  constexpr std::size_t kPlaces = 8;
  for (std::size_t first = 0; first < rows; first += kProductRows) {
    const std::int16_t* const w = weights + first * 2 * pairs;
    std::size_t p = 0;
    for (; p + kPlaces <= places; p += kPlaces)
      sum_rows<kPlaces>(inputs + p * 2 * pairs, pairs, w, bias + first, rows, sums + p * rows + first);
    for (; p < places; ++p) sum_rows<1>(inputs + p * 2 * pairs, pairs, w, bias + first, rows, sums + p * rows + first);
  }
}

constexpr NetworkKernels kKernels{&products};

}  // namespace

const NetworkKernels& network_kernels_avx2();
const NetworkKernels& network_kernels_avx2() { return kKernels; }

}  // namespace quern::kernels
