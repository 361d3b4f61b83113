// Headers of safetensors files: what is read, what is refused, and that text comes back as it was.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "checkpoint/json.h"
#include "checkpoint/safetensors.h"

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
      {"{" + entry("a", "F31", "[1]", "[0,4]") + "}", 4, "dtype"},
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
      {"{" + entry("a", "F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") + "}", 4, "8 axes"},
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
