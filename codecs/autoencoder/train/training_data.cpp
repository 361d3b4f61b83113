// Arrays to blocks.
#include "codecs/autoencoder/train/training_data.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace quern::codec::autoencoder::train {

std::vector<float> sample_blocks(const std::vector<TrainingArray>& arrays, const std::array<std::uint32_t, 3>& block,
                                 std::size_t most, bool anywhere, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> out;
  const std::size_t elems = std::size_t{block[0]} * block[1] * block[2];
  // As many tries as blocks are wanted: blocks of equal values are left out.
  for (std::size_t n = 0; n < most; ++n) {
    const TrainingArray& array = arrays[random() % arrays.size()];
    std::array<std::uint64_t, 3> begin{};
    bool inside = true;
    for (std::size_t a = 0; a < 3; ++a) {
      inside = inside && array.extents[a] >= block[a];
      if (!inside) break;
      begin[a] =
          anywhere ? random() % (array.extents[a] - block[a] + 1) : random() % (array.extents[a] / block[a]) * block[a];
    }
    if (!inside) continue;
    const std::size_t first = out.size();
    double sum = 0;
    for (std::uint64_t z = 0; z < block[0]; ++z)
      for (std::uint64_t y = 0; y < block[1]; ++y)
        for (std::uint64_t x = 0; x < block[2]; ++x) {
          const std::uint64_t at = ((begin[0] + z) * array.extents[1] + begin[1] + y) * array.extents[2] + begin[2] + x;
          out.push_back(array.values[at] / array.half_range);
          sum += static_cast<double>(out.back());
        }
    const auto mean = static_cast<float>(sum / static_cast<double>(elems));
    float largest = 0;
    for (std::size_t i = first; i < out.size(); ++i) {
      out[i] -= mean;
      largest = std::max(largest, std::fabs(out[i]));
    }
    if (!(largest > 1e-3F)) out.resize(first);
  }
  return out;
}

}  // namespace quern::codec::autoencoder::train
