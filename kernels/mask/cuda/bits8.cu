// The mask kernels for elements of 1 byte.
#include "kernels/mask/cuda/kernels.cuh"

namespace quern::kernels {

const MaskLaunches kMaskLaunches8 = kMaskLaunchesOf<std::uint8_t>;

}  // namespace quern::kernels
