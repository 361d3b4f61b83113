// A chunk that a device encodes in two steps by jobs of a host, which between them makes tables of what the first
// step has counted.
#pragma once

#include <cstdint>

namespace quern::kernels {

/// A job and what it works on. Elements (those of the chunk at first, then words in their place) begin at
/// `elements`, classes of special elements (1 byte each; not read unless the job says that there are some) at
/// `special`. The working memory stays from the first step to the second.
struct EncodeTask {
  const std::uint8_t* job = nullptr;
  std::uint8_t* work = nullptr;
  void* elements = nullptr;
  const std::uint8_t* special = nullptr;
  void* result = nullptr;  ///< of the job's kind
};

}  // namespace quern::kernels
