// Adam: every instruction set against a slow reference that is written from the rule alone.
#include <gtest/gtest.h>

#include <cmath>

#include "codecs/tensor/replay.h"
#include "tests/unit_moments/float_cases.h"

namespace quern::testing {
namespace {

using namespace codec::tensor;
using kernels::AdamDecay;
using kernels::AdamOrder;

std::uint32_t bits_of(float f) { return std::bit_cast<std::uint32_t>(f); }

/// One rounded operation at a time: volatile keeps a compiler from joining or reordering them.
struct Rounded {
  volatile float value;
  Rounded(float f) : value(f) {}  // NOLINT: implicit
  Rounded operator+(const Rounded& o) const { return {value + o.value}; }
  Rounded operator-(const Rounded& o) const { return {value - o.value}; }
  Rounded operator*(const Rounded& o) const { return {value * o.value}; }
  Rounded operator/(const Rounded& o) const { return {value / o.value}; }
};
Rounded fused(const Rounded& a, const Rounded& b, const Rounded& c) { return {std::fma(a.value, b.value, c.value)}; }
Rounded root(const Rounded& a) { return {std::sqrt(a.value)}; }

struct State {
  float w, m, v;
};

State reference(const AdamSettings& s, float gradient, State before) {
  const auto t = static_cast<double>(s.step);
  const double one1 = s.correct_bias ? 1 - std::pow(s.beta1, t) : 1;
  const double one2 = s.correct_bias ? 1 - std::pow(s.beta2, t) : 1;
  const auto f = [](double x) { return Rounded(static_cast<float>(x)); };
  Rounded g = Rounded(gradient) * Rounded(s.clip);
  Rounded w(before.w), m(before.m), v(before.v);
  const bool decays = s.decay != 0;
  if (s.order == AdamOrder::fused) {
    if (decays && s.decay_kind == AdamDecay::coupled) g = fused(f(s.decay), w, g);
    const Rounded m1 = fused(f(1 - s.beta1), g, m * f(s.beta1));
    const Rounded v1 = fused(f(1 - s.beta2) * g, g, v * f(s.beta2));
    Rounded w0 = w;
    if (decays && s.decay_kind == AdamDecay::decoupled) w0 = fused(f(-s.rate) * w, f(s.decay), w);
    const Rounded w1 = w0 + (f(-s.rate) * (m1 / f(one1))) / (root(v1 / f(one2)) + f(s.epsilon));
    return {w1.value, m1.value, v1.value};
  }
  if (decays && s.decay_kind == AdamDecay::coupled) g = g + f(s.decay) * w;
  Rounded w0 = w;
  if (decays && s.decay_kind == AdamDecay::decoupled) w0 = w * f(1 - s.rate * s.decay);
  const Rounded m1 = m + f(1 - s.beta1) * (g - m);
  const Rounded v1 = v * f(s.beta2) + (f(1 - s.beta2) * g) * g;
  const Rounded w1 = w0 + (f(-(s.rate / one1)) * m1) / (root(v1) / f(std::sqrt(one2)) + f(s.epsilon));
  return {w1.value, m1.value, v1.value};
}

void expect_same(float got, float wanted, const std::string& where) {
  // Every NaN is the same one.
  if (std::isnan(wanted))
    ASSERT_EQ(bits_of(got), 0x7fc00000u) << where;
  else
    ASSERT_EQ(bits_of(got), bits_of(wanted)) << where;
}

TEST(Adam, Step_EveryOrderDecayAndInstructionSet_GivesTheReferencesBits) {
  std::vector<AdamSettings> all;
  for (const AdamOrder order : {AdamOrder::fused, AdamOrder::separate})
    for (const AdamDecay decay : {AdamDecay::none, AdamDecay::decoupled, AdamDecay::coupled})
      for (const bool correct : {true, false}) {
        AdamSettings s;
        s.order = order;
        s.decay_kind = decay;
        s.decay = decay == AdamDecay::none ? 0 : 0.1;
        s.correct_bias = correct;
        s.clip = correct ? 0.37f : 1.0f;
        s.step = correct ? 17 : 4001;
        all.push_back(s);
      }
  constexpr std::size_t kElems = 1021;  // not a multiple of any vector
  std::mt19937 random(11);
  for (const FloatCase& c : float_cases(kElems)) {
    Floats gradient(kElems);
    for (std::size_t i = 0; i < kElems; ++i)
      gradient[i] = i % 3 == 0 ? c.first[(i * 7) % kElems] : std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    for (const AdamSettings& settings : all) {
      const kernels::AdamRule rule = make_adam_rule(settings);
      for (const kernels::IsaLevel isa :
           {kernels::IsaLevel::baseline, kernels::IsaLevel::avx2, kernels::IsaLevel::avx512}) {
        if (!kernels::isa_available(isa)) continue;
        Floats w = c.first, m = c.first, v = c.second;
        kernels::adam_kernels(isa).step_f32(rule, gradient.data(), kElems, w.data(), m.data(), v.data());
        for (std::size_t i = 0; i < kElems; ++i) {
          const State wanted = reference(settings, gradient[i], {c.first[i], c.first[i], c.second[i]});
          const std::string where = c.name + ", " + kernels::isa_name(isa) + ", element " + std::to_string(i);
          expect_same(w[i], wanted.w, where);
          expect_same(m[i], wanted.m, where);
          expect_same(v[i], wanted.v, where);
        }
      }
    }
  }
}

TEST(Adam, Step_GradientsInBfloat16_AreTheirValues) {
  constexpr std::size_t kElems = 65536;
  std::vector<std::uint16_t> halves(kElems);
  Floats gradient(kElems);
  for (std::size_t i = 0; i < kElems; ++i) {
    halves[i] = static_cast<std::uint16_t>(i);
    gradient[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i) << 16);
  }
  const auto rule = make_adam_rule({});
  const auto& kernels = kernels::adam_kernels(kernels::best_isa());
  Floats w(kElems, 1), m(kElems, .5f), v(kElems, .25f);
  Floats w2 = w, m2 = m, v2 = v;
  kernels.step_bf16(rule, halves.data(), kElems, w.data(), m.data(), v.data());
  kernels.step_f32(rule, gradient.data(), kElems, w2.data(), m2.data(), v2.data());
  EXPECT_EQ(bytes_of_floats(w), bytes_of_floats(w2));
  EXPECT_EQ(bytes_of_floats(m), bytes_of_floats(m2));
  EXPECT_EQ(bytes_of_floats(v), bytes_of_floats(v2));
}

TEST(Adam, Rule_PowersOfBetas_AreRoundedFromTheirExactValue) {
  for (const double beta : {0.9, 0.95, 0.98, 0.999, 0.9999}) {
    long double power = 1;
    for (std::uint64_t step = 1; step <= 20000; ++step) {
      power *= static_cast<long double>(beta);
      AdamSettings s;
      s.beta1 = beta;
      s.step = step;
      ASSERT_EQ(make_adam_rule(s).constants.correction1, static_cast<float>(1 - power)) << beta << "^" << step;
    }
  }
  AdamSettings late;
  late.step = UINT64_MAX;
  EXPECT_EQ(make_adam_rule(late).constants.correction1, 1.0f);
}

TEST(Replay, Group_WrongGradientOrBase_IsACheckMismatch) {
  SerialRunner runner;
  const TensorDescription description{ElementType::f32, Shape::make(std::vector<std::uint64_t>{100, 100}).value()};
  const FloatCase made = structured_case(100, 100, 5);
  const auto weight = bytes_of_floats(made.first);
  const auto second = bytes_of_floats(made.second);
  std::vector<std::uint8_t> gradient(20000);
  std::mt19937 random(3);
  for (std::size_t i = 0; i < gradient.size(); i += 2) {
    gradient[i] = static_cast<std::uint8_t>(random());
    gradient[i + 1] = static_cast<std::uint8_t>(0x38 + random() % 4);
  }
  AdamSettings settings;
  settings.decay = 0.1;
  settings.epsilon = 0.01;  // so that no constant is without effect
  const auto rule = make_adam_rule(settings);
  Floats w = made.first, m = made.first, v = made.second;
  std::vector<std::uint16_t> halves(10000);
  std::memcpy(halves.data(), gradient.data(), gradient.size());
  kernels::adam_kernels(kernels::IsaLevel::baseline)
      .step_bf16(rule, halves.data(), 10000, w.data(), m.data(), v.data());
  const auto w1 = bytes_of_floats(w), m1 = bytes_of_floats(m), v1 = bytes_of_floats(v);
  const OptimizerState base{weight, weight, second};
  const auto side = plan_replay(description, rule, base, {gradient, ElementType::bf16}, {w1, m1, v1}, runner);
  ASSERT_TRUE(side.ok()) << side.status().text();
  EXPECT_LE(side.value().size(), 100u);

  auto w2 = weight, m2 = weight, v2 = second;  // in place
  const OptimizerState own{w2, m2, v2};
  ASSERT_TRUE(replay_group(description, side.value(), own, {gradient, ElementType::bf16}, {w2, m2, v2}, runner).ok());
  EXPECT_EQ(w2, w1);
  EXPECT_EQ(m2, m1);
  EXPECT_EQ(v2, v1);

  auto other = gradient;
  other[4000] ^= 1;
  EXPECT_EQ(replay_group(description, side.value(), base, {other, ElementType::bf16}, {w2, m2, v2}, runner).code(),
            StatusCode::checksum_mismatch);
  EXPECT_EQ(replay_group(description, side.value(), {weight, weight, weight}, {gradient, ElementType::bf16},
                         {w2, m2, v2}, runner)
                .code(),
            StatusCode::checksum_mismatch);
  EXPECT_EQ(replay_group(description, side.value(), base, {gradient, ElementType::f32}, {w2, m2, v2}, runner).code(),
            StatusCode::invalid_argument);
  for (std::size_t cut = 0; cut < side.value().size(); ++cut) {
    const std::span<const std::uint8_t> shorter(side.value().data(), cut);
    EXPECT_FALSE(replay_group(description, shorter, base, {gradient, ElementType::bf16}, {w2, m2, v2}, runner).ok());
  }
  for (std::size_t byte = 0; byte < side.value().size(); ++byte) {
    auto damaged = side.value();
    damaged[byte] ^= 0x10;
    EXPECT_FALSE(replay_group(description, damaged, base, {gradient, ElementType::bf16}, {w2, m2, v2}, runner).ok())
        << byte;
  }
  auto wrong = w1;
  wrong[0] ^= 1;
  EXPECT_EQ(
      plan_replay(description, rule, base, {gradient, ElementType::bf16}, {wrong, m1, v1}, runner).status().code(),
      StatusCode::unsupported);
}

}  // namespace
}  // namespace quern::testing
