// Moments at rest of one instruction set; included by one source file for each, compiled with that set's flags. Plain
// loops over the 256 values of a block, which compilers vectorize: a block stays in the first cache from its codes to
// its codes.
#pragma once

#include <cstring>

#include "kernels/tensor/cpu/adam_instance.h"
#include "kernels/tensor/cpu/at_rest/at_rest.h"

namespace quern::kernels {

template <class Isa>
struct AtRestInstance {
  static constexpr std::size_t kN = kAtRestBlock;
  using Adam = AdamInstance<Isa>;

  /// Both moments of a block.
  struct Moments {
    alignas(64) float first[kN];
    alignas(64) float second[kN];
  };

  [[gnu::always_inline]] static std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }
  // Codes of one value each, as bytes.

  static void decode_codes(const AtRestHeader& h, const std::uint8_t* __restrict second_codes,
                           const std::int8_t* __restrict first_codes, Moments& out) {
    const float scale = at_rest_scale(h.scale);
    alignas(64) std::uint32_t code[kN];
    alignas(64) std::int32_t whole[kN];
    for (std::size_t i = 0; i < kN; ++i) code[i] = second_codes[i];
    for (std::size_t i = 0; i < kN; ++i) whole[i] = first_codes[i];
    for (std::size_t i = 0; i < kN; ++i) {
      const std::uint32_t second = at_rest_second(h, code[i]);
      out.second[i] = std::bit_cast<float>(second);
      out.first[i] = static_cast<float>(whole[i]) * (scale * at_rest_unit(second));
    }
  }

  /// False when values do not fit codes of that width.
  template <unsigned Bits>
  static bool encode_codes(bool finest, std::uint32_t block_key, const AtRestRange& range, const Moments& in,
                           AtRestHeader& h, std::uint8_t* __restrict second_codes,
                           std::int8_t* __restrict first_codes) {
    using Width = AtRestWidth<Bits>;
    if (!at_rest_choose_second<Bits>(finest, range, h)) return false;
    const std::uint32_t shift = h.shift;
    const std::uint32_t before = h.first - 1;
    // Each loop has results of one width: compilers make better vectors of those.
    alignas(64) std::uint32_t random[kN];
    alignas(64) std::uint32_t code[kN];
    alignas(64) float unit[kN];
    alignas(64) float quotient[kN];
    std::uint32_t most_quotient = 0;
    for (std::uint32_t i = 0; i < kN; ++i) random[i] = at_rest_bits(block_key, i);
    if constexpr (Width::kCoarsestShift > 23) {
      for (std::size_t i = 0; i < kN; ++i)
        code[i] = shift > 23 ? at_rest_second_code_far(bits_of(in.second[i]), shift, random[i])
                             : at_rest_second_code(bits_of(in.second[i]), shift, random[i]);
    }
    for (std::size_t i = 0; i < kN; ++i) {
      if constexpr (Width::kCoarsestShift <= 23) code[i] = at_rest_second_code(bits_of(in.second[i]), shift, random[i]);
      unit[i] = at_rest_unit(code[i] << shift);
      quotient[i] = in.first[i] / unit[i];
      const std::uint32_t size = bits_of(quotient[i]) & 0x7fffffffu;
      most_quotient = size > most_quotient ? size : most_quotient;
    }
    if (!at_rest_choose_first<Bits>(finest, most_quotient, h)) return false;
    for (std::size_t i = 0; i < kN; ++i) {
      const std::uint32_t there = 0u - static_cast<std::uint32_t>(code[i] != 0);
      code[i] = (code[i] - before) & there;
    }
    for (std::size_t i = 0; i < kN; ++i) second_codes[i] = static_cast<std::uint8_t>(code[i]);
    const float scale = at_rest_scale(h.scale);
    const float inverse = 1.0f / scale;
    alignas(64) std::int32_t whole[kN];
    for (std::size_t i = 0; i < kN; ++i)
      whole[i] = at_rest_first_code(in.first[i], quotient[i] * inverse, scale * unit[i], at_rest_offset(random[i]));
    for (std::size_t i = 0; i < kN; ++i) first_codes[i] = static_cast<std::int8_t>(whole[i]);
    return true;
  }

  // Codes of 4 bits.

