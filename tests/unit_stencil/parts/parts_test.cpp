// Arrays in parts: what their parameters may say, where cuts are proposed, what cutting gains, and hostile chunks.
#include <cstdint>
#include <numeric>
#include <vector>

#include <quern/parts.h>

#include "codecs/stencil/parts/partition.h"
#include "codecs/stencil/plan/cuts.h"
#include "tests/unit_stencil/helpers.h"

namespace quern::codec::stencil::test {
namespace {

using Slices = std::vector<std::uint64_t>;

Partition partition_of(std::uint64_t chunk_slices, const Slices& slices) {
  Partition partition{chunk_slices, {}, {}};
  for (const std::uint64_t n : slices) partition.parts.push_back({n, Layout{0, 1, true}});
  return partition;
}

TEST(Stencil_Parts, ParametersComeBack) {
  const Shape shape = shape_of({7, 20, 30});
  Partition partition = partition_of(5, {1, 2, 2, 2});
  partition.parts[1].layout = {1, 2, false, false, true};
  partition.parts[2].layout = {0, 0};
  partition.reference = ReferenceId{99, 3};
  const auto params = write_partition(partition);
  ASSERT_TRUE(names_parts(params));
  const auto read = read_partition(params, shape);
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read->chunk_slices, 5u);
  ASSERT_EQ(read->parts.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(read->parts[i].slices, partition.parts[i].slices);
    EXPECT_EQ(read->parts[i].layout, partition.parts[i].layout);
  }
  EXPECT_EQ(read->reference, partition.reference);
  constexpr std::size_t kReferenceBytes = 9;  // without all of them there is none: feature bit 5 tells
  for (std::size_t cut = 1; cut < params.size(); ++cut)
    EXPECT_EQ(read_partition({params.data(), cut}, shape).ok(), cut + kReferenceBytes == params.size()) << cut;
}

TEST(Stencil_Parts, ParametersThatDoNotFitTheArrayAreRefused) {
  const Shape shape = shape_of({7, 20, 30});
  const auto refused = [&](const Partition& partition, const Shape& array) {
    return !read_partition(write_partition(partition), array).ok();
  };
  EXPECT_FALSE(refused(partition_of(7, {3, 4}), shape));
  EXPECT_TRUE(refused(partition_of(7, {3, 3}), shape));
  EXPECT_TRUE(refused(partition_of(7, {3, 5}), shape));
  EXPECT_TRUE(refused(partition_of(7, {}), shape));
  EXPECT_TRUE(refused(partition_of(7, {0, 7}), shape));
  EXPECT_TRUE(refused(partition_of(0, {3, 4}), shape));
  EXPECT_TRUE(refused(partition_of(8, {3, 4}), shape));
  EXPECT_TRUE(refused(partition_of(2, {3, 4}), shape)) << "a part in two chunks";
  EXPECT_TRUE(refused(partition_of(7, {3, 4}), shape_of({7}))) << "no axis but the leading one";
  Partition axes = partition_of(7, {6, 1});
  axes.parts[1].layout = {0, 3};
  EXPECT_TRUE(refused(axes, shape)) << "one slice has an axis less";
  auto params = write_partition(partition_of(7, {3, 4}));
  params.push_back(0);
  EXPECT_FALSE(read_partition(params, shape).ok());
  params = write_partition(partition_of(7, {7}));
  params.back() = 4;
  EXPECT_FALSE(read_partition(params, shape).ok()) << "an order that does not exist";
}

TEST(Stencil_Parts, ChunksEndWhereSomePartDoes) {
  const auto fewest = [](const Slices& slices) { return fewest_chunk_slices(slices); };
  EXPECT_EQ(fewest({4, 4, 4}), 4u);
  EXPECT_EQ(fewest({1, 2, 2, 2}), 5u);
  EXPECT_EQ(fewest({2, 3, 4}), 5u);
  EXPECT_EQ(fewest({3, 4, 4}), 7u);
  EXPECT_EQ(fewest({3, 5, 9}), 17u);
  EXPECT_EQ(fewest({2, 2, 4, 1}), 4u);
  EXPECT_EQ(fewest({6}), 6u);
}

/// Smooth slices of which every `run` are alike; `scales` of the runs, in turn.
std::vector<double> stack(const Shape& shape, std::uint64_t run, const std::vector<double>& scales) {
  std::vector<double> values(shape.elems());
  const std::uint64_t slice = shape.elems() / shape[0];
  const std::uint64_t columns = shape[shape.rank() - 1];
  std::mt19937 random(5);
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    const std::uint64_t part = i / slice / run;
    const auto x = static_cast<double>(i % slice % columns);
    const auto y = static_cast<double>(i % slice / columns);
    const double t = static_cast<double>(i / slice % run) / 9;
    const double width = 6 + 5 * static_cast<double>(part);
    const double noise = static_cast<double>(random() % 1000) / 1000;
    values[i] = scales[part % scales.size()] * (std::sin(x / width + static_cast<double>(part) + t) *
                                                    std::cos(y / (width + 3) - 2 * static_cast<double>(part)) +
                                                0.02 * noise);
  }
  return values;
}

