// Exporting: numbers rounded once and to even, and texts of state dicts that may be hostile.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "checkpoint/export/cast.h"
#include "checkpoint/export/state_names.h"
#include "checkpoint/save/difference.h"

namespace quern::checkpoint {
namespace {

template <class Value>
std::vector<std::uint8_t> bytes_of(const std::vector<Value>& values) {
  std::vector<std::uint8_t> out(values.size() * sizeof(Value));
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

template <class Value>
std::uint16_t cast_one(ElementType from, Value value, ElementType to, std::uint64_t* overflows = nullptr) {
  std::uint8_t in[sizeof(Value)], out[2];
  std::memcpy(in, &value, sizeof(value));
  const std::uint64_t lost = cast(from, in, to, out);
  if (overflows != nullptr) *overflows = lost;
  return static_cast<std::uint16_t>(out[0] | out[1] << 8);
}

TEST(ExportCast, ValuesOf16Bits_ComeBackFromWiderTypes) {
  for (const ElementType narrow : {ElementType::f16, ElementType::bf16}) {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const std::uint8_t small[2] = {static_cast<std::uint8_t>(bits), static_cast<std::uint8_t>(bits >> 8)};
      const double value = element_value(narrow, small);
      if (std::isnan(value)) continue;
      std::uint8_t single[4];
      EXPECT_EQ(cast(narrow, small, ElementType::f32, single), 0U);
      EXPECT_EQ(element_value(ElementType::f32, single), value);
      EXPECT_EQ(cast_one(ElementType::f32, static_cast<float>(value), narrow), bits);
      EXPECT_EQ(cast_one(ElementType::f64, value, narrow), bits);
    }
  }
}

/// The pattern whose value is nearest, of two the even one, found by looking at both neighbours.
std::uint16_t nearest(ElementType narrow, double value, std::uint16_t guess) {
  const auto at = [&](std::uint32_t bits) {
    const std::uint8_t small[2] = {static_cast<std::uint8_t>(bits), static_cast<std::uint8_t>(bits >> 8)};
    return element_value(narrow, small);
  };
  std::uint16_t best = guess;
  for (const int step : {-1, 1}) {
    const auto other = static_cast<std::uint16_t>(guess + step);
    if (((other ^ guess) & 0x8000) != 0 || !std::isfinite(at(other))) continue;
    const double here = std::abs(at(best) - value), there = std::abs(at(other) - value);
    if (there < here || (there == here && (other & 1) == 0)) best = other;
  }
  return best;
}

TEST(ExportCast, Values_AreRoundedToNearestAndTiesToEven) {
  std::mt19937_64 random(3);
  for (const ElementType narrow : {ElementType::f16, ElementType::bf16}) {
    for (int i = 0; i < 200000; ++i) {
      const int exponent =
          narrow == ElementType::f16 ? static_cast<int>(random() % 44) - 28 : static_cast<int>(random() % 280) - 140;
      double value = std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52, exponent);
      if (i % 4 == 0) value = std::ldexp(static_cast<double>(random() % 8192), exponent - 12);  // many ties
      if (i % 2 == 0) value = -value;
      const std::uint16_t rounded = cast_one(ElementType::f64, value, narrow);
      if ((rounded & 0x7FFF) >= (narrow == ElementType::f16 ? 0x7C00 : 0x7F80)) continue;
      ASSERT_EQ(rounded, nearest(narrow, value, rounded)) << value;
      const auto single = static_cast<float>(value);
      ASSERT_EQ(cast_one(ElementType::f32, single, narrow),
                cast_one(ElementType::f64, static_cast<double>(single), narrow))
          << single;
    }
  }
  // Rounded to f32 first it would be a tie, and go down.
  EXPECT_EQ(cast_one(ElementType::f64, 1 + 0x1p-8 + 0x1p-40, ElementType::bf16), 0x3F81);
  EXPECT_EQ(cast_one(ElementType::f32, 1 + 0x1p-8F, ElementType::bf16), 0x3F80);
}

TEST(ExportCast, NaNStaysNaN_AndOverflowsAreCounted) {
  for (const ElementType narrow : {ElementType::f16, ElementType::bf16}) {
    const std::uint16_t infinity = narrow == ElementType::f16 ? 0x7C00 : 0x7F80;
    for (const std::uint32_t bits : {0x7F800001U, 0xFF800001U, 0x7FC00000U, 0xFFFFFFFFU}) {
      std::uint64_t overflows = 9;
      const std::uint16_t out = cast_one(ElementType::f32, bits, narrow, &overflows);
      EXPECT_GT(out & 0x7FFF, infinity);
      EXPECT_EQ(out >> 15, bits >> 31);
      EXPECT_EQ(overflows, 0U);
      EXPECT_GT(cast_one(ElementType::f64, std::nan("1"), narrow) & 0x7FFF, infinity);
    }
    std::uint64_t overflows = 0;
    EXPECT_EQ(cast_one(ElementType::f64, -1e300, narrow, &overflows), infinity | 0x8000);
    EXPECT_EQ(overflows, 1U);
    EXPECT_EQ(cast_one(ElementType::f32, std::numeric_limits<float>::max(), narrow, &overflows), infinity);
    EXPECT_EQ(overflows, 1U);
    EXPECT_EQ(cast_one(ElementType::f32, std::numeric_limits<float>::infinity(), narrow, &overflows), infinity);
    EXPECT_EQ(overflows, 0U);
    EXPECT_EQ(cast_one(ElementType::f64, -5e-324, narrow), 0x8000);
  }
  const auto in = bytes_of<double>({1e300, 0.1, -0.0});
  std::vector<std::uint8_t> out(12);
  EXPECT_EQ(cast(ElementType::f64, in, ElementType::f32, out), 1U);
  EXPECT_EQ(out, bytes_of<float>({std::numeric_limits<float>::infinity(), 0.1F, -0.0F}));
}

TEST(StateNames, Tree_GivesNamesViewsAndLabels) {
  Report report;
  const auto names = parse_state_names(
      R"({"format":2,"tree":{"dict":[["model",{"ordered":[["a",{"tensor":"model.a","kind":"torch"}],["b",{"tensor":"model.a",)"
      R"("kind":"torch"}],["v",{"tensor":"model.a","kind":"torch","view":{"offset":8,"strides":[-4],"shape":[2]}}]],)"
      R"("metadata":{"value":null}}],[3,{"list":[{"value":-1.5},{"tensor":"3.1","kind":"torch","dtype":"complex64"}]}],)"
      R"(["s",{"sparse":"sparse_coo"}]]}})",
      report);
  ASSERT_TRUE(names.ok()) << report.problem;
  ASSERT_EQ(names->tensors.size(), 5U);
  EXPECT_EQ(names->containers, (Vector<String>{"model"}));
  EXPECT_EQ(names->tensors[1].name, "model.b");
  EXPECT_EQ(names->tensors[1].stored, "model.a");
  ASSERT_TRUE(names->tensors[2].view.has_value());
  EXPECT_EQ(names->tensors[2].view->strides[0], -4);
  EXPECT_EQ(names->tensors[3].name, "3.1");
  EXPECT_EQ(names->tensors[3].label, "complex64");
  EXPECT_STREQ(names->tensors[4].unfit, "sparse");
}

TEST(StateNames, HalvesOfSurrogatePairs_AreNoReasonToFail) {
  for (const char* const text : {R"(\ud800)", R"(\udC00)", R"(a\ud800\ud800\udc00\\ud800)", R"(\ud83d\ude00)"}) {
    Report report;
    const auto names = parse_state_names(
        std::string(R"({"tree":{"dict":[["note",{"value":")") + text + R"("}],["w",{"tensor":"w"}]]}})", report);
    ASSERT_TRUE(names.ok()) << text << ": " << report.problem;
    ASSERT_EQ(names->tensors.size(), 1U);
    EXPECT_EQ(names->tensors[0].name, "w");
  }
  Report report;
  const auto named = parse_state_names(R"({"tree":{"dict":[["\\ud800 \ud83d\ude00",{"tensor":"w"}]]}})", report);
  ASSERT_TRUE(named.ok()) << report.problem;
  EXPECT_EQ(named->tensors[0].name, "\\ud800 \xF0\x9F\x98\x80");
}

TEST(StateNames, WholeNumbersAsKeys_AreNamesWithAllTheirDigits) {
  Report report;
  const auto names = parse_state_names(
      R"({"tree":{"dict":[[-1,{"tensor":"a"}],[-9223372036854775808,{"tensor":"b"}],[-9007199254740993,{"tensor":"c"}],)"
      R"([100000000000000000000000000000,{"tensor":"d"}],[18446744073709551615,{"tensor":"e"}]]}})",
      report);
  ASSERT_TRUE(names.ok()) << report.problem;
  Vector<String> found;
  for (const StateTensor& tensor : names->tensors) found.push_back(tensor.name);
  EXPECT_EQ(found, (Vector<String>{"-1", "-9223372036854775808", "-9007199254740993", "100000000000000000000000000000",
                                   "18446744073709551615"}));
}

TEST(StateNames, HostileTexts_AreRefused) {
  for (const char* const half :
       {R"({"tree":{"value":"\ud8"}})", R"({"tree":{"value":"\ud800\u"}})", R"({"tree":\ud800})"}) {
    Report report;
    EXPECT_FALSE(parse_state_names(half, report).ok()) << half;
  }
  std::string deep = R"({"tree":)";
  for (int i = 0; i < 100000; ++i) deep += R"({"list":[)";
  for (const std::string& text :
       {std::string("{}"), std::string("x"), deep, std::string(R"({"tree":{"dict":3}})"),
        std::string(R"({"tree":{"dict":[[1]]}})"), std::string(R"({"tree":{"tensor":1}})"),
        std::string(R"({"tree":{"tensor":"a","view":{"offset":1}}})"),
        std::string(R"({"tree":{"tensor":"a","view":{"offset":0,"strides":[1],"shape":[]}}})")}) {
    Report report;
    EXPECT_FALSE(parse_state_names(text, report).ok()) << text.substr(0, 100);
  }
}

}  // namespace
}  // namespace quern::checkpoint
