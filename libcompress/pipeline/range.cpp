// Passes over all values by blocks: range and squared error.
#include "libcompress/pipeline/range.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

#include "libcompress/core/task_runner.h"
#include "libcompress/pipeline/elements.h"

namespace quern {
namespace {

constexpr std::uint64_t kBlockElems = 65536;
constexpr double kExactFloor = 0x1p-900;  // products above it have residuals that binary64 holds

template <class Key>
struct KeyRange {
  Key min = std::numeric_limits<Key>::max();
  Key max = std::numeric_limits<Key>::lowest();
  bool any = false;
};

// Without fill values the loop has no branch, so that the compiler can vectorize it.
template <class Element>
KeyRange<typename Element::Key> block_range(const std::uint8_t* data, std::uint64_t count,
                                            std::span<const std::uint64_t> fill_bits) {
  using Key = typename Element::Key;
  KeyRange<Key> r;
  constexpr Key kTop = std::numeric_limits<Key>::max();
  constexpr Key kBottom = std::numeric_limits<Key>::lowest();
  if (fill_bits.empty()) {
    unsigned any = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto bits = load_bits<Element>(data, i);
      const bool valid = Element::finite(bits);
      const Key key = Element::key(bits);
      r.min = std::min(r.min, valid ? key : kTop);
      r.max = std::max(r.max, valid ? key : kBottom);
      any |= valid ? 1u : 0u;
    }
    r.any = any != 0;
    return r;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto bits = load_bits<Element>(data, i);
    if (!is_valid<Element>(bits, fill_bits)) continue;
    const Key key = Element::key(bits);
    r.min = std::min(r.min, key);
    r.max = std::max(r.max, key);
    r.any = true;
  }
  return r;
}

__extension__ using Int128 = __int128;

// binary64 neighbours of a 64-bit integer, below and above.
template <class Int>
double integer_down(Int v) {
  const double d = static_cast<double>(v);
  // The conversion rounds to nearest: compare in 128-bit integers, which hold every d that can occur.
  return static_cast<Int128>(d) > static_cast<Int128>(v) ? std::nextafter(d, -INFINITY) : d;
}
template <class Int>
double integer_up(Int v) {
  const double d = static_cast<double>(v);
  return static_cast<Int128>(d) < static_cast<Int128>(v) ? std::nextafter(d, INFINITY) : d;
}

template <class Element>
ExactRange to_range(typename Element::Key min, typename Element::Key max) {
  ExactRange out;
  if constexpr (std::is_integral_v<typename Element::Key> && sizeof(typename Element::Key) == 8 &&
                std::is_same_v<Element, IntegerElement<typename Element::Key>>) {
    out.range = {integer_down(min), integer_up(max)};
    out.width_down = integer_down(static_cast<std::uint64_t>(max) - static_cast<std::uint64_t>(min));
  } else {
    // + 0.0 turns -0 into 0.
    out.range = {Element::value(Element::from_key(min)) + 0.0, Element::value(Element::from_key(max)) + 0.0};
    out.width_down = difference_down(out.range.max, out.range.min);
  }
  return out;
}

}  // namespace

double difference_down(double max, double min) {
  const double s = max - min;
  if (std::isinf(s)) return DBL_MAX;
  // Error-free sum of max and -min (Knuth 1969, TAOCP 2, 4.2.2): s + e is the exact difference.
  const double b = s - max;
  const double e = (max - (s - b)) + (-min - b);
  return e < 0 ? std::nextafter(s, -INFINITY) : s;
}

double product_down(double a, double b) {
  const double p = a * b;
  if (std::isinf(p)) return DBL_MAX;
  if (p == 0) return 0;
  if (p < kExactFloor) return std::nextafter(p, 0.0);  // the residual may underflow: one step down is always enough
  return std::fma(a, b, -p) < 0 ? std::nextafter(p, 0.0) : p;
}

std::optional<ExactRange> exact_range(const ArrayView& array, std::span<const std::uint64_t> fill_bits,
                                      TaskRunner& runner) {
  return with_element(array.dtype, [&](auto element) -> std::optional<ExactRange> {
    using Element = decltype(element);
    using Key = typename Element::Key;
    const std::uint64_t elems = array.elems();
    const auto* data = static_cast<const std::uint8_t*>(array.data);
    // Few large tasks: the result does not depend on how the array is cut.
    const std::uint64_t tasks = std::clamp<std::uint64_t>(elems / kBlockElems, 1, 4 * runner.width());
    std::vector<KeyRange<Key>> parts(static_cast<std::size_t>(tasks));
    runner.run(parts.size(), [&](std::size_t i) {
      const std::uint64_t begin = elems / tasks * i + std::min<std::uint64_t>(i, elems % tasks);
      const std::uint64_t end = elems / tasks * (i + 1) + std::min<std::uint64_t>(i + 1, elems % tasks);
      if (end > begin) parts[i] = block_range<Element>(data + begin * sizeof(Key), end - begin, fill_bits);
    });
    KeyRange<Key> all;
    for (const KeyRange<Key>& part : parts) {
      if (!part.any) continue;
      all.min = std::min(all.min, part.min);
      all.max = std::max(all.max, part.max);
      all.any = true;
    }
    if (!all.any) return std::nullopt;
    return to_range<Element>(all.min, all.max);
  });
}

SquaredError squared_error(const ArrayView& original, const void* decoded, std::span<const std::uint64_t> fill_bits,
                           TaskRunner& runner) {
  return with_element(original.dtype, [&](auto element) {
    using Element = decltype(element);
    const std::uint64_t elems = original.elems();
    const auto* a = static_cast<const std::uint8_t*>(original.data);
    const auto* b = static_cast<const std::uint8_t*>(decoded);
    std::vector<SquaredError> blocks(static_cast<std::size_t>((elems + kBlockElems - 1) / kBlockElems));
    runner.run(blocks.size(), [&](std::size_t k) {
      SquaredError part;
      const std::uint64_t end = std::min(elems, (k + 1) * kBlockElems);
      for (std::uint64_t i = k * kBlockElems; i < end; ++i) {
        const auto bits = load_bits<Element>(a, i);
        if (!is_valid<Element>(bits, fill_bits)) continue;
        const double d = Element::value(bits) - Element::value(load_bits<Element>(b, i));
        part.sum += d * d;
        ++part.valid;
      }
      blocks[k] = part;
    });
    SquaredError all;
    for (const SquaredError& part : blocks) {
      all.sum += part.sum;
      all.valid += part.valid;
    }
    return all;
  });
}

std::optional<ValueRange> value_range(const ArrayView& array, std::span<const std::uint64_t> fill_bits,
                                      const Execution& execution) {
  RunnerHandle runner(execution);
  const auto exact = exact_range(array, fill_bits, runner.get());
  if (!exact) return std::nullopt;
  return exact->range;
}

}  // namespace quern
