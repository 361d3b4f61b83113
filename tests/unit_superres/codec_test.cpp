// Codec stencil with networks in its levels: the bound, threads and instruction sets, models embedded, outside, missing
// and useless, hostile chunks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <quern/codec_features.h>
#include <quern/models.h>

#include "codecs/stencil/stencil.h"
#include "models/model_file.h"
#include "models/sha256.h"
#include "tests/conformance/bound_cases.h"
#include "tests/conformance/round_trip.h"
#include "tests/support/instrumented.h"
#include "tests/unit_models/level_models.h"

namespace quern::codec::stencil {
namespace {

using models::test::larger_model;
using models::test::random_level_model;
using testing::Data;
using testing::kInstrumented;
using testing::OwnedArray;
using testing::shape_of;

String text_of(const ModelId& id) {
  models::Digest digest{};
  std::copy(id.begin(), id.end(), digest.begin());
  const std::string text = models::hex(digest).substr(0, 2 * id.size());
  return String(text.begin(), text.end());
}

/// A useful model for two axes, and ones of random weights.
struct Models {
  ModelList list;
  String larger = add(larger_model());
  String random2 = add(random_level_model(2, 3));
  String random3 = add(random_level_model(3, 4));
  CodecsWithModels codecs{list};
  const Registry& registry() const { return codecs.registry(); }

