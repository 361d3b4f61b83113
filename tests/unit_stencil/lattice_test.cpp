// Elements on a lattice: packed integers, decimal digits and counts are found, coded as integers and come back within
// the bound; what is nearly on a lattice, or on none, is coded as before.
#include "tests/unit_stencil/helpers.h"

#include <limits>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/lattice/lattice.h"

namespace quern::codec::stencil::test {
namespace {

constexpr const char* kLayouts[] = {"raster", "levels", "planes", "wavelet"};

/// Whole numbers with the structure of waves, between -3 * scale and 3 * scale.
std::vector<double> whole(const Shape& shape, double scale, unsigned seed) {
  auto values = waves(shape, seed);
  for (double& v : values) v = std::nearbyint(v * scale);
  return values;
}

std::vector<double> moved(std::vector<double> values, double spacing, double origin) {
  for (double& v : values) v = v * spacing + origin;
  return values;
}

bool on_lattice(const Coding& coding) { return coding.encode(0)[0] == static_cast<std::uint8_t>(Mode::lattice); }

struct Packing {
  const char* what;
  double scale;  ///< places either side
  double spacing;
  double origin;
};
constexpr Packing kPackings[] = {{"counts", 300, 1, 0},
                                 {"binary fractions", 3000, 0.125, 17},
                                 {"two decimals", 4000, 0.01, 0},
                                 {"millimetres", 9000, 0.001, 12},
                                 {"packed to 16 bits", 10000, 0.0015273, 273.15}};

template <class T>
void expect_exact(DType dtype, const Packing& packing) {
  const Shape shape = shape_of({18, 25, 31});
  const Bytes data = as_bytes<T>(moved(whole(shape, packing.scale, 71), packing.spacing, packing.origin));
  const double bound = packing.spacing / 20;
  for (const char* layout : kLayouts) {
    SCOPED_TRACE(std::string(packing.what) + " " + dtype_name(dtype) + " " + layout);
    const Coding coding(dtype, shape, data, bound, {{"layout", layout}});
    EXPECT_TRUE(on_lattice(coding));
    Bytes back;
    const std::size_t bytes = coding.round_trip(back);
    EXPECT_EQ(count_missed<T>(coding, back, bound), 0u);
    // Much tighter bounds cost nothing more.
    Bytes again;
    EXPECT_LE(Coding(dtype, shape, data, bound / 10, {{"layout", layout}}).round_trip(again), bytes + 32);
  }
}

TEST(Stencil_Lattice, PackedDecimalAndCountedValues_CostNoMoreThanTheirPlaces) {
  for (const Packing& packing : kPackings) {
    // The spacing of f32 around 273 is near a hundredth of the last packing's: a tenth of the bound there.
    if (packing.origin < 200) expect_exact<float>(DType::f32, packing);
    expect_exact<double>(DType::f64, packing);
  }
}

TEST(Stencil_Lattice, PackedFloats_AreFoundUnderTheirRounding) {
  const Shape shape = shape_of({40, 50, 60});
  const double spacing = 0.0015273;
  auto values = whole(shape, 10000, 72);
  for (double& v : values) v = static_cast<float>(v) * static_cast<float>(spacing) + 273.15f;
  const double bound = spacing / 15;
  const Coding coding(DType::f32, shape, as_bytes<float>(values), bound);
  EXPECT_TRUE(on_lattice(coding));
  Bytes back;
  coding.round_trip(back);
  EXPECT_EQ(count_missed<float>(coding, back, bound), 0u);
}

TEST(Stencil_Lattice, BoundsOfAFewPlaces_AreUsedInFull) {
  // Of a bound between one and two places, three places share a code; of the bound itself fewer would.
  const Shape shape = shape_of({20, 21, 22});
  const Bytes data = as_bytes<float>(moved(whole(shape, 2000, 73), 0.25, 5));
  for (const double places : {1.0, 1.25, 2.0, 3.0}) {
    const double bound = places * 0.25;
    const Coding coding(DType::f32, shape, data, bound);
    EXPECT_TRUE(on_lattice(coding)) << places;
    Bytes back;
    coding.round_trip(back);
    EXPECT_EQ(count_missed<float>(coding, back, bound), 0u) << places;
  }
  for (const double places : {0.75, 1.75, 30.0})
    EXPECT_FALSE(on_lattice(Coding(DType::f32, shape, data, places * 0.25))) << places;
}

TEST(Stencil_Lattice, AnElementBesideItsPlace_IsCodedAsBefore) {
  const Shape shape = shape_of({10, 20, 30});
  auto values = moved(whole(shape, 900, 74), 0.5, 0);
  const double bound = 0.02;
  ASSERT_TRUE(on_lattice(Coding(DType::f32, shape, as_bytes<float>(values), bound)));
  for (const double odd : {0.2, 1e9, 3e38, -0.0}) {
    values[4321] = odd;
    const Coding coding(DType::f32, shape, as_bytes<float>(values), bound);
    Bytes back;
    coding.round_trip(back);
    EXPECT_EQ(count_missed<float>(coding, back, bound), 0u) << odd;
    float there = 1;
    std::memcpy(&there, back.data() + 4321 * sizeof(float), sizeof(there));
    EXPECT_EQ(std::signbit(there), std::signbit(odd));
  }
}

TEST(Stencil_Lattice, SpecialElements_NeedNoPlace) {
  const Shape shape = shape_of({12, 25, 30});
  auto values = moved(whole(shape, 900, 75), 0.01, 3);
  Bytes special(shape.elems(), 0);
  for (std::size_t i = 0; i < values.size(); i += 5) {
    special[i] = 1;
    values[i] = 1e20 + static_cast<double>(i);
  }
  for (const char* layout : kLayouts) {
    const Coding coding(DType::f64, shape, as_bytes<double>(values), 1e-3, {{"layout", layout}}, special);
    EXPECT_TRUE(on_lattice(coding)) << layout;
    Bytes back;
    coding.round_trip(back);
    EXPECT_EQ(count_missed<double>(coding, back, 1e-3), 0u) << layout;
  }
}

TEST(Stencil_Lattice, ContinuousAndFlatData_HaveNone) {
  const Shape shape = shape_of({20, 30, 40});
  for (const double bound : {1e-1, 1e-3, 1e-5, 1e-7}) {
    EXPECT_FALSE(on_lattice(Coding(DType::f32, shape, as_bytes<float>(waves(shape, 76)), bound))) << bound;
    EXPECT_FALSE(on_lattice(Coding(DType::f64, shape, as_bytes<double>(waves(shape, 76)), bound))) << bound;
  }
  EXPECT_EQ(Coding(DType::f32, shape, as_bytes<float>(std::vector<double>(24000, 4.5)), 1e-3).encode(0).size(), 5u);
}

TEST(Stencil_Lattice, CoarseLevels_AreThePointsOfTheWhole) {
  const Shape shape = shape_of({33, 40, 48});
  const Coding coding(DType::f64, shape, as_bytes<double>(moved(whole(shape, 900, 77), 0.01, 3)), 1e-3,
                      {{"layout", "levels"}});
  ASSERT_TRUE(on_lattice(coding));
  const Bytes stored = coding.encode(0);
  Bytes all;
  coding.round_trip(all);
  for (unsigned level = 1; level <= 3; ++level) {
    const std::uint64_t step = std::uint64_t{1} << level;
    MutableBox3 out;
    for (std::size_t a = 0; a < 3; ++a) out.extents[a] = (shape[a] - 1) / step + 1;
    out.strides = {out.extents[1] * out.extents[2], out.extents[2]};
    std::vector<double> points(out.elems());
    out.data = points.data();
    MutableBox3 whole_box = coding.box(0, nullptr);
    whole_box.data = nullptr;
    const Scratch scratch(coding.decoder().level_scratch_bytes());
    const Status status = coding.decoder().decode_level(stored, whole_box, level, out, scratch.span());
    ASSERT_TRUE(status.ok()) << status.text();
    for (std::uint64_t i = 0; i < out.elems(); ++i) {
      const std::uint64_t z = i / out.strides[0] * step;
      const std::uint64_t y = i / out.strides[1] % out.extents[1] * step;
      const std::uint64_t x = i % out.strides[1] * step;
      double v = 0;
      std::memcpy(&v, all.data() + ((z * shape[1] + y) * shape[2] + x) * sizeof(v), sizeof(v));
      ASSERT_EQ(points[i], v) << level << " " << i;
    }
  }
}

TEST(Stencil_Lattice, HeadsThatSayNothing_AreRefused) {
  const Shape shape = shape_of({12, 25, 30});
  const Bytes data = as_bytes<float>(moved(whole(shape, 900, 78), 0.5, 0));
  const Coding coding(DType::f32, shape, data, 0.02, {{"layout", "raster"}});
  const Bytes stored = coding.encode(0);
  ASSERT_EQ(stored[0], static_cast<std::uint8_t>(Mode::lattice));
  const auto status_of = [&](const Coding& with, const Bytes& bytes) {
    Bytes back(with.data().size());
    const Scratch scratch(with.decoder().scratch_bytes());
    return with.decoder().decode(bytes, with.box(0, back.data()), scratch.span()).code();
  };
  ASSERT_EQ(status_of(coding, stored), StatusCode::ok);
  for (std::size_t length = 0; length <= kLatticeHead; ++length)
    EXPECT_NE(status_of(coding, Bytes(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(length))),
              StatusCode::ok);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const std::size_t at : {std::size_t{1}, std::size_t{9}}) {
    for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
      Bytes broken = stored;
      std::memcpy(broken.data() + at, &bad, sizeof(bad));
      EXPECT_EQ(status_of(coding, broken), StatusCode::corrupt);
    }
  }
  for (const double bad : {0.0, -0.0, -0.5}) {
    Bytes broken = stored;
    std::memcpy(broken.data() + 9, &bad, sizeof(bad));
    EXPECT_EQ(status_of(coding, broken), StatusCode::corrupt);
  }
  Bytes twice(stored.begin(), stored.begin() + kLatticeHead);
  twice.insert(twice.end(), stored.begin(), stored.end());
  EXPECT_EQ(status_of(coding, twice), StatusCode::corrupt);
  const Coding integers(DType::i32, shape, as_bytes<std::int32_t>(whole(shape, 900, 78)), 0.5, {{"layout", "raster"}});
  EXPECT_EQ(status_of(integers, stored), StatusCode::corrupt);
}

