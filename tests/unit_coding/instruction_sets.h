// Residual kernels of every instruction set that this machine has.
#pragma once

#include <gtest/gtest.h>

#include "kernels/entropy/cpu/residual_kernels.h"

namespace quern::coding::test {

/// Calls visit(kernels) for each, slowest first.
template <class Visit>
void for_instruction_sets(const Visit& visit) {
  for (std::size_t i = 0; i < kernels::kIsaLevels; ++i) {
    const auto level = static_cast<kernels::IsaLevel>(i);
    if (!kernels::isa_available(level)) continue;
    SCOPED_TRACE(kernels::isa_name(level));
    visit(kernels::residual_kernels(level));
  }
}

}  // namespace quern::coding::test