  String add(const models::LevelModel& model) { return text_of(list.add(models::write_level_model(model)).value()); }
};

/// Points between two of the coarser level are the larger of them; no linear prediction finds that.
OwnedArray ridges(DType dtype, std::uint64_t rows, std::uint64_t columns) {
  OwnedArray array = testing::make_array(dtype, shape_of({rows, columns}), Data::zeros);
  const auto corner = [](std::uint64_t y, std::uint64_t x) {
    const double slow = 300 * std::sin(static_cast<double>(y) * 0.11) * std::cos(static_cast<double>(x) * 0.13);
    return std::floor(slow + static_cast<double>((x * 2654435761U + y * 40503U) >> 3 & 255));
  };
  for (std::uint64_t y = 0; y < rows; ++y)
    for (std::uint64_t x = 0; x < columns; ++x) {
      const std::uint64_t below = std::min(y + 1, (rows - 1) / 2 * 2);
      const std::uint64_t right = std::min(x + 1, (columns - 1) / 2 * 2);
      double value = corner(y, x);
      if (y % 2 == 1 && x % 2 == 0) value = std::max(corner(y - 1, x), corner(below, x));
      if (y % 2 == 0 && x % 2 == 1) value = std::max(corner(y, x - 1), corner(y, right));
      if (y % 2 == 1 && x % 2 == 1) value = corner(y - 1, x - 1);
      testing::store_element(array, y * columns + x, value);
    }
  return array;
}

CompressOptions options_for(const ErrorBound& bound, const Settings& settings) {
  CompressOptions options;
  options.bound = bound;
  options.codec = "stencil";
  options.settings = settings;
  return options;
}

Vector<std::uint8_t> stream_of(const OwnedArray& array, const Settings& settings, const Registry& registry,
                               double bound = 2) {
  return testing::compress_to_bytes(array, options_for({BoundKind::abs, bound}, settings), registry, 1, nullptr);
}

Settings in_levels(const String& model, const char* embed) {
  return {{"layout", "levels"}, {"model", model}, {"embed", embed}};
}

StatusCode decoded(const Vector<std::uint8_t>& stream, const Registry& registry, OwnedArray& back) {
  MemorySource source(stream);
  return decompress(source, {back.bytes.data(), back.dtype, back.shape}, registry, {}).status().code();
}

TEST(Superres, EveryDataAndBoundUnderEveryModel_KeepsItsPromises) {
  const Models models;
  for (const DType dtype : {DType::bf16, DType::f32, DType::f64, DType::i16})
    for (const Shape& shape : {shape_of({1, 1}), shape_of({37, 50}), shape_of({9, 10, 19})})
      for (const Data data : testing::all_data()) {
        const OwnedArray array = testing::make_array(dtype, shape, data);
        for (const testing::BoundCase& bound : testing::bounds_for(dtype)) {
          if (bound.bound.kind == BoundKind::pwrel) continue;
          SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + shape.text() + " " + data_name(data) + " " + bound.name);
          const String& model = shape.rank() == 3 ? models.random3 : models.random2;
          testing::expect_round_trip(array, options_for(bound.bound, in_levels(model, "yes")), models.registry());
          if (HasFailure()) return;
        }
      }
}

TEST(Superres, UsefulModel_MakesStreamsSmallerAndKeepsTheBound) {
  const Models models;
  for (const DType dtype : {DType::f32, DType::i16, DType::f64}) {
    const OwnedArray array = ridges(dtype, 128, 161);
    const auto plain = stream_of(array, {{"layout", "levels"}}, models.registry());
    const auto with = stream_of(array, in_levels(models.larger, "no"), models.registry());
    EXPECT_LT(with.size(), plain.size() * 3 / 4) << dtype_name(dtype);
    testing::expect_round_trip(array, options_for({BoundKind::abs, 2}, in_levels(models.larger, "no")),
                               models.registry());
  }
}

TEST(Superres, ThreadsAndInstructionSets_GiveTheSameBytes) {
  const Models models;
  // Two chunks, which instrumented code takes long for; there, one.
  const OwnedArray array = kInstrumented ? ridges(DType::f32, 128, 161) : ridges(DType::f32, 1100, 1950);
  const Settings settings = in_levels(models.larger, "no");
  const auto options = options_for({BoundKind::abs, 2}, settings);
  const auto bytes = testing::compress_to_bytes(array, options, models.registry(), 1, nullptr);
  MemorySource source(bytes);
  ASSERT_EQ(inspect(source, models.registry()).value().chunks, kInstrumented ? 1u : 2u);
  EXPECT_EQ(testing::compress_to_bytes(array, options, models.registry(), 3, nullptr), bytes);
  const OwnedArray small = ridges(DType::f32, 128, 161);
  Settings plain = settings;
  plain.push_back({"isa", "baseline"});
  EXPECT_EQ(stream_of(small, plain, models.registry()), stream_of(small, settings, models.registry()));
}

TEST(Superres, ModelPutIntoAStreamAndTakenOut_LeavesItAsItWas) {
  const Models models;
  const OwnedArray array = ridges(DType::f32, 128, 161);
  const auto outside = stream_of(array, in_levels(models.larger, "no"), models.registry());
  Vector<std::uint8_t> inside, again;
  VectorSink into(inside), out(again);
  ASSERT_EQ(embed_model(outside, models.list, into).code(), StatusCode::ok);
  EXPECT_EQ(inside, stream_of(array, in_levels(models.larger, "yes"), models.registry()));
  OwnedArray back = array, other = array;
  ASSERT_EQ(decoded(inside, builtin_codecs(), back), StatusCode::ok);
  ASSERT_EQ(decoded(outside, models.registry(), other), StatusCode::ok);
  EXPECT_EQ(back.bytes, other.bytes);
  const auto file = take_out_model(inside, out);
  ASSERT_TRUE(file.ok()) << file.status().text();
  EXPECT_EQ(again, outside);
  Vector<std::uint8_t> no;
  VectorSink nowhere(no);
  EXPECT_EQ(embed_model(stream_of(array, {}, models.registry()), models.list, nowhere).code(), StatusCode::unsupported);
}

TEST(Superres, ModelThatIsMissing_IsSaidAndCoarseLevelsDoWithout) {
  const Models models;
  const OwnedArray array = ridges(DType::f32, 128, 161);
  const auto bytes = stream_of(array, in_levels(models.larger, "no"), models.registry());
  OwnedArray back = array;
  EXPECT_EQ(decoded(bytes, builtin_codecs(), back), StatusCode::missing_model);
  MemorySource source(bytes);
  EXPECT_TRUE(inspect(source, builtin_codecs()).ok());
  EXPECT_EQ(decoded(bytes, models.registry(), back), StatusCode::ok);
}

TEST(Superres, ModelThatDoesNotPay_IsLeftOut) {
  const Models models;
  const OwnedArray noise = testing::make_array(DType::f32, shape_of({64, 64}), Data::noise);
  const Settings alone{{"layout", "levels"}};
  EXPECT_EQ(stream_of(noise, in_levels(models.random2, "auto"), models.registry(), 1e-3),
            stream_of(noise, alone, models.registry(), 1e-3));
  // Three axes for an array of two, raster order, a plane after the other.
  const OwnedArray array = ridges(DType::f32, 64, 64);
  EXPECT_EQ(stream_of(array, in_levels(models.random3, "yes"), models.registry()),
            stream_of(array, alone, models.registry()));
  for (const char* layout : {"raster", "planes"})
    EXPECT_EQ(stream_of(array, {{"layout", layout}, {"model", models.larger}}, models.registry()),
              stream_of(array, {{"layout", layout}}, models.registry()))
        << layout;
}

TEST(Superres, ModelBesideGroupsOfEdges_KeepsTheBoundInFewerBytesThanWithout) {
  const Models models;
  const OwnedArray array = ridges(DType::f32, 128, 161);
  const Settings edges{{"layout", "levels"}, {"edges", "on"}};
  Settings both = in_levels(models.larger, "yes");
  both.push_back(edges.back());
  const auto stream = stream_of(array, both, models.registry());
  EXPECT_LT(stream.size(), stream_of(array, edges, models.registry()).size() * 4 / 5);
  EXPECT_NE(stream, stream_of(array, in_levels(models.larger, "yes"), models.registry()));
  testing::expect_round_trip(array, options_for({BoundKind::abs, 2}, both), models.registry());
}

TEST(Superres, ModelForParts_IsRefusedWhereTheyAreAskedForAndKeepsTheArrayWholeElse) {
  const Models models;
  const OwnedArray array = ridges(DType::f32, 128, 161);
  Settings settings = in_levels(models.larger, "yes");
  const auto whole = stream_of(array, settings, models.registry());
  settings.push_back({"parts", "off"});
  EXPECT_EQ(stream_of(array, settings, models.registry()), whole);
  settings.back().second = "64,64";
  Vector<std::uint8_t> out;
  VectorSink sink(out);
  const Status status =
      compress(array.view(), options_for({BoundKind::abs, 2}, settings), models.registry(), {}, sink).status();
  EXPECT_EQ(status.code(), StatusCode::invalid_argument);
  EXPECT_NE(std::string(status.text()).find("parts=off"), std::string::npos) << status.text();
}

TEST(Superres, SettingsThatBreakARule_AreRefused) {
  Models models;
  const OwnedArray array = ridges(DType::f32, 32, 32);
  const auto code = [&](const Settings& settings, const Registry& registry) {
    Vector<std::uint8_t> out;
    VectorSink sink(out);
    return compress(array.view(), options_for({BoundKind::abs, 1}, settings), registry, {}, sink).status().code();
  };
  EXPECT_EQ(code({{"model", "12"}}, models.registry()), StatusCode::invalid_argument);
  EXPECT_EQ(code({{"embed", "maybe"}}, models.registry()), StatusCode::invalid_argument);
  EXPECT_EQ(code({{"model", models.larger}}, builtin_codecs()), StatusCode::missing_model);
}

/// Chunks and parameters with bytes changed: data or a status, never more (sanitizers watch).
TEST(Superres, HostileChunks_GiveDataOrCorrupt) {
  const Models models;
  const OwnedArray array = ridges(DType::f32, 50, 70);
  PlainSample sample(array.bytes.data(), array.dtype, array.shape.elems());
  SerialRunner runner;
  PlanRequest request;
  request.shape = array.shape;
  request.bound = {BoundKind::abs, 2};
  request.sample = &sample;
  request.runner = &runner;
  request.settings = in_levels(models.larger, "yes");
  const auto codec = stencil_codec_with(models.list);
  const auto encoder = codec->plan(request);
  ASSERT_TRUE(encoder.ok()) << encoder.status().text();
  ASSERT_NE(dynamic_cast<const CodecFeatures&>(**encoder).features(), 0u);
  const ConstBox3 box{array.bytes.data(), (*encoder)->plan().grid.chunk, {3500, 70}};
  Vector<std::uint8_t> chunk((*encoder)->max_chunk_bytes());
  std::vector<std::uint8_t> memory((*encoder)->scratch_bytes() + 64);
  const auto aligned = [&memory] {
    const auto skip = (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
    return std::span(memory).subspan(skip);
  };
  const auto size = (*encoder)->encode(box, chunk, aligned());
  ASSERT_TRUE(size.ok());
  chunk.resize(*size);
  OpenRequest open;
  open.shape = array.shape;
  open.bound = request.bound;
  open.version = kCodecVersion;
  open.params = (*encoder)->plan().params;
  const auto decoder = stencil_codec().open(open);
  ASSERT_TRUE(decoder.ok()) << decoder.status().text();
  memory.resize((*decoder)->scratch_bytes() + 64);
  OwnedArray back = array;
  const MutableBox3 out{back.bytes.data(), box.extents, box.strides};
  ASSERT_TRUE((*decoder)->decode(chunk, out, aligned()).ok());
  for (std::size_t at = 0; at < chunk.size(); ++at)
    for (const int change : {1, 0x80, 0xFF}) {
      Vector<std::uint8_t> bytes = chunk;
      bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ change);
      const Status status = (*decoder)->decode(bytes, out, aligned());
      if (!status.ok()) {
        EXPECT_TRUE(status.code() == StatusCode::corrupt || status.code() == StatusCode::truncated) << at;
      }
    }
  for (std::size_t cut = 0; cut < chunk.size(); ++cut)
    EXPECT_FALSE((*decoder)->decode(std::span(chunk).first(cut), out, aligned()).ok()) << cut;
  // Behind order, mark and place lies the model, which is sealed.
  const Vector<std::uint8_t> params((*encoder)->plan().params);
  for (std::size_t at = 2; at < params.size(); ++at) {
    Vector<std::uint8_t> bytes = params;
    bytes[at] ^= 0x11;
    open.params = bytes;
    EXPECT_FALSE(stencil_codec().open(open).ok()) << at;
    open.params = std::span(params).first(at);
    EXPECT_TRUE(at == 3 || at == 2 || !stencil_codec().open(open).ok()) << at;
  }
  // A chunk with networks in a stream without a model.
  open.params = std::span(params).first(3);
  const auto bare = stencil_codec().open(open);
  ASSERT_TRUE(bare.ok());
  EXPECT_EQ((*bare)->decode(chunk, out, aligned()).code(), StatusCode::corrupt);
}

}  // namespace
}  // namespace quern::codec::stencil
