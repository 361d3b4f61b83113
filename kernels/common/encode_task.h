// A chunk that a device encodes in two steps by programs of a host, which between them makes tables of what the first
// step has counted.
#pragma once

#include <cstdint>

namespace quern::kernels {

/// A program and what it works on. Elements (those of the chunk at first, then words in their place) begin at
/// `elements`, classes of special elements (1 byte each; not read unless the program says that there are some) at
/// `special`. The working memory stays from the first step to the second.
struct EncodeTask {
  const std::uint8_t* program = nullptr;
  std::uint8_t* work = nullptr;
  void* elements = nullptr;
  const std::uint8_t* special = nullptr;
  void* answer = nullptr;  ///< of the program's kind
};

}  // namespace quern::kernels
