// From digits or bits to an error relative to each value, and from that to an absolute one where it loses little.
#include <quern/precision.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <type_traits>

#include <quern/memory.h>

#include "libcompress/core/rounding.h"
#include "libcompress/core/run_tasks.h"
#include "libcompress/core/task_runner.h"
#include "libcompress/pipeline/elements.h"
#include "libcompress/survey/bit_information.h"

namespace quern {
namespace {

constexpr unsigned kMostDigits = 17;
constexpr std::uint64_t kPieceElems = UINT64_C(1) << 18;
/// An absolute bound is as tight for the largest value as for the smallest: up to three bits a value are lost.
constexpr double kMostSpread = 8;

/// Magnitudes of valid values.
struct Magnitudes {
  double least = std::numeric_limits<double>::infinity();
  double largest = 0;
  bool zeros = false;

  void add(double magnitude) {
    if (magnitude == 0) {
      zeros = true;
    } else {
      least = std::min(least, magnitude);
      largest = std::max(largest, magnitude);
    }
  }
  void add(const Magnitudes& other) {
    least = std::min(least, other.least);
    largest = std::max(largest, other.largest);
    zeros = zeros || other.zeros;
  }
};

Result<Magnitudes> magnitudes_of(const ArrayView& array, std::span<const std::uint64_t> fill_bits, TaskRunner& runner) {
  Magnitudes total;
  std::mutex mutex;
  const auto* const data = static_cast<const std::uint8_t*>(array.data);
  const auto tasks = static_cast<std::size_t>((array.elems() + kPieceElems - 1) / kPieceElems);
  QUERN_RETURN_IF_ERROR(run_tasks(runner, tasks, [&](std::size_t task) -> Status {
    Magnitudes mine;
    with_element(array.dtype, [&](auto element) {
      using Element = decltype(element);
      const std::uint64_t end = std::min(array.elems(), (task + 1) * kPieceElems);
      for (std::uint64_t i = task * kPieceElems; i < end; ++i) {
        const auto bits = load_bits<Element>(data, i);
        if (is_valid<Element>(bits, fill_bits)) mine.add(std::fabs(Element::value(bits)));
      }
    });
    const std::lock_guard lock(mutex);
    total.add(mine);
    return {};
  }));
  return total;
}

Status check_type(const ArrayView& array) {
  if (is_float(array.dtype)) return {};
  return Status(StatusCode::unsupported,
                "significant digits and information are of floating-point numbers; give integers an absolute bound");
}

Result<ErrorBound> bound_for_relative(const ArrayView& array, double relative, std::span<const std::uint64_t> fill_bits,
                                      TaskRunner& runner) {
  QUERN_ASSIGN_OR_RETURN(const Magnitudes found, magnitudes_of(array, fill_bits, runner));
  if (!(found.largest > 0)) return ErrorBound{BoundKind::lossless, 0.0};
  if (found.zeros || found.largest > kMostSpread * found.least) return ErrorBound{BoundKind::pwrel, relative};
  const double absolute = product_down(relative, found.least);
  if (!(absolute > 0)) return ErrorBound{BoundKind::pwrel, relative};
  return ErrorBound{BoundKind::abs, absolute};
}

}  // namespace

Result<PrecisionBound> bound_for_digits(const ArrayView& array, unsigned digits,
                                        std::span<const std::uint64_t> fill_bits, const Execution& execution) {
  QUERN_RETURN_IF_ERROR(check_type(array));
  if (digits < 1 || digits > kMostDigits)
    return Status(StatusCode::invalid_bound, "significant digits are 1 to {0}", static_cast<std::int64_t>(kMostDigits));
  double power = 1;
  for (unsigned i = 0; i < digits; ++i) power *= 10;  // exact
  RunnerHandle runner(execution);
  PrecisionBound out;
  // A quotient is rounded by half a unit at most; the next number down is below it.
  QUERN_ASSIGN_OR_RETURN(out.bound,
                         bound_for_relative(array, std::nextafter(0.5 / power, 0.0), fill_bits, runner.get()));
  return out;
}

Result<PrecisionBound> bound_for_information(const ArrayView& array, double share,
                                             std::span<const std::uint64_t> fill_bits, const Execution& execution) {
  QUERN_RETURN_IF_ERROR(check_type(array));
  if (!(share > 0) || !(share < 1))
    return Status(StatusCode::invalid_bound, "the share of the information must be above 0 and below 1");
  RunnerHandle runner(execution);
  PrecisionBound out;
  for (std::size_t axis = 0; axis < array.shape.rank(); ++axis) {
    if (array.shape[axis] < 2) continue;
    QUERN_ASSIGN_OR_RETURN(const BitInformation information, bit_information(array, axis, fill_bits, runner.get()));
    const unsigned bits = mantissa_bits_for(information, array.dtype, share);
    if (out.mantissa_bits && bits <= *out.mantissa_bits) continue;
    out.mantissa_bits = bits;
    out.axis = axis;
  }
  if (!out.mantissa_bits) {
    out.bound = {BoundKind::lossless, 0.0};  // no value has a neighbour
    return out;
  }
  const double relative = std::ldexp(1.0, -static_cast<int>(*out.mantissa_bits) - 1);
  QUERN_ASSIGN_OR_RETURN(out.bound, bound_for_relative(array, relative, fill_bits, runner.get()));
  return out;
}

}  // namespace quern
