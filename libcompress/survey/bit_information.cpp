// Counts of ones in a, in b and in both say all of a pair's joint distribution. Eight counters of a byte each are
// added to at once.
#include "libcompress/survey/bit_information.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <type_traits>

#include <quern/memory.h>

#include "libcompress/core/run_tasks.h"
#include "libcompress/pipeline/elements.h"

namespace quern {
namespace {

constexpr std::uint64_t kMostPiecePairs = UINT64_C(1) << 16;

/// Byte k of entry b is bit k of b.
constexpr std::array<std::uint64_t, 256> make_spread() {
  std::array<std::uint64_t, 256> out{};
  for (unsigned b = 0; b < 256; ++b)
    for (unsigned k = 0; k < 8; ++k) out[b] |= static_cast<std::uint64_t>(b >> k & 1) << 8 * k;
  return out;
}
constexpr std::array<std::uint64_t, 256> kSpread = make_spread();

/// How many words have each bit.
template <class Bits>
class BitCounter {
 public:
  void add(Bits word) {
    for (std::size_t i = 0; i < sizeof(Bits); ++i) bytes_[i] += kSpread[static_cast<std::uint8_t>(word >> 8 * i)];
    if (++since_ == 255) flush();
  }
  void flush() {
    for (std::size_t i = 0; i < sizeof(Bits); ++i) {
      for (std::size_t k = 0; k < 8; ++k) counts_[8 * i + k] += bytes_[i] >> 8 * k & 255;
      bytes_[i] = 0;
    }
    since_ = 0;
  }
  std::uint64_t count(std::size_t bit) const { return counts_[bit]; }

 private:
  std::array<std::uint64_t, sizeof(Bits)> bytes_{};
  std::array<std::uint64_t, 8 * sizeof(Bits)> counts_{};
  unsigned since_ = 0;
};

/// The exponent as a sign and a magnitude: near 1 a biased one changes all of its bits at once.
template <class Element>
typename Element::Bits with_signed_exponent(typename Element::Bits bits) {
  using Bits = typename Element::Bits;
  constexpr int kBias = static_cast<int>(Element::kInfinity >> Element::kFractionBits) / 2;
  const int exponent = static_cast<int>(static_cast<Bits>(bits & Element::kInfinity) >> Element::kFractionBits) - kBias;
  const auto magnitude = static_cast<Bits>(exponent < 0 ? -exponent : exponent);
  const auto sign = static_cast<Bits>(exponent < 0 ? Element::kSign >> 1 : 0);
  return static_cast<Bits>((bits & ~Element::kInfinity) | sign |
                           static_cast<Bits>(magnitude << Element::kFractionBits));
}

struct Counts {
  std::uint64_t pairs = 0;
  std::array<std::uint64_t, 64> first{}, second{}, both{};

