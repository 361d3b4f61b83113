// Input that breaks error-bounded compressors: every row of the adversarial table that peers were measured on, each
// codec, with the bound checked independently, special values and -0.0 bit for bit, and the size limit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <quern/compress.h>
#include <quern/metrics.h>

namespace quern {
namespace {

constexpr std::uint64_t kSide = 32;
constexpr std::uint64_t kElems = kSide * kSide * kSide;

Shape cube() {
  const std::uint64_t extents[] = {kSide, kSide, kSide};
  return Shape::make(extents).value();
}

float base(std::uint64_t i) {
  const double x = static_cast<double>(i % kSide), y = static_cast<double>(i / kSide % kSide),
               z = static_cast<double>(i / kSide / kSide);
  return static_cast<float>(std::sin(0.2 * x) * std::cos(0.15 * y) + 0.5 * std::sin(0.1 * z + 0.05 * x));
}

/// Positions of particles: three columns that have little to do with each other.
std::vector<float> positions(std::uint64_t rows) {
  std::vector<float> out;
  for (std::uint64_t i = 0; i < rows; ++i)
    for (int column = 0; column < 3; ++column)
      out.push_back(static_cast<float>(50 * std::sin(0.013 * static_cast<double>(i) + column) + 1000 * column));
  return out;
}

Vector<std::uint8_t> compressed(const ArrayView& array, const CompressOptions& options, CompressReport& report) {
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  const auto result = compress(array, options, builtin_codecs(), {}, sink);
  EXPECT_TRUE(result.ok()) << result.status().text();
  if (result.ok()) report = *result;
  return stream;
}

TEST(Narrow, ThreeColumns_AreCompressedByColumn) {
  const std::vector<float> values = positions(200000);
  const std::uint64_t extents[] = {200000, 3};
  CompressOptions options;
  options.codec = "lorenzo";
  options.bound = {BoundKind::abs, 0.01};
  CompressReport report;
  const auto stream = compressed({values.data(), DType::f32, Shape::make(extents).value()}, options, report);
  EXPECT_GT(report.chunks, 500u) << "chunks of 256 rows";
  EXPECT_LT(3 * stream.size(), 4 * values.size());
}

TEST(Narrow, PlanOfFewChunks_MergesTheColumns) {
  const std::vector<float> values = positions(200000);
  const std::uint64_t extents[] = {200000, 3};
  PlanRequest request;
  request.shape = Shape::make(extents).value();
  request.bound = {BoundKind::abs, 0.01};
  const PlainSample sample(values.data(), DType::f32, values.size());
  SerialRunner serial;
  request.sample = &sample;
  request.runner = &serial;
  const ArrayCodec& lorenzo = *builtin_codecs().by_name("lorenzo");
  const auto free = lorenzo.plan(request);
  ASSERT_TRUE(free.ok());
  EXPECT_EQ((*free)->plan().grid.extents, (std::array<std::uint64_t, 3>{1, 200000, 3}));
  request.max_chunks = 700;
  const auto bounded = lorenzo.plan(request);
  ASSERT_TRUE(bounded.ok());
  EXPECT_EQ((*bounded)->plan().grid.extents, (std::array<std::uint64_t, 3>{1, 1, 600000}));
  request.settings = {{"layout", "2d:1"}};
  const auto forced = lorenzo.plan(request);
  ASSERT_TRUE(forced.ok());
  EXPECT_EQ((*forced)->plan().grid.extents, (std::array<std::uint64_t, 3>{1, 200000, 3}));
}

TEST(Codecs, SupportedKindsOfBounds_AreThoseThatAPlanIsMadeFor) {
  const double zero = 0;
  for (const ArrayCodec* codec : builtin_codecs().all())
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::i16, DType::i32,
                              DType::i64, DType::u8, DType::u16, DType::u32, DType::u64})
      for (const EnforcedBound bound :
           {EnforcedBound{}, EnforcedBound{BoundKind::abs, 1.5}, EnforcedBound{BoundKind::pwrel, 0.25}}) {
        PlanRequest request;
        request.dtype = dtype;
        request.bound = bound;
        const PlainSample sample(&zero, dtype, 1);
        SerialRunner serial;
        request.sample = &sample;
        request.runner = &serial;
        EXPECT_EQ(codec->plan(request).ok(), codec->supports(dtype, bound.kind))
            << codec->info().name << " " << dtype_name(dtype) << " " << bound_kind_name(bound.kind);
      }
}

