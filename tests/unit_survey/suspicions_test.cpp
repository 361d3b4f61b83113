// Undeclared fill values, byte orders and types: found where they are, and nothing found in data of every other kind.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <quern/suspicions.h>

namespace quern {
namespace {

template <class T>
constexpr DType kType = std::is_same_v<T, float>           ? DType::f32
                        : std::is_same_v<T, double>        ? DType::f64
                        : std::is_same_v<T, std::int16_t>  ? DType::i16
                        : std::is_same_v<T, std::uint16_t> ? DType::u16
                        : std::is_same_v<T, std::int32_t>  ? DType::i32
                        : std::is_same_v<T, std::uint32_t> ? DType::u32
                        : std::is_same_v<T, std::int64_t>  ? DType::i64
                                                           : DType::u8;

template <class T>
Vector<Suspicion> look(const std::vector<T>& values, SuspicionScope scope = SuspicionScope::values_and_layout,
                       Vector<std::uint64_t> fills = {}) {
  const ArrayView view{values.data(), kType<T>, Shape::make({{values.size()}}).value()};
  auto found = find_suspicions(view, fills, scope);
  EXPECT_TRUE(found.ok());
  return std::move(found).value();
}

template <class T>
void expect_nothing(const std::vector<T>& values, const std::string& what) {
  const auto found = look(values);
  EXPECT_TRUE(found.empty()) << what << ": kind " << static_cast<int>(found.front().kind) << " value "
                             << found.front().value;
}

template <class T>
void expect_fill(const std::vector<T>& values, T fill, const std::string& what) {
  const auto found = look(values);
  ASSERT_EQ(found.size(), 1U) << what;
  EXPECT_EQ(found.front().kind, Suspicion::Kind::fill_value) << what;
  EXPECT_EQ(static_cast<T>(found.front().value), fill) << what;
}

template <class T>
void expect_kind(const std::vector<T>& values, Suspicion::Kind kind, DType likely, const std::string& what) {
  const auto found = look(values);
  ASSERT_EQ(found.size(), 1U) << what;
  EXPECT_EQ(found.front().kind, kind) << what;
  if (kind == Suspicion::Kind::element_type) {
    EXPECT_EQ(found.front().likely, likely) << what;
  }
  // A file that says type and order itself is not asked about them.
  for (const Suspicion& s : look(values, SuspicionScope::values)) EXPECT_EQ(s.kind, Suspicion::Kind::fill_value);
}

/// A smooth field in the range of sea temperatures, as T.
template <class T>
std::vector<T> field(std::size_t n, std::uint64_t seed = 1, double scale = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> step(0, 0.1);
  std::vector<T> out(n);
  double v = 12;
  for (T& x : out) {
    v = std::clamp(v + step(random), -1.9, 31.0);
    x = static_cast<T>(v * scale);
  }
  return out;
}

template <class T>
std::vector<T> with_gaps(std::vector<T> values, T fill, double share, std::uint64_t seed = 5) {
  std::mt19937_64 random(seed);
  std::bernoulli_distribution gap(share);
  for (T& x : values)
    if (gap(random)) x = fill;
  return values;
}

template <class To, class From>
std::vector<To> reread(const std::vector<From>& values) {
  std::vector<To> out(values.size() * sizeof(From) / sizeof(To));
  std::memcpy(out.data(), values.data(), out.size() * sizeof(To));
  return out;
}

template <class T>
std::vector<T> reversed_bytes(std::vector<T> values) {
  for (T& x : values) {
    auto* bytes = reinterpret_cast<unsigned char*>(&x);
    std::reverse(bytes, bytes + sizeof(T));
  }
  return values;
}

TEST(FillSuspicion, UsualFillValues_AreFound) {
  for (const float fill : {9.96921e36F, 1e20F, -9999.0F, -999.0F, -99999.0F, 1e30F, -32768.0F, 3.4028235e38F})
    for (const double share : {0.3, 0.01, 0.002})
      expect_fill(with_gaps(field<float>(50000), fill, share), fill, std::to_string(fill));
  expect_fill(with_gaps(field<double>(50000), 9.969209968386869e36, 0.3), 9.969209968386869e36, "double");
  expect_fill(with_gaps(field<std::int16_t>(50000, 1, 100), std::int16_t{-32768}, 0.2), std::int16_t{-32768}, "i16");
  expect_fill(with_gaps(field<std::int32_t>(50000, 1, 1000), std::int32_t{-2147483647}, 0.2), -2147483647, "i32");
  expect_fill(with_gaps(field<float>(3000000), -9999.0F, 0.05), -9999.0F, "large array");
}

TEST(FillSuspicion, UnusualValueFarOutside_IsFound) {
  expect_fill(with_gaps(field<float>(50000), 123456.0F, 0.1), 123456.0F, "far above");
  expect_fill(with_gaps(field<float>(50000), -7e12F, 0.1), -7e12F, "far below");
  std::vector<float> few = field<float>(900);
  few[3] = few[500] = few[800] = 1e20F;
  expect_fill(few, 1e20F, "three of 900");
}

TEST(FillSuspicion, TwoFillValues_AreBothFound) {
  const auto both = with_gaps(with_gaps(field<float>(50000), 1e20F, 0.1), -999.0F, 0.1, 6);
  EXPECT_EQ(look(both).size(), 2U);
  const auto ends = with_gaps(with_gaps(field<float>(50000), 1e20F, 0.1), -1e20F, 0.1, 6);
  EXPECT_EQ(look(ends).size(), 2U);
}

TEST(FillSuspicion, ConstantBesideFill_IsFound) {
  expect_fill(with_gaps(std::vector<float>(5000, 3.5F), 1e20F, 0.1), 1e20F, "one other value");
}

TEST(FillSuspicion, DeclaredValue_IsNoSuspicion) {
  const auto values = with_gaps(field<float>(50000), 1e20F, 0.1);
  EXPECT_TRUE(look(values, SuspicionScope::values, {std::bit_cast<std::uint32_t>(1e20F)}).empty());
}

TEST(FillSuspicion, ShareAndOthers_AreThoseOfTheData) {
  const auto values = with_gaps(field<float>(50000), 1e20F, 0.25);
  const auto found = look(values);
  ASSERT_EQ(found.size(), 1U);
  const auto gaps = static_cast<double>(std::count(values.begin(), values.end(), 1e20F));
  EXPECT_DOUBLE_EQ(found[0].share, gaps / 50000);
  float low = 1e9F, high = -1e9F;
  for (const float x : values) {
    if (x == 1e20F) continue;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  EXPECT_EQ(found[0].others_min, low);
  EXPECT_EQ(found[0].others_max, high);
}

TEST(LayoutSuspicion, ReversedBytes_AreFound) {
  const auto order = Suspicion::Kind::byte_order;
  expect_kind(reversed_bytes(field<float>(20000)), order, DType::f32, "f32");
  expect_kind(reversed_bytes(field<double>(20000)), order, DType::f64, "f64");
  expect_kind(reversed_bytes(with_gaps(field<float>(20000), 1e20F, 0.2)), order, DType::f32, "f32 with gaps");
  expect_kind(reversed_bytes(with_gaps(field<float>(20000), 0.0F, 0.5)), order, DType::f32, "f32 with zeros");
  expect_kind(reversed_bytes(field<std::int16_t>(20000, 1, 1000)), order, DType::i16, "i16");
  expect_kind(reversed_bytes(field<std::int32_t>(20000, 1, 1e6)), order, DType::i32, "i32");
  expect_kind(reversed_bytes(field<std::int64_t>(20000, 1, 1e12)), order, DType::i64, "i64");
  std::vector<float> whole(20000);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<float>(1 + i % 7);
  expect_kind(reversed_bytes(whole), order, DType::f32, "small whole numbers");
}

TEST(LayoutSuspicion, OtherTypeOfTheSameBytes_IsFound) {
  const auto type = Suspicion::Kind::element_type;
  expect_kind(reread<double>(field<float>(20000)), type, DType::f32, "f32 as f64");
  expect_kind(reread<double>(with_gaps(field<float>(20000), 9.96921e36F, 0.2)), type, DType::f32, "f32 with gaps");
  expect_kind(reread<float>(field<double>(20000)), type, DType::f64, "f64 as f32");
  expect_kind(reread<float>(field<std::int32_t>(20000, 1, 100)), type, DType::i32, "i32 as f32");
  expect_kind(reread<double>(field<std::int64_t>(20000, 1, 100)), type, DType::i64, "i64 as f64");
  std::vector<float> wind = field<float>(20000);
  for (float& x : wind) x -= 12;
  expect_kind(reread<std::int32_t>(wind), type, DType::f32, "f32 as i32");
}

/// Data of many kinds, each with nothing wrong in it.
template <class T>
void ordinary(const char* type) {
  std::mt19937_64 random(99);
  const std::string name = type;
  const auto made = [&](const std::function<double()>& value, std::size_t n = 40000) {
    std::vector<T> out(n);
    constexpr double kLow = std::is_floating_point_v<T> ? -1e30 : static_cast<double>(std::numeric_limits<T>::lowest());
    constexpr double kHigh =
        std::is_floating_point_v<T> ? 1e30 : static_cast<double>(std::numeric_limits<T>::max()) / 2;
    for (T& x : out) x = static_cast<T>(std::clamp(value(), kLow, kHigh));
    return out;
  };
  std::uniform_real_distribution<double> uniform(0, 100);
  std::normal_distribution<double> normal(50, 12);
  std::exponential_distribution<double> exponential(0.05);
  std::lognormal_distribution<double> lognormal(1, 2.5);
  std::cauchy_distribution<double> cauchy(0, 5);
  expect_nothing(made([&] { return uniform(random); }), name + " uniform");
  expect_nothing(made([&] { return normal(random); }), name + " normal");
  expect_nothing(made([&] { return exponential(random); }), name + " exponential");
  expect_nothing(made([&] { return lognormal(random); }), name + " log-normal");
  expect_nothing(made([&] { return std::exp(20 * (normal(random) - 50) / 12); }), name + " wide log-normal");
  expect_nothing(made([&] { return cauchy(random); }), name + " Cauchy");
  expect_nothing(made([&] { return std::clamp(cauchy(random), -60.0, 60.0); }), name + " clipped Cauchy");
  expect_nothing(made([&] { return 1 / (1e-6 + uniform(random) / 100); }), name + " 1/x");
  expect_nothing(made([] { return 7.0; }), name + " constant");
  expect_nothing(made([] { return 0.0; }), name + " zero");
  expect_nothing(made([&] { return static_cast<double>(random() % 2); }), name + " mask");
  expect_nothing(made([&] { return 100.0 * static_cast<double>(random() % 2); }), name + " mask of 100");
  expect_nothing(made([&] { return static_cast<double>(random() % 12); }), name + " labels");
  expect_nothing(made([&] { return random() % 50 == 0 ? uniform(random) : 0.0; }), name + " sparse");
  expect_nothing(made([&] { return random() % 1000 == 0 ? lognormal(random) : 0.0; }), name + " very sparse");
  expect_nothing(made([&] { return random() % 5 == 0 ? 0.0 : 90 + uniform(random) / 10; }), name + " land of zeros");
  expect_nothing(made([&] { return std::floor(normal(random) / 5) * 5; }), name + " rounded");
  double walk = 50;
  expect_nothing(made([&] { return walk = std::clamp(walk + (normal(random) - 50) / 60, 0.0, 100.0); }),
                 name + " walk");
  int ramp = 0;
  expect_nothing(made([&] { return static_cast<double>(ramp++ % 100); }), name + " ramp");
}

TEST(Suspicions, OrdinaryData_GiveNone) {
  ordinary<float>("f32");
  ordinary<double>("f64");
  ordinary<std::int16_t>("i16");
  ordinary<std::uint16_t>("u16");
  ordinary<std::int32_t>("i32");
  ordinary<std::uint32_t>("u32");
  ordinary<std::int64_t>("i64");
  ordinary<std::uint8_t>("u8");
}

TEST(Suspicions, SpecialContents_GiveNone) {
  std::mt19937_64 random(3);
  std::vector<std::uint32_t> words(40000);
  for (auto& w : words) w = static_cast<std::uint32_t>(random());
  expect_nothing(reread<float>(words), "random bits as f32");
  expect_nothing(reread<std::int32_t>(words), "random bits as i32");
  expect_nothing(reread<double>(words), "random bits as f64");
  expect_nothing(std::vector<float>(1000, std::numeric_limits<float>::quiet_NaN()), "NaN");
  expect_nothing(with_gaps(field<float>(20000), std::numeric_limits<float>::quiet_NaN(), 0.4), "NaN gaps");
  expect_nothing(with_gaps(field<float>(20000), std::numeric_limits<float>::infinity(), 0.4), "infinite gaps");
  expect_nothing(std::vector<float>{}, "empty");
  expect_nothing(std::vector<float>{1e20F, 1.0F}, "two values");
  std::vector<float> spikes = field<float>(40000);
  for (std::size_t i = 0; i < spikes.size(); i += 4001) spikes[i] = 1e9F + static_cast<float>(i) * 1e5F;
  expect_nothing(spikes, "a few different spikes");
  std::vector<double> exact(20000);
  for (std::size_t i = 0; i < exact.size(); ++i) exact[i] = static_cast<float>(std::sin(static_cast<double>(i) * 0.01));
  expect_nothing(exact, "f64 made from f32");
  std::vector<std::int32_t> seconds(20000);
  for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] = 946684800 + static_cast<std::int32_t>(i) * 3600;
  expect_nothing(seconds, "seconds since 1970");
  std::vector<std::uint16_t> high(20000);
  for (std::size_t i = 0; i < high.size(); ++i) high[i] = static_cast<std::uint16_t>((random() % 200) << 8);
  expect_nothing(high, "bytes in the upper half");
  std::vector<float> complex_numbers(40000);
  for (std::size_t i = 0; i < complex_numbers.size(); i += 2)
    complex_numbers[i] = std::cos(static_cast<float>(i) * 0.01F) + 2;
  expect_nothing(complex_numbers, "real numbers as complex ones");
}

TEST(Suspicions, SameArray_GivesTheSameAnswer) {
  const auto values = with_gaps(field<float>(3000000), -9999.0F, 0.01);
  const auto a = look(values), b = look(values);
  ASSERT_EQ(a.size(), 1U);
  ASSERT_EQ(b.size(), 1U);
  EXPECT_EQ(a[0].share, b[0].share);
  EXPECT_EQ(a[0].others_min, b[0].others_min);
}

}  // namespace
}  // namespace quern
