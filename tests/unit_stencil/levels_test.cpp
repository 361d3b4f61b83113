// Chunks in levels: round trips in every rank and shape, special elements and values, the parts they are made of.
#include "tests/unit_stencil/chunks.h"
#include "tests/unit_stencil/helpers.h"

#include <limits>
#include <set>

#include "codecs/stencil/levels/chunk.h"
#include "codecs/stencil/levels/coarse_chunk.h"
#include "codecs/stencil/levels/grid.h"
#include "codecs/stencil/levels/model.h"
#include "codecs/stencil/levels/view.h"
#include "codecs/stencil/levels/walk.h"
#include "codecs/stencil/plan/array_levels.h"
#include "codecs/stencil/rules.h"

namespace quern::codec::stencil::test {
namespace {

const char* const kOrders[] = {"levels", "planes"};

template <class T>
std::size_t code(DType dtype, const Shape& shape, const std::vector<double>& values, double bound, const char* layout,
                 Bytes special = {}) {
  SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + shape.text() + " " + std::to_string(bound) + " " + layout);
  const Coding coding(dtype, shape, as_bytes<T>(values), bound, {{"layout", layout}}, std::move(special));
  Bytes back;
  const std::size_t bytes = coding.round_trip(back);
  EXPECT_EQ(count_missed<T>(coding, back, bound), 0u);
  return bytes;
}

/// Whether the first chunk is in levels.
bool in_levels(const Coding& coding) { return coding.encode(0)[0] == 3; }

TEST(Stencil_Levels, EveryRankAndBound_KeepsTheBoundAndCompresses) {
  for (const Shape& shape : {shape_of({5000}), shape_of({70, 90}), shape_of({14, 25, 31}), shape_of({6, 9, 13, 17}),
                             shape_of({3, 2, 9, 8, 11})}) {
    const auto values = waves(shape, 41);
    for (const char* order : kOrders) {
      for (const double bound : {1e-1, 1e-3, 1e-5}) {
        const std::size_t elems = shape.elems();
        EXPECT_LT(code<float>(DType::f32, shape, values, bound, order), elems * 4 * 10 / (bound > 1e-4 ? 18 : 11));
        EXPECT_LT(code<double>(DType::f64, shape, values, bound, order), elems * 8 * 10 / (bound > 1e-4 ? 36 : 18));
      }
    }
  }
}

TEST(Stencil_Levels, AreWhatTheSettingAsksFor) {
  const Shape shape = shape_of({30, 31, 32});
  const Bytes data = as_bytes<float>(waves(shape, 42));
  for (const char* order : {"levels", "planes", "levels:3d:1,2", "planes:2d:1"})
    EXPECT_TRUE(in_levels(Coding(DType::f32, shape, data, 1e-2, {{"layout", order}}))) << order;
  for (const char* order : {"raster", "raster:3d:1,2"})
    EXPECT_FALSE(in_levels(Coding(DType::f32, shape, data, 1e-2, {{"layout", order}}))) << order;
}

TEST(Stencil_Levels, SmoothFieldsAtLooseBounds_ChooseThemWithoutBeingAsked) {
  const Shape shape = shape_of({200, 230});
  auto values = waves(shape, 43);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(0.02 * static_cast<double>(i / 230)) * std::cos(0.017 * static_cast<double>(i % 230)) +
                1e-3 * values[i];
  const Coding free(DType::f32, shape, as_bytes<float>(values), 1e-2);
  EXPECT_TRUE(in_levels(free));
  Bytes back;
  const std::size_t bytes = free.round_trip(back);
  EXPECT_LT(bytes, code<float>(DType::f32, shape, values, 1e-2, "raster"));
}

TEST(Stencil_Levels, TightCoarseLevels_KeepTheBoundAndLowerTheMeanError) {
  const Shape shape = shape_of({24, 40, 41});
  const auto values = waves(shape, 46);
  for (const char* order : kOrders) {
    double loose = 1e9;
    for (const char* tightening : {"0", "1", "2", "3"}) {
      SCOPED_TRACE(std::string(order) + " " + tightening);
      const Settings settings{{"layout", order}, {"tightening", tightening}};
      Bytes back;
      const Coding coding(DType::f64, shape, as_bytes<double>(values), 0.2, settings);
      coding.round_trip(back);
      EXPECT_EQ(count_missed<double>(coding, back, 0.2), 0u);
      double squares = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        double v;
        std::memcpy(&v, back.data() + i * sizeof v, sizeof v);
        squares += (v - values[i]) * (v - values[i]);
      }
      EXPECT_LT(squares, loose * 0.97);
      if (tightening[0] == '0') loose = squares;
      // Steps of integers are odd, and have no sixteenths.
      std::vector<double> wide(values);
      for (double& v : wide) v = std::floor(v * 100);
      for (const double bound : {1.0, 7.0}) {
        const Coding integers(DType::i16, shape, as_bytes<std::int16_t>(wide), bound, settings);
        integers.round_trip(back);
        EXPECT_EQ(count_missed<std::int16_t>(integers, back, bound), 0u);
      }
    }
  }
}

