// What can be wrong with stored bytes, as a number and two more: what code that also runs on devices reports, and what
// the host turns into a Status.
#pragma once

#include <cstdint>

#include <quern/status.h>

namespace quern {

enum class FormatFault : std::uint8_t {
  none = 0,
  // Primitives.
  too_few_bytes,        ///< needed, left
  ends_inside_number,   ///< bytes there are
  number_too_large,     ///< does not fit in 64 bits
  number_not_shortest,  ///< has more bytes than it needs
  number_above_limit,   ///< number, limit
  bytes_left_over,      ///< how many
};

struct Fault {
  FormatFault what = FormatFault::none;
  std::uint64_t first = 0;
  std::uint64_t second = 0;

  constexpr bool ok() const { return what == FormatFault::none; }
};

/// The same in words.
Status status_of(const Fault& fault);

}  // namespace quern