Vector<Cut> cuts_of(const Shape& shape, const std::vector<double>& values, double bound) {
  const Bytes data = as_bytes<float>(values);
  const PlainSample sample(data.data(), DType::f32, shape.elems());
  PlanRequest request;
  request.dtype = DType::f32;
  request.shape = shape;
  request.bound = {BoundKind::abs, bound};
  request.sample = &sample;
  auto cuts = propose_cuts(request);
  EXPECT_TRUE(cuts.ok()) << cuts.status().text();
  return cuts.ok() ? *cuts : Vector<Cut>();
}

TEST(Stencil_Parts, CutsAreProposedBetweenUnlikeRuns) {
  const Shape shape = shape_of({40, 40, 60});
  const auto cuts = cuts_of(shape, stack(shape, 10, {1}), 1e-3);
  ASSERT_EQ(cuts.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(cuts[i].slice, 10 * (i + 1));
  EXPECT_TRUE(cuts_of(shape, stack(shape, 40, {1}), 1e-3).empty()) << "slices that follow from each other";
}

TEST(Stencil_Parts, CutsAreProposedWhereTheScaleChanges) {
  const Shape shape = shape_of({30, 40, 60});
  std::mt19937 random(3);
  std::vector<double> values(shape.elems());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(random() % 1000) / (i / 2400 < 12 ? 1000.0 : 50000.0);
  const auto cuts = cuts_of(shape, values, 1e-3);
  ASSERT_EQ(cuts.size(), 1u);
  EXPECT_EQ(cuts[0].slice, 12u);
}

/// Bytes and decoded elements of all chunks.
std::size_t coded_bytes(const Shape& shape, const std::vector<double>& values, double bound, const Settings& settings) {
  const Coding coding(DType::f32, shape, as_bytes<float>(values), bound, settings);
  Bytes back;
  const std::size_t bytes = coding.round_trip(back);
  EXPECT_EQ(count_missed<float>(coding, back, bound), 0u);
  return bytes + coding.encoder().plan().params.size();
}

TEST(Stencil_Parts, UnlikeRunsTakeNoMoreThanApart) {
  const Shape shape = shape_of({40, 40, 60});
  for (const std::vector<double>& scales : {std::vector<double>{1}, {1, 0.05, 8, 0.3}}) {
    const std::vector<double> values = stack(shape, 10, scales);
    std::size_t apart = 0;
    for (std::size_t part = 0; part < 4; ++part) {
      const std::vector<double> own(values.begin() + static_cast<std::ptrdiff_t>(part * 24000),
                                    values.begin() + static_cast<std::ptrdiff_t>((part + 1) * 24000));
      apart += coded_bytes(shape_of({10, 40, 60}), own, 1e-3, {});
    }
    const std::size_t together = coded_bytes(shape, values, 1e-3, {{"parts", "off"}});
    const std::size_t chosen = coded_bytes(shape, values, 1e-3, {});
    EXPECT_LE(chosen, together);
    EXPECT_LE(static_cast<double>(chosen), 1.01 * static_cast<double>(apart));
  }
}

TEST(Stencil_Parts, NoMemoryLimitThatIsEnoughForTheWholeChangesThem) {
  const Shape shape = shape_of({20, 40, 60});
  const Bytes data = as_bytes<float>(stack(shape, 10, {1, 0.05}));
  const PlainSample sample(data.data(), DType::f32, shape.elems());
  SerialRunner serial;
  PlanRequest request;
  request.shape = shape;
  request.bound = {BoundKind::abs, 1e-3};
  request.sample = &sample;
  request.runner = &serial;
  const auto free = stencil_codec().plan(request);
  ASSERT_TRUE(free.ok());
  ASSERT_TRUE(names_parts((*free)->plan().params));
  unsigned enough = 0;
  for (std::uint64_t limit = UINT64_C(1) << 16; enough < 3; limit += limit / 8) {
    ASSERT_LT(limit, UINT64_C(1) << 32);
    request.memory_limit = limit;
    request.settings = {{"parts", "off"}};
    if (!stencil_codec().plan(request).ok()) continue;
    ++enough;
    request.settings = {};
    const auto plan = stencil_codec().plan(request);
    ASSERT_TRUE(plan.ok()) << limit << plan.status().text();
    EXPECT_EQ((*plan)->plan().params, (*free)->plan().params) << limit;
  }
}

TEST(Stencil_Parts, EveryLayoutTypeAndMaskKeepsTheBound) {
  for (const char* layout : {"raster", "levels", "planes", "wavelet", "auto"}) {
    for (const char* parts : {"1,2,2,2", "3,3,1", "7", "1,1,1,1,1,1,1"}) {
      SCOPED_TRACE(::testing::Message() << layout << " " << parts);
      const Shape shape = shape_of({7, 12, 40});
      Bytes special(shape.elems(), 0);
      // Two slices of nothing else, a part without any, single ones.
      for (std::size_t i = 3 * 480; i < 5 * 480; ++i) special[i] = 1;
      for (std::size_t i = 6 * 480; i < 7 * 480; i += 7) special[i] = 1;
      for (const bool masked : {false, true}) {
        const Coding coding(DType::f64, shape, as_bytes<double>(waves(shape, 4)), 0.01,
                            {{"layout", layout}, {"parts", parts}}, masked ? special : Bytes());
        Bytes back;
        coding.round_trip(back);
        EXPECT_EQ(count_missed<double>(coding, back, 0.01), 0u);
        const auto* const parted = dynamic_cast<const PartedChunkDecoder*>(&coding.decoder());
        ASSERT_NE(parted, nullptr);
        std::uint64_t slices = 0;
        for (const ArrayPart& part : parted->parts()) slices += part.slices;
        EXPECT_EQ(slices, 7u);
      }
    }
  }
}

/// The plan of an array of f32 of which the sample holds so many elements.
Result<std::unique_ptr<ChunkEncoder>> plan_of(const Shape& shape, std::uint64_t sampled, const Settings& settings) {
  // No more than what the sample holds: a look beyond it is seen by the sanitizer.
  const Bytes data = as_bytes<float>(waves(shape_of({sampled}), 4));
  const PlainSample sample(data.data(), DType::f32, sampled);
  SerialRunner serial;
  PlanRequest request;
  request.shape = shape;
  request.bound = {BoundKind::abs, 0.1};
  request.sample = &sample;
  request.runner = &serial;
  request.settings = settings;
  return stencil_codec().plan(request);
}

TEST(Stencil_Parts, SettingsThatDoNotAddUpAreRefused) {
  const Shape shape = shape_of({7, 12, 40});
  for (const char* parts : {"", "7,", ",7", "3,3", "3,5", "0,7", "7 ", "-1,8", "on", "99999999999999999999"})
    EXPECT_EQ(plan_of(shape, shape.elems(), {{"parts", parts}}).status().code(), StatusCode::invalid_argument) << parts;
}

TEST(Stencil_Parts, TheLastOfSeveralSettingsHolds) {
  const Shape shape = shape_of({3, 12, 40});
  const auto twice = plan_of(shape, shape.elems(), {{"parts", "1,2"}, {"parts", "2,1"}});
  ASSERT_TRUE(twice.ok()) << twice.status().text();
  const auto read = read_partition((*twice)->plan().params, shape);
  ASSERT_TRUE(read.ok()) << read.status().text();
  ASSERT_EQ(read->parts.size(), 2u);
  EXPECT_EQ(read->parts[0].slices, 2u);
  const auto off = plan_of(shape, shape.elems(), {{"parts", "1,2"}, {"parts", "off"}});
  ASSERT_TRUE(off.ok()) << off.status().text();
  EXPECT_FALSE(names_parts((*off)->plan().params));
}

TEST(Stencil_Parts, AxesThatDoNotFitAPartOfOneSliceAreRefused) {
  const auto code_of = [](const Shape& shape, const char* layout, const char* parts) {
    return plan_of(shape, shape.elems(), {{"layout", layout}, {"parts", parts}}).status().code();
  };
  EXPECT_EQ(code_of(shape_of({4, 512}), "levels:3d:1,2", "1,3"), StatusCode::invalid_argument);
  EXPECT_EQ(code_of(shape_of({4, 16, 32}), "raster:3d:3,3", "3,1"), StatusCode::invalid_argument);
  EXPECT_EQ(code_of(shape_of({4, 512}), "levels:3d:1,2", "2,2"), StatusCode::ok);
  EXPECT_EQ(code_of(shape_of({4, 16, 32}), "raster:3d:1,2", "3,1"), StatusCode::ok);
}

TEST(Stencil_Parts, ArraysThatThePlanDoesNotSeeAllOfAreRefused) {
  const Shape shape = shape_of({6, 12, 40});
  for (const std::uint64_t sampled : Slices{480, 1000, 2879})
    EXPECT_EQ(plan_of(shape, sampled, {{"parts", "1,5"}}).status().code(), StatusCode::invalid_argument) << sampled;
  EXPECT_TRUE(plan_of(shape, 1000, {}).ok());
}

TEST(Stencil_Parts, ChangedChunksAreRefusedOrDecodeWithinTheirBox) {
  const Shape shape = shape_of({6, 9, 20});
  const Coding coding(DType::f32, shape, as_bytes<float>(waves(shape, 6)), 0.01,
                      {{"parts", "2,1,3"}, {"layout", "levels"}});
  ASSERT_EQ(coding.chunks(), 2u);
  const Bytes whole = coding.encode(0);
  const Scratch scratch(coding.decoder().scratch_bytes());
  const auto decode = [&](const Bytes& chunk, std::uint64_t number) {
    Bytes back(coding.data().size() + 1, 0x5A);
    const Status status = coding.decoder().decode(chunk, coding.box(number, back.data()), scratch.span());
    EXPECT_EQ(back.back(), 0x5A);
    return status;
  };
  ASSERT_TRUE(decode(whole, 0).ok());
  for (std::size_t cut = 0; cut < whole.size(); ++cut)
    EXPECT_FALSE(decode({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut)}, 0).ok());
  Bytes longer = whole;
  longer.push_back(0);
  EXPECT_FALSE(decode(longer, 0).ok());
  for (const std::uint8_t first : {1, 2, 3, 255}) {
    Bytes other = whole;
    other[0] = first;
    EXPECT_FALSE(decode(other, 0).ok()) << int{first};
  }
  // Sizes: one inner chunk more or less, none, all that there may be.
  for (std::size_t at = 1; at < 9; ++at) {
    for (const std::uint8_t value : {0, 1, 255}) {
      Bytes other = whole;
      if (other[at] == value) continue;
      other[at] = value;
      EXPECT_FALSE(decode(other, 0).ok()) << at;
    }
  }
  EXPECT_TRUE(decode(coding.encode(1), 0).ok()) << "as many slices: the container's checksum tells places apart";
}

