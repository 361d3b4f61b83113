// Adam over moments at rest by warps, over an execution model X: a warp decodes a block of 256 values, updates and
// encodes it in registers. Lane l has values 4l to 4l+3 and 128+4l to 128+4l+3, so that codes of 8 and of 4 bits, floats
// and halves all come in whole words of neighbouring lanes. The same bits as cpu/at_rest/at_rest_instance.h.
#pragma once

#include "kernels/common/lanes.h"
#include "kernels/common/unroll.h"
#include "kernels/tensor/at_rest_block.h"

namespace quern::kernels {

/// One block. Pointers are of device memory, to words of 4 bytes; gradient, weight and copy are aligned to four
/// elements.
template <class Gradient>
struct AtRestBlock {
  std::uint64_t number = 0;  ///< in the whole parameter space
  unsigned values = 0;       ///< 1 to 256
  std::uint32_t* header = nullptr;
  std::uint32_t* slot = nullptr;
  const std::uint32_t* beside = nullptr;  ///< what the block keeps beside its slot
  std::uint32_t* room = nullptr;          ///< kAtRestRawBytes for what it will keep there
  const Gradient* gradient = nullptr;
  float* weight = nullptr;
  std::uint16_t* copy = nullptr;  ///< null, or gets the weights in bfloat16
};

template <class X>
struct AtRestOnLanes {
  static constexpr std::size_t kOwn = kAtRestBlock / kLanes;  ///< values of a lane
  static constexpr std::size_t kHalf = kOwn / 2;
  static constexpr std::uint32_t kNibbles = 0x0f0f0f0fu;
  template <class T>
  using vec = typename X::template vec<T>;

  /// Codes of a lane's values, four to a word: those of the first half, then those of the second.
  struct Words {
    vec<std::uint32_t> word[2];
  };
  struct Moments {
    vec<float> first[kOwn];
    vec<float> second[kOwn];
  };

  /// Where value k of a lane lies in the block.
  static constexpr std::uint32_t place(std::size_t lane, std::size_t k) {
    return static_cast<std::uint32_t>((k < kHalf ? 0 : kAtRestBlock / 2) + kHalf * lane + k % kHalf);
  }
  static constexpr std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

  // Codes as words.

  static constexpr void load_bytes(const std::uint32_t* at, Words& out) {
    X::lanes([&](auto lane) {
      X::set(out.word[0], lane, at[lane]);
      X::set(out.word[1], lane, at[kLanes + lane]);
    });
  }
  static constexpr void store_bytes(std::uint32_t* at, const Words& in) {
    X::lanes([&](auto lane) {
      at[lane] = X::get(in.word[0], lane);
      at[kLanes + lane] = X::get(in.word[1], lane);
    });
  }
  static constexpr void load_nibbles(const std::uint32_t* at, Words& out) {
    X::lanes([&](auto lane) {
      const std::uint32_t both = at[lane];
      X::set(out.word[0], lane, both & kNibbles);
      X::set(out.word[1], lane, both >> 4 & kNibbles);
    });
  }
  static constexpr void store_nibbles(std::uint32_t* at, const Words& in) {
    X::lanes([&](auto lane) {
      at[lane] = (X::get(in.word[0], lane) & kNibbles) | (X::get(in.word[1], lane) & kNibbles) << 4;
    });
  }
  static constexpr std::uint32_t code_at(const Words& words, std::size_t lane, std::size_t k) {
    return X::get(words.word[k / kHalf], lane) >> 8 * (k % kHalf) & 255u;
  }

  // Decoding.

  /// `sign`: the bit that makes a code of a first moment negative.
  static constexpr void decode_codes(const AtRestHeader& h, const Words& second, const Words& first, std::uint32_t sign,
                                     Moments& out) {
    const float scale = at_rest_scale(h.scale);
    unroll<kOwn>([&](auto k) {
      X::lanes([&](auto lane) {
        const std::uint32_t pattern = at_rest_second(h, code_at(second, lane, k));
        const auto whole = static_cast<std::int32_t>((code_at(first, lane, k) ^ sign) - sign);
        X::set(out.second[k], lane, std::bit_cast<float>(pattern));
        X::set(out.first[k], lane, static_cast<float>(whole) * (scale * at_rest_unit(pattern)));
      });
    });
  }

  static constexpr void load_floats(const std::uint32_t* at, vec<float> (&out)[kOwn]) {
    unroll<kOwn>(
        [&](auto k) { X::lanes([&](auto lane) { X::set(out[k], lane, std::bit_cast<float>(at[place(lane, k)])); }); });
  }
  static constexpr void store_floats(std::uint32_t* at, const vec<float> (&in)[kOwn]) {
    unroll<kOwn>([&](auto k) { X::lanes([&](auto lane) { at[place(lane, k)] = bits_of(X::get(in[k], lane)); }); });
  }

