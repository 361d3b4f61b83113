// The factor of a base: found where the values are a decayed base and something small, 1 elsewhere.
#include "codecs/tensor/delta_scale.h"

#include <gtest/gtest.h>

#include "tests/unit_tensor/tensor_cases.h"

namespace quern::codec::tensor {
namespace {

/// values = factor * base + noise * |base| * normal.
float fitted(double factor, double noise) {
  const std::size_t elems = 20000;
  const Bytes base = make_values(ElementType::f32, elems, "weights");
  Bytes values(base.size());
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  for (std::size_t i = 0; i < elems; ++i) {
    float known = 0;
    std::memcpy(&known, base.data() + 4 * i, 4);
    put(values, i, 4, word_of(ElementType::f32, known * factor + noise * std::abs(known) * normal(random)));
  }
  return fit_scale(values, base);
}

TEST(DeltaScale_Fit, FindsADecay) {
  EXPECT_EQ(fitted(0.95, 0), 0.95f);
  EXPECT_NEAR(fitted(0.95, 1e-3), 0.95, 1e-3);
  EXPECT_NEAR(fitted(0.5987, 1e-3), 0.5987, 1e-3);
  EXPECT_NEAR(fitted(0.11, 1e-2), 0.11, 1e-3);
}

TEST(DeltaScale_Fit, IsOneWhereNothingIsGained) {
  EXPECT_EQ(fitted(1.0, 0), 1.0f);
  EXPECT_EQ(fitted(1.0, 1e-2), 1.0f);
  const Bytes zeros(40000, 0);
  EXPECT_EQ(fit_scale(zeros, zeros), 1.0f);
  const Bytes specials = make_values(ElementType::f32, 10000, "specials");
  EXPECT_EQ(fit_scale(specials, specials), 1.0f);
}

TEST(DeltaScale_Fit, StaysInRange) {
  EXPECT_TRUE(is_scale(fitted(1e-4, 0)));
  EXPECT_TRUE(is_scale(fitted(50, 0)));
}

}  // namespace
}  // namespace quern::codec::tensor
