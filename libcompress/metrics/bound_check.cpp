// check_bound: a filter that vectorizes clears whole runs of elements; what it cannot clear goes to the exact verifier.
#include <array>
#include <cmath>
#include <new>

#include <quern/metrics.h>

#include "kernels/metrics/bound_verifier.h"
#include "libcompress/core/task_runner.h"
#include "libcompress/metrics/arguments.h"
#include "libcompress/metrics/blocks.h"
#include "libcompress/metrics/element.h"

namespace quern {
namespace {

using metrics::load;
using verifier::BoundRule;
using verifier::BoundVerifier;
using verifier::Verdict;

constexpr std::size_t kFirst = 16;
constexpr std::uint64_t kRunElems = 256;

/// Checks runs of elements approximately, but only ever in favour of the exact verifier.
template <class E>
class RunFilter {
 public:
  using Bits = typename E::Bits;

  explicit RunFilter(const BoundVerifier<E>& verifier)
      : rule_(verifier.rule()),
        value_(verifier.value()),
        limit_(verifier.limit()),
        has_fills_(verifier.validity().has_fills()) {}

  /// True only when the verifier would keep every element of the run.
  bool clears(const std::byte* x, const std::byte* y, std::uint64_t n) const {
    if (std::memcmp(x, y, n * sizeof(Bits)) == 0) return true;
    if (rule_ == BoundRule::lossless || has_fills_) return false;
    if constexpr (!E::kFloat)
      return clears_integers(x, y, n);
    else
      return rule_ == BoundRule::relative ? clears_relative(x, y, n) : clears_absolute(x, y, n);
  }

 private:
  bool clears_integers(const std::byte* x, const std::byte* y, std::uint64_t n) const {
    unsigned doubts = 0;
    for (std::uint64_t i = 0; i < n; ++i) doubts |= E::distance(load<Bits>(x, i), load<Bits>(y, i)) > limit_;
    return doubts == 0;
  }

  /// A rounded difference below the bound is below it over the reals too; NaN and infinity fail the comparison.
  bool clears_absolute(const std::byte* x, const std::byte* y, std::uint64_t n) const {
    std::uint64_t doubts = 0;
    for (std::uint64_t i = 0; i < n; ++i)
      doubts |= !(std::fabs(E::value(load<Bits>(x, i)) - E::value(load<Bits>(y, i))) < value_) ? 1u : 0u;
    return doubts == 0 && !metrics::has_negative_zero<E>(x, y, n);
  }

  /// The margin of 2^-48 covers the roundings of difference and product, which are relative as long as the product is
  /// normal.
  bool clears_relative(const std::byte* x, const std::byte* y, std::uint64_t n) const {
    std::uint64_t doubts = 0;
    for (std::uint64_t i = 0; i < n; ++i) {
      const double value = E::value(load<Bits>(x, i));
      const double allowed = value_ * std::fabs(value);
      const double error = std::fabs(value - E::value(load<Bits>(y, i)));
      doubts |= !(error < allowed * (1 - 0x1p-48)) || !(allowed > 0x1p-1000) ? 1u : 0u;
    }
    return doubts == 0 && !metrics::has_negative_zero<E>(x, y, n);
  }

  BoundRule rule_;
  double value_;
  typename BoundVerifier<E>::Limit limit_;
  bool has_fills_;
};

struct BlockFindings {
  std::uint64_t violations = 0;
  std::uint64_t specials_lost = 0;
  std::array<std::uint64_t, kFirst> first{};
};

template <class E>
void check_run(const BoundVerifier<E>& verifier, const RunFilter<E>& filter, const std::byte* x, const std::byte* y,
               std::uint64_t begin, std::uint64_t n, BlockFindings& findings) {
  using Bits = typename E::Bits;
  if (filter.clears(x + begin * sizeof(Bits), y + begin * sizeof(Bits), n)) return;
  for (std::uint64_t i = begin; i < begin + n; ++i) {
    const Bits original = load<Bits>(x, i);
    const Bits reconstructed = load<Bits>(y, i);
    if (verifier.clears(original, reconstructed)) continue;
    const Verdict verdict = verifier.verdict(original, reconstructed);
    if (verdict == Verdict::kept) continue;
    if (findings.violations < kFirst) findings.first[findings.violations] = i;
    ++findings.violations;
    findings.specials_lost += verdict == Verdict::special_lost;
  }
}

template <class E>
Violation describe(const std::byte* x, const std::byte* y, std::uint64_t index) {
  using Bits = typename E::Bits;
  const verifier::Finding found = verifier::describe<E>(load<Bits>(x, index), load<Bits>(y, index));
  return {index, found.original, found.reconstructed, found.error, found.ulps};
}

template <class E>
Result<BoundCheck> check_elements(const ArrayView& original, const ArrayView& reconstructed, const EnforcedBound& bound,
                                  const ValidityRule& validity, const Execution& execution) {
  const auto* x = static_cast<const std::byte*>(original.data);
  const auto* y = static_cast<const std::byte*>(reconstructed.data);
  const std::uint64_t elems = original.elems();
  const BoundVerifier<E> verifier(metrics::bound_to_verify(bound), verifier::Validity<E>(validity.fill_bits));
  const RunFilter<E> filter(verifier);
  RunnerHandle runner(execution);
  metrics::Progress progress(execution.progress, elems);
  BoundCheck check;
  const auto body = [&](std::uint64_t block, BlockFindings& findings) {
    const std::uint64_t end = std::min(elems, (block + 1) * metrics::kBlockElems);
    for (std::uint64_t at = block * metrics::kBlockElems; at < end; at += kRunElems)
      check_run(verifier, filter, x, y, at, std::min(kRunElems, end - at), findings);
  };
  const auto fold = [&](const BlockFindings& findings) {
    check.violations += findings.violations;
    check.specials_lost += findings.specials_lost;
    for (std::uint64_t i = 0; i < findings.violations && i < kFirst && check.first.size() < kFirst; ++i)
      check.first.push_back(describe<E>(x, y, findings.first[i]));
  };
  QUERN_RETURN_IF_ERROR(metrics::for_blocks<BlockFindings>(metrics::block_count(elems), metrics::kBlockElems,
                                                           runner.get(), progress, body, fold));
  return check;
}

}  // namespace

Result<BoundCheck> check_bound(const ArrayView& original, const ArrayView& reconstructed, const EnforcedBound& bound,
                               const ValidityRule& validity, const Execution& execution) try {
  QUERN_RETURN_IF_ERROR(metrics::check_comparable(original, reconstructed));
  QUERN_RETURN_IF_ERROR(metrics::check_enforced(bound, original.dtype));
  return metrics::visit_dtype(original.dtype, [&](auto type) {
    return check_elements<typename decltype(type)::Element>(original, reconstructed, bound, validity, execution);
  });
} catch (const std::bad_alloc&) {
  return Status(StatusCode::out_of_memory, "out of memory while checking the bound");
}

}  // namespace quern