  static constexpr void decode(const AtRestForm& form, std::uint32_t header, const std::uint32_t* slot,
                               const std::uint32_t* beside, Moments& out) {
    const AtRestHeader h = unpack_at_rest_header(header);
    if (h.kind == AtRestKind::raw) {
      load_floats(beside, out.second);
      load_floats(beside + kAtRestBlock, out.first);
      return;
    }
    Words second, first;
    if (h.kind == AtRestKind::wide || form.bits == 8) {
      const std::uint32_t* const from = h.kind == AtRestKind::wide ? beside : slot;
      load_bytes(from, second);
      load_bytes(from + kAtRestBlock / 4, first);
      decode_codes(h, second, first, 0x80, out);
    } else {
      load_nibbles(slot, second);
      load_nibbles(slot + kAtRestBlock / 8, first);
      decode_codes(h, second, first, 8, out);
    }
  }

  // Encoding.

  template <unsigned Bits>
  static constexpr bool encode_codes(const AtRestStep& step, std::uint32_t block_key, const AtRestRange& range,
                                     const Moments& in, AtRestHeader& h, Words& second, Words& first) {
    if (!at_rest_choose_second<Bits>(step.form.finest, range, h)) return false;
    const std::uint32_t shift = h.shift;
    vec<std::uint32_t> code[kOwn];
    vec<float> quotient[kOwn];
    vec<std::uint32_t> most;
    X::lanes([&](auto lane) { X::set(most, lane, 0u); });
    unroll<kOwn>([&](auto k) {
      X::lanes([&](auto lane) {
        const std::uint32_t pattern = bits_of(X::get(in.second[k], lane));
        const std::uint32_t random = at_rest_bits(block_key, place(lane, k));
        std::uint32_t c = 0;
        if (AtRestWidth<Bits>::kCoarsestShift > 23 && shift > 23)
          c = at_rest_second_code_far(pattern, shift, random);
        else
          c = at_rest_second_code(pattern, shift, random);
        const float q = X::get(in.first[k], lane) / at_rest_unit(c << shift);
        const std::uint32_t size = bits_of(q) & 0x7fffffffu;
        X::set(code[k], lane, c);
        X::set(quotient[k], lane, q);
        X::set(most, lane, size > X::get(most, lane) ? size : X::get(most, lane));
      });
    });
    if (!at_rest_choose_first<Bits>(step.form.finest, X::reduce_max(most), h)) return false;
    const float scale = at_rest_scale(h.scale);
    const float inverse = 1.0f / scale;
    X::lanes([&](auto lane) {
      for (std::size_t half = 0; half < 2; ++half) {
        X::set(second.word[half], lane, 0u);
        X::set(first.word[half], lane, 0u);
      }
    });
    unroll<kOwn>([&](auto k) {
      X::lanes([&](auto lane) {
        const std::uint32_t c = X::get(code[k], lane);
        const std::uint32_t stored = c == 0 ? 0 : c - (h.first - 1);
        const std::int32_t whole = at_rest_first_code(X::get(in.first[k], lane), X::get(quotient[k], lane) * inverse,
                                                      scale * at_rest_unit(c << shift),
                                                      at_rest_offset(at_rest_bits(block_key, place(lane, k))));
        const unsigned at = 8 * (k % kHalf);
        auto& seconds = second.word[k / kHalf];
        auto& firsts = first.word[k / kHalf];
        X::set(seconds, lane, X::get(seconds, lane) | (stored & 255u) << at);
        X::set(firsts, lane, X::get(firsts, lane) | (static_cast<std::uint32_t>(whole) & 255u) << at);
      });
    });
    return true;
  }

  static constexpr void clear_slot(const AtRestForm& form, std::uint32_t* slot) {
    const std::size_t words = at_rest_slot_bytes(form) / 4;
    X::lanes([&](auto lane) {
      for (std::size_t w = lane; w < words; w += kLanes) slot[w] = 0;
    });
  }

