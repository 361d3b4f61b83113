// Packed bits and little-endian words, under the names that this folder uses.
#pragma once

#include "kernels/common/bit_packing.h"

namespace quern::codec::lossless {

using kernels::BitReader;
using kernels::BitWriter;
using kernels::load_le;
using kernels::peek_bits;
using kernels::peek_bits_wide;
using kernels::store_le;

}  // namespace quern::codec::lossless