// All structure lies in the same rows of every plane: a sample at a fixed distance may see none of it.
TEST(Layouts, StructureInOneBandOfEveryPlane_IsSeenByThePlan) {
  constexpr std::size_t kPlanes = 64, kRows = 128, kColumns = 128;
  std::vector<double> values(kPlanes * kRows * kColumns);
  for (std::size_t z = 0; z < kPlanes; ++z)
    for (std::size_t y = 16; y < 32; ++y)
      for (std::size_t x = 0; x < kColumns; ++x)
        values[(z * kRows + y) * kColumns + x] = std::sin(0.3 * static_cast<double>(y)) *
                                                 std::cos(0.1 * static_cast<double>(x) + 0.02 * static_cast<double>(z));
  const std::uint64_t extents[] = {kPlanes, kRows, kColumns};
  const ArrayView array{values.data(), DType::f64, Shape::make(extents).value()};
  CompressOptions options;
  options.bound = {BoundKind::abs, 1e-5};
  options.codec = "lorenzo";
  CompressReport report;
  const std::size_t automatic = compressed(array, options, report).size();
  for (const char* layout : {"1d", "2d:1", "2d:2", "3d:1,2"}) {
    options.settings = {{"layout", layout}};
    EXPECT_LT(5 * automatic, 6 * compressed(array, options, report).size()) << layout;
  }
}

