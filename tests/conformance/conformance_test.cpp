// Every codec on every element type, shape, kind of data and kind of bound: the bound holds by an independent check,
// special values come back bit for bit, streams keep their size limit, and bytes depend on neither threads nor
// instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include <quern/compress.h>

#include "tests/conformance/bound_cases.h"
#include "tests/conformance/round_trip.h"
#include "tests/support/array_cases.h"
#include "tests/support/instrumented.h"
#include "tests/support/thorough.h"
#include "tests/unit_stencil/edges/fronts.h"

namespace quern {
namespace {

using testing::BoundCase;
using testing::bounds_for;
using testing::Data;
using testing::OwnedArray;

Vector<std::uint8_t> compress_to_bytes(const OwnedArray& array, const CompressOptions& options, std::size_t threads) {
  return testing::compress_to_bytes(array, options, builtin_codecs(), threads, nullptr);
}

/// The stencil codec leaves lossless and point-wise bounds, and 64-bit integers, to others.
bool stencil_takes(DType dtype, BoundKind kind) {
  return kind != BoundKind::lossless && kind != BoundKind::pwrel && dtype != DType::i64 && dtype != DType::u64;
}

/// Arrays of more elements are large: the stencil codec takes every third case of theirs.
constexpr std::uint64_t kManyElems = 2000;

/// Whether the case of this number is one that a codec takes: all of them when thorough; otherwise the ways in which
/// stencil walks through chunks take turns. Kinds of data, bounds, shapes and types each begin with another way, so
/// that any two of them meet in every way.
bool takes_turn(std::string_view codec, const Shape& shape, std::size_t turn) {
  if (testing::thorough() || !codec.starts_with("stencil")) return true;
  constexpr std::string_view kWays[] = {"stencil", "stencil levels", "stencil planes", "stencil wavelet"};
  const std::size_t way = turn % (shape.elems() > kManyElems ? 12 : 4);
  return way < 4 && codec == kWays[way];
}

/// Types whose width and kind another one has; instrumented builds leave them out.
bool has_a_twin(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::i16 || dtype == DType::u8 || dtype == DType::u32 ||
         dtype == DType::u64;
}

/// The name of a codec, or that of stencil and how it walks chunks.
void take_codec(const std::string& name, CompressOptions& options) {
  const std::size_t space = name.find(' ');
  options.codec = name.substr(0, space);
  if (space != std::string::npos) options.settings = {{"layout", String(name.substr(space + 1))}};
}

class Conformance : public ::testing::TestWithParam<DType> {};

TEST_P(Conformance, EveryCodecShapeDataAndBound_KeepsItsPromises) {
  const DType dtype = GetParam();
  if (testing::kInstrumented && has_a_twin(dtype)) GTEST_SKIP() << "another type of this width is taken";
  std::size_t turn = 0;
  auto walk = static_cast<std::size_t>(dtype);
  for (const Shape& shape : testing::edge_shapes()) {
    walk += 1;
    for (const Data data : testing::all_data()) {
      const OwnedArray array = testing::make_array(dtype, shape, data);
      for (const BoundCase& bound : bounds_for(dtype)) {
        if (stencil_takes(dtype, bound.bound.kind)) ++walk;
        for (const std::string codec :
             {"lorenzo", "lossless", "stencil", "stencil levels", "stencil planes", "stencil wavelet"}) {
          const bool lossless = bound.bound.kind == BoundKind::lossless;
          if (codec == "lossless" && !lossless) continue;
          if (codec.starts_with("stencil") && !stencil_takes(dtype, bound.bound.kind)) continue;
          if (!takes_turn(codec, shape, walk)) continue;
          // Instrumented, the slow codec takes a part of these: a number that is prime to those of ways and bounds.
          if (testing::kInstrumented && codec.starts_with("stencil") && ++turn % (testing::thorough() ? 7 : 3) != 0)
            continue;
          SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + shape.text() + " " + data_name(data) + " " + bound.name +
                       " " + codec);
          CompressOptions options;
          options.bound = bound.bound;
          take_codec(codec, options);
          testing::expect_round_trip(array, options, builtin_codecs());
          if (HasFatalFailure() || HasNonfatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(Conformance, ThreadsAndInstructionSets_GiveTheSameBytes) {
  const DType dtype = GetParam();
  auto turn = static_cast<std::size_t>(dtype);
  auto way = static_cast<std::size_t>(dtype);
  for (const Shape& shape :
       {testing::shape_of({100003}), testing::shape_of({211, 307}), testing::shape_of({37, 41, 43})}) {
    for (const Data data : {Data::land, Data::smooth, Data::noise, Data::nan_scattered, Data::random_bits}) {
      if (testing::kInstrumented && data != Data::land) continue;
      // Land always; of the other four kinds one a shape, from another one for each type of elements.
      if (!testing::thorough() && data != Data::land && ++turn % 4 != 0) continue;
      const OwnedArray array = testing::make_array(dtype, shape, data);
      ++way;  // the four ways of stencil are even in number: two of them, and the others for the next array
      for (const std::string_view codec :
           {"lorenzo", "stencil", "stencil levels", "stencil planes", "stencil wavelet"}) {
        if (!testing::thorough() && codec != "lorenzo" && ++way % 2 != 0) continue;
        CompressOptions options;
        options.bound = {BoundKind::rel, 1e-4};
        take_codec(std::string(codec), options);
        const Settings settings = options.settings;
        if (options.codec == "stencil" && !stencil_takes(dtype, options.bound.kind)) continue;
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + shape.text() + " " + data_name(data) + " " +
                     std::string(codec));
        const auto reference = compress_to_bytes(array, options, 1);
        for (const std::size_t threads : {2, 7})
          EXPECT_EQ(compress_to_bytes(array, options, threads), reference) << threads << " threads";
        for (const char* isa : {"baseline", "avx2", "avx512"}) {
          options.settings = settings;
          options.settings.emplace_back("isa", isa);
          Vector<std::uint8_t> stream;
          VectorSink sink(stream);
          const auto result = compress(array.view(), options, builtin_codecs(), Execution{}, sink);
          if (!result.ok() && result.status().code() == StatusCode::unsupported) continue;
          ASSERT_TRUE(result.ok()) << result.status().text();
          EXPECT_EQ(stream, reference) << isa;
        }
      }
    }
  }
}

TEST(Identity, SeveralStencilChunks_GiveTheSameBytesForAnyThreadsAndInstructionSet) {
  if (testing::kInstrumented) GTEST_SKIP() << "takes minutes when instrumented";
  for (const Shape& shape : {testing::shape_of({600001}), testing::shape_of({20, 140, 150})}) {
    for (const char* layout : {"auto", "raster", "levels", "planes", "wavelet"}) {
      if (std::string_view(layout) == "wavelet" && shape.rank() > 1) continue;  // half a minute
      // One kind of data for each layout: what the codec chooses by itself is tried on both.
      const bool automatic = std::string_view(layout) == "auto";
      for (const Data data : {Data::smooth, Data::land}) {
        if (!automatic && data == Data::smooth) continue;
        const OwnedArray array = testing::make_array(DType::f32, shape, data);
        SCOPED_TRACE(shape.text() + " " + data_name(data) + " " + layout);
        CompressOptions options;
        options.bound = {BoundKind::rel, 1e-3};
        options.codec = "stencil";
        options.settings = {{"layout", layout}};
        const auto reference = compress_to_bytes(array, options, 1);
        for (const std::size_t threads : {2, 7}) EXPECT_EQ(compress_to_bytes(array, options, threads), reference);
        for (const char* isa : {"baseline", "avx2", "avx512"}) {
          options.settings = {{"layout", layout}, {"isa", isa}};
          Vector<std::uint8_t> stream;
          VectorSink sink(stream);
          const auto result = compress(array.view(), options, builtin_codecs(), Execution{}, sink);
          if (!result.ok() && result.status().code() == StatusCode::unsupported) continue;
          ASSERT_TRUE(result.ok()) << result.status().text();
          EXPECT_EQ(stream, reference) << isa;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Conformance, ::testing::ValuesIn(testing::all_dtypes()),
                         [](const auto& type) { return std::string(dtype_name(type.param)); });

/// Stencil's groups that are not linear: as they are and as codes of prequantized elements, with NaN and without.
TEST(Conformance_Edges, SharpFrontsOfEveryFloatType_KeepTheirPromises) {
  constexpr std::uint64_t kExtent = 20;
  const auto field = codec::stencil::test::fronts(kExtent, 3, 2 * kExtent, 12);
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64})
    for (const bool with_nan : {false, true}) {
      OwnedArray array = testing::make_array(dtype, testing::shape_of({kExtent, kExtent, kExtent}), Data::zeros);
      for (std::size_t i = 0; i < field.size(); ++i)
        testing::store_element(array, i, with_nan && i % 7 == 0 ? std::nan("") : field[i]);
      for (const bool idempotent : {false, true}) {
        SCOPED_TRACE(std::string(dtype_name(dtype)) + (with_nan ? " NaN" : "") + (idempotent ? " idempotent" : ""));
        CompressOptions options;
        options.bound = {idempotent ? BoundKind::abs : BoundKind::rel, 0.02};
        options.codec = "stencil";
        options.settings = {{"layout", "levels"}, {"edges", "on"}};
        options.idempotent = idempotent;
        testing::expect_round_trip(array, options, builtin_codecs());
      }
    }
}

}  // namespace
}  // namespace quern
