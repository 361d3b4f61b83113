// The decoder of one instruction set; included by one source file for each set, compiled with that set's flags.
#pragma once

#include <cstdint>

#include "kernels/lorenzo/cpu/decode.h"

namespace quern::kernels {

template <class Isa>
bool LorenzoDecoder<Isa>::decode(const ChunkRules& rules, const std::uint8_t* in, std::size_t bytes, void* out,
                                 const ChunkBox& box, void* scratch) {
  bool good = false;
  with_quantizer(rules.element, rules.quantizer, [&]<class Q, class Exact>() {
    switch (rules.tile) {
      case TileShape::line:
        good = decode_chunk<Isa, Q, Exact, TileShape::line>(rules, in, bytes, out, box, scratch);
        break;
      case TileShape::plane:
        good = decode_chunk<Isa, Q, Exact, TileShape::plane>(rules, in, bytes, out, box, scratch);
        break;
      case TileShape::block:
        good = decode_chunk<Isa, Q, Exact, TileShape::block>(rules, in, bytes, out, box, scratch);
        break;
    }
  });
  return good;
}

}  // namespace quern::kernels
