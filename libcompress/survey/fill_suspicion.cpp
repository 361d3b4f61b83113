// One pass keeps the few smallest and the few largest distinct values with their counts. Repeated ones at the ends are
// set aside; what is left says how wide the data are.
#include "libcompress/survey/fill_suspicion.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "libcompress/pipeline/elements.h"

namespace quern {
namespace {

constexpr std::size_t kKept = 4;  // distinct values at either end; at most one fewer can be fill values
constexpr std::size_t kDistinct = 16;
constexpr std::uint64_t kRepeats = 16;
constexpr double kFarSpreads = 1e3;
// No measurement in common units is that large, so neighbours of equal value do not excuse it.
constexpr double kHuge = 1e15;

/// Values that people and libraries use for missing data.
constexpr std::array kUsual{-99.0,   -999.0, -9999.0,  -99999.0,   -999999.0,   -32768.0,     -32767.0,    32767.0,
                            65535.0, -1e20,  1e20,     -1e30,      1e30,        -1e34,        1e34,        -1e35,
                            1e35,    1e36,   -9.99e33, 9.96921e36, 2147483647., -2147483648., -2147483647.};

bool is_usual(double value) {
  for (const double usual : kUsual)
    if (std::fabs(value - usual) <= 1e-5 * std::fabs(usual)) return true;
  return std::fabs(value) == static_cast<double>(std::numeric_limits<float>::max()) ||
         std::fabs(value) == std::numeric_limits<double>::max();
}

/// The kKept distinct keys that come first by `Before`, with how often each was met.
template <class Key, class Before>
class Ends {
 public:
  /// False where the key comes after all that are kept.
  bool may_take(Key key) const { return used_ < kKept || !Before{}(keys_[kKept - 1], key); }
  void add(Key key) {
    std::size_t at = 0;
    while (at < used_ && Before{}(keys_[at], key)) ++at;
    if (at < used_ && keys_[at] == key) {
      ++counts_[at];
      return;
    }
    if (at == kKept) return;
    for (std::size_t i = std::min(used_, kKept - 1); i > at; --i) {
      keys_[i] = keys_[i - 1];
      counts_[i] = counts_[i - 1];
    }
    keys_[at] = key;
    counts_[at] = 1;
    used_ = std::min(used_ + 1, kKept);
  }
  std::size_t used() const { return used_; }
  Key key(std::size_t i) const { return keys_[i]; }
  std::uint64_t count(std::size_t i) const { return counts_[i]; }

 private:
  std::array<Key, kKept> keys_{};
  std::array<std::uint64_t, kKept> counts_{};
  std::size_t used_ = 0;
};

struct Less {
  template <class Key>
  bool operator()(Key a, Key b) const {
    return a < b;
  }
};
struct Greater {
  template <class Key>
  bool operator()(Key a, Key b) const {
    return a > b;
  }
};

/// Up to kDistinct different keys, as they are met.
template <class Key>
class FewKeys {
 public:
  bool full() const { return used_ == kDistinct; }
  void add(Key key) {
    for (std::size_t i = 0; i < used_; ++i)
      if (keys_[i] == key) return;
    if (!full()) keys_[used_++] = key;
  }
  std::size_t used() const { return used_; }

