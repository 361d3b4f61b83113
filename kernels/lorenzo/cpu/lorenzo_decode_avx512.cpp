// The decoder of lorenzo compiled for avx512.
#include "kernels/lorenzo/cpu/decode_instance.h"

namespace quern::kernels {

struct Isa_avx512;
template struct LorenzoDecoder<Isa_avx512>;

}  // namespace quern::kernels
