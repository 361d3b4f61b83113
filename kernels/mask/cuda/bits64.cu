// The mask kernels for elements of 8 bytes.
#include "kernels/mask/cuda/kernels.cuh"

namespace quern::kernels {

const MaskLaunches kMaskLaunches64 = kMaskLaunchesOf<std::uint64_t>;

}  // namespace quern::kernels
