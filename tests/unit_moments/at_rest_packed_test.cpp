// Entropy-coded moments at rest: lossless whatever the values are, and any bytes are answered.
#include <gtest/gtest.h>

#include <cstring>

#include "codecs/tensor/at_rest_packed.h"
#include "libcompress/core/task_runner.h"
#include "tests/unit_moments/float_cases.h"

namespace quern::testing {
namespace {

using namespace codec::tensor;

struct Packed {
  AtRestMoments moments;
  std::vector<float> weights;
  std::vector<Vector<std::uint8_t>> chunks;
};

Packed packed(const FloatCase& values, const AtRestForm& form) {
  SerialRunner runner;
  Packed out{AtRestMoments::make(values.first.size(), 256, form).value(), {}, {}};
  EXPECT_TRUE(out.moments.encode(5, 3, values.first.data(), values.second.data(), runner).ok());
  std::mt19937 random(17);
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < values.first.size(); ++i) out.weights.push_back(0.02f * normal(random));
  AtRestPacker packer;
  out.chunks.resize(packed_chunks(values.first.size()));
  for (std::size_t c = 0; c < out.chunks.size(); ++c)
    EXPECT_TRUE(packer.pack(out.moments, out.weights.data(), c, out.chunks[c]).ok());
  return out;
}

Status unpack(const Packed& from, const AtRestForm& form, AtRestMoments& moments, std::vector<float>& weights) {
  moments = AtRestMoments::make(from.weights.size(), 256, form).value();
  weights.assign(from.weights.size(), 0);
  AtRestPacker packer;
  for (std::size_t c = 0; c < from.chunks.size(); ++c)
    QUERN_RETURN_IF_ERROR(packer.unpack(from.chunks[c], c, from.moments.beside_part().size(), weights.data(), moments));
  return moments.accept();
}

bool same(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

TEST(AtRestPacked, EveryFormAndKindOfValues_ComesBackBitForBit) {
  for (const AtRestForm form : {AtRestForm{8, true}, AtRestForm{8, false}, AtRestForm{4, true}, AtRestForm{4, false}})
    for (const std::size_t elems : {1u, 257u, 65536u + 16384u + 5u})
      for (const FloatCase& values : float_cases(elems)) {
        const Packed made = packed(values, form);
        AtRestMoments moments;
        std::vector<float> weights;
        const Status status = unpack(made, form, moments, weights);
        ASSERT_TRUE(status.ok()) << values.name << ": " << status.text();
        EXPECT_TRUE(same(moments.fixed_part(), made.moments.fixed_part())) << values.name;
        EXPECT_TRUE(same(moments.beside_part(), made.moments.beside_part())) << values.name;
        EXPECT_EQ(weights, made.weights) << values.name;
        std::size_t bytes = 0;
        for (const auto& chunk : made.chunks) bytes += chunk.size();
        EXPECT_LE(bytes, made.moments.bytes() + 4 * elems + 512 * made.chunks.size()) << values.name;
      }
}

TEST(AtRestPacked, OrdinaryMoments_TakeFewerBytes) {
  const FloatCase values = structured_case(700, 100, 4);
  // Of these shares weights, of which 3.3 of 4 bytes are left, are the most.
  const std::pair<AtRestForm, double> most[] = {{{8, true}, 0.90}, {{8, false}, 0.80}, {{4, true}, 0.90}};
  for (const auto& [form, share] : most) {
    const Packed made = packed(values, form);
    std::size_t bytes = 0;
    for (const auto& chunk : made.chunks) bytes += chunk.size();
    const auto plain = static_cast<double>(made.moments.bytes() + 4 * made.weights.size());
    EXPECT_LT(static_cast<double>(bytes), share * plain) << form.bits << " " << form.finest;
  }
}

TEST(AtRestPacked, DamagedChunks_AreAnswered) {
  std::mt19937 random(5);
  for (const AtRestForm form : {AtRestForm{8, true}, AtRestForm{4, true}}) {
    const Packed good = packed(float_cases(9000)[1], form);
    ASSERT_GT(good.moments.beside_part().size(), 0u);
    AtRestMoments moments;
    std::vector<float> weights;
    std::size_t refused = 0;
    for (int run = 0; run < 400; ++run) {
      Packed bad{AtRestMoments::make(0, 0, form).value(), good.weights, good.chunks};
      ASSERT_TRUE(bad.moments.accept().ok());
      auto& bytes = bad.chunks[0];
      if (run % 4 == 0)
        bytes.resize(random() % bytes.size());
      else
        for (unsigned k = 0; k <= random() % 3; ++k)
          bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
      // No more may lie beside the slots than before.
      moments = AtRestMoments::make(good.weights.size(), 256, form).value();
      weights.assign(good.weights.size(), 0);
      AtRestPacker packer;
      const Status status = packer.unpack(bytes, 0, good.moments.beside_part().size(), weights.data(), moments);
      refused += !status.ok();
      EXPECT_LE(moments.beside_part().size(), good.moments.beside_part().size());
      if (status.ok()) {
        EXPECT_TRUE(moments.accept().ok());
      }
    }
    EXPECT_GT(refused, 100u);
  }
}

TEST(AtRestPacked, ChunksOutOfOrder_AreRefused) {
  const AtRestForm form;
  const Packed made = packed(structured_case(700, 100, 4), form);
  ASSERT_EQ(made.chunks.size(), 2u);
  AtRestPacker packer;
  Vector<std::uint8_t> out;
  EXPECT_FALSE(packer.pack(made.moments, made.weights.data(), 1, out).ok());
  EXPECT_TRUE(packer.pack(made.moments, made.weights.data(), 0, out).ok());
  EXPECT_FALSE(packer.pack(made.moments, made.weights.data(), 2, out).ok());
}

}  // namespace
}  // namespace quern::testing
