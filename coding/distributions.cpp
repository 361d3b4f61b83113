// Which distribution serves which context bin, and the stored form of all.
#include "coding/distributions.h"

namespace quern::coding {
namespace {

using kernels::kContextBins;
using kernels::TokenDistribution;

constexpr unsigned kBinBits = 6;
constexpr unsigned kTokenBits = 7;
constexpr unsigned kShapeBits = 3;
constexpr unsigned kScaleBits = 8;

}  // namespace

std::array<std::uint8_t, kContextBins> serving_bins(const Distributions& distributions) {
  std::array<std::uint8_t, kContextBins> serving{};
  std::size_t last = kContextBins;
  for (std::size_t b = kContextBins; b-- > 0;)
    if (distributions[b].tokens != 0) last = b;  // the lowest present one serves those below it
  for (std::size_t b = 0; b < kContextBins; ++b) {
    if (distributions[b].tokens != 0) last = b;
    serving[b] = static_cast<std::uint8_t>(last);
  }
  return serving;
}

void write_distributions(const Distributions& distributions, BitWriter& writer) {
  std::size_t first = 0;
  while (first + 1 < kContextBins && distributions[first].tokens == 0) ++first;
  std::size_t last = kContextBins - 1;
  while (last > first && distributions[last].tokens == 0) --last;
  writer.put(first, kBinBits);
  writer.put(last, kBinBits);
  for (std::size_t b = first; b <= last; ++b) {
    const TokenDistribution& bin = distributions[b];
    writer.put(bin.tokens, kTokenBits);
    if (bin.tokens < 2) continue;
    writer.put(bin.zero, kernels::kFrequencySumBits);
    if (bin.tokens < 3) continue;
    writer.put(bin.shape, kShapeBits);
    writer.put(bin.scale, kScaleBits);
  }
}

Status read_distributions(BitReader& reader, Distributions& distributions) {
  const std::size_t first = reader.get(kBinBits);
  const std::size_t last = reader.get(kBinBits);
  for (std::size_t b = first; b <= last; ++b) {
    TokenDistribution& bin = distributions[b];
    bin.tokens = static_cast<std::uint8_t>(reader.get(kTokenBits));
    if (bin.tokens > kernels::kResidualTokens)
      return Status(StatusCode::corrupt, "residuals: a context bin has too many tokens");
    if (bin.tokens < 2) continue;
    bin.zero = static_cast<std::uint16_t>(reader.get(kernels::kFrequencySumBits));
    if (bin.zero == 0 || bin.zero + bin.tokens - 1u > kernels::kFrequencySum)
      return Status(StatusCode::corrupt, "residuals: frequencies of a context bin do not add up");
    if (bin.tokens < 3) continue;
    bin.shape = static_cast<std::uint8_t>(reader.get(kShapeBits));
    bin.scale = static_cast<std::uint8_t>(reader.get(kScaleBits));
  }
  return {};
}

}  // namespace quern::coding