// Axes of length 1 under a layout that cuts them into chunks of their own.
TEST(Narrow, ColumnInSmallBlocks_StillCompresses) {
  std::vector<float> values(2080 * 16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(0.01 * static_cast<double>(i / 1000));
  const std::uint64_t extents[] = {values.size(), 1, 1};
  CompressOptions options;
  options.bound = {BoundKind::abs, 0.01};
  options.codec = "lorenzo";
  options.settings = {{"layout", "3d:1,2"}};
  CompressReport report;
  const auto stream = compressed({values.data(), DType::f32, Shape::make(extents).value()}, options, report);
  EXPECT_EQ(report.codec, "lorenzo");
  EXPECT_LT(2 * stream.size(), 4 * values.size());
}

struct Row {
  const char* name;
  std::function<float(std::uint64_t, std::mt19937_64&)> value;
  std::vector<ErrorBound> bounds;
};

std::vector<Row> rows() {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kMax = std::numeric_limits<float>::max();
  const auto rel = [](double v) { return ErrorBound{BoundKind::rel, v}; };
  const auto abs = [](double v) { return ErrorBound{BoundKind::abs, v}; };
  const auto wide = [](std::uint64_t, std::mt19937_64& r) {
    const double e = std::uniform_real_distribution<double>(-38, 38)(r);
    return static_cast<float>(std::pow(10.0, e) * (r() % 2 == 0 ? 1 : -1));
  };
  return {
      {"one percent NaN",
       [=](std::uint64_t i, std::mt19937_64& r) { return r() % 100 == 0 ? kNan : base(i); },
       {rel(1e-3), abs(1e-3)}},
      {"NaN block",
       [=](std::uint64_t i, std::mt19937_64&) { return i > 5000 && i < 9000 ? kNan : base(i); },
       {rel(1e-3), abs(1e-3)}},
      {"all NaN", [=](std::uint64_t, std::mt19937_64&) { return kNan; }, {rel(1e-3), abs(1e-3)}},
      {"infinities scattered",
       [=](std::uint64_t i, std::mt19937_64& r) { return r() % 50 == 0 ? (r() % 2 ? kInf : -kInf) : base(i); },
       {rel(1e-3), abs(1e-3)}},
      {"random bit patterns",
       [](std::uint64_t, std::mt19937_64& r) {
         const auto bits = static_cast<std::uint32_t>(r());
         float f;
         std::memcpy(&f, &bits, 4);
         return f;
       },
       {rel(1e-3), abs(1.0), abs(1e30)}},
      {"1e-38 to 1e38", wide, {rel(1e-3), abs(1.0), abs(1e-30)}},
      {"largest float mixed in",
       [=](std::uint64_t i, std::mt19937_64& r) { return r() % 20 == 0 ? (r() % 2 ? kMax : -kMax) : base(i); },
       {rel(1e-3), abs(1e-3)}},
      {"denormals",
       [](std::uint64_t, std::mt19937_64& r) {
         return static_cast<float>(std::uniform_real_distribution<double>(-1e-40, 1e-40)(r));
       },
       {rel(1e-3), abs(1e-42)}},
      {"constant", [](std::uint64_t, std::mt19937_64&) { return 3.14159f; }, {abs(1e-3), rel(1e-3)}},
      {"bound zero", [](std::uint64_t i, std::mt19937_64&) { return base(i); }, {abs(0)}},
      {"bound below an ulp", [](std::uint64_t i, std::mt19937_64&) { return base(i); }, {abs(1e-12)}},
      {"bound near an ulp", [](std::uint64_t i, std::mt19937_64&) { return base(i); }, {abs(6e-8)}},
      {"offset and small signal",
       [](std::uint64_t i, std::mt19937_64&) { return 1e6f + base(i); },
       {rel(1e-2), rel(1e-3), rel(1e-5)}},
      {"minus zero",
       [](std::uint64_t i, std::mt19937_64& r) { return r() % 4 == 0   ? -0.0f
                                                        : r() % 3 == 0 ? 0.0f
                                                                       : base(i); },
       {rel(1e-3), abs(1e-3), abs(10.0)}},
      {"few minus zeros",
       [](std::uint64_t i, std::mt19937_64&) { return i % 997 == 0 ? -0.0f : base(i); },
       {rel(1e-3), abs(1e-3), {BoundKind::pwrel, 1e-3}}},
  };
}

/// `codec` is a name, or that of stencil and after a space how it walks chunks.
void check_array(const ArrayView& array, const ErrorBound& bound, const std::string& codec) {
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  CompressOptions options;
  options.bound = bound;
  const std::size_t space = codec.find(' ');
  options.codec = codec.substr(0, space);
  if (space != std::string::npos) options.settings = {{"layout", String(codec.substr(space + 1))}};
  const auto report = compress(array, options, builtin_codecs(), Execution{}, sink);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_LE(stream.size(), array.bytes() + 256 + array.bytes() / 1000);
  Vector<std::uint8_t> back(array.bytes());
  MemorySource source(stream);
  const auto decoded = decompress(source, {back.data(), array.dtype, array.shape}, builtin_codecs(), Execution{});
  ASSERT_TRUE(decoded.ok()) << decoded.status().text();
  const auto check = check_bound(array, {back.data(), array.dtype, array.shape}, report->enforced, {}, Execution{});
  ASSERT_TRUE(check.ok()) << check.status().text();
  EXPECT_EQ(check->violations, 0u);
  EXPECT_EQ(check->specials_lost, 0u);
}

/// Stencil under every layout that it has.
void check_stencil(const ArrayView& array, const ErrorBound& bound) {
  if (bound.kind == BoundKind::pwrel) return;
  for (const char* codec : {"stencil raster", "stencil levels", "stencil planes", "stencil wavelet"}) {
    SCOPED_TRACE(codec);
    check_array(array, bound, codec);
  }
}

TEST(Adversarial, EveryRowOfTheTable_KeepsBoundSpecialsAndSize) {
  for (const Row& row : rows()) {
    std::mt19937_64 random(7);
    std::vector<float> values(kElems);
    for (std::uint64_t i = 0; i < kElems; ++i) values[i] = row.value(i, random);
    for (const ErrorBound& bound : row.bounds) {
      SCOPED_TRACE(std::string(row.name) + " " + bound_kind_name(bound.kind) + " " + std::to_string(bound.value));
      check_array({values.data(), DType::f32, cube()}, bound, "auto");
      check_array({values.data(), DType::f32, cube()}, bound, "lorenzo");
      check_stencil({values.data(), DType::f32, cube()}, bound);
    }
  }
}

TEST(Adversarial, ThinShapes_KeepTheBound) {
  for (const Vector<std::uint64_t>& extents :
       std::vector<Vector<std::uint64_t>>{{1}, {1, 1, 1}, {1, 1, 7}, {5, 1, 300}}) {
    const Shape shape = Shape::make(extents).value();
    std::vector<float> values(shape.elems());
    for (std::uint64_t i = 0; i < values.size(); ++i) values[i] = base(i * 3);
    SCOPED_TRACE(shape.text());
    check_array({values.data(), DType::f32, shape}, {BoundKind::abs, 1e-3}, "auto");
    check_array({values.data(), DType::f32, shape}, {BoundKind::rel, 1e-3}, "auto");
    check_stencil({values.data(), DType::f32, shape}, {BoundKind::abs, 1e-3});
  }
}

TEST(Adversarial, Binary32AroundBinEdges_KeepsTheBound) {
  for (const float bound : {std::numeric_limits<float>::min(), 1e-30f, 1e-10f, 1e-3f, 0.1f, 7.3f, 1e10f, 1e30f}) {
    std::vector<float> values;
    std::mt19937_64 random(11);
    for (int i = 0; i < 200000; ++i) {
      // An edge between two bins, moved by up to 3 units in the last place.
      const double k = std::floor(std::uniform_real_distribution<double>(-4.3e6, 4.3e6)(random));
      float v = static_cast<float>((2 * k + 1) * static_cast<double>(bound));
      if (!std::isfinite(v)) v = bound;
      const int ulps = static_cast<int>(random() % 7) - 3;
      for (int u = 0; u < std::abs(ulps); ++u)
        v = std::nextafter(v,
                           ulps < 0 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity());
      if (std::isfinite(v)) values.push_back(v);
    }
    const std::uint64_t extents[] = {values.size()};
    SCOPED_TRACE(bound);
    const ArrayView array{values.data(), DType::f32, Shape::make(extents).value()};
    check_array(array, {BoundKind::abs, bound}, "lorenzo");
    check_stencil(array, {BoundKind::abs, bound});
  }
}

TEST(Adversarial, EveryBinary16Value_KeepsTheBound) {
  std::vector<std::uint16_t> values(65536);
  for (std::uint32_t i = 0; i < 65536; ++i)
    values[i] = static_cast<std::uint16_t>(i * 40503u);  // all of them, shuffled
  const std::uint64_t extents[] = {values.size()};
  const Shape shape = Shape::make(extents).value();
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const ErrorBound& bound :
         {ErrorBound{BoundKind::abs, 1e-3}, ErrorBound{BoundKind::abs, 0.5}, ErrorBound{BoundKind::abs, 3e-8},
          ErrorBound{BoundKind::abs, 1000.0}, ErrorBound{BoundKind::abs, 1e30}, ErrorBound{BoundKind::pwrel, 1e-2},
          ErrorBound{BoundKind::pwrel, 0.7}, ErrorBound{BoundKind::rel, 1e-4}}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + bound_kind_name(bound.kind) + " " +
                   std::to_string(bound.value));
      check_array({values.data(), dtype, shape}, bound, "lorenzo");
      check_stencil({values.data(), dtype, shape}, bound);
    }
}

