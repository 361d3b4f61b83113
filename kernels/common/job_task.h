// Chunks that a host takes apart and a device decodes: the host finds everything that bytes can get wrong, and what is
// left is a program, tables of known size and arithmetic on them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

/// Programs and the memory they are worked on in begin at multiples of this.
inline constexpr std::size_t kProgramAlignment = 256;
/// Bytes up to the next such multiple.
constexpr std::uint64_t program_aligned(std::uint64_t bytes) {
  return (bytes + kProgramAlignment - 1) / kProgramAlignment * kProgramAlignment;
}

/// A program and where its chunk goes. Elements begin at `out`, classes of special elements (1 byte each; not read
/// unless the program says that there are some) at `special`.
struct ProgramTask {
  const std::uint8_t* program = nullptr;
  std::uint8_t* work = nullptr;
  void* out = nullptr;
  const std::uint8_t* special = nullptr;
};

}  // namespace quern::kernels
