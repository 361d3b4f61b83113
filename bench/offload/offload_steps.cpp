// Steps of Adam over moments at rest in the cache and in memory, beside Adam in binary32. Steps over folders:
// `quern offload bench`.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "codecs/tensor/at_rest.h"
#include "codecs/tensor/replay.h"

namespace {

using namespace quern;
using Clock = std::chrono::steady_clock;
using codec::tensor::AtRestMoments;
using codec::tensor::ElementType;
using kernels::AtRestForm;

double seconds_of(const std::function<void()>& body) {
  const auto begin = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "offload_steps: %s\n", what);
  std::exit(1);
}

float made_up(std::uint64_t i) {
  const std::uint64_t bits = kernels::at_rest_mix64(i);
  float sum = 0;
  for (int k = 0; k < 4; ++k) sum += static_cast<float>(bits >> (16 * k) & 0xffff) * 0x1p-16f - 0.5f;
  return sum;
}

kernels::AdamRule rule_of(std::uint64_t step) {
  codec::tensor::AdamSettings settings;
  settings.decay = 0.1;
  settings.step = step;
  return make_adam_rule(settings);
}

/// One thread; best of the rounds, the ways by turns.
void compare_in_memory(const char* where, std::size_t values, int rounds, int repeats) {
  std::vector<float> weights(values), first(values), second(values);
  std::vector<std::uint16_t> gradient(values), copy(values);
  for (std::size_t i = 0; i < values; ++i) {
    weights[i] = made_up(i);
    first[i] = 1e-3f * made_up(2 * i);
    second[i] = 1e-6f * (0.1f + made_up(3 * i) * made_up(3 * i));
    gradient[i] = static_cast<std::uint16_t>(kernels::float_to_bfloat(1e-3f * made_up(5 * i)));
  }
  SerialRunner runner;
  AtRestMoments eight = AtRestMoments::make(values, 0, {8, true}).value();
  AtRestMoments four = AtRestMoments::make(values, 0, {4, true}).value();
  for (AtRestMoments* const moments : {&eight, &four})
    require(moments->encode(1, 0, first.data(), second.data(), runner).ok(), "no memory");
  const auto& adam = kernels::adam_kernels(kernels::best_isa());
  double best[3] = {1e9, 1e9, 1e9};
  for (int round = 0; round < rounds; ++round) {
    best[0] = std::min(best[0], seconds_of([&] {
                         for (int r = 0; r < repeats; ++r)
                           adam.step_bf16(rule_of(1000), gradient.data(), values, weights.data(), first.data(),
                                          second.data());
                       }));
    int way = 0;
    for (AtRestMoments* const moments : {&eight, &four}) {
      ++way;
      best[way] = std::min(best[way], seconds_of([&] {
                             for (int r = 0; r < repeats; ++r) {
                               const auto step = static_cast<std::uint64_t>(1000 + round * repeats + r);
                               require(moments
                                           ->step(1, step, rule_of(1000), {gradient.data(), ElementType::bf16},
                                                  weights.data(), copy.data(), runner)
                                           .ok(),
                                       "no memory");
                             }
                           }));
    }
  }
  const double count = static_cast<double>(values) * repeats / 1e6;
  std::printf("| %s, %zu values | %.0f | %.0f | %.0f | %.2f | %.2f |\n", where, values, count / best[0],
              count / best[1], count / best[2], best[0] / best[1], best[0] / best[2]);
}

}  // namespace

int main() {
  std::printf("Million values a second on one thread, %s.\n\n", kernels::isa_name(kernels::best_isa()));
  std::printf(
      "| where | Adam in binary32 | 8 bits | 4 bits | 8 bits / Adam | 4 bits / Adam |\n|---|---|---|---|---|---|\n");
  compare_in_memory("cache", std::size_t{1} << 14, 200, 20);
  compare_in_memory("memory", std::size_t{1} << 24, 7, 1);
  return 0;
}
