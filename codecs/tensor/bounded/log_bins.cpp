// Powers of two of fixed-point numbers, and bins made from them. Docs: docs/format-tensor-moments.md.
#include "codecs/tensor/bounded/log_bins.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "kernels/common/bits.h"

namespace quern::codec::tensor {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr unsigned kUnitBits = 62;
constexpr std::uint64_t kUnit = std::uint64_t{1} << kUnitBits;
constexpr std::uint64_t kPowerError = 1 << 8;  // exp2_fixed is nearer than this
/// Bins lie so much closer than twice the reach: more than the rounding of two values to binary32 can open between
/// them.
constexpr std::uint64_t kOverlap = std::uint64_t{1} << (kReachBits - 21);
constexpr std::uint32_t kLargest = 0x7f7fffffu;

constexpr std::uint64_t root(Wide x) {
  std::uint64_t r = 0;
  for (unsigned bit = 64; bit-- > 0;) {
    const std::uint64_t next = r | std::uint64_t{1} << bit;
    if (Wide{next} * next <= x) r = next;
  }
  return r;
}

/// 2^(2^-1), 2^(2^-2), ... in units of 2^-62, rounded down one after the other.
constexpr std::array<std::uint64_t, kReachBits> make_roots() {
  std::array<std::uint64_t, kReachBits> roots{};
  std::uint64_t last = 2 * kUnit;
  for (std::uint64_t& r : roots) {
    last = root(Wide{last} << kUnitBits);
    r = last;
  }
  return roots;
}
constexpr std::array<std::uint64_t, kReachBits> kRoots = make_roots();

/// digits * 2^exponent as a binary32 bit pattern: the largest number that is not above it, or the smallest that is not
/// below it. 0 to infinity.
enum class Toward { down, up, nearest };
std::uint32_t to_bits(Wide digits, int exponent, Toward toward) {
  if (digits == 0) return 0;
  const auto high = static_cast<std::uint64_t>(digits >> 64);
  const int width = high != 0 ? 64 + static_cast<int>(kernels::bit_length(high))
                              : static_cast<int>(kernels::bit_length(static_cast<std::uint64_t>(digits)));
  const int lead = exponent + width - 1;
  if (lead > 127) return toward == Toward::down ? kLargest : 0x7f800000u;
  const int last = std::max(lead - 23, -149);  // exponent of the last bit that is kept
  const int drop = last - exponent;
  Wide kept = 0;
  if (drop <= 0) {
    kept = digits << -drop;
  } else if (drop < 128) {
    kept = digits >> drop;
    const Wide rest = digits - (kept << drop);
    const Wide half = Wide{1} << (drop - 1);
    if (toward == Toward::up ? rest != 0
                             : toward == Toward::nearest && (rest > half || (rest == half && (kept & 1) != 0)))
      ++kept;
  } else {
    kept = toward == Toward::up ? 1 : 0;
  }
  // A carry into the next power of two falls into place by itself.
  const auto mantissa = static_cast<std::uint32_t>(kept);
  return lead < -126 ? mantissa : (static_cast<std::uint32_t>(lead + 126) << 23) + mantissa;
}

struct Digits {
  std::uint32_t mantissa = 0;
  int exponent = 0;
};
Digits digits_of(std::uint32_t bits) {
  const auto field = static_cast<int>(bits >> 23);
  const std::uint32_t fraction = bits & 0x7fffffu;
  return field == 0 ? Digits{fraction, -149} : Digits{fraction | 0x800000u, field - 150};
}

std::uint64_t spacing_of(std::uint64_t reach) { return 2 * reach - kOverlap; }

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace

std::uint64_t reach_of(double r) {
  constexpr double kPerNeper = 0x1.71547652b82fep+1;  // 2 / ln 2
  const double reach = r * kPerNeper * 0x1p40;
  return std::clamp(static_cast<std::uint64_t>(reach * (1 - 0x1p-45)), kMinReach, kMaxReach);
}

std::uint64_t exp2_fixed(std::uint64_t fraction) {
  std::uint64_t x = kUnit;
  for (unsigned i = 0; i < kReachBits; ++i)
    if ((fraction >> (kReachBits - 1 - i) & 1) != 0) x = static_cast<std::uint64_t>(Wide{x} * kRoots[i] >> kUnitBits);
  return x;
}

void LogBins::add(std::uint64_t reach, std::uint64_t shrink, std::int64_t bin) {
  // In a 64-bit product of spacing and bin nothing is lost: |log2 v| <= 150 and 2^40 units.
  const std::int64_t place = bin * static_cast<std::int64_t>(spacing_of(reach));
  const std::int64_t whole = floor_divide(place, std::int64_t{1} << kReachBits);
  const auto fraction = static_cast<std::uint64_t>(place - (whole << kReachBits));
  std::uint32_t value = to_bits(exp2_fixed(fraction), static_cast<int>(whole) - 62, Toward::nearest);
  value = std::clamp(value, 1u, kLargest);
  // v >= value * shrink and v * shrink <= value, shrink being 2^-reach rounded up.
  const Digits d = digits_of(value);
  values_.push_back(value);
  lowest_.push_back(std::max(to_bits(Wide{d.mantissa} * shrink, d.exponent - 62, Toward::up), 1u));
  highest_.push_back(to_bits((Wide{d.mantissa} << 100) / shrink, d.exponent - 38, Toward::down));
}

void LogBins::make_index() {
  constexpr unsigned kShift = kernels::kLogKeyShift;
  entries_.clear();
  if (values_.empty()) return;
  first_key_ = lowest_.front() >> kShift;
  const std::uint32_t last_key = highest_.back() >> kShift;
  entries_.reserve(last_key - first_key_ + 1);
  std::uint32_t bin = 0;
  for (std::uint32_t key = first_key_; key <= last_key; ++key) {
    while (highest_[bin] < key << kShift) ++bin;
    entries_.push_back({bin, highest_[bin]});
  }
  std::uint32_t key = last_key + 1;
  for (std::uint32_t next = count() - 1; key > first_key_; --key) {
    const std::uint32_t first = entries_[key - 1 - first_key_].bin;
    if (next > first + 1 || (next > first && lowest_[next] > highest_[first] + 1)) break;
    next = first;
  }
  // The first of the sampled entries may begin with patterns that its first bin does not reach.
  dense_from_ = key > last_key ? UINT32_MAX : std::max(key << kShift, lowest_[entries_[key - first_key_].bin]);
}

std::size_t LogBins::find_all(std::span<const std::uint8_t> values, std::span<std::int32_t> bins) const {
  kernels::LogBinTable table;
  table.entries = entries_.data();
  table.first_key = first_key_;
  if (!values_.empty()) {
    table.lowest = dense_from_;
    table.highest = highest_.back();
  }
  const std::size_t outside =
      kernels::tensor_log_kernels(kernels::best_isa()).find(table, values.data(), bins.size(), bins.data());
  if (outside == 0) return 0;
  std::size_t none = 0;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    if (bins[i] >= 0) continue;
    std::uint32_t bits;
    std::memcpy(&bits, values.data() + 4 * i, 4);
    const std::uint32_t bin = find(bits);
    bins[i] = bin == kNone ? -1 : static_cast<std::int32_t>(bin);
    none += bin == kNone ? 1 : 0;
  }
  return none;
}