TEST(Stencil_Levels, ExtentsOfOneToNine_ComeBack) {
  for (std::uint64_t a = 1; a <= 9; ++a) {
    for (std::uint64_t b = 1; b <= 9; b += 2) {
      for (const std::uint64_t c : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{5}, std::uint64_t{8}}) {
        const Shape shape = shape_of({a, b, c});
        for (const char* order : kOrders) code<float>(DType::f32, shape, waves(shape, 44), 1e-2, order);
      }
    }
  }
  for (std::uint64_t n = 1; n < 70; ++n) {
    const Shape line = shape_of({n});
    code<double>(DType::f64, line, waves(line, 45), 1e-3, "levels");
    const Shape wide = shape_of({2, n, 9, 8});
    for (const char* order : kOrders) code<float>(DType::f32, wide, waves(wide, 46), 1e-2, order);
  }
}

TEST(Stencil_Levels, AnAxisFarShorterThanTheOthers_ComesBack) {
  // At coarse levels it is a single point, while rows still lie away from the border along the others.
  for (const Shape& shape : {shape_of({3, 150, 170}), shape_of({150, 3, 170}), shape_of({12, 200, 210}),
                             shape_of({2, 40, 9, 90}), shape_of({40, 2, 41, 30})})
    for (const char* order : kOrders)
      for (const double bound : {1e-1, 1e-4}) code<float>(DType::f32, shape, waves(shape, 55), bound, order);
}

TEST(Stencil_Levels, SeveralChunks_KeepTheBound) {
  const Shape shape = shape_of({131, 150, 160});  // more than a chunk's elements
  for (const char* order : kOrders) {
    const Coding coding(DType::f32, shape, as_bytes<float>(waves(shape, 47)), 1e-2, {{"layout", order}});
    EXPECT_GT(coding.chunks(), 1u);
    Bytes back;
    const std::size_t bytes = coding.round_trip(back);
    EXPECT_LT(bytes * 4, back.size());
    EXPECT_EQ(count_missed<float>(coding, back, 1e-2), 0u);
  }
}

TEST(Stencil_Levels, EveryElementType_KeepsTheBound) {
  const Shape shape = shape_of({11, 30, 40});
  auto values = waves(shape, 48);
  for (const char* order : kOrders) {
    for (double& v : values) v = std::floor(v * 10) + 40;
    code<std::uint8_t>(DType::u8, shape, values, 1, order);
    code<std::int8_t>(DType::i8, shape, values, 0.5, order);
    for (double& v : values) v = v * 50;
    code<std::int16_t>(DType::i16, shape, values, 0.5, order);
    code<std::uint16_t>(DType::u16, shape, values, 3, order);
    code<std::int32_t>(DType::i32, shape, values, 7, order);
    code<std::uint32_t>(DType::u32, shape, values, 0.9, order);
    values = waves(shape, 49);
  }
  // Halves: bits of values that both types have exactly.
  Bytes halves(shape.elems() * 2);
  for (std::size_t i = 0; i < shape.elems(); ++i) {
    const auto bits = static_cast<std::uint16_t>(0x3C00 + (i * 7) % 64);
    std::memcpy(halves.data() + 2 * i, &bits, 2);
  }
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const char* order : kOrders) {
      const Coding coding(dtype, shape, halves, 1e-9, {{"layout", order}});
      Bytes back;
      coding.round_trip(back);
      EXPECT_EQ(back, coding.data());  // below the spacing: exactly
    }
  }
}