  /// What beside `room` gets follows from the kind in the header that this returns.
  static constexpr std::uint32_t encode(const AtRestStep& step, std::uint64_t number, const Moments& in,
                                        std::uint32_t* slot, std::uint32_t* room) {
    vec<std::uint32_t> least, most, odd;
    X::lanes([&](auto lane) {
      X::set(least, lane, 0xffffffffu);
      X::set(most, lane, 0u);
      X::set(odd, lane, 0u);
    });
    unroll<kOwn>([&](auto k) {
      X::lanes([&](auto lane) {
        const std::uint32_t second = bits_of(X::get(in.second[k], lane));
        X::set(least, lane, second - 1 < X::get(least, lane) ? second - 1 : X::get(least, lane));
        X::set(most, lane, second > X::get(most, lane) ? second : X::get(most, lane));
        X::set(odd, lane, X::get(odd, lane) | at_rest_odd(bits_of(X::get(in.first[k], lane)), second));
      });
    });
    AtRestRange range;
    const bool fits = at_rest_range(X::reduce_min(least), X::reduce_max(most), range) && X::reduce_or(odd) == 0;
    AtRestHeader h;
    Words second, first;
    const std::uint32_t key = at_rest_block_key(step.key, number);
    if (fits && step.form.bits == 4 && encode_codes<4>(step, key, range, in, h, second, first)) {
      store_nibbles(slot, second);
      store_nibbles(slot + kAtRestBlock / 8, first);
      return pack_at_rest_header(h);
    }
    if (fits && encode_codes<8>(step, key, range, in, h, second, first)) {
      std::uint32_t* to = slot;
      if (step.form.bits == 4) {
        h.kind = AtRestKind::wide;
        clear_slot(step.form, slot);
        to = room;
      }
      store_bytes(to, second);
      store_bytes(to + kAtRestBlock / 4, first);
      return pack_at_rest_header(h);
    }
    clear_slot(step.form, slot);
    store_floats(room, in.second);
    store_floats(room + kAtRestBlock, in.first);
    h = {};
    h.kind = AtRestKind::raw;
    return pack_at_rest_header(h);
  }

  // The update.

  static constexpr float gradient_of(float g) { return g; }
  static constexpr float gradient_of(std::uint16_t g) { return bfloat_to_float(g); }

  template <AdamOrder Order, AdamDecay Decay, class Gradient>
  static constexpr void update(const AdamConstants& constants, const AtRestBlock<Gradient>& block, Moments& moments) {
    unroll<kOwn>([&](auto k) {
      X::lanes([&](auto lane) {
        const std::uint32_t i = place(lane, k);
        // Values that are not there keep the zeros that they decode to.
        if (i >= block.values) return;
        float weight = block.weight[i];
        float first = X::get(moments.first[k], lane);
        float second = X::get(moments.second[k], lane);
        adam_step<Order, Decay>(constants, gradient_of(block.gradient[i]), weight, first, second);
        block.weight[i] = weight;
        if (block.copy != nullptr) block.copy[i] = static_cast<std::uint16_t>(float_to_bfloat(weight));
        X::set(moments.first[k], lane, first);
        X::set(moments.second[k], lane, second);
      });
    });
  }

  template <AdamOrder Order, class Gradient>
  static constexpr void update_with_decay(const AdamRule& rule, const AtRestBlock<Gradient>& block, Moments& moments) {
    switch (rule.decay) {
      case AdamDecay::none: return update<Order, AdamDecay::none>(rule.constants, block, moments);
      case AdamDecay::decoupled: return update<Order, AdamDecay::decoupled>(rule.constants, block, moments);
      case AdamDecay::coupled: return update<Order, AdamDecay::coupled>(rule.constants, block, moments);
    }
  }

  /// One step of a block. The header is read before and given here, as warps of a tile look at all headers of it.
  template <class Gradient>
  static constexpr void step(const AtRestStep& step, const AtRestBlock<Gradient>& block, std::uint32_t header) {
    Moments moments;
    decode(step.form, header, block.slot, block.beside, moments);
    if (step.rule.order == AdamOrder::fused)
      update_with_decay<AdamOrder::fused>(step.rule, block, moments);
    else
      update_with_decay<AdamOrder::separate>(step.rule, block, moments);
    // Lanes have read all codes before one of them writes.
    X::sync();
    const std::uint32_t made = encode(step, block.number, moments, block.slot, block.room);
    X::lanes([&](auto lane) {
      if (lane == 0) *block.header = made;
    });
  }
};

/// Words that the blocks before `block` of a tile keep beside their slots. `headers`: of the tile's blocks.
template <class X>
constexpr std::uint32_t at_rest_beside_before(const std::uint32_t* headers, std::uint32_t blocks, std::uint32_t block) {
  typename X::template vec<std::uint32_t> bytes;
  X::lanes([&](auto lane) {
    std::uint32_t sum = 0;
    for (std::uint32_t b = static_cast<std::uint32_t>(lane); b < blocks && b < block; b += kLanes)
      sum += static_cast<std::uint32_t>(at_rest_beside_bytes(unpack_at_rest_header(headers[b]).kind));
    X::set(bytes, lane, sum);
  });
  return X::reduce_add(bytes) / 4;
}

}  // namespace quern::kernels