namespace {

/// 2^-reach in units of 2^-62, rounded up.
std::uint64_t shrink_of(std::uint64_t reach) {
  const std::uint64_t one = std::uint64_t{1} << kReachBits;
  const std::uint64_t whole = (reach + one - 1) >> kReachBits;
  return ((exp2_fixed((whole << kReachBits) - reach) + kPowerError) >> whole) + 1;
}

}  // namespace

LogBins LogBins::covering(std::uint64_t reach, std::uint32_t lowest, std::uint32_t highest) {
  const auto spacing = static_cast<std::int64_t>(spacing_of(reach));
  const auto lead = [](std::uint32_t bits) {
    const Digits d = digits_of(bits);
    return d.exponent + static_cast<int>(kernels::bit_length(d.mantissa)) - 1;
  };
  const std::int64_t one = std::int64_t{1} << kReachBits;
  std::int64_t first = floor_divide(lead(lowest) * one, spacing) - 1;
  const std::int64_t last = floor_divide((lead(highest) + 1) * one, spacing) + 1;
  const std::uint64_t shrink = shrink_of(reach);
  LogBins bins;
  for (std::int64_t bin = first; bin <= last; ++bin) {
    bins.add(reach, shrink, bin);
    const bool below = bins.highest_.back() < lowest;
    const bool above = bins.lowest_.back() > highest;
    if (!below && !above) continue;
    bins.values_.pop_back();
    bins.lowest_.pop_back();
    bins.highest_.pop_back();
    if (above) break;
    ++first;
  }
  bins.first_ = first;
  bins.make_index();
  return bins;
}

Result<LogBins> LogBins::make(std::uint64_t reach, std::int64_t first, std::uint64_t count) {
  const auto bad = [] { return Status(StatusCode::corrupt, "tensor: bins are out of range"); };
  if (reach < kMinReach || reach > kMaxReach || count > kMaxBins) return bad();
  const std::int64_t limit = 160 * (std::int64_t{1} << kReachBits) / static_cast<std::int64_t>(spacing_of(reach)) + 2;
  if (first < -limit || first + static_cast<std::int64_t>(count) > limit) return bad();
  const std::uint64_t shrink = shrink_of(reach);
  LogBins bins;
  bins.first_ = first;
  for (std::uint64_t i = 0; i < count; ++i) bins.add(reach, shrink, first + static_cast<std::int64_t>(i));
  return bins;
}

}  // namespace quern::codec::tensor
