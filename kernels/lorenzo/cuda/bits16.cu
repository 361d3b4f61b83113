// The chunk kernels for elements of 2 bytes.
#include "kernels/lorenzo/cuda/kernels.cuh"

namespace quern::kernels {

const LorenzoLaunches kLaunches16{&launch_encode_width<std::uint16_t>, &launch_decode_width<std::uint16_t>,
                                  &launch_sample_width<std::uint16_t>};

}  // namespace quern::kernels