TEST(Stencil_FindLattice, KnowsSpacingAndOrigin) {
  std::mt19937 random(79);
  std::vector<double> numbers(500);
  for (double& x : numbers) x = 0.07 * static_cast<double>(random() % 5000) + 0.03;
  const auto distances_of = [&] {
    std::vector<double> distances;
    for (std::size_t i = 1; i < numbers.size(); ++i) distances.push_back(std::fabs(numbers[i] - numbers[i - 1]));
    return distances;
  };
  auto distances = distances_of();
  const auto lattice = find_lattice(numbers, distances, 0.01, 1e-9);
  ASSERT_TRUE(lattice.has_value());
  EXPECT_EQ(lattice->spacing, 0.07);
  EXPECT_NEAR(std::remainder(lattice->origin - 0.03, 0.07), 0, 1e-9);
  EXPECT_FALSE(find_lattice(numbers, distances, 0.08, 1e-9).has_value());
  numbers[250] += 0.02;
  distances = distances_of();
  EXPECT_FALSE(find_lattice(numbers, distances, 0.03, 1e-9).has_value());
  const std::vector<double> eighths{0.125, 3, -7.5, 1e6};
  EXPECT_EQ(find_binary_lattice(eighths, 1e-3)->spacing, 0.125);
  EXPECT_FALSE(find_binary_lattice(eighths, 0.2).has_value());
}

}  // namespace
}  // namespace quern::codec::stencil::test
