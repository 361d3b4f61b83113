// Training goes on from coded states as from lossless ones, within limits; what must harm does; exact ways are exact.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/quality/at_rest.h"
#include "tests/support/instrumented.h"

namespace quern::testing {
namespace {

using namespace codec::tensor;

class Quality : public ::testing::TestWithParam<double> {};

TEST_P(Quality, Resume_FromEveryPreset_StaysWithinItsLimitAndControlsDoNot) {
  if (kInstrumented) GTEST_SKIP() << "the arithmetic is the release build's matter";
  const QualityTable table = measure_quality(GetParam());
  EXPECT_GE(table.frozen_rows, 50u) << "bytes that never occur leave rows without gradients";
  for (const QualityRow& row : table.rows) {
    const std::string what = row.group + ", " + row.name + ": first evaluation " +
                             std::to_string(row.first_evaluation) + ", late " + std::to_string(row.late_mean) +
                             ", limit " + std::to_string(row.limit);
    EXPECT_TRUE(row.expected != Expectation::within || row.within()) << what;
    EXPECT_FALSE(row.expected == Expectation::beyond && row.within()) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Beta2, Quality, ::testing::Values(0.999, 0.95));

TEST(Quality, MomentsAtRest_CodedAtEveryStep_StayNearBinary32AndNearestRoundingDoesNot) {
  if (kInstrumented) GTEST_SKIP() << "the arithmetic is the release build's matter";
  const std::vector<AtRestRow> rows = measure_at_rest(0.999, false);
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_LT(std::abs(rows[0].late_mean), kAtRestLimit) << "8 bits";
  EXPECT_LT(std::abs(rows[1].late_mean), kAtRestLimit) << "coarsest steps of 8 bits";
  EXPECT_LT(std::abs(rows[2].late_mean), 3 * kAtRestLimit) << "4 bits";
  EXPECT_GT(std::abs(rows[4].late_mean), 3 * kAtRestLimit) << "rounding to nearest must harm";
  EXPECT_LT(rows[2].exceptional_share, 0.1) << "codes of 4 bits must hold nearly all blocks";
}

bool same_state(const TrainState& a, const TrainState& b) {
  for (std::size_t i = 0; i < kTensors; ++i) {
    const auto same = [&](const std::vector<float> TrainTensor::*part) {
      const auto& x = a.tensors[i].*part;
      const auto& y = b.tensors[i].*part;
      return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * 4) == 0;
    };
    if (!same(&TrainTensor::weight) || !same(&TrainTensor::exp_avg) || !same(&TrainTensor::exp_avg_sq)) return false;
  }
  return true;
}

std::span<const std::uint8_t> bytes_of(const std::vector<float>& v) {
  return {reinterpret_cast<const std::uint8_t*>(v.data()), v.size() * 4};
}
std::span<std::uint8_t> mutable_bytes_of(std::vector<float>& v) {
  return {reinterpret_cast<std::uint8_t*>(v.data()), v.size() * 4};
}

TEST(Quality, ExactAndReplayedStates_GoOnWithTheSameLosses) {
  Trainer trainer = make_trainer(0.999);
  TrainState base = Trainer::fresh(3);
  for (int i = 0; i < 30; ++i) trainer.step(base);
  TrainState next = base;
  trainer.step(next);
  const float clip = trainer.last_clip();

  TrainState exact = next;
  preset_coder({"exact"})(exact);
  EXPECT_TRUE(same_state(exact, next));

  TrainState replayed = base;
  SerialRunner runner;
  for (std::size_t i = 0; i < kTensors; ++i) {
    TrainTensor& t = replayed.tensors[i];
    const TrainTensor& wanted = next.tensors[i];
    const TensorDescription description{ElementType::f32, Shape::make(t.shape).value()};
    const ReplayGradient gradient{
        {reinterpret_cast<const std::uint8_t*>(wanted.gradient.data()), wanted.gradient.size() * 2}, ElementType::bf16};
    const OptimizerState state{bytes_of(t.weight), bytes_of(t.exp_avg), bytes_of(t.exp_avg_sq)};
    const auto side =
        plan_replay(description, make_adam_rule(trainer.settings(i, base.step, clip)), state, gradient,
                    {bytes_of(wanted.weight), bytes_of(wanted.exp_avg), bytes_of(wanted.exp_avg_sq)}, runner);
    ASSERT_TRUE(side.ok()) << side.status().text();
    ASSERT_TRUE(replay_group(description, side.value(), state, gradient,
                             {mutable_bytes_of(t.weight), mutable_bytes_of(t.exp_avg), mutable_bytes_of(t.exp_avg_sq)},
                             runner)
                    .ok());
  }
  replayed.step = next.step;
  EXPECT_TRUE(same_state(replayed, next));
  for (int i = 0; i < 10; ++i) {
    const double loss = trainer.step(next);
    EXPECT_EQ(trainer.step(exact), loss);
    EXPECT_EQ(trainer.step(replayed), loss);
  }
}

}  // namespace
}  // namespace quern::testing
