// The chunk kernels for elements of 1 byte.
#include "kernels/lorenzo/cuda/kernels.cuh"

namespace quern::kernels {

const LorenzoLaunches kLaunches8{&launch_encode_width<std::uint8_t>, &launch_decode_width<std::uint8_t>,
                                 &launch_sample_width<std::uint8_t>};

}  // namespace quern::kernels
