// The codec with and without models: the bound, threads and instruction sets, models embedded, outside, missing and
// wrong, hostile chunks.
#include <gtest/gtest.h>

#include <cmath>

#include "codecs/autoencoder/autoencoder.h"
#include "libcompress/format/frame/limits.h"
#include "tests/conformance/bound_cases.h"
#include "tests/conformance/round_trip.h"
#include "tests/support/memory_models.h"
#include "tests/unit_models/small_models.h"

namespace quern::codec::autoencoder {
namespace {

using models::BlockModel;
using models::test::cosine_model;
using models::test::small_model;
using testing::Data;
using testing::MemoryModels;
using testing::OwnedArray;
using testing::shape_of;

/// Waves that a few cosines of a block describe well, and noise about as large as the bound.
OwnedArray waves(DType dtype, const Shape& shape) {
  OwnedArray array = testing::make_array(dtype, shape, Data::zeros);
  const std::uint64_t columns = shape[shape.rank() - 1];
  const std::uint64_t rows = shape[shape.rank() - 2];
  kernels::test::Random random(5);
  for (std::uint64_t i = 0; i < shape.elems(); ++i) {
    const auto x = static_cast<double>(i % columns);
    const auto y = static_cast<double>(i / columns % rows);
    const auto z = static_cast<double>(i / columns / rows);
    const double noise = static_cast<double>(random.within(-2500, 2500)) * 1e-3;
    testing::store_element(array, i, 40 * std::sin(x * 0.3) * std::cos(y * 0.2 + z * 0.2) + noise);
  }
  return array;
}

CompressOptions options_for(const ErrorBound& bound, const Settings& settings) {
  CompressOptions options;
  options.bound = bound;
  options.codec = "autoencoder";
  options.settings = settings;
  return options;
}

/// A source with the useful model for squares, for cubes, and one of random weights.
struct Models {
  MemoryModels source;
  String squares = source.add(cosine_model({1, 16, 16}, 5));
  String cubes = source.add(cosine_model({8, 8, 8}, 3));
  String random = source.add(small_model());
  CodecsWithModels codecs{source};
  const Registry& registry() const { return codecs.registry(); }
};

Vector<std::uint8_t> stream_of(const OwnedArray& array, const Settings& settings, const Registry& registry,
                               double bound = 2) {
  return testing::compress_to_bytes(array, options_for({BoundKind::abs, bound}, settings), registry, 1, nullptr);
}

StatusCode decoded(const Vector<std::uint8_t>& stream, const Registry& registry, OwnedArray& back) {
  MemorySource source(stream);
  return decompress(source, {back.bytes.data(), back.dtype, back.shape}, registry, {}).status().code();
}

TEST(Autoencoder, EveryDataAndBoundUnderEveryModel_KeepsItsPromises) {
  const Models models;
  for (const DType dtype : {DType::bf16, DType::f32, DType::f64, DType::i16})
    for (const Shape& shape : {shape_of({1, 1}), shape_of({37, 50}), shape_of({9, 17, 19}), shape_of({2, 3, 8, 11})})
      for (const Data data : testing::all_data()) {
        const OwnedArray array = testing::make_array(dtype, shape, data);
        for (const testing::BoundCase& bound : testing::bounds_for(dtype))
          for (const String* model : {&models.squares, &models.cubes, &models.random}) {
            if (bound.bound.kind == BoundKind::pwrel || (model == &models.cubes && shape.rank() < 3)) continue;
            SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + shape.text() + " " + data_name(data) + " " +
                         bound.name);
            const Settings settings{{"model", *model}, {"embed", "no"}};
            testing::expect_round_trip(array, options_for(bound.bound, settings), models.registry());
            if (HasFailure()) return;
          }
      }
}

TEST(Autoencoder, UsefulModel_MakesStreamsSmaller) {
  const Models models;
  for (const auto& [shape, id] :
       {std::pair(shape_of({128, 160}), models.squares), std::pair(shape_of({40, 48, 40}), models.cubes)}) {
    const OwnedArray array = waves(DType::f32, shape);
    const auto plain = stream_of(array, {}, models.registry());
    const auto with = stream_of(array, {{"model", id}, {"embed", "no"}}, models.registry());
    EXPECT_LT(with.size(), plain.size() * 9 / 10) << shape.text();
    testing::expect_round_trip(array, options_for({BoundKind::abs, 2}, {{"model", id}, {"embed", "no"}}),
                               models.registry());
  }
}

TEST(Autoencoder, ModelTooLargeForAStream_IsLeftOutOrRefused) {
  MemoryModels source;
  const BlockModel model = cosine_model({16, 16, 16}, 6);
  ASSERT_GT(models::write_block_model(models::decoding_half(model)).size(), models::kMostEmbeddedBytes);
  const String id = source.add(model);
  const CodecsWithModels codecs(source);
  const OwnedArray array = waves(DType::f32, shape_of({20, 20, 20}));
  EXPECT_EQ(stream_of(array, {{"model", id}}, codecs.registry()), stream_of(array, {}, codecs.registry()));
  Vector<std::uint8_t> bytes;
  VectorSink sink(bytes);
  const auto options = options_for({BoundKind::abs, 2}, {{"model", id}, {"embed", "yes"}});
  EXPECT_EQ(
      compress({array.bytes.data(), array.dtype, array.shape}, options, codecs.registry(), {}, sink).status().code(),
      StatusCode::invalid_argument);
}

TEST(Autoencoder, ThreadsAndInstructionSets_GiveTheSameBytes) {
  const Models models;
  const OwnedArray array = waves(DType::f32, shape_of({3, 700, 900}));
  const Settings settings{{"model", models.squares}, {"embed", "yes"}};
  const auto options = options_for({BoundKind::abs, 2}, settings);
  const auto bytes = testing::compress_to_bytes(array, options, models.registry(), 1, nullptr);
  EXPECT_EQ(testing::compress_to_bytes(array, options, models.registry(), 3, nullptr), bytes);
  Settings plain = settings;
  plain.push_back({"isa", "baseline"});
  EXPECT_EQ(stream_of(array, plain, models.registry()), bytes);
}

TEST(Autoencoder, EmbeddedModel_IsAllThatADecoderNeeds) {
  const Models models;
  OwnedArray array = waves(DType::f32, shape_of({200, 300}));
  const auto bytes = stream_of(array, {{"model", models.squares}, {"embed", "yes"}}, models.registry());
  OwnedArray back = array;
  EXPECT_EQ(decoded(bytes, builtin_codecs(), back), StatusCode::ok);
  OwnedArray other = array;
  EXPECT_EQ(decoded(bytes, models.registry(), other), StatusCode::ok);
  EXPECT_EQ(back.bytes, other.bytes);
}

TEST(Autoencoder, ModelPutIntoAStreamAndTakenOut_LeavesItAsItWas) {
  const Models models;
  for (const Shape& shape : {shape_of({128, 160}), shape_of({2, 300, 500})}) {
    const OwnedArray array = waves(DType::f32, shape);
    const auto outside = stream_of(array, {{"model", models.squares}, {"embed", "no"}}, models.registry());
    Vector<std::uint8_t> inside, again;
    VectorSink into(inside), out(again);
    ASSERT_EQ(embed_model(outside, models.source, into).code(), StatusCode::ok) << shape.text();
    EXPECT_EQ(inside, stream_of(array, {{"model", models.squares}, {"embed", "yes"}}, models.registry()));
    OwnedArray back = array, other = array;
    ASSERT_EQ(decoded(inside, builtin_codecs(), back), StatusCode::ok);
    ASSERT_EQ(decoded(outside, models.registry(), other), StatusCode::ok);
    EXPECT_EQ(back.bytes, other.bytes);
    const auto file = take_out_model(inside, out);
    ASSERT_TRUE(file.ok()) << file.status().text();
    EXPECT_EQ(again, outside);
    ModelList kept;
    ASSERT_TRUE(kept.add(*file).ok());
    const CodecsWithModels codecs(kept);
    EXPECT_EQ(decoded(again, codecs.registry(), back), StatusCode::ok);
  }
}

TEST(Autoencoder, ModelPutIntoADamagedStream_IsRefused) {
  const Models models;
  const OwnedArray array = waves(DType::f32, shape_of({50, 70}));
  const auto stream = stream_of(array, {{"model", models.squares}, {"embed", "no"}}, models.registry());
  for (std::size_t i = 0; i < stream.size(); ++i) {
    auto damaged = stream;
    damaged[i] ^= 1;
    Vector<std::uint8_t> out;
    VectorSink sink(out);
    ASSERT_FALSE(embed_model(damaged, models.source, sink).ok()) << i;
    ASSERT_FALSE(embed_model(std::span(stream).first(i), models.source, sink).ok()) << i;
  }
}

TEST(Autoencoder, ModelThatIsMissing_IsSaidAndNoOtherIsTaken) {
  Models models;
  const OwnedArray array = waves(DType::f32, shape_of({128, 160}));
  const auto bytes = stream_of(array, {{"model", models.squares}, {"embed", "no"}}, models.registry());
  OwnedArray back = array;
  EXPECT_EQ(decoded(bytes, builtin_codecs(), back), StatusCode::missing_model);
  MemorySource source(bytes);
  EXPECT_TRUE(inspect(source, builtin_codecs()).ok());
  // Another model in its place.
  models.source.replace(models::model_id(cosine_model({1, 16, 16}, 5)),
                        models::write_block_model(cosine_model({1, 16, 16}, 4)));
  EXPECT_EQ(decoded(bytes, models.registry(), back), StatusCode::checksum_mismatch);
}

TEST(Autoencoder, ModelThatDoesNotPay_IsNotEmbedded) {
  const Models models;
  const OwnedArray array = testing::make_array(DType::f32, shape_of({64, 64}), Data::noise);
  const auto plain = stream_of(array, {}, models.registry(), 1e-3);
  EXPECT_EQ(stream_of(array, {{"model", models.squares}}, models.registry(), 1e-3), plain);
  EXPECT_GT(stream_of(array, {{"model", models.squares}, {"embed", "yes"}}, models.registry(), 1e-3).size(),
            plain.size());
}

TEST(Autoencoder, SettingsThatBreakARule_AreRefused) {
  Models models;
  const OwnedArray array = waves(DType::f32, shape_of({32, 32}));
  const auto code = [&](const Settings& settings, const Registry& registry) {
    Vector<std::uint8_t> out;
    VectorSink sink(out);
    return compress(array.view(), options_for({BoundKind::abs, 1}, settings), registry, {}, sink).status().code();
  };
  EXPECT_EQ(code({{"model", "12"}}, models.registry()), StatusCode::invalid_argument);
  EXPECT_EQ(code({{"model", models.cubes}}, models.registry()), StatusCode::invalid_argument);
  EXPECT_EQ(code({{"embed", "maybe"}}, models.registry()), StatusCode::invalid_argument);
  EXPECT_EQ(code({{"layers", "3"}}, models.registry()), StatusCode::unknown_setting);
  EXPECT_EQ(code({{"model", models.squares}}, builtin_codecs()), StatusCode::missing_model);
  const String half = models.source.add(decoding_half(cosine_model({1, 16, 16}, 3)));
  EXPECT_EQ(code({{"model", half}}, models.registry()), StatusCode::invalid_argument);
}

TEST(Autoencoder, Auto_NeverTakesIt) {
  const OwnedArray array = waves(DType::f32, shape_of({64, 64}));
  CompressOptions options;
  options.bound = {BoundKind::abs, 2};
  CompressReport report;
  testing::compress_to_bytes(array, options, builtin_codecs(), 1, &report);
  EXPECT_NE(report.codec, "autoencoder");
  for (const CodecTrial& trial : report.tried) EXPECT_NE(trial.codec, "autoencoder");
}

/// Chunks and parameters with bytes changed: data or a status, never more (sanitizers watch).
TEST(Autoencoder, HostileChunks_GiveDataOrCorrupt) {
  const Models models;
  const OwnedArray array = waves(DType::f32, shape_of({50, 70}));
  PlainSample sample(array.bytes.data(), array.dtype, array.shape.elems());
  SerialRunner runner;
  PlanRequest request;
  request.shape = array.shape;
  request.bound = {BoundKind::abs, 2};
  request.sample = &sample;
  request.runner = &runner;
  request.settings = {{"model", models.squares}, {"embed", "yes"}};
  const auto codec = autoencoder_codec_with(models.source);
  const auto encoder = codec->plan(request);
  ASSERT_TRUE(encoder.ok()) << encoder.status().text();
  ConstBox3 box;
  box.data = array.bytes.data();
  box.extents = {1, 50, 70};
  box.strides = {3500, 70};
  Vector<std::uint8_t> chunk((*encoder)->max_chunk_bytes()), scratch((*encoder)->scratch_bytes());
  const auto size = (*encoder)->encode(box, chunk, scratch);
  ASSERT_TRUE(size.ok());
  chunk.resize(*size);
  OpenRequest open;
  open.shape = array.shape;
  open.bound = request.bound;
  open.version = kCodecVersion;
  open.params = (*encoder)->plan().params;
  const auto decoder = autoencoder_codec().open(open);
  ASSERT_TRUE(decoder.ok()) << decoder.status().text();
  scratch.resize((*decoder)->scratch_bytes());
  OwnedArray back = array;
  MutableBox3 out;
  out.data = back.bytes.data();
  out.extents = box.extents;
  out.strides = box.strides;
  ASSERT_TRUE((*decoder)->decode(chunk, out, scratch).ok());
  std::size_t refused = 0;
  for (std::size_t at = 0; at < chunk.size(); ++at)
    for (const int change : {1, 0x80, 0xFF}) {
      Vector<std::uint8_t> bytes = chunk;
      bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ change);
      const Status status = (*decoder)->decode(bytes, out, scratch);
      if (!status.ok()) {
        EXPECT_EQ(status.code(), StatusCode::corrupt) << at;
      }
      refused += status.ok() ? 0 : 1;
    }
  EXPECT_GT(refused, chunk.size());
  for (std::size_t cut = 0; cut < chunk.size(); ++cut)
    EXPECT_FALSE((*decoder)->decode(std::span(chunk).first(cut), out, scratch).ok()) << cut;
  Vector<std::uint8_t> params((*encoder)->plan().params);
  for (std::size_t at = 0; at < params.size(); at += at < 24 ? 1 : 11) {
    Vector<std::uint8_t> bytes = params;
    bytes[at] ^= 0x11;
    open.params = bytes;
    EXPECT_FALSE(autoencoder_codec().open(open).ok()) << at;
  }
}

}  // namespace
}  // namespace quern::codec::autoencoder
