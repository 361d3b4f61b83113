// The warps of a thread block, and the memory of a job, on the emulator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "kernels/common/job_task.h"
#include "tests/emulator/lane_emulator.h"

namespace quern::testing {

/// Warps in a random order, as they finish.
struct EmulatedBlock {
  std::uint32_t warps = 4;

  template <class F>
  void all(F&& f) const {
    EmulatorState& state = EmulatorState::instance();
    std::vector<std::uint32_t> order(warps);
    for (std::uint32_t w = 0; w < warps; ++w) order[w] = w;
    for (std::size_t w = warps; w > 1; --w) std::swap(order[w - 1], order[state.random() % w]);
    for (const std::uint32_t w : order) f(w, warps);
    state.sync();
  }
  template <class F>
  void first(F&& f) const {
    f();
    EmulatorState::instance().sync();
  }
  template <class F, class G>
  void first_and_others(F&& f, G&& g) const {
    EmulatorState& state = EmulatorState::instance();
    const std::uint32_t others = warps > 1 ? warps - 1 : 1;
    std::vector<std::uint32_t> order(others + 1);
    for (std::uint32_t w = 0; w <= others; ++w) order[w] = w;
    for (std::size_t w = others + 1; w > 1; --w) std::swap(order[w - 1], order[state.random() % w]);
    for (const std::uint32_t w : order) {
      if (w == others)
        f();
      else
        g(w, others);
    }
    state.sync();
  }
};

/// Memory for jobs and for what they work in, of exactly so many bytes.
inline auto job_memory(std::size_t bytes) {
  const auto free = [](std::uint8_t* at) { ::operator delete (at, std::align_val_t{kernels::kJobAlignment}); };
  return std::unique_ptr<std::uint8_t, decltype(free)>(
      static_cast<std::uint8_t*>(::operator new (bytes, std::align_val_t{kernels::kJobAlignment})), free);
}
inline void fill_with_noise(std::uint8_t* at, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 4) {
    const auto noise = static_cast<std::uint32_t>(EmulatorState::instance().random());
    std::memcpy(at + i, &noise, sizeof noise);
  }
}

}  // namespace quern::testing