/// Folder of real fields, or nothing.
std::optional<std::filesystem::path> field_folder() {
  const char* named = std::getenv("QUERN_TEST_DATA");
  for (const std::filesystem::path& p : {std::filesystem::path(named != nullptr ? named : ""),
                                         std::filesystem::path(QUERN_SOURCE_DIR) / ".." / "shared" / "data"}) {
    if (!p.empty() && std::filesystem::is_directory(p / "fields")) return p / "fields";
  }
  return std::nullopt;
}

void check_integer_file(const char* name, DType dtype, const Shape& shape) {
  const auto folder = field_folder();
  if (!folder) GTEST_SKIP() << "no real fields: set QUERN_TEST_DATA";
  std::ifstream file(*folder / name, std::ios::binary);
  std::vector<char> bytes(shape.elems() * dtype_bytes(dtype));
  ASSERT_TRUE(file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())));
  for (const double bound : {0.0, 1.0, 2.0, 5.0}) {
    SCOPED_TRACE(bound);
    check_array({bytes.data(), dtype, shape}, {BoundKind::abs, bound}, "auto");
    check_array({bytes.data(), dtype, shape}, {BoundKind::abs, bound}, "lorenzo");
    check_stencil({bytes.data(), dtype, shape}, {BoundKind::abs, bound});
  }
}

TEST(Adversarial, SolarImageOfIntegers_KeepsTheBound) {
  const std::uint64_t extents[] = {1024, 1024};
  check_integer_file("trace_sun_171_1024x1024.i16", DType::i16, Shape::make(extents).value());
}

TEST(Adversarial, HeadVolumeOfIntegers_KeepsTheBound) {
  const std::uint64_t extents[] = {48, 233, 197};
  check_integer_file("mri_t1_mni152_48x233x197.u8", DType::u8, Shape::make(extents).value());
}

}  // namespace
}  // namespace quern
