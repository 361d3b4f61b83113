// The encoder and the kernel table of one instruction set; included by one source file for each set, compiled with that
// set's flags. The decoder is compiled by another file (decode_instance.h), so that two files can be compiled at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/lorenzo/cpu/decode.h"
#include "kernels/lorenzo/cpu/encode.h"
#include "kernels/lorenzo/cpu/encode_fault.h"
#include "kernels/lorenzo/cpu/lorenzo.h"

namespace quern::kernels {

template <class Isa>
struct LorenzoInstance {
  static std::size_t encode(const ChunkRules& rules, const void* in, const ChunkBox& box, std::uint8_t* out,
                            void* scratch) {
    std::size_t bytes = 0;
    with_quantizer(rules.element, rules.quantizer, [&]<class Q, class Exact>() {
      switch (rules.tile) {
        case TileShape::line: bytes = encode_chunk<Isa, Q, Exact, TileShape::line>(rules, in, box, out, scratch); break;
        case TileShape::plane:
          bytes = encode_chunk<Isa, Q, Exact, TileShape::plane>(rules, in, box, out, scratch);
          break;
        case TileShape::block:
          bytes = encode_chunk<Isa, Q, Exact, TileShape::block>(rules, in, box, out, scratch);
          break;
      }
    });
    return bytes;
  }

  static void estimate(const ChunkRules& rules, const void* in, const ChunkBox& tile,
                       std::uint32_t (&bytes)[kPredictors], void* scratch) {
    with_quantizer(rules.element, rules.quantizer, [&]<class Q, class Exact>() {
      switch (rules.tile) {
        case TileShape::line: estimate_tile<Isa, Q, Exact, TileShape::line>(rules, in, tile, bytes, scratch); break;
        case TileShape::plane: estimate_tile<Isa, Q, Exact, TileShape::plane>(rules, in, tile, bytes, scratch); break;
        case TileShape::block: estimate_tile<Isa, Q, Exact, TileShape::block>(rules, in, tile, bytes, scratch); break;
      }
    });
  }

  static std::size_t find_encode_fault(const ChunkRules& rules, const std::uint8_t* in, std::size_t bytes,
                                       const void* elements, const ChunkBox& box, void* scratch) {
    std::size_t tile = 0;
    with_quantizer(rules.element, rules.quantizer, [&]<class Q, class Exact>() {
      const auto find = [&]<TileShape S>() {
        tile = find_encode_fault_in_chunk<Isa, Q, Exact, S>(rules, in, bytes, elements, box, scratch);
      };
      switch (rules.tile) {
        case TileShape::line: find.template operator()<TileShape::line>(); break;
        case TileShape::plane: find.template operator()<TileShape::plane>(); break;
        case TileShape::block: find.template operator()<TileShape::block>(); break;
      }
    });
    return tile;
  }

  static constexpr LorenzoKernels kKernels{&encode,
                                           &LorenzoDecoder<Isa>::decode,
                                           &estimate,
                                           &find_encode_fault,
                                           &LorenzoDecoder<Isa>::find_decode_fault,
                                           sizeof(EncodeScratch<Isa, std::uint64_t, std::uint64_t>),
                                           sizeof(DecodeScratch<Isa, std::uint64_t>),
                                           sizeof(CheckScratch<Isa, std::uint64_t, std::uint64_t>)};
};

}  // namespace quern::kernels
