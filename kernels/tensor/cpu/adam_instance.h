// Adam of one instruction set; included by one source file for each, compiled with that set's flags.
#pragma once

#include "kernels/tensor/cpu/adam.h"

namespace quern::kernels {

template <class Isa>
struct AdamInstance {
  [[gnu::always_inline]] static float gradient_of(float g) { return g; }
  [[gnu::always_inline]] static float gradient_of(std::uint16_t g) { return bfloat_to_float(g); }

  template <AdamOrder Order, AdamDecay Decay, class Gradient>
  static void loop(const AdamConstants& constants, const Gradient* __restrict gradient, std::size_t count,
                   float* __restrict weight, float* __restrict exp_avg, float* __restrict exp_avg_sq) {
    const AdamConstants c = constants;
    for (std::size_t i = 0; i < count; ++i)
      adam_step<Order, Decay>(c, gradient_of(gradient[i]), weight[i], exp_avg[i], exp_avg_sq[i]);
  }

  template <AdamOrder Order, class Gradient>
  static void with_decay(const AdamRule& rule, const Gradient* gradient, std::size_t count, float* weight,
                         float* exp_avg, float* exp_avg_sq) {
    switch (rule.decay) {
      case AdamDecay::none:
        return loop<Order, AdamDecay::none>(rule.constants, gradient, count, weight, exp_avg, exp_avg_sq);
      case AdamDecay::decoupled:
        return loop<Order, AdamDecay::decoupled>(rule.constants, gradient, count, weight, exp_avg, exp_avg_sq);
      case AdamDecay::coupled:
        return loop<Order, AdamDecay::coupled>(rule.constants, gradient, count, weight, exp_avg, exp_avg_sq);
    }
  }

  template <class Gradient>
  static void step(const AdamRule& rule, const Gradient* gradient, std::size_t count, float* weight, float* exp_avg,
                   float* exp_avg_sq) {
    if (rule.order == AdamOrder::fused)
      with_decay<AdamOrder::fused>(rule, gradient, count, weight, exp_avg, exp_avg_sq);
    else
      with_decay<AdamOrder::separate>(rule, gradient, count, weight, exp_avg, exp_avg_sq);
  }

  static constexpr AdamKernels kKernels{&step<float>, &step<std::uint16_t>};
};

}  // namespace quern::kernels
