// The interp codec through the pipeline: what every codec promises, every layout, tight bounds, bytes that are the same
// whatever computes them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "codecs/interp/interp.h"
#include "codecs/interp/plan.h"
#include "tests/conformance/codec_conformance.h"
#include "tests/support/instrumented.h"

namespace quern::codec::interp {
namespace {

using testing::Data;
using testing::OwnedArray;

const Registry& registry() {
  static const ArrayCodec* const codecs[] = {&interp_codec()};
  static const Registry made(codecs);
  return made;
}

CompressOptions options_of(BoundKind kind, double bound, const std::string& layout = "auto") {
  CompressOptions options;
  options.bound = {kind, bound};
  options.codec = "interp";
  options.settings = {{"layout", String(layout)}};
  return options;
}

class InterpTypes : public ::testing::TestWithParam<DType> {};

TEST_P(InterpTypes, EveryShapeDataAndBound_KeepsItsPromises) {
  testing::expect_conformance(interp_codec(), GetParam());
}

TEST_P(InterpTypes, Threads_GiveTheSameBytes) { testing::expect_same_bytes_for_threads(interp_codec(), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Types, InterpTypes,
                         ::testing::Values(DType::bf16, DType::f32, DType::f64, DType::i8, DType::u16, DType::i32),
                         [](const auto& tested) { return std::string(dtype_name(tested.param)); });

/// All shapes and bounds take seconds a type; these types share the code of those above.
TEST(Interp, OtherTypes_KeepTheBoundOnAllData) {
  for (const DType dtype : {DType::f16, DType::i16, DType::u8, DType::u32}) {
    for (const Data data : testing::all_data()) {
      for (const Shape& shape : {testing::shape_of({4099}), testing::shape_of({13, 17, 19})}) {
        for (const ErrorBound bound : {ErrorBound{BoundKind::rel, 1e-3}, ErrorBound{BoundKind::abs, 0.7}}) {
          SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + testing::data_name(data) + " " + shape.text());
          testing::expect_round_trip(testing::make_array(dtype, shape, data), options_of(bound.kind, bound.value),
                                     registry());
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TEST(Interp, EveryLayoutAndOddTiles_KeepTheBound) {
  for (const Shape& shape : {testing::shape_of({3000}), testing::shape_of({70, 67}), testing::shape_of({21, 34, 37}),
                             testing::shape_of({3, 9, 11, 13})}) {
    Vector<Layout> layouts = all_layouts(shape);
    layouts.push_back({{{1, 2, 3}}, 0, static_cast<std::uint8_t>(shape.rank() / 2)});
    const auto rank = static_cast<std::uint8_t>(shape.rank());
    layouts.push_back({{{0, 1, 0}}, 0, rank});
    // Tiles that are longer than their axes, some along axes of one place: most levels add nothing.
    layouts.push_back({{{0, 0, 12}}, rank, rank});
    layouts.push_back({{{12, 0, 0}}, 0, 0});
    layouts.push_back({{{4, 4, 4}}, 0, rank});
    for (const Layout& layout : layouts) {
      const auto& logs = layout.tile.logs;
      const std::string text = "3d:" + std::to_string(layout.first) + "," + std::to_string(layout.second) + ":" +
                               std::to_string(logs[0]) + "," + std::to_string(logs[1]) + "," + std::to_string(logs[2]);
      for (const DType dtype : {DType::f32, DType::i16}) {
        for (const Data data : {Data::smooth, Data::land}) {
          SCOPED_TRACE(shape.text() + " " + text + " " + dtype_name(dtype) + " " + testing::data_name(data));
          testing::expect_round_trip(testing::make_array(dtype, shape, data), options_of(BoundKind::rel, 1e-3, text),
                                     registry());
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TEST(Interp, InstructionSets_GiveTheSameBytes) {
  for (const DType dtype : {DType::f16, DType::f32, DType::f64, DType::u16, DType::i32}) {
    for (const double bound : {1e-3, 1e-7, 1e-10}) {
      const OwnedArray array = testing::make_array(dtype, testing::shape_of({25, 31, 33}), Data::land);
      CompressOptions options = options_of(BoundKind::rel, bound);
      const auto reference = testing::compress_to_bytes(array, options, registry(), 1, nullptr);
      for (const char* isa : {"baseline", "avx2", "avx512"}) {
        options.settings = {{"isa", isa}};
        Vector<std::uint8_t> stream;
        VectorSink sink(stream);
        const auto result = compress(array.view(), options, registry(), Execution{}, sink);
        if (!result.ok() && result.status().code() == StatusCode::unsupported) continue;
        ASSERT_TRUE(result.ok()) << result.status().text();
        EXPECT_EQ(stream, reference) << isa << " " << dtype_name(dtype) << " " << bound;
      }
    }
  }
}

/// Bounds around what an element type can tell apart, and values far from zero.
TEST(Interp, BoundsNearTheSpacingOfElements_Hold) {
  for (const double offset : {0.0, 1000.0, 1e6}) {
    for (const double bound : {1e-7, 3e-5, 0.0625, 0.07, 3.0}) {
      OwnedArray array = testing::make_array(DType::f32, testing::shape_of({40, 50}), Data::smooth);
      for (std::uint64_t i = 0; i < array.shape.elems(); ++i) {
        const double v = offset + std::floor(300 * std::sin(0.07 * static_cast<double>(i % 50)));
        testing::store_element(array, i, i % 97 == 0 ? -v : v);
      }
      SCOPED_TRACE(std::to_string(offset) + " " + std::to_string(bound));
      testing::expect_round_trip(array, options_of(BoundKind::abs, bound), registry());
    }
  }
}

/// Codes hold less than the ratio of range and bound: they lead from anchor to anchor.
TEST(Interp, TightBoundsOnSmoothData_StaySmall) {
  for (const Shape& shape : {testing::shape_of({65536}), testing::shape_of({256, 256})}) {
    for (const double waves : {3.0, 40.0}) {
      OwnedArray array = testing::make_array(DType::f64, shape, Data::zeros);
      for (std::uint64_t i = 0; i < array.shape.elems(); ++i)
        testing::store_element(array, i, std::sin(2 * std::acos(-1.0) * waves * static_cast<double>(i) / 65536));
      for (const double bound : {1e-9, 1e-10, 1e-11}) {
        SCOPED_TRACE(shape.text() + " " + std::to_string(waves) + " " + std::to_string(std::log10(bound)));
        const CompressOptions options = options_of(BoundKind::abs, bound);
        testing::expect_round_trip(array, options, registry());
        EXPECT_LT(testing::compress_to_bytes(array, options, registry(), 1, nullptr).size() * 2, array.bytes.size());
      }
    }
  }
}

TEST(Interp, IntegersOfTheWholeRange_ComeBack) {
  for (const DType dtype : {DType::i32, DType::u32}) {
    OwnedArray array = testing::make_array(dtype, testing::shape_of({40, 70}), Data::zeros);
    const double least = dtype == DType::i32 ? -0x1p31 : 0;
    for (std::uint64_t i = 0; i < array.shape.elems(); ++i)
      testing::store_element(
          array, i,
          least + (0x1p32 - 1) * (i % 70 == 0 ? static_cast<double>(i / 70 % 2) : static_cast<double>(i % 70) / 69));
    for (const char* layout : {"auto", "2d:1", "1d"})
      for (const double bound : {0.5, 0.99}) {
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + layout);
        testing::expect_round_trip(array, options_of(BoundKind::abs, bound, layout), registry());
      }
  }
}

TEST(Interp, ValuesOfAllMagnitudes_KeepTheBound) {
  OwnedArray array = testing::make_array(DType::f64, testing::shape_of({24, 31}), Data::smooth);
  for (std::uint64_t i = 0; i < array.shape.elems(); ++i) {
    const int exponent = static_cast<int>(i % 2040) - 1020;
    testing::store_element(array, i, std::ldexp(i % 3 == 0 ? -1.25 : 1.5, exponent));
  }
  for (const double bound : {1e-300, 1.0, 1e150, 1e300}) {
    SCOPED_TRACE(bound);
    testing::expect_round_trip(array, options_of(BoundKind::abs, bound), registry());
  }
}

TEST(Interp, SmoothFields_BecomeMuchSmallerThanRaw) {
  const OwnedArray array = testing::make_array(DType::f32, testing::shape_of({64, 64, 64}), Data::smooth);
  CompressReport report;
  const auto stream = testing::compress_to_bytes(array, options_of(BoundKind::rel, 1e-3), registry(), 1, &report);
  EXPECT_LT(stream.size() * 20, array.bytes.size());
}

TEST(Interp, SettingsThatMakeNoSense_AreRefused) {
  const OwnedArray array = testing::make_array(DType::f32, testing::shape_of({8, 8}), Data::smooth);
  for (const char* layout :
       {"", "4d", "2d", "2d:3", "3d:2,1", "3d:1", "1d:4,4", "1d:5,5,5", "2d:1:0,0,0", "2d:1,", "x"}) {
    Vector<std::uint8_t> stream;
    VectorSink sink(stream);
    const auto result = compress(array.view(), options_of(BoundKind::abs, 0.1, layout), registry(), Execution{}, sink);
    EXPECT_EQ(result.status().code(), StatusCode::invalid_argument) << layout;
  }
}

}  // namespace
}  // namespace quern::codec::interp