 private:
  std::array<Key, kDistinct> keys_{};
  std::size_t used_ = 0;
};

template <class Element>
struct Extremes {
  using Key = typename Element::Key;
  Ends<Key, Less> low;
  Ends<Key, Greater> high;
  FewKeys<Key> few;
  std::uint64_t valid = 0;
};

/// True when no element of the block, valid or not, comes before the last key kept at its end. A loop without branches,
/// which compilers make vector code of.
template <class Element>
bool adds_nothing(const std::uint8_t* data, std::uint64_t count, const Extremes<Element>& found) {
  using Key = typename Element::Key;
  Key min = std::numeric_limits<Key>::max();
  Key max = std::numeric_limits<Key>::lowest();
  for (std::uint64_t i = 0; i < count; ++i) {
    const Key key = Element::key(load_bits<Element>(data, i));
    min = std::min(min, key);
    max = std::max(max, key);
  }
  return found.few.full() && !found.low.may_take(min) && !found.high.may_take(max);
}

template <class Element>
Extremes<Element> find_extremes(const SampleBlocks& sample, std::span<const std::uint64_t> fill_bits) {
  Extremes<Element> out;
  sample.each([&](const std::uint8_t* data, std::uint64_t count) {
    if (adds_nothing(data, count, out)) {
      out.valid += count;
      return;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto bits = load_bits<Element>(data, i);
      if (!is_valid<Element>(bits, fill_bits)) continue;
      const auto key = Element::key(bits);
      ++out.valid;
      if (out.low.may_take(key)) out.low.add(key);
      if (out.high.may_take(key)) out.high.add(key);
      if (!out.few.full()) out.few.add(key);
    }
  });
  return out;
}

bool is_repeated(std::uint64_t count, std::uint64_t valid) {
  return count >= kRepeats || (count >= 3 && count * 1000 >= valid);
}

/// How many values at this end are repeated, one after another; at least one is left to say where the others end.
template <class End>
std::size_t repeated(const End& end, std::uint64_t valid) {
  std::size_t n = 0;
  while (n + 1 < end.used() && is_repeated(end.count(n), valid)) ++n;
  return n;
}

struct Others {
  double min = 0.0;
  double max = 0.0;
  std::size_t distinct = 0;  ///< at most kDistinct
};

bool is_far(double value, const Others& others) {
  if (value == 0) return false;
  const double spread = others.max - others.min;
  const double gap = value > others.max ? value - others.max : others.min - value;
  if (!(gap > 0) || !std::isfinite(spread)) return false;
  if (std::fabs(value) >= kHuge && is_usual(value)) return gap > kFarSpreads * spread;
  if (spread == 0 || others.distinct < kDistinct / 2) return false;
  return is_usual(value) ? gap >= spread / 2 : gap > kFarSpreads * spread;
}

template <class Element, class End>
void suspect_end(const End& end, std::size_t count, const Others& others, std::uint64_t valid, Vector<Suspicion>& out) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = Element::from_key(end.key(i));
    Suspicion s;
    s.value = Element::value(bits);
    if (!is_far(s.value, others)) continue;
    s.bits = bits;
    s.share = static_cast<double>(end.count(i)) / static_cast<double>(valid);
    out.push_back(s);
  }
}

/// The smallest and largest value that is no suspect.
template <class Element>
void tell_others(const Extremes<Element>& found, const Vector<Suspicion>& suspects, std::size_t first, Suspicion& s) {
  const auto first_innocent = [&](const auto& end) {
    for (std::size_t i = 0; i < end.used(); ++i) {
      const auto bits = Element::from_key(end.key(i));
      const bool suspected = std::any_of(suspects.begin() + static_cast<std::ptrdiff_t>(first), suspects.end(),
                                         [&](const Suspicion& other) { return other.bits == bits; });
      if (!suspected) return Element::value(bits);
    }
    return s.value;
  };
  s.others_min = first_innocent(found.low);
  s.others_max = first_innocent(found.high);
}

}  // namespace

void suspect_fill_values(DType dtype, const SampleBlocks& sample, std::span<const std::uint64_t> fill_bits,
                         Vector<Suspicion>& out) {
  with_element(dtype, [&](auto element) {
    using Element = decltype(element);
    const Extremes<Element> found = find_extremes<Element>(sample, fill_bits);
    if (found.valid == 0) return;
    const std::size_t low = repeated(found.low, found.valid);
    const std::size_t high = repeated(found.high, found.valid);
    // Either all repeated values of both ends are set aside or those of one: where only few different values exist,
    // the ends meet.
    const auto value = [](auto key) { return Element::value(Element::from_key(key)); };
    const auto others_of = [&](std::size_t from_low, std::size_t from_high) {
      return Others{value(found.low.key(from_low)), value(found.high.key(from_high)),
                    found.few.full() ? kDistinct : found.few.used() - std::min(found.few.used(), from_low + from_high)};
    };
    for (const auto& [from_low, from_high] :
         {std::pair{low, high}, std::pair{low, std::size_t{0}}, std::pair{std::size_t{0}, high}}) {
      const Others others = others_of(from_low, from_high);
      if (others.min > others.max) continue;
      const std::size_t before = out.size();
      suspect_end<Element>(found.low, from_low, others, found.valid, out);
      suspect_end<Element>(found.high, from_high, others, found.valid, out);
      if (out.size() == before) continue;
      for (std::size_t i = before; i < out.size(); ++i) tell_others(found, out, before, out[i]);
      return;
    }
  });
}

}  // namespace quern
