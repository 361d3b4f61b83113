// One step of Adam for one element: the same bits on every processor, which is what makes a replayed step exact. Each
// operation is rounded to binary32 by itself; a fused multiply-add stands where fma is written and nowhere else.
// D. P. Kingma, J. Ba, "Adam", arXiv:1412.6980; I. Loshchilov, F. Hutter, "Decoupled Weight Decay", arXiv:1711.05101.
#pragma once

#include <cstdint>

#include "kernels/common/bits.h"

namespace quern::kernels {

/// Order of operations. Numbers are stored.
enum class AdamOrder : std::uint8_t {
  fused = 1,     ///< fma in both moments and in the decay, moments corrected one by one
  separate = 2,  ///< no fma; corrections folded into the rate and into the root
};

/// Numbers are stored.
enum class AdamDecay : std::uint8_t {
  none = 0,
  decoupled = 1,  ///< AdamW: on the weight
  coupled = 2,    ///< Adam with L2: added to the gradient
};

/// Everything a step needs, already binary32: the decoder of a replay computes no power and no root of a constant.
struct AdamConstants {
  float clip = 1;            ///< the gradient is multiplied by this
  float beta1 = 0;           ///< unused by AdamOrder::separate
  float one_less_beta1 = 0;  ///< 1 - beta1
  float beta2 = 0;
  float one_less_beta2 = 0;
  float correction1 = 1;  ///< fused: 1 - beta1^t; separate: unused
  float correction2 = 1;  ///< fused: 1 - beta2^t; separate: its root
  float rate = 0;         ///< fused: -lr; separate: -lr / (1 - beta1^t)
  float decay = 0;        ///< fused decoupled, and coupled: the decay; separate decoupled: 1 - lr * decay
  float epsilon = 0;
};

/// What a step is, apart from the arrays.
struct AdamRule {
  AdamOrder order = AdamOrder::fused;
  AdamDecay decay = AdamDecay::none;
  AdamConstants constants;
};

/// NaN payloads depend on the order of operands, which compilers choose: every NaN becomes the same one.
[[gnu::always_inline]] constexpr float one_nan(float x) { return x == x ? x : std::bit_cast<float>(0x7fc00000u); }

template <AdamOrder Order, AdamDecay Decay>
[[gnu::always_inline]] constexpr void adam_step(const AdamConstants& c, float gradient, float& weight, float& exp_avg,
                                                float& exp_avg_sq) {
  float g = gradient * c.clip;
  float w = weight;
  float m = exp_avg;
  float v = exp_avg_sq;
  if constexpr (Order == AdamOrder::fused) {
    if constexpr (Decay == AdamDecay::coupled) g = __builtin_fmaf(c.decay, w, g);
    m = __builtin_fmaf(c.one_less_beta1, g, m * c.beta1);
    v = __builtin_fmaf(c.one_less_beta2 * g, g, v * c.beta2);
    if constexpr (Decay == AdamDecay::decoupled) w = __builtin_fmaf(c.rate * w, c.decay, w);
    w = w + (c.rate * (m / c.correction1)) / (__builtin_sqrtf(v / c.correction2) + c.epsilon);
  } else {
    if constexpr (Decay == AdamDecay::coupled) g = g + c.decay * w;
    if constexpr (Decay == AdamDecay::decoupled) w = w * c.decay;
    m = m + c.one_less_beta1 * (g - m);
    v = v * c.beta2 + (c.one_less_beta2 * g) * g;
    w = w + (c.rate * m) / (__builtin_sqrtf(v) / c.correction2 + c.epsilon);
  }
  weight = one_nan(w);
  exp_avg = one_nan(m);
  exp_avg_sq = one_nan(v);
}

}  // namespace quern::kernels
