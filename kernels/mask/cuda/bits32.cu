// The mask kernels for elements of 4 bytes.
#include "kernels/mask/cuda/kernels.cuh"

namespace quern::kernels {

const MaskLaunches kMaskLaunches32 = kMaskLaunchesOf<std::uint32_t>;

}  // namespace quern::kernels
