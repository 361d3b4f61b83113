// The chunk kernels for elements of 4 bytes.
#include "kernels/lorenzo/cuda/kernels.cuh"

namespace quern::kernels {

const LorenzoLaunches kLaunches32{&launch_encode_width<std::uint32_t>, &launch_decode_width<std::uint32_t>,
                                  &launch_sample_width<std::uint32_t>};

}  // namespace quern::kernels
