// Runs of values: the bound holds for every one, what cannot be quantized keeps its bits, hostile bytes are refused.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "examples/codec/packed_values.h"

namespace quern::codec::packing {
namespace {

using Bytes = std::vector<std::uint8_t>;

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(values.data());
  return {begin, begin + values.size() * sizeof(T)};
}

Bytes encode(const ValueRun& run, const Bytes& in) {
  Bytes out(most_encoded_bytes(run, in.size()));
  out.resize(encode_values(run, in, out));
  EXPECT_GT(out.size(), 0u);
  return out;
}

template <class T>
std::vector<T> round_trip(const ValueRun& run, const std::vector<T>& values, std::size_t* size = nullptr) {
  const Bytes coded = encode(run, bytes_of(values));
  if (size != nullptr) *size = coded.size();
  std::vector<T> back(values.size());
  const Status status =
      decode_values(run, coded, {reinterpret_cast<std::uint8_t*>(back.data()), back.size() * sizeof(T)});
  EXPECT_TRUE(status.ok()) << status.text();
  return back;
}

template <class T>
class BoundedValues : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(BoundedValues, Floats);

/// long double has 64 bits of mantissa here: differences of neighbouring magnitudes are exact.
TYPED_TEST(BoundedValues, EveryValue_IsWithinTheBoundOrExact) {
  using T = TypeParam;
  std::mt19937_64 random(3);
  const DType dtype = sizeof(T) == 4 ? DType::f32 : DType::f64;
  for (const double bound : {0.5, 0.1, 1e-3, 1e-12, 1e-42, 1e-310, 1e300, 5e307, 1.7e308}) {
    std::vector<T> values;
    for (int i = 0; i < 3000; ++i) {
      const double magnitude = std::ldexp(1.0, static_cast<int>(random() % 80) - 40);
      values.push_back(static_cast<T>(magnitude * (static_cast<double>(random() % 2001) - 1000)));
    }
    for (const T special : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                            -std::numeric_limits<T>::infinity(), static_cast<T>(-0.0), std::numeric_limits<T>::max(),
                            std::numeric_limits<T>::lowest(), std::numeric_limits<T>::denorm_min()})
      values.push_back(special);
    const std::vector<T> back = round_trip<T>({dtype, {BoundKind::abs, bound}, {}}, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool exact = std::memcmp(&values[i], &back[i], sizeof(T)) == 0;
      const bool is_special = !std::isfinite(values[i]) || (values[i] == 0 && std::signbit(values[i]));
      const long double error = std::fabs(static_cast<long double>(values[i]) - static_cast<long double>(back[i]));
      ASSERT_TRUE(exact || (!is_special && error <= static_cast<long double>(bound)))
          << values[i] << " came back as " << back[i] << " under " << bound;
    }
  }
}

TEST(PackedValues, SmoothValuesUnderABound_TakeAFraction) {
  std::vector<float> values;
  for (int i = 0; i < 4096; ++i) values.push_back(static_cast<float>(std::sin(i * 0.01) * 100));
  std::size_t bounded = 0;
  std::size_t exact = 0;
  round_trip<float>({DType::f32, {BoundKind::abs, 0.05}, {}}, values, &bounded);
  EXPECT_EQ(round_trip<float>({DType::f32, {}, {}}, values, &exact), values);
  EXPECT_LT(bounded, 4096u * 4 / 4);
  EXPECT_LT(bounded, exact / 2);
}

TEST(PackedValues, IntegersUnderAnyBound_AreExact) {
  std::mt19937_64 random(5);
  std::vector<std::int32_t> values;
  for (int i = 0; i < 500; ++i) values.push_back(static_cast<std::int32_t>(random()));
  EXPECT_EQ(round_trip<std::int32_t>({DType::i32, {BoundKind::abs, 1000}, {}}, values), values);
}

TEST(PackedValues, RoomThatIsTooSmall_GivesNothing) {
  std::vector<std::uint16_t> values{1, 60000, 3, 40000};
  const ValueRun run{DType::u16, {}, {}};
  const Bytes whole = encode(run, bytes_of(values));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Bytes room(size);
    EXPECT_EQ(encode_values(run, bytes_of(values), room), 0u);
  }
}

/// Every byte set to other values: what is decoded is decoded inside its memory, and a status is `corrupt`.
TEST(PackedValues, HostileBytes_GiveValuesOrCorrupt) {
  std::vector<float> values;
  for (int i = 0; i < 200; ++i) values.push_back(i % 17 == 3 ? NAN : static_cast<float>(i) * 0.25f);
  const ValueRun run{DType::f32, {BoundKind::abs, 0.5}, {4, 1}};
  const Bytes coded = encode(run, bytes_of(values));
  std::size_t refused = 0;
  Bytes out(values.size() * sizeof(float));
  for (std::size_t at = 0; at < coded.size(); ++at)
    for (const int change : {1, 2, 0x80, 0xFF}) {
      Bytes bytes = coded;
      bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ change);
      const Status status = decode_values(run, bytes, out);
      if (status.ok()) continue;
      ++refused;
      EXPECT_EQ(status.code(), StatusCode::corrupt);
    }
  EXPECT_GT(refused, coded.size() / 4);
  for (std::size_t size = 0; size < coded.size(); ++size)
    EXPECT_EQ(decode_values(run, std::span(coded).first(size), out).code(), StatusCode::corrupt) << size;
}

TEST(PackedValues, ModesThatDoNotFitTheHeader_AreCorrupt) {
  Bytes out(4);
  const Bytes quantized{1, 0, 0};
  EXPECT_EQ(decode_values({DType::u32, {}, {}}, quantized, out).code(), StatusCode::corrupt);
  EXPECT_EQ(decode_values({DType::f32, {}, {}}, quantized, out).code(), StatusCode::corrupt);
  EXPECT_TRUE(decode_values({DType::f32, {BoundKind::abs, 1}, {}}, quantized, out).ok());
  EXPECT_EQ(decode_values({DType::f32, {BoundKind::abs, 1.7e308}, {}}, quantized, out).code(), StatusCode::corrupt);
  const Bytes unknown{2, 0, 0};
  EXPECT_EQ(decode_values({DType::f32, {BoundKind::abs, 1}, {}}, unknown, out).code(), StatusCode::corrupt);
}

}  // namespace
}  // namespace quern::codec::packing
