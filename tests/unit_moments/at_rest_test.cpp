// Moments at rest: bounds checked by arithmetic of its own, rounding without bias, one result everywhere.
#include <gtest/gtest.h>

#include <cmath>

#include "codecs/tensor/at_rest.h"
#include "codecs/tensor/replay.h"
#include "libcompress/core/task_runner.h"
#include "tests/unit_moments/float_cases.h"

namespace quern::testing {
namespace {

using namespace codec::tensor;
using kernels::IsaLevel;
using kernels::kAtRestBlock;

std::uint32_t bits_of(float f) { return std::bit_cast<std::uint32_t>(f); }
std::vector<std::uint8_t> stored(const AtRestMoments& m) {
  std::vector<std::uint8_t> all(m.fixed_part().begin(), m.fixed_part().end());
  all.insert(all.end(), m.beside_part().begin(), m.beside_part().end());
  return all;
}

struct FormCase {
  AtRestForm form;
  long double root_of_factor;  ///< a decoded root is within this factor, exclusive
  long double roots;           ///< a first moment moves by less than so many decoded roots
};
const FormCase kForms[] = {{{8, true}, std::sqrt(1.25L), 0.1L},
                           {{8, false}, std::sqrt(1.25L), 0.1L},
                           {{4, true}, 2.0L, 0.5L},
                           {{4, false}, 2.0L, 0.5L}};

/// What must hold of one value, from the definition of the bound alone.
::testing::AssertionResult within(const FormCase& c, float m, float v, float m2, float v2) {
  const bool same = bits_of(m) == bits_of(m2) && bits_of(v) == bits_of(v2);
  if (same) return ::testing::AssertionSuccess();
  const auto text = [&] { return ::testing::AssertionFailure() << m << ", " << v << " became " << m2 << ", " << v2; };
  if (!std::isfinite(m) || !std::isfinite(v) || !std::isfinite(m2) || !std::isfinite(v2)) return text();
  if (std::signbit(v) || std::signbit(v2) || (v == 0) != (v2 == 0)) return text();
  if (m == 0 && bits_of(m) != bits_of(m2)) return text();
  if (v == 0 && m != 0) return text();
  if (v != 0) {
    const long double ratio = std::sqrt(static_cast<long double>(v2)) / std::sqrt(static_cast<long double>(v));
    if (ratio >= c.root_of_factor || 1 / ratio >= c.root_of_factor) return text() << ", a ratio of roots of " << ratio;
  }
  const long double off = std::abs(static_cast<long double>(m2) - static_cast<long double>(m));
  if (off != 0 && off >= c.roots * std::sqrt(static_cast<long double>(v2))) return text();
  return ::testing::AssertionSuccess();
}

TEST(AtRest, EncodeDecode_EveryFormAndKindOfValues_KeepsItsBoundAndWhatIsSpecial) {
  SerialRunner runner;
  for (const FormCase& form : kForms)
    for (const std::size_t elems : {1u, 255u, 256u, 257u, 16385u})
      for (const FloatCase& values : float_cases(elems))
        for (const std::uint64_t step : {1u, 77u}) {
          AtRestMoments moments = AtRestMoments::make(elems, 512, form.form).value();
          ASSERT_TRUE(moments.encode(5, step, values.first.data(), values.second.data(), runner).ok());
          Floats first(elems), second(elems);
          ASSERT_TRUE(moments.decode(first.data(), second.data(), runner).ok());
          for (std::size_t i = 0; i < elems; ++i)
            ASSERT_TRUE(within(form, values.first[i], values.second[i], first[i], second[i]))
                << values.name << ", value " << i << " of " << elems << ", " << form.form.bits << " bits";
        }
}

TEST(AtRest, Encode_OrdinaryMoments_FitsTheSlots) {
  SerialRunner runner;
  const FloatCase values = structured_case(300, 100, 4);
  for (const unsigned bits : {8u, 4u}) {
    AtRestMoments moments = AtRestMoments::make(values.first.size(), 0, {bits, true}).value();
    ASSERT_TRUE(moments.encode(1, 1, values.first.data(), values.second.data(), runner).ok());
    EXPECT_LE(moments.exceptional_blocks(), bits == 8 ? 0u : 40u);
    EXPECT_EQ(moments.fixed_part().size(), 4 * 2 + 4 * 118 + 118 * bits * 64u);
  }
}

TEST(AtRest, Rounding_OverManySteps_HasNoBias) {
  SerialRunner runner;
  constexpr std::size_t kSteps = 4000;
  const FloatCase values = structured_case(3, 100, 9);
  const std::size_t elems = values.first.size();
  for (const FormCase& form : kForms) {
    AtRestMoments moments = AtRestMoments::make(elems, 0, form.form).value();
    std::vector<double> first_sum(elems), second_sum(elems), first_squares(elems), second_squares(elems);
    Floats first(elems), second(elems);
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      ASSERT_TRUE(moments.encode(3, step, values.first.data(), values.second.data(), runner).ok());
      ASSERT_TRUE(moments.decode(first.data(), second.data(), runner).ok());
      for (std::size_t i = 0; i < elems; ++i) {
        const double a = static_cast<double>(first[i]) - static_cast<double>(values.first[i]);
        const double b = static_cast<double>(second[i]) - static_cast<double>(values.second[i]);
        first_sum[i] += a;
        second_sum[i] += b;
        first_squares[i] += a * a;
        second_squares[i] += b * b;
      }
    }
    // Each mean against its own deviation; the sum of squares of 300 such is chi-squared.
    double first_chi = 0;
    double second_chi = 0;
    for (std::size_t i = 0; i < elems; ++i) {
      if (first_squares[i] > 0) first_chi += first_sum[i] * first_sum[i] / first_squares[i];
      if (second_squares[i] > 0) second_chi += second_sum[i] * second_sum[i] / second_squares[i];
    }
    EXPECT_LT(first_chi, 300 + 6 * 25.0) << form.form.bits;
    EXPECT_LT(second_chi, 300 + 6 * 25.0) << form.form.bits;
    EXPECT_GT(first_chi, 300 - 6 * 25.0) << form.form.bits;
    EXPECT_GT(second_chi, 300 - 6 * 25.0) << form.form.bits;
  }
}

/// A rule as trainers have it, clipped.
kernels::AdamRule rule_of(std::uint64_t step, kernels::AdamOrder order = kernels::AdamOrder::fused) {
  AdamSettings settings;
  settings.order = order;
  settings.decay = 0.1;
  settings.clip = 0.7f;
  settings.step = step;
  return make_adam_rule(settings);
}

TEST(AtRest, Step_EveryInstructionSet_IsDecodingAdamAndEncoding) {
  constexpr std::size_t kElems = 16384 - 100;
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  Floats gradient(kElems), weight(kElems);
  std::vector<std::uint16_t> halves(kElems);
  for (std::size_t i = 0; i < kElems; ++i) {
    gradient[i] = 1e-3f * normal(random);
    halves[i] = static_cast<std::uint16_t>(kernels::float_to_bfloat(gradient[i]));
    weight[i] = normal(random);
  }
  const std::uint64_t key = 99;
  for (const FormCase& form : kForms)
    for (const FloatCase& values : float_cases(kElems)) {
      const kernels::AtRestStep step{form.form, key, rule_of(9)};
      std::vector<std::vector<std::uint8_t>> results;
      for (const IsaLevel level : {IsaLevel::baseline, IsaLevel::avx2, IsaLevel::avx512}) {
        if (!isa_available(level)) continue;
        const auto& k = kernels::at_rest_kernels(level);
        struct Buffers {
          std::vector<std::uint32_t> headers = std::vector<std::uint32_t>(64);
          std::vector<std::uint8_t> slots, beside, room;
        } state;
        state.slots.resize(64 * at_rest_slot_bytes(form.form));
        state.beside.resize(64 * kernels::kAtRestRawBytes);
        state.room.resize(64 * kernels::kAtRestRawBytes);
        kernels::AtRestTile tile{kElems, 7, state.headers.data(), state.slots.data(), state.beside.data()};
        k.encode(step, tile, values.first.data(), values.second.data(), state.beside.data());
        Buffers composed = state;
        Floats w = weight;
        std::vector<std::uint16_t> copy(kElems);
        const std::size_t bytes = k.step_bf16(step, tile, halves.data(), w.data(), copy.data(), state.room.data());

        // The same by parts.
        kernels::AtRestTile parts{kElems, 7, composed.headers.data(), composed.slots.data(), composed.beside.data()};
        Floats m(kElems), v(kElems), w2 = weight;
        k.decode(form.form, parts, m.data(), v.data());
        kernels::adam_kernels(level).step_bf16(step.rule, halves.data(), kElems, w2.data(), m.data(), v.data());
        const std::size_t bytes2 = k.encode(step, parts, m.data(), v.data(), composed.room.data());
        ASSERT_EQ(bytes, bytes2) << values.name;
        composed.room.resize(bytes);
        state.room.resize(bytes);
        ASSERT_EQ(state.headers, composed.headers) << values.name;
        ASSERT_EQ(state.slots, composed.slots) << values.name;
        ASSERT_EQ(state.room, composed.room) << values.name;
        ASSERT_EQ(std::memcmp(w.data(), w2.data(), 4 * kElems), 0);
        for (std::size_t i = 0; i < kElems; ++i) ASSERT_EQ(copy[i], kernels::float_to_bfloat(w[i]));

        std::vector<std::uint8_t> all = state.slots;
        all.insert(all.end(), state.room.begin(), state.room.end());
        const auto* const headers = reinterpret_cast<const std::uint8_t*>(state.headers.data());
        all.insert(all.end(), headers, headers + 4 * state.headers.size());
        const auto* const weights = reinterpret_cast<const std::uint8_t*>(w.data());
        all.insert(all.end(), weights, weights + 4 * kElems);
        results.push_back(std::move(all));
      }
      for (const auto& result : results) ASSERT_EQ(result, results.front()) << values.name;
    }
}

TEST(AtRest, Step_ManyThreadsAndBothGradientTypes_GivesTheBytesOfOneThread) {
  const FloatCase values = structured_case(700, 100, 2);
  const std::size_t elems = values.first.size();
  std::vector<std::uint16_t> halves(elems);
  Floats gradient(elems);
  for (std::size_t i = 0; i < elems; ++i) {
    halves[i] = static_cast<std::uint16_t>(kernels::float_to_bfloat(values.first[i]));
    gradient[i] = kernels::bfloat_to_float(halves[i]);
  }
  Execution many;
  many.threads = 4;
  RunnerHandle pool(many);
  SerialRunner serial;
  std::vector<std::vector<std::uint8_t>> results;
  for (TaskRunner* const runner : {static_cast<TaskRunner*>(&serial), &pool.get()})
    for (const bool wide : {false, true}) {
      AtRestMoments moments = AtRestMoments::make(elems, 0, {8, true}).value();
      Floats weight(elems, 0.5f);
      ASSERT_TRUE(moments.encode(1, 0, values.first.data(), values.second.data(), *runner).ok());
      for (std::uint64_t s = 1; s <= 3; ++s) {
        const AtRestGradient g =
            wide ? AtRestGradient{gradient.data(), ElementType::f32} : AtRestGradient{halves.data(), ElementType::bf16};
        ASSERT_TRUE(moments.step(1, s, rule_of(s), g, weight.data(), nullptr, *runner).ok());
      }
      results.push_back(stored(moments));
    }
  for (const auto& result : results) EXPECT_EQ(result, results.front());
}

TEST(AtRest, Step_FollowsAdam_WithinWhatStepsAreWorth) {
  // Constant gradients: both moments approach known values, slowly for codes that nearest rounding would leave behind.
  constexpr std::size_t kElems = 4096;
  SerialRunner runner;
  const Floats gradient(kElems, 1e-3f);
  for (const unsigned bits : {8u, 4u}) {
    AtRestMoments moments = AtRestMoments::make(kElems, 0, {bits, true}).value();
    Floats weight(kElems, 0.0f), first(kElems), second(kElems);
    for (std::uint64_t s = 1; s <= 1000; ++s)
      ASSERT_TRUE(
          moments.step(8, s, rule_of(s), {gradient.data(), ElementType::f32}, weight.data(), nullptr, runner).ok());
    ASSERT_TRUE(moments.decode(first.data(), second.data(), runner).ok());
    double mean_first = 0, mean_second = 0;
    for (std::size_t i = 0; i < kElems; ++i) {
      mean_first += static_cast<double>(first[i]) / kElems;
      mean_second += static_cast<double>(second[i]) / kElems;
    }
    EXPECT_NEAR(mean_first, 0.7e-3, 0.7e-5);
    EXPECT_NEAR(mean_second, 0.49e-6 * (1 - std::pow(0.999, 1000)), 0.49e-8);
  }
}

TEST(AtRest, StoredForm_ReadBack_IsTheSameState) {
  SerialRunner runner;
  const auto cases = float_cases(20000);
  for (const FloatCase& values : cases) {
    AtRestMoments moments = AtRestMoments::make(20000, 256, {4, true}).value();
    ASSERT_TRUE(moments.encode(1, 1, values.first.data(), values.second.data(), runner).ok());
    AtRestMoments back = AtRestMoments::make(20000, 256, {4, true}).value();
    std::memcpy(back.fixed_room().data(), moments.fixed_part().data(), moments.fixed_part().size());
    const auto room = back.beside_room(moments.beside_part().size());
    ASSERT_TRUE(room.ok());
    ASSERT_EQ(room.value().size(), moments.beside_part().size());
    if (!room.value().empty()) std::memcpy(room.value().data(), moments.beside_part().data(), room.value().size());
    ASSERT_TRUE(back.accept().ok());
    EXPECT_EQ(stored(back), stored(moments)) << values.name;
  }
}

TEST(AtRest, StoredForm_AnyBytes_AreRefusedOrDecode) {
  SerialRunner runner;
  std::mt19937 random(4);
  std::size_t accepted = 0;
  for (int run = 0; run < 300; ++run) {
    AtRestMoments moments = AtRestMoments::make(1000, 0, {run % 2 == 0 ? 8u : 4u, true}).value();
    for (std::uint8_t& byte : moments.fixed_room()) byte = run % 3 == 0 ? 0 : static_cast<std::uint8_t>(random());
    auto* const words = reinterpret_cast<std::uint32_t*>(moments.fixed_room().data());
    // Half of the runs: sizes that may be true.
    if (run % 2 == 0) words[0] = static_cast<std::uint32_t>(random() % 5 * 512);
    words[1 + random() % 4] ^= 1u << random() % 32;
    const auto room = moments.beside_room(words[0]);
    if (!room.ok()) continue;
    for (std::uint8_t& byte : room.value()) byte = static_cast<std::uint8_t>(random());
    if (!moments.accept().ok()) continue;
    ++accepted;
    Floats first(1000), second(1000);
    EXPECT_TRUE(moments.decode(first.data(), second.data(), runner).ok());
  }
  EXPECT_GT(accepted, 10u);
  EXPECT_LT(accepted, 290u);
}

TEST(AtRest, Make_BadArguments_AreRefused) {
  EXPECT_EQ(AtRestMoments::make(10, 0, {5, true}).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(AtRestMoments::make(10, 100, {8, true}).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(AtRestMoments::make(UINT64_C(1) << 60, 0, {8, true}).status().code(), StatusCode::invalid_argument);
  AtRestMoments none = AtRestMoments::make(0, 0, {8, true}).value();
  SerialRunner runner;
  EXPECT_TRUE(none.step(1, 1, rule_of(1), {nullptr, ElementType::f32}, nullptr, nullptr, runner).ok());
  EXPECT_EQ(none.bytes(), 0u);
}

TEST(GradientNorm, AnyGradient_IsTheRootOfSquaresOrNotFinite) {
  SerialRunner runner;
  const FloatCase values = structured_case(400, 100, 6);
  long double sum = 0;
  for (const float g : values.first) sum += static_cast<long double>(g) * static_cast<long double>(g) * 16;
  const AtRestGradient gradient{values.first.data(), ElementType::f32};
  EXPECT_NEAR(gradient_norm(gradient, values.first.size(), 4, runner), static_cast<double>(std::sqrt(sum)),
              1e-12 * static_cast<double>(std::sqrt(sum)));
  for (const std::uint32_t bits : {0x7fc00000u, 0x7f800000u, 0xff800000u})
    for (const std::size_t at : {std::size_t{0}, std::size_t{20001}, values.first.size() - 1}) {
      Floats bad = values.first;
      bad[at] = std::bit_cast<float>(bits);
      EXPECT_FALSE(std::isfinite(gradient_norm({bad.data(), ElementType::f32}, bad.size(), 1, runner)));
      std::vector<std::uint16_t> halves(bad.size(), 0x3f80);
      halves[at] = static_cast<std::uint16_t>(bits >> 16);
      EXPECT_FALSE(std::isfinite(gradient_norm({halves.data(), ElementType::bf16}, halves.size(), 1, runner)));
    }
}

}  // namespace
}  // namespace quern::testing
