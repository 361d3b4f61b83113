// Headers of safetensors files: what is read, what is refused, and that text comes back as it was.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "checkpoint/safetensors/json.h"
#include "checkpoint/safetensors/safetensors.h"

namespace quern::checkpoint {
namespace {

Result<SafetensorsHeader> parse(const std::string& text, std::uint64_t data_bytes, std::string* problem = nullptr) {
  Report report;
  auto out = parse_safetensors_header(text, data_bytes, report);
  if (problem != nullptr) *problem = std::string(report.problem);
  return out;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& range) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + range + "}";
}

TEST(Safetensors, Header_OfBothForms_ComesBackAsText) {
  const std::string compact =
      "{" + entry("a", "F32", "[2,3]", "[0,24]") + "," + entry("b", "BF16", "[]", "[24,26]") + "}  ";
  const auto header = parse(compact, 26);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->form, HeaderForm::compact);
  EXPECT_EQ(header->padding, 2U);
  EXPECT_EQ(std::string(make_header_text(*header)), compact);
  const std::string spaced =
      R"({"__metadata__": {"format": "pt", "q\"": "\u0001"}, "a": {"dtype": "I64", "shape": [0], "data_offsets": [0, 0]}})";
  const auto other = parse(spaced, 0);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->form, HeaderForm::spaced);
  EXPECT_EQ(std::string(make_header_text(*other)), spaced);
}

TEST(Safetensors, Types_OfBitsOrUnknown_AreBytesUnderTheirName) {
  const std::string text = "{" + entry("a", "F4", "[2,3]", "[0,3]") + "," + entry("b", "F6_E3M2", "[4]", "[3,6]") +
                           "," + entry("c", "X9", "[7]", "[6,11]") + "," +
                           entry("d", "I16", "[1,1,1,1,1,1,1,1,2]", "[11,15]") + "}";
  const auto header = parse(text, 15);
  ASSERT_TRUE(header.ok());
  const struct {
    ElementType type;
    std::uint64_t elems;
    DeclaredType said;
  } wanted[] = {{ElementType::u8, 3, {"F4", {2, 3}}},
                {ElementType::u8, 3, {"F6_E3M2", {4}}},
                {ElementType::u8, 5, {"X9", {7}}},
                {ElementType::i16, 2, {"I16", {1, 1, 1, 1, 1, 1, 1, 1, 2}}}};
  ASSERT_EQ(header->tensors.size(), std::size(wanted));
  for (std::size_t i = 0; i < std::size(wanted); ++i) {
    const StoredTensor& tensor = header->tensors[i];
    EXPECT_EQ(tensor.what.type, wanted[i].type);
    EXPECT_EQ(tensor.what.shape.rank(), 1U);
    EXPECT_EQ(tensor.what.elems(), wanted[i].elems);
    ASSERT_TRUE(tensor.declared.has_value());
    EXPECT_EQ(*tensor.declared, wanted[i].said);
  }
  EXPECT_EQ(header->form, HeaderForm::compact);
  EXPECT_EQ(std::string(make_header_text(*header)), text);
}

TEST(Safetensors, Header_OfAnotherForm_IsKeptVerbatim) {
  const std::string text = "{\n" + entry("b", "U8", "[1]", "[4,5]") + "," + entry("a", "F32", "[1]", "[0,4]") + "}";
  const auto header = parse(text, 5);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->form, HeaderForm::verbatim);
  EXPECT_EQ(std::string(header->text), text);
  EXPECT_EQ(std::string(header->tensors[0].name), "a");
}

