// What programs of the stencil codec begin with: kernels of all kinds get the same tasks and take those of their own.
#pragma once

#include <cstdint>

#include "kernels/common/job_task.h"

namespace quern::kernels {

enum class ProgramKind : std::uint32_t { levels, raster, wavelet };

/// What every program begins with.
struct ProgramHead {
  ProgramKind kind = ProgramKind::levels;
  std::uint32_t bytes = 0;       ///< of the program
  std::uint32_t work_bytes = 0;  ///< of the memory that lanes work in
};

}  // namespace quern::kernels
