// The mask kernels for elements of 2 bytes.
#include "kernels/mask/cuda/kernels.cuh"

namespace quern::kernels {

const MaskLaunches kMaskLaunches16 = kMaskLaunchesOf<std::uint16_t>;

}  // namespace quern::kernels