TEST(Stencil_Parts, CoarseLevelsAreTheArraysPoints) {
  const Shape shape = shape_of({6, 12, 10, 16});
  const Coding coding(DType::f32, shape, as_bytes<float>(waves(shape, 8)), 0.01, {{"parts", "2,1,3"}});
  Bytes back;
  coding.round_trip(back);
  const ChunkDecoder& decoder = coding.decoder();
  ASSERT_GE(decoder.levels(), 2u);
  EXPECT_EQ(coding.encoder().levels(), 0u) << "no level tables";
  const LevelForm form = decoder.level_form(2);
  EXPECT_EQ(form.shape, shape_of({6, 3, 3, 4}));
  const Scratch scratch(decoder.level_scratch_bytes());
  const MutableBox3 chunk = coding.box(1, nullptr);
  std::array<std::uint64_t, 3> points{};
  for (std::size_t a = 0; a < 3; ++a) points[a] = form.axes[a].points(chunk.extents[a]);
  std::vector<float> level(points[0] * points[1] * points[2]);
  const Status status =
      decoder.decode_level(coding.encode(1), {nullptr, chunk.extents, chunk.strides}, 2,
                           {level.data(), points, {points[1] * points[2], points[2]}}, scratch.span());
  ASSERT_TRUE(status.ok()) << status.text();
  for (std::size_t z = 0; z < 3; ++z)
    for (std::size_t y = 0; y < 3; ++y)
      for (std::size_t x = 0; x < 3; ++x)
        for (std::size_t w = 0; w < 4; ++w) {
          float value = 0;
          std::memcpy(&value, back.data() + 4 * ((((z + 3) * 12 + 4 * y) * 10 + 4 * x) * 16 + 4 * w), 4);
          EXPECT_EQ(level[((z * 3 + y) * 3 + x) * 4 + w], value);
        }
}

}  // namespace
}  // namespace quern::codec::stencil::test