TEST(Stencil_Levels, LanesOfVeryDifferentSizes_ComeBack) {
  // All that is not even lies in columns whose codes are of the same few lanes, and costs more than elements take:
  // these lanes have more than their share of the room.
  const Shape shape = shape_of({64, 128, 128});
  std::mt19937 random(58);
  Bytes data(shape.elems(), 128);
  for (std::size_t i = 0; i < data.size(); ++i)
    if (i / 2 % 32 == 5) data[i] = static_cast<std::uint8_t>(random());
  const Coding coding(DType::u8, shape, data, 0.5, {{"layout", "levels"}, {"fit", "off"}, {"contexts", "off"}});
  ASSERT_TRUE(in_levels(coding));
  Bytes back;
  EXPECT_LT(coding.round_trip(back) * 2, data.size());
  EXPECT_EQ(back, data);
}

TEST(Stencil_Levels, SpecialBitsComeBackExactly) {
  const Shape shape = shape_of({40, 50});
  auto values = waves(shape, 50);
  values[0] = std::numeric_limits<double>::quiet_NaN();  // the coarsest point of all
  values[18] = -0.0;
  values[333] = std::numeric_limits<double>::infinity();
  values[1999] = -std::numeric_limits<double>::infinity();
  for (const char* order : kOrders) {
    const Coding coding(DType::f32, shape, as_bytes<float>(values), 1e-3, {{"layout", order}});
    Bytes back;
    const std::size_t bytes = coding.round_trip(back);
    EXPECT_LT(bytes * 2, back.size());
    EXPECT_EQ(count_missed<float>(coding, back, 1e-3), 0u);
    for (const std::size_t i : {0u, 18u, 333u, 1999u})
      EXPECT_EQ(std::memcmp(back.data() + 4 * i, coding.data().data() + 4 * i, 4), 0) << i;
  }
}

TEST(Stencil_Levels, ElementsUnderAMask_CostNothing) {
  const Shape shape = shape_of({20, 60, 70});
  auto values = waves(shape, 51);
  std::mt19937 random(52);
  Bytes special(shape.elems(), 0);
  for (std::size_t i = 0; i < special.size(); ++i) {
    if (i % 4200 % 70 < 30) {
      special[i] = 1;
      values[i] = static_cast<double>(random());
    }
  }
  for (const char* order : kOrders)
    EXPECT_LT(code<float>(DType::f32, shape, values, 1e-3, order, special),
              code<float>(DType::f32, shape, waves(shape, 51), 1e-3, order));
}

TEST(Stencil_Levels, LinesBeyondTheBorder_AreExactForLinearData) {
  // Even extents: the last points have no neighbour after them.
  const Shape shape = shape_of({64, 128});
  std::vector<double> values(shape.elems());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 3.0 * static_cast<double>(i / 128) - 2.0 * static_cast<double>(i % 128);
  EXPECT_LT(code<float>(DType::f32, shape, values, 1e-2, "levels"), 600u);
}

