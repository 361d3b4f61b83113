// The chunk kernels for elements of 8 bytes.
#include "kernels/lorenzo/cuda/kernels.cuh"

namespace quern::kernels {

const LorenzoLaunches kLaunches64{&launch_encode_width<std::uint64_t>, &launch_decode_width<std::uint64_t>,
                                  &launch_sample_width<std::uint64_t>};

}  // namespace quern::kernels