TEST(Safetensors, Header_Hostile_IsRefusedWithReason) {
  const struct {
    std::string text;
    std::uint64_t data_bytes;
    const char* part;
  } cases[] = {
      {"", 0, "begin"},
      {" {}", 0, "begin"},
      {"[]", 0, "begin"},
      {"{", 0, "not JSON"},
      {"{}x", 0, "not JSON"},
      {"{\"a\":1}", 0, "object"},
      {"{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("a", "F32", "[1]", "[4,8]") + "}", 8, "twice"},
      {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "twice"},
      {"{" + entry("a", "", "[1]", "[0,4]") + "}", 4, "dtype"},
      {"{" + entry("a", "F31\\u0000", "[1]", "[0,4]") + "}", 4, "dtype"},
      {"{" + entry("a", "F31", "[4294967296,0,4294967296,4294967296]", "[0,4]") + "}", 4, "elements"},
      {"{" + entry("a", "F4", "[3]", "[0,2]") + "}", 2, "apart"},
      {"{" + entry("a", "F6_E2M3", "[2]", "[0,2]") + "}", 2, "apart"},
      {"{" + entry("a", "C64", "[2]", "[0,8]") + "}", 8, "apart"},
      {"{" + entry("a", "F32", "[1]", "[0,5]") + "}", 5, "apart"},
      {"{" + entry("a", "F32", "[1]", "[4,0]") + "}", 4, "outside"},
      {"{" + entry("a", "F32", "[1]", "[0,4]") + "}", 3, "outside"},
      {"{" + entry("a", "F32", "[1]", "[0,4]") + "}", 5, "no tensor"},
      {"{" + entry("a", "F32", "[1]", "[1,5]") + "}", 5, "unused"},
      {"{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("b", "F32", "[1]", "[2,6]") + "}", 6, "shares"},
      {"{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("b", "F32", "[1]", "[0,4]") + "}", 4, "shares"},
      {"{" + entry("a", "F32", "[4294967296,4294967296,4294967296]", "[0,0]") + "}", 0, "elements"},
      {"{" + entry("a", "F32", "[18446744073709551616]", "[0,0]") + "}", 0, "64 bits"},
      {"{" + entry("a", "F32", "[-1]", "[0,0]") + "}", 0, "negative"},
      {"{" + entry("a", "F32", "[1.0]", "[0,4]") + "}", 4, "fraction"},
      {"{" + entry("a", "F32", "[1e2]", "[0,4]") + "}", 4, "fraction"},
      {"{" + entry("a", "F32", "[1,1,1,1,1,1,1,1,2]", "[0,4]") + "}", 4, "apart"},
      {"{" + entry("", "F32", "[1]", "[0,4]") + "}", 4, "empty name"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4, "nothing else"},
      {"{\"__metadata__\":{\"a\":1}}", 0, "no text"},
      {"{\"__metadata__\":[]}", 0, "no object"},
      {"{\"a\":[[[[[[]]]]]]}", 0, "deep"},
      {std::string("{\"\xff\":1}"), 0, "not JSON"},
      {"{\"\\ud800\":1}", 0, "not JSON"},
      {"{\"a\":null}", 0, "null"},
  };
  for (const auto& one : cases) {
    std::string problem;
    const auto header = parse(one.text, one.data_bytes, &problem);
    ASSERT_FALSE(header.ok()) << one.text;
    EXPECT_EQ(header.status().code(), StatusCode::corrupt);
    EXPECT_NE(problem.find(one.part), std::string::npos) << one.text << ": " << problem;
  }
}

TEST(Safetensors, Header_Mutated_NeverBreaksItsPromises) {
  const std::string good = "{\"__metadata__\":{\"k\":\"v\"}," + entry("a", "F32", "[2,3]", "[0,24]") + "," +
                           entry("b", "BF16", "[4]", "[24,32]") + "}";
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (unsigned i = 0; i < 1 + random() % 4; ++i) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, 1 + random() % 5); break;
        default: text.insert(at, text.substr(random() % text.size(), random() % 9));
      }
      if (text.empty()) text = "{";
    }
    const auto header = parse(text, 32);
    if (!header.ok()) continue;
    std::uint64_t at = 0;
    for (const StoredTensor& tensor : header->tensors) {
      EXPECT_EQ(tensor.begin, at);
      EXPECT_EQ(tensor.end - tensor.begin, tensor.what.bytes());
      at = tensor.end;
    }
    EXPECT_EQ(at, 32U);
    if (header->form != HeaderForm::verbatim) {
      EXPECT_EQ(std::string(make_header_text(*header)), text);
    }
  }
}

TEST(Json, DeepNesting_IsRefusedWithoutRecursion) {
  Report report;
  const std::string deep(1 << 20, '[');
  EXPECT_FALSE(parse_json(deep, JsonLimits{}, report).ok());
  const std::string objects = [] {
    std::string out;
    for (int i = 0; i < 100000; ++i) out += "{\"a\":";
    return out;
  }();
  EXPECT_FALSE(parse_json(objects, JsonLimits{}, report).ok());
}

TEST(ShardIndex, Names_OutsideTheFolder_AreRefused) {
  Report report;
  EXPECT_TRUE(parse_shard_index(R"({"metadata":{"total_size":1.5},"weight_map":{"a":"x.safetensors"}})", report).ok());
  for (const char* name : {"../x", "a/b", "", "..", "\\u0000"}) {
    const std::string text = std::string(R"({"weight_map":{"a":")") + name + "\"}}";
    EXPECT_FALSE(parse_shard_index(text, report).ok()) << name;
  }
  EXPECT_FALSE(parse_shard_index("{}", report).ok());
}

}  // namespace
}  // namespace quern::checkpoint
