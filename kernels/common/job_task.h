// Chunks that a host takes apart and a device decodes: the host finds everything that bytes can get wrong, and what is
// left is a job, tables of known size and arithmetic on them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

/// Jobs and the memory they are worked on in begin at multiples of this.
inline constexpr std::size_t kJobAlignment = 256;
/// Bytes up to the next such multiple.
constexpr std::uint64_t job_aligned(std::uint64_t bytes) {
  return (bytes + kJobAlignment - 1) / kJobAlignment * kJobAlignment;
}

/// A job and where its chunk goes. Elements begin at `out`, classes of special elements (1 byte each; not read
/// unless the job says that there are some) at `special`.
struct JobTask {
  const std::uint8_t* job = nullptr;
  std::uint8_t* work = nullptr;
  void* out = nullptr;
  const std::uint8_t* special = nullptr;
};

/// An element stored bit for bit, by its number in C order.
struct JobException {
  std::uint64_t bits = 0;
  std::uint32_t index = 0;
};

}  // namespace quern::kernels
