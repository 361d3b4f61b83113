// The decoder of one instruction set; included by one source file for each set, compiled with that set's flags.
#pragma once

#include <cstdint>

#include "kernels/lorenzo/cpu/decode.h"
#include "kernels/lorenzo/cpu/decode_fault.h"

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

template <class Isa>
std::size_t LorenzoDecoder<Isa>::find_decode_fault(const ChunkRules& rules, const std::uint8_t* in, std::size_t bytes,
                                                   const void* elements, const ChunkBox& box, void* scratch) {
  std::size_t tile = 0;
  with_quantizer(rules.element, rules.quantizer, [&]<class Q, class Exact>() {
    const auto find = [&]<TileShape S>() {
      tile = find_decode_fault_in_chunk<Isa, Q, Exact, S>(rules, in, bytes, elements, box, scratch);
    };
    switch (rules.tile) {
      case TileShape::line: find.template operator()<TileShape::line>(); break;
      case TileShape::plane: find.template operator()<TileShape::plane>(); break;
      case TileShape::block: find.template operator()<TileShape::block>(); break;
    }
  });
  return tile;
}

}  // namespace quern::kernels