  void add(const Counts& other) {
    pairs += other.pairs;
    for (std::size_t i = 0; i < 64; ++i) {
      first[i] += other.first[i];
      second[i] += other.second[i];
      both[i] += other.both[i];
    }
  }
};

template <class Element>
Counts count_pairs(const std::uint8_t* data, std::uint64_t begin, std::uint64_t end, std::uint64_t stride,
                   std::span<const std::uint64_t> fill_bits) {
  using Bits = typename Element::Bits;
  BitCounter<Bits> first, second, both;
  Counts out;
  for (std::uint64_t i = begin; i < end; ++i) {
    const Bits a = load_bits<Element>(data, i);
    const Bits b = load_bits<Element>(data, i + stride);
    if (!is_valid<Element>(a, fill_bits) || !is_valid<Element>(b, fill_bits)) continue;
    const Bits x = with_signed_exponent<Element>(a);
    const Bits y = with_signed_exponent<Element>(b);
    first.add(x);
    second.add(y);
    both.add(x & y);
    ++out.pairs;
  }
  first.flush();
  second.flush();
  both.flush();
  for (std::size_t bit = 0; bit < 8 * sizeof(Bits); ++bit) {
    out.first[bit] = first.count(bit);
    out.second[bit] = second.count(bit);
    out.both[bit] = both.count(bit);
  }
  return out;
}

/// Logarithms differ in their last bits between machines, what decides must not.
double coarse(double information) { return std::max(std::round(information * 0x1p40) * 0x1p-40, 0.0); }

/// Of one bit, from how often it is set in a, in b and in both.
double mutual_information(double pairs, double first, double second, double both) {
  const double joint[4] = {both, first - both, second - both, pairs - first - second + both};
  const double alone[4] = {first * second, first * (pairs - second), (pairs - first) * second,
                           (pairs - first) * (pairs - second)};
  double out = 0;
  for (unsigned i = 0; i < 4; ++i)
    if (joint[i] > 0) out += joint[i] / pairs * std::log2(joint[i] * pairs / alone[i]);
  return coarse(out);
}

unsigned fraction_bits(DType dtype) {
  switch (dtype) {
    case DType::f16: return 10;
    case DType::bf16: return 7;
    case DType::f64: return 52;
    default: return 23;
  }
}

}  // namespace

Result<BitInformation> bit_information(const ArrayView& array, std::size_t axis,
                                       std::span<const std::uint64_t> fill_bits, TaskRunner& runner) {
  std::uint64_t stride = 1;
  for (std::size_t a = axis + 1; a < array.shape.rank(); ++a) stride *= array.shape[a];
  const std::uint64_t run = stride * (array.shape[axis] - 1);  // neighbouring pairs stand side by side
  BitInformation out;
  if (array.elems() == 0 || run == 0) return out;
  const std::uint64_t runs = array.elems() / (stride * array.shape[axis]);
  const std::uint64_t pieces_a_run = (run + kMostPiecePairs - 1) / kMostPiecePairs;
  const std::uint64_t runs_a_task = std::max<std::uint64_t>(kMostPiecePairs / run, 1);
  const auto tasks = static_cast<std::size_t>((runs + runs_a_task - 1) / runs_a_task * pieces_a_run);
  Counts total;
  std::mutex mutex;
  const auto* const data = static_cast<const std::uint8_t*>(array.data);
  QUERN_RETURN_IF_ERROR(run_tasks(runner, tasks, [&](std::size_t task) -> Status {
    const std::uint64_t from = task / pieces_a_run * runs_a_task;
    const std::uint64_t begin = task % pieces_a_run * kMostPiecePairs;
    const std::uint64_t end = std::min(begin + kMostPiecePairs, run);
    Counts mine;
    with_element(array.dtype, [&](auto element) {
      using Element = decltype(element);
      if constexpr (!std::is_same_v<Element, IntegerElement<typename Element::Key>>) {
        for (std::uint64_t r = from; r < std::min(from + runs_a_task, runs); ++r) {
          const std::uint64_t origin = r * stride * array.shape[axis];
          mine.add(count_pairs<Element>(data, origin + begin, origin + end, stride, fill_bits));
        }
      }
    });
    const std::lock_guard lock(mutex);
    total.add(mine);
    return {};
  }));
  out.pairs = total.pairs;
  if (total.pairs == 0) return out;
  const std::size_t width = 8 * dtype_bytes(array.dtype);
  for (std::size_t bit = 0; bit < width; ++bit) {
    const std::size_t from = width - 1 - bit;
    out.bits[bit] = mutual_information(static_cast<double>(total.pairs), static_cast<double>(total.first[from]),
                                       static_cast<double>(total.second[from]), static_cast<double>(total.both[from]));
  }
  return out;
}

// 1 minus the entropy of a coin whose heads fall as often as they do with 1 % probability at most: 2.5758 deviations
// from a half.
double chance_information(std::uint64_t pairs) {
  if (pairs == 0) return 1;
  const double heads = std::min(0.5 + 2.5758293035489004 / (2 * std::sqrt(static_cast<double>(pairs))), 1.0);
  if (heads >= 1) return 1;
  return coarse(1 + heads * std::log2(heads) + (1 - heads) * std::log2(1 - heads));
}

unsigned mantissa_bits_for(const BitInformation& information, DType dtype, double share) {
  const std::size_t width = 8 * dtype_bytes(dtype);
  const unsigned mantissa = fraction_bits(dtype);
  const double noise = 1.5 * *std::max_element(information.bits.begin() + static_cast<std::ptrdiff_t>(width - 4),
                                               information.bits.begin() + static_cast<std::ptrdiff_t>(width));
  const double least = std::max(noise, chance_information(information.pairs));
  std::array<double, 64> sums{};
  double sum = 0;
  for (std::size_t bit = 0; bit < width; ++bit) {
    if (information.bits[bit] > least) sum += information.bits[bit];
    sums[bit] = sum;
  }
  if (!(sum > 0)) return mantissa;  // nothing is known to be noise alone
  for (std::size_t bit = 0; bit < width; ++bit)
    if (sums[bit] > share * sum)
      return bit + 1 > width - mantissa ? static_cast<unsigned>(bit + 1 - (width - mantissa)) : 0U;
  return mantissa;
}

}  // namespace quern
