// Pages of memory, the unit of protection.
#pragma once

#include <unistd.h>

#include <cstddef>

namespace simt {

inline std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace simt