  static void join_halves(const std::uint8_t* __restrict codes, std::uint8_t* __restrict to) {
    for (std::size_t i = 0; i < kN / 2; ++i)
      to[i] = static_cast<std::uint8_t>((codes[i] & 15u) | static_cast<unsigned>(codes[i + kN / 2]) << 4);
  }
  static void split_halves(const std::uint8_t* __restrict from, std::uint8_t* __restrict codes) {
    for (std::size_t i = 0; i < kN / 2; ++i) codes[i] = from[i] & 15u;
    for (std::size_t i = 0; i < kN / 2; ++i) codes[i + kN / 2] = static_cast<std::uint8_t>(from[i] >> 4);
  }

  /// Decodes a block; returns the bytes that it has beside the slots.
  static std::size_t decode_block(const AtRestForm& form, std::uint32_t header, const std::uint8_t* slot,
                                  const std::uint8_t* beside, Moments& out) {
    const AtRestHeader h = unpack_at_rest_header(header);
    if (h.kind == AtRestKind::raw) {
      std::memcpy(out.second, beside, sizeof(out.second));
      std::memcpy(out.first, beside + sizeof(out.second), sizeof(out.first));
    } else if (h.kind == AtRestKind::wide || form.bits == 8) {
      const std::uint8_t* const from = h.kind == AtRestKind::wide ? beside : slot;
      decode_codes(h, from, reinterpret_cast<const std::int8_t*>(from + kN), out);
    } else {
      std::uint8_t second[kN];
      std::uint8_t first[kN];
      std::int8_t whole[kN];
      split_halves(slot, second);
      split_halves(slot + kN / 2, first);
      for (std::size_t i = 0; i < kN; ++i) whole[i] = static_cast<std::int8_t>((first[i] ^ 8) - 8);
      decode_codes(h, second, whole, out);
    }
    return at_rest_beside_bytes(h.kind);
  }

  /// Encodes a block; returns the bytes that it takes beside the slots.
  static std::size_t encode_block(const AtRestStep& step, std::uint64_t block, const Moments& in, std::uint32_t& header,
                                  std::uint8_t* slot, std::uint8_t* beside) {
    std::uint32_t least = 0xffffffffu;  // of second moments, less 1: what makes a zero the largest
    std::uint32_t most = 0;
    std::uint32_t odd = 0;
    for (std::size_t i = 0; i < kN; ++i) {
      const std::uint32_t second = bits_of(in.second[i]);
      const std::uint32_t first = bits_of(in.first[i]);
      least = second - 1 < least ? second - 1 : least;
      most = second > most ? second : most;
      odd |= at_rest_odd(first, second);
    }
    AtRestRange range;
    const bool fits = at_rest_range(least, most, range) && odd == 0;
    AtRestHeader h;
    if (fits) {
      const std::uint32_t key = at_rest_block_key(step.key, block);
      const bool finest = step.form.finest;
      if (step.form.bits == 8) {
        if (encode_codes<8>(finest, key, range, in, h, slot, reinterpret_cast<std::int8_t*>(slot + kN)))
          return finish(h, AtRestKind::narrow, header);
      } else {
        std::uint8_t second[kN];
        std::int8_t first[kN];
        if (encode_codes<4>(finest, key, range, in, h, second, first)) {
          join_halves(second, slot);
          join_halves(reinterpret_cast<const std::uint8_t*>(first), slot + kN / 2);
          return finish(h, AtRestKind::narrow, header);
        }
        std::memset(slot, 0, at_rest_slot_bytes(step.form));
        if (encode_codes<8>(finest, key, range, in, h, beside, reinterpret_cast<std::int8_t*>(beside + kN)))
          return finish(h, AtRestKind::wide, header);
      }
    }
    std::memset(slot, 0, at_rest_slot_bytes(step.form));
    std::memcpy(beside, in.second, sizeof(in.second));
    std::memcpy(beside + sizeof(in.second), in.first, sizeof(in.first));
    return finish(AtRestHeader{}, AtRestKind::raw, header);
  }
  static std::size_t finish(AtRestHeader h, AtRestKind kind, std::uint32_t& header) {
    h.kind = kind;
    header = pack_at_rest_header(h);
    return at_rest_beside_bytes(kind);
  }

  /// Calls body(block, its first value, its values) for the blocks of a tile.
  template <class Body>
  [[gnu::always_inline]] static void for_blocks(const AtRestTile& tile, const Body& body) {
    std::size_t block = 0;
    for (std::size_t begin = 0; begin < tile.values; begin += kN, ++block)
      body(block, begin, tile.values - begin < kN ? tile.values - begin : kN);
  }

