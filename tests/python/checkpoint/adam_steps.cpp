// One step of Adam as a replay takes it, for comparison with trainers: adam_steps ORDER DECAY RATE BETA1 BETA2 EPSILON
// WEIGHT_DECAY STEP COUNT; weights, both moments and the gradient (binary32) come on stdin, the first three go out.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "codecs/tensor/replay.h"

int main(int argc, char** argv) {
  using quern::codec::tensor::AdamSettings;
  if (argc != 10) return 1;
  AdamSettings settings;
  settings.order =
      std::strcmp(argv[1], "fused") == 0 ? quern::kernels::AdamOrder::fused : quern::kernels::AdamOrder::separate;
  settings.decay_kind =
      std::strcmp(argv[2], "coupled") == 0 ? quern::kernels::AdamDecay::coupled : quern::kernels::AdamDecay::decoupled;
  settings.rate = std::strtod(argv[3], nullptr);
  settings.beta1 = std::strtod(argv[4], nullptr);
  settings.beta2 = std::strtod(argv[5], nullptr);
  settings.epsilon = std::strtod(argv[6], nullptr);
  settings.decay = std::strtod(argv[7], nullptr);
  settings.step = std::strtoull(argv[8], nullptr, 10);
  const std::size_t count = std::strtoull(argv[9], nullptr, 10);
  std::vector<float> weight(count), mean(count), square(count), gradient(count);
  for (std::vector<float>* values : {&weight, &mean, &square, &gradient})
    if (std::fread(values->data(), sizeof(float), count, stdin) != count) return 1;
  const auto rule = quern::codec::tensor::make_adam_rule(settings);
  quern::kernels::adam_kernels(quern::kernels::IsaLevel::baseline)
      .step_f32(rule, gradient.data(), count, weight.data(), mean.data(), square.data());
  for (const std::vector<float>* values : {&weight, &mean, &square})
    if (std::fwrite(values->data(), sizeof(float), count, stdout) != count) return 1;
  return 0;
}
