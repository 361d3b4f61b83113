// Signs that an array is not what its reader was told: a fill value nobody declared, the wrong byte order, the wrong
// element type.
#pragma once

#include <cstdint>
#include <span>

#include <quern/array.h>
#include <quern/memory.h>
#include <quern/status.h>

namespace quern {

struct Suspicion {
  enum class Kind : std::uint8_t {
    fill_value,    ///< one value is repeated and lies far outside all others
    byte_order,    ///< with its bytes reversed the array would be far smoother
    element_type,  ///< the bytes look like elements of another type
  };
  Kind kind = Kind::fill_value;
  // fill_value:
  std::uint64_t bits = 0;  ///< the value as an element
  double value = 0.0;
  double share = 0.0;                         ///< of the elements that were looked at, 0 to 1
  double others_min = 0.0, others_max = 0.0;  ///< of all other valid values
  // element_type:
  DType likely = DType::f32;
};

/// Which suspicions make sense: a file that says type and byte order itself is not asked about them.
enum class SuspicionScope : std::uint8_t { values, values_and_layout };

/// Looks at all elements of arrays of at most 2^20, and at a 64th of larger ones (2^18 to 2^22 elements in blocks from
/// all over the array; for their layout at fewer). The result depends on the array alone. Values equal to one of
/// `fill_bits` are passed over.
Result<Vector<Suspicion>> find_suspicions(const ArrayView& array, std::span<const std::uint64_t> fill_bits,
                                          SuspicionScope scope);

}  // namespace quern
