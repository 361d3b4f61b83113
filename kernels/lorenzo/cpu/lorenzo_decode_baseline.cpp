// The decoder of lorenzo compiled for baseline.
#include "kernels/lorenzo/cpu/decode_instance.h"

namespace quern::kernels {

struct Isa_baseline;
template struct LorenzoDecoder<Isa_baseline>;

}  // namespace quern::kernels
