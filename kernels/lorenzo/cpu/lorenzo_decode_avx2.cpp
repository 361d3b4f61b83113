// The decoder of lorenzo compiled for avx2.
#include "kernels/lorenzo/cpu/decode_instance.h"

namespace quern::kernels {

struct Isa_avx2;
template struct LorenzoDecoder<Isa_avx2>;

}  // namespace quern::kernels