  /// Asks for what a block two further on needs: without that, memory waits while a block is coded.
  template <class Gradient>
  [[gnu::always_inline]] static void fetch_ahead(const std::uint8_t* slot, std::size_t slot_bytes,
                                                 const Gradient* gradient, const float* weight,
                                                 const std::uint16_t* copy) {
    constexpr std::size_t kLine = 64;
    constexpr std::size_t kAhead = 2;
    for (std::size_t i = 0; i < slot_bytes; i += kLine) __builtin_prefetch(slot + kAhead * slot_bytes + i, 1);
    for (std::size_t i = 0; i < kN; i += kLine / sizeof(Gradient)) __builtin_prefetch(gradient + kAhead * kN + i);
    for (std::size_t i = 0; i < kN; i += kLine / sizeof(float)) __builtin_prefetch(weight + kAhead * kN + i, 1);
    if (copy == nullptr) return;
    for (std::size_t i = 0; i < kN; i += kLine / sizeof(*copy)) __builtin_prefetch(copy + kAhead * kN + i, 1);
  }

  static void copy_weights(const float* __restrict weight, std::size_t count, std::uint16_t* __restrict copy) {
    alignas(64) std::uint32_t halves[kN];
    for (std::size_t i = 0; i < count; ++i) halves[i] = float_to_bfloat(weight[i]);
    for (std::size_t i = 0; i < count; ++i) copy[i] = static_cast<std::uint16_t>(halves[i]);
  }

  template <class Gradient>
  static std::size_t step(const AtRestStep& step, const AtRestTile& tile, const Gradient* gradient, float* weight,
                          std::uint16_t* copy, std::uint8_t* beside) {
    const std::size_t slot_bytes = at_rest_slot_bytes(step.form);
    const std::uint8_t* from = tile.beside;
    std::uint8_t* to = beside;
    for_blocks(tile, [&](std::size_t block, std::size_t begin, std::size_t count) {
      Moments moments;
      std::uint8_t* const slot = tile.slots + block * slot_bytes;
      if (count == kN && begin + 3 * kN <= tile.values)
        fetch_ahead(slot, slot_bytes, gradient + begin, weight + begin, copy == nullptr ? nullptr : copy + begin);
      from += decode_block(step.form, tile.headers[block], slot, from, moments);
      // Values that are not there keep the zeros that they decode to.
      Adam::template step<Gradient>(step.rule, gradient + begin, count, weight + begin, moments.first, moments.second);
      if (copy != nullptr) copy_weights(weight + begin, count, copy + begin);
      to += encode_block(step, tile.first_block + block, moments, tile.headers[block], slot, to);
    });
    return static_cast<std::size_t>(to - beside);
  }

  static std::size_t encode(const AtRestStep& step, const AtRestTile& tile, const float* first, const float* second,
                            std::uint8_t* beside) {
    const std::size_t slot_bytes = at_rest_slot_bytes(step.form);
    std::uint8_t* to = beside;
    for_blocks(tile, [&](std::size_t block, std::size_t begin, std::size_t count) {
      Moments moments{};
      std::memcpy(moments.first, first + begin, 4 * count);
      std::memcpy(moments.second, second + begin, 4 * count);
      to += encode_block(step, tile.first_block + block, moments, tile.headers[block], tile.slots + block * slot_bytes,
                         to);
    });
    return static_cast<std::size_t>(to - beside);
  }

  static void decode(const AtRestForm& form, const AtRestTile& tile, float* first, float* second) {
    const std::size_t slot_bytes = at_rest_slot_bytes(form);
    const std::uint8_t* from = tile.beside;
    for_blocks(tile, [&](std::size_t block, std::size_t begin, std::size_t count) {
      Moments moments;
      from += decode_block(form, tile.headers[block], tile.slots + block * slot_bytes, from, moments);
      std::memcpy(first + begin, moments.first, 4 * count);
      std::memcpy(second + begin, moments.second, 4 * count);
    });
  }

  template <class Gradient>
  static double squares(const Gradient* gradient, std::size_t count, double factor) {
    double sums[8] = {};
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8)
      for (std::size_t k = 0; k < 8; ++k) {
        const double g = static_cast<double>(Adam::gradient_of(gradient[i + k])) * factor;
        sums[k] += g * g;
      }
    for (std::size_t k = 0; i < count; ++i, ++k) {
      const double g = static_cast<double>(Adam::gradient_of(gradient[i])) * factor;
      sums[k] += g * g;
    }
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  }

  static constexpr AtRestKernels kKernels{&step<float>, &step<std::uint16_t>, &encode,
                                          &decode,      &squares<float>,      &squares<std::uint16_t>};
};

}  // namespace quern::kernels
