// The layout that is chosen by encoding is the smallest of those that can be had by name, or nearly.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "codecs/stencil/effort.h"
#include "tests/unit_stencil/edges/fronts.h"
#include "tests/unit_stencil/helpers.h"

namespace quern::codec::stencil::test {
namespace {

struct Field {
  const char* name;
  Shape shape;
  std::vector<double> values;
};

/// Planes that have nothing to do with each other, each smooth.
Field unlike_planes() {
  const Shape shape = shape_of({60, 40, 50});
  std::vector<double> values(shape.elems());
  std::mt19937 random(7);
  for (std::size_t plane = 0; plane < 60; ++plane) {
    const double phase = static_cast<double>(random() % 1000) / 100;
    const double width = 5 + static_cast<double>(random() % 20);
    for (std::size_t i = 0; i < 2000; ++i)
      values[plane * 2000 + i] = std::sin(phase + static_cast<double>(i / 50) / width) *
                                 std::cos(2 * phase + static_cast<double>(i % 50) / (width + 3));
  }
  return {"unlike planes", shape, values};
}

/// A long first axis that goes on smoothly, and a last one of three unlike components.
Field components() {
  const Shape shape = shape_of({800, 12, 3});
  std::vector<double> values(shape.elems());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto t = static_cast<double>(i / 36);
    const auto row = static_cast<double>(i / 3 % 12);
    values[i] = std::sin(t / 40 + row) + 2 * static_cast<double>(i % 3) * std::cos(t / 15 - row / 3);
  }
  return {"components", shape, values};
}

Field noisy_line() {
  const Shape shape = shape_of({30000});
  std::vector<double> values(shape.elems());
  std::mt19937 random(9);
  double v = 0;
  for (double& value : values) value = v += static_cast<double>(random() % 2001) / 1000 - 1;
  return {"line", shape, values};
}

/// Zero nearly everywhere.
Field islands() {
  const Shape shape = shape_of({40, 60, 64});
  std::vector<double> values(shape.elems());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto z = static_cast<double>(i / 3840) - 20;
    const auto y = static_cast<double>(i / 64 % 60) - 25;
    const auto x = static_cast<double>(i % 64) - 30;
    values[i] = std::max(0.0, 9 - std::sqrt(z * z / 4 + y * y + x * x / 2)) * (1 + 0.2 * std::sin(x * y));
  }
  return {"islands", shape, values};
}

/// So smooth that the transform takes next to nothing, which a small block does not show.
Field very_smooth() {
  const Shape shape = shape_of({64, 80, 100});
  std::vector<double> values(shape.elems());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<double>(i % 100) / 9 + static_cast<double>(i / 8000) / 17) *
                std::cos(static_cast<double>(i / 100 % 80) / 11);
  return {"very smooth", shape, values};
}

std::vector<Field> fields() {
  const Shape cube = shape_of({48, 48, 48});
  const Shape plane = shape_of({210, 190});
  return {unlike_planes(),
          components(),
          noisy_line(),
          islands(),
          very_smooth(),
          {"waves", cube, waves(cube, 3)},
          {"plane", plane, waves(plane, 4)},
          {"fronts", cube, fronts(48, 2, 96, 30)}};
}

std::size_t coded_bytes(const Field& field, double bound, const Settings& settings, unsigned effort = 6) {
  const quern::testing::CodedArray coded(stencil_codec(), DType::f32, field.shape, as_bytes<float>(field.values), {},
                                         {{BoundKind::abs, bound}, settings, "ratio", effort});
  std::size_t bytes = 0;
  for (std::uint64_t chunk = 0; chunk < coded.chunks(); ++chunk) bytes += coded.encode(chunk).size();
  return bytes;
}

std::size_t best_forced(const Field& field, double bound) {
  std::size_t best = SIZE_MAX;
  for (const char* layout : {"raster", "levels", "planes", "wavelet"})
    if (field.shape.rank() > 1 || std::string(layout) != "planes")
      best = std::min(best, coded_bytes(field, bound, {{"layout", layout}}));
  return best;
}

TEST(Stencil_Choice, TakesNoMoreThanTheBestLayoutByName) {
  for (const Field& field : fields()) {
    for (const double bound : {0.1, 3e-3, 1e-4}) {
      SCOPED_TRACE(::testing::Message() << field.name << " " << bound);
      EXPECT_LE(static_cast<double>(coded_bytes(field, bound, {})),
                1.01 * static_cast<double>(best_forced(field, bound)));
    }
  }
}

// Unlike halves: what one box shows does not hold for the other half.
TEST(Stencil_Choice, OfLargeArraysGoesByBlocksAllOver) {
  const Shape shape = shape_of({160, 128, 256});
  std::vector<double> values(shape.elems());
  std::mt19937 random(11);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t z = i / 32768;
    const auto y = static_cast<double>(i / 256 % 128);
    const auto x = static_cast<double>(i % 256);
    values[i] = z < 100 ? std::sin(x / 9 + static_cast<double>(z) / 17) * std::cos(y / 11)
                        : static_cast<double>(random() % 1000) / 1000;
  }
  const Field field{"unlike halves", shape, values};
  ASSERT_GT(shape.elems(), std::uint64_t{1} << 22);
  EXPECT_LE(static_cast<double>(coded_bytes(field, 1e-2, {})), 1.05 * static_cast<double>(best_forced(field, 1e-2)));
}

TEST(Stencil_Choice, MoreEffortSeldomTakesMoreBytes) {
  const Field field = islands();
  std::vector<std::size_t> bytes;
  for (unsigned effort = 1; effort <= 9; ++effort) bytes.push_back(coded_bytes(field, 3e-3, {}, effort));
  EXPECT_LT(bytes[5], bytes[0]);  // 6 against 1
  for (std::size_t i = 1; i < bytes.size(); ++i)
    EXPECT_LE(static_cast<double>(bytes[i]), 1.01 * static_cast<double>(bytes[i - 1])) << "effort " << i + 1;
}

TEST(Stencil_Choice, GoalSpeedIsEffortOne) {
  const Field field = unlike_planes();
  const auto coded = [&](const char* goal, unsigned effort) {
    const quern::testing::CodedArray array(stencil_codec(), DType::f32, field.shape, as_bytes<float>(field.values), {},
                                           {{BoundKind::abs, 1e-3}, {}, goal, effort});
    return array.encode(0);
  };
  EXPECT_EQ(coded("speed", 6), coded("speed", 1));
  EXPECT_EQ(coded("speed", 9), coded("speed", 1));
}

}  // namespace
}  // namespace quern::codec::stencil::test