TEST(Stencil_Levels, ValuesThatOnlyBinary64Holds_KeepTheBound) {
  // Far values at odd coordinates, on both sides of the others: the finest level alone leaves 32 bits with what lies
  // beyond borders, then all levels do.
  const Shape shape = shape_of({21, 34, 37});
  for (const bool everywhere : {false, true}) {
    auto values = waves(shape, 47);
    if (everywhere)
      for (double& v : values) v *= 3000;
    values[(5 * 34 + 7) * 37 + 9] = 3000;
    values[(11 * 34 + 33) * 37 + 35] = -3000;
    Bytes special(shape.elems(), 0);
    for (std::size_t i = 0; i < special.size(); i += 7) special[i] = 1;
    for (const char* order : kOrders) {
      for (const double bound : {1e-2, 1e-3, 1e-4}) {
        code<float>(DType::f32, shape, values, bound, order);
        code<double>(DType::f64, shape, values, bound, order);
        code<double>(DType::f64, shape, values, bound, order, special);
      }
    }
  }
}

struct CoarseCase {
  const char* name;
  std::initializer_list<std::uint64_t> extents;
  Layout layout;
  bool masked;
};

/// Every level of a chunk against the same points of the whole, from as few bytes as do; half of them for level 2.
void check_levels(const CoarseCase& c) {
  SCOPED_TRACE(c.name);
  const Shape shape = shape_of(c.extents);
  auto values = waves(shape, 54);
  values[0] = std::numeric_limits<double>::quiet_NaN();
  values[values.size() / 3] = -0.0;
  const Bytes data = as_bytes<float>(values);
  Bytes special(c.masked ? shape.elems() : 0, 0);
  for (std::size_t i = 0; i < special.size(); i += 3) special[i] = 1;
  const ChunkGrid grid = make_grid(shape, c.layout);
  ASSERT_EQ(grid.counts(), (std::array<std::uint64_t, 3>{1, 1, 1}));
  const EncodeSpec spec = encode_spec(DType::f32, grid.chunk, 1e-3, levels_form(shape, c.layout, grid));
  const std::array<std::uint64_t, 2> strides{grid.extents[1] * grid.extents[2], grid.extents[2]};
  const std::uint8_t* const mask = c.masked ? special.data() : nullptr;
  const Bytes stored = encoded_chunk(spec, {data.data(), grid.extents, strides, mask, strides});
  ASSERT_FALSE(stored.empty());
  Bytes whole(data.size());
  const Scratch scratch(decode_scratch_bytes(spec));
  const MutableBox3 box{whole.data(), grid.extents, strides, mask, strides};
  ASSERT_TRUE(decode_chunk(spec, stored, box, scratch.span()).ok());
  const unsigned levels = count_levels(shape, c.layout, grid, spec.form);
  ASSERT_GE(levels, 5u);
  std::size_t before = stored.size() + 1;
  const auto cuts = level_cuts(spec, stored, grid.extents, array_level(shape, c.layout, grid, spec.form, 1));
  ASSERT_TRUE(cuts.ok()) << cuts.status().text();
  EXPECT_GE(cuts->size(), 2u);
  for (unsigned level = 1; level <= levels; ++level) {
    const LevelForm form = array_level(shape, c.layout, grid, spec.form, level);
    std::array<std::uint64_t, 3> extents{};
    for (std::size_t a = 0; a < 3; ++a) extents[a] = form.axes[a].points(grid.extents[a]);
    ASSERT_EQ(extents[0] * extents[1] * extents[2], form.shape.elems());
    Bytes points(form.shape.elems() * 4);
    const MutableBox3 out{points.data(), extents, {extents[1] * extents[2], extents[2]}};
    const auto decodes = [&](std::size_t bytes) {
      const Bytes part(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(bytes));
      return decode_coarse(spec, part, box, form, level, out, scratch.span()).ok();
    };
    // The shortest beginning of the chunk that does.
    std::size_t low = 0;
    std::size_t high = stored.size();
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (decodes(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    EXPECT_LE(low, before);
    before = low;
    // The cut for the level is where it ends.
    const std::size_t cut = cuts->size() - std::min<std::size_t>(level, cuts->size());
    EXPECT_EQ(low, (*cuts)[cut]);
    ASSERT_TRUE(decodes(static_cast<std::size_t>((*cuts)[cut])));
    if (level == 2) {
      EXPECT_LT(low * 2, stored.size());
    }
    for (std::uint64_t i = 0; i < extents[0]; ++i)
      for (std::uint64_t j = 0; j < extents[1]; ++j)
        for (std::uint64_t x = 0; x < extents[2]; ++x) {
          const std::uint64_t to = (i * extents[1] + j) * extents[2] + x;
          const std::uint64_t from =
              form.axes[0].place(i) * strides[0] + form.axes[1].place(j) * strides[1] + form.axes[2].place(x);
          ASSERT_EQ(std::memcmp(points.data() + 4 * to, whole.data() + 4 * from, 4), 0) << level << " " << to;
        }
    MutableBox3 wrong = out;
    ++wrong.extents[2];
    EXPECT_EQ(decode_coarse(spec, stored, box, form, level, wrong, scratch.span()).code(),
              StatusCode::invalid_argument);
  }
}

TEST(Stencil_CoarseLevels, AreThePointsOfTheWhole_FromTheBeginningOfTheBytes) {
  check_levels({"volume", {30, 41, 52}, {1, 2, true, false}, false});
  check_levels({"masked volume", {30, 41, 52}, {1, 2, true, false}, true});
  check_levels({"planes", {12, 61, 70}, {1, 2, true, true}, true});
  check_levels({"four axes", {7, 12, 24, 31}, {2, 3, true, false}, false});
  check_levels({"plane", {200, 170}, {0, 1, true, false}, false});
  check_levels({"line", {20000}, {0, 0, true, false}, false});
}

TEST(Stencil_CoarseLevels, OfChunksInOneValueOrAsTheyAre_AreTheirPoints) {
  const LevelsForm form{true, false, 0, 1};
  const EncodeSpec spec = encode_spec(DType::u8, {1, 5, 6}, 0.1, form);
  const MutableBox3 box{nullptr, {1, 5, 6}, {30, 6}};
  const Layout layout{0, 1, true, false};
  const LevelForm level = array_level(shape_of({5, 6}), layout, {{1, 5, 6}, {1, 5, 6}}, form, 1);
  ASSERT_EQ(level.shape, shape_of({3, 3}));
  Bytes raw(31, 0);
  for (std::size_t i = 0; i < 30; ++i) raw[i + 1] = static_cast<std::uint8_t>(i);
  Bytes points(9);
  const MutableBox3 out{points.data(), {1, 3, 3}, {9, 3}};
  const Scratch scratch(coarse_scratch_bytes(spec));
  const auto decode = [&](const ChunkSpec& by, const Bytes& chunk) {
    return decode_coarse(by, chunk, box, level, 1, out, scratch.span());
  };
  ASSERT_TRUE(decode(spec, raw).ok());
  EXPECT_EQ(points, (Bytes{0, 2, 4, 12, 14, 16, 24, 26, 28}));
  ASSERT_TRUE(decode(spec, Bytes{1, 77}).ok());
  EXPECT_EQ(points, Bytes(9, 77));
  EXPECT_EQ(decode(spec, Bytes{1}).code(), StatusCode::corrupt);
  EXPECT_EQ(decode(spec, Bytes{}).code(), StatusCode::corrupt);
  EXPECT_EQ(decode(spec, Bytes{2, 0}).code(), StatusCode::corrupt);
  EXPECT_EQ(decode(spec, Bytes{7, 0}).code(), StatusCode::corrupt);
  ChunkSpec raster = spec;
  raster.form = {};
  EXPECT_EQ(decode(raster, raw).code(), StatusCode::unsupported);
}

TEST(Stencil_CoarseLevels, OfChunksAtUpperEnds_AreThePointsOfTheArray) {
  // Boxes with fewer axes than a full chunk walk others in sequence, or none; the array's points are the same.
  struct Case {
    Layout layout;
    Shape shape;
    std::array<std::uint64_t, 3> part;
  };
  for (const Case& c : {Case{{1, 2, true, true}, shape_of({6, 40, 50}), {1, 40, 50}},
                        Case{{1, 2, true, true}, shape_of({6, 40, 50}), {6, 1, 50}},
                        Case{{1, 2, true, true}, shape_of({6, 40, 50}), {6, 1, 1}},
                        Case{{1, 2, true, true}, shape_of({6, 40, 50}), {1, 1, 50}},
                        Case{{1, 2, true, true}, shape_of({6, 40, 50}), {1, 1, 1}},
                        Case{{0, 1, true, true}, shape_of({300, 20}), {1, 300, 1}},
                        Case{{1, 2, true, false}, shape_of({60, 40, 50}), {2, 3, 50}},
                        Case{{2, 3, true, true}, shape_of({7, 12, 24, 31}), {12, 24, 31}},
                        Case{{2, 3, true, false}, shape_of({7, 12, 24, 31}), {24, 1, 5}}}) {
    SCOPED_TRACE(c.shape.text());
    const ChunkGrid grid = make_grid(c.shape, c.layout);
    const EncodeSpec spec = encode_spec(DType::f32, grid.chunk, 1e-3, levels_form(c.shape, c.layout, grid));
    const std::array<std::uint64_t, 2> strides{grid.extents[1] * grid.extents[2], grid.extents[2]};
    const Bytes data = as_bytes<float>(waves(c.shape, 57));
    const Bytes stored = encoded_chunk(spec, {data.data(), c.part, strides});
    ASSERT_FALSE(stored.empty());
    Bytes whole(data.size());
    const Scratch scratch(decode_scratch_bytes(spec));
    const MutableBox3 box{whole.data(), c.part, strides};
    ASSERT_TRUE(decode_chunk(spec, stored, box, scratch.span()).ok());
    for (unsigned level = 1; level <= count_levels(c.shape, c.layout, grid, spec.form); ++level) {
      const LevelForm form = array_level(c.shape, c.layout, grid, spec.form, level);
      std::array<std::uint64_t, 3> extents{};
      for (std::size_t a = 0; a < 3; ++a) extents[a] = form.axes[a].points(c.part[a]);
      Bytes points(extents[0] * extents[1] * extents[2] * 4);
      const MutableBox3 out{points.data(), extents, {extents[1] * extents[2], extents[2]}};
      ASSERT_TRUE(decode_coarse(spec, stored, box, form, level, out, scratch.span()).ok());
      for (std::uint64_t i = 0; i < extents[0]; ++i)
        for (std::uint64_t j = 0; j < extents[1]; ++j)
          for (std::uint64_t x = 0; x < extents[2]; ++x)
            ASSERT_EQ(std::memcmp(points.data() + 4 * ((i * extents[1] + j) * extents[2] + x),
                                  whole.data() + 4 * (form.axes[0].place(i) * strides[0] +
                                                      form.axes[1].place(j) * strides[1] + form.axes[2].place(x)),
                                  4),
                      0);
    }
  }
}

TEST(Stencil_CoarseLevels, Count_IsLimitedByWhereChunksBeginAndByMergedAxes) {
  const auto count = [](std::initializer_list<std::uint64_t> extents, const Layout& layout) {
    const Shape shape = shape_of(extents);
    const ChunkGrid grid = make_grid(shape, layout);
    return count_levels(shape, layout, grid, levels_form(shape, layout, grid));
  };
  EXPECT_EQ(count({100, 100, 100}, {1, 2, true, false}), 7u);
  EXPECT_EQ(count({129, 100, 100}, {1, 2, true, false}), 8u);
  EXPECT_EQ(count({300, 300, 300}, {1, 2, true, false}), 5u);  // several chunks
  EXPECT_EQ(count({3, 700, 900}, {1, 2, true, true}), 5u);     // of planes
  EXPECT_EQ(count({3000000, 3}, {0, 1, true, true}), 2u);      // only the short axis is coarsened
  EXPECT_EQ(count({1000000}, {0, 0, true, false}), 5u);        // a line
  EXPECT_EQ(count({20, 7, 100}, {2, 2, true, false}), 0u);     // 20 and 7 as one axis, not split
  EXPECT_EQ(count({20, 6, 100}, {2, 2, true, false}), 1u);
  EXPECT_EQ(count({20, 9, 100}, {2, 2, true, false}), 7u);      // split
  EXPECT_EQ(count({20, 6, 1, 100}, {3, 3, true, false}), 1u);   // an extent of 1 is no axis
  EXPECT_EQ(count({20, 7, 100}, {2, 2, true, true}), 7u);       // walked in sequence
  EXPECT_EQ(count({100, 100, 100}, {1, 2, false, false}), 0u);  // raster order
  EXPECT_EQ(count({1, 1}, {0, 1, true, false}), 0u);
  EXPECT_EQ(count({}, {0, 0, true, false}), 0u);
}

TEST(Stencil_Levels, ChunksSideBySide_BeginAtMultiplesOf32) {
  for (const bool sequential : {false, true}) {
    for (const Shape& shape : {shape_of({300, 300, 300}), shape_of({129, 129, 129}), shape_of({5000000}),
                               shape_of({7, 3000, 3001}), shape_of({4, 2, 5000, 999}), shape_of({999, 31, 17, 90})}) {
      const auto rank = static_cast<std::uint8_t>(shape.rank());
      const Layout layout{static_cast<std::uint8_t>(rank < 3 ? 0 : rank - 2),
                          static_cast<std::uint8_t>(rank < 2 ? 0 : rank - 1), true, sequential};
      const ChunkGrid grid = make_grid(shape, layout);
      const LevelsForm form = levels_form(shape, layout, grid);
      EXPECT_LE(grid.chunk[0] * grid.chunk[1] * grid.chunk[2], kChunkElems);
      for (std::size_t a = 0; a < 3; ++a) {
        if (grid.chunk[a] == grid.extents[a]) continue;
        const bool split = form.inner > 1 && form.split_axis == a;
        const bool first = sequential && rank > 1 && a == (grid.extents[0] > 1 ? 0u : 1u);
        EXPECT_EQ(grid.chunk[a] % (split ? form.inner : first ? 1 : 32), 0u) << shape.text();
      }
    }
  }
}

TEST(Stencil_LevelAxes, ClassesOfAllLevels_AreEveryPointOnce) {
  for (const bool sequential : {false, true}) {
    LevelAxes axes;
    axes.rank = 3;
    axes.extents = {5, 1, 12, 1};
    axes.sequential = sequential;
    std::set<std::array<std::size_t, 3>> seen;
    for (unsigned level = axes.top() + 1; level-- > 0;) {
      const CodedClasses classes(axes, level);
      for (std::size_t i = 0; i < classes.count; ++i) {
        const std::size_t c = classes.list[i];
        std::array<std::size_t, 3> n{};
        for (std::size_t a = 0; a < 3; ++a) n[a] = axes.class_points(c, level, a);
        for (std::size_t p = 0; p < n[0] * n[1] * n[2]; ++p) {
          const std::array<std::size_t, 3> index{p / (n[1] * n[2]), p / n[2] % n[1], p % n[2]};
          std::array<std::size_t, 3> place{};
          for (std::size_t a = 0; a < 3; ++a)
            place[a] = axes.hierarchical(a) ? (2 * index[a] + axes.parity(c, a)) << level : index[a];
          EXPECT_TRUE(seen.insert(place).second);
          for (std::size_t a = 0; a < 3; ++a) EXPECT_LT(place[a], axes.extents[a]);
        }
      }
    }
    EXPECT_EQ(seen.size(), axes.elems());
  }
}

TEST(Stencil_LevelTaps, FixedWeights_SumToOne) {
  for (std::size_t rank = 1; rank <= kMaxAxes; ++rank) {
    for (const bool sequential : {false, true}) {
      LevelAxes axes;
      axes.rank = rank;
      axes.sequential = sequential && rank > 1;
      for (std::size_t a = 0; a < rank; ++a) axes.extents[a] = 3 + 4 * a;
      for (unsigned level = 0; level <= axes.top(); ++level) {
        const CodedClasses classes(axes, level);
        for (std::size_t i = 0; i < classes.count; ++i) {
          for (const bool later : {false, true}) {
            if (later && !axes.sequential) continue;
            const std::size_t c = classes.list[i];
            const GroupList list = groups_of(axes, level, c, later);
            ASSERT_LE(list.count, kMaxGroups);
            for (std::uint8_t kind = 0; kind < 6; ++kind) {
              if (!kind_possible(axes, kind, c, later)) continue;
              const GroupWeights weights = fixed_weights(axes, kind, c, list, 12);
              std::int64_t sum = 0;
              for (std::size_t g = 0; g < list.count; ++g) sum += weights[g] * (list.groups[g].pair ? 2 : 1);
              EXPECT_EQ(sum, list.count == 0 ? 0 : 4096) << rank << " " << level << " " << c << " " << int{kind};
            }
          }
        }
      }
    }
  }
}

TEST(Stencil_LevelsModel, WrittenAndRead_IsTheSame) {
  std::mt19937 random(53);
  for (const bool sequential : {false, true}) {
    LevelAxes axes;
    axes.rank = 3;
    axes.extents = {6, 20, 33, 1};
    axes.sequential = sequential;
    std::vector<Predictor> predictors(LevelsModel::predictor_count(axes));
    LevelsModel model;
    model.predictors = predictors.data();
    model.format.base = coding::short_double(3.5);
    model.format.step = coding::short_double(0.01);
    model.format.fraction_bits = 10;
    model.format.weight_bits = 14;
    model.format.masked = true;
    model.format.low = -5;
    model.format.high = 5000;
    model.distributions[9] = {3, 1, 40, 30000};
    model.border = Border::linear;
    for (unsigned level = axes.top() + 1; level-- > 0;) {
      const CodedClasses classes(axes, level);
      for (const bool later : {false, true}) {
        if (later && !sequential) continue;
        for (std::size_t i = 0; i < classes.count; ++i) {
          const std::size_t c = classes.list[i];
          Predictor& p = model.predictor(level, later, c);
          if (level + 1 < axes.top() && axes.exists(c, level + 1) && random() % 2 == 0) {
            take_coarser(axes, level, later, c, model);
            continue;
          }
          do {
            p.kind = static_cast<std::uint8_t>(random() % static_cast<unsigned>(PredictorKind::network));
          } while (!kind_possible(axes, p.kind, c, later));
          const GroupList list = groups_of(axes, level, c, later);
          if (p.kind == 6) {
            for (std::size_t g = 0; g < list.count; ++g)
              p.weights[g] = static_cast<std::int32_t>(random() % 1001) - 500;
          } else {
            p.weights = fixed_weights(axes, p.kind, c, list, 14);
          }
        }
      }
    }
    const std::size_t classes = sequential ? 3 : 7;
    for (std::size_t c = 1; c <= classes; ++c) {
      model.contexts[0][0][c].present = true;
      model.contexts[0][0][c].constant = 99;
      model.contexts[0][0][c].weights[c] = std::popcount(c) < 3 ? 700 : 0;
    }
    Vector<std::uint8_t> bytes;
    write_levels_model(model, axes, bytes);
    std::vector<Predictor> read(predictors.size());
    LevelsModel back;
    back.predictors = read.data();
    std::span<const std::uint8_t> rest = bytes;
    const Status status = read_levels_model(rest, axes, back);
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_TRUE(rest.empty());
    Vector<std::uint8_t> again;
    write_levels_model(back, axes, again);
    EXPECT_EQ(again, bytes);
    for (std::size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i].weights, predictors[i].weights) << i;
    EXPECT_EQ(back.contexts[0][0][classes].constant, 99);
    for (std::size_t length = 0; length + 1 < bytes.size(); length += 3) {
      rest = std::span<const std::uint8_t>(bytes).first(length);
      EXPECT_FALSE(read_levels_model(rest, axes, back).ok());
    }
  }
}

}  // namespace
}  // namespace quern::codec::stencil::test
