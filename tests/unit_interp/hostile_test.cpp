// Bytes that no encoder wrote: a chunk gives elements or `corrupt`, at every level, and nothing outside of its box is
// touched; parameters that break a rule are refused.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "codecs/interp/interp.h"
#include "libcompress/core/buffer.h"
#include "libcompress/core/task_runner.h"
#include "tests/support/array_cases.h"
#include "tests/support/instrumented.h"

namespace quern::codec::interp {
namespace {

using testing::Data;
using testing::OwnedArray;

struct Example {
  OwnedArray array;
  std::unique_ptr<ChunkEncoder> encoder;
  std::unique_ptr<ChunkDecoder> decoder;
  Vector<std::uint8_t> chunk;
};

/// Bytes that end too early are told apart from others.
bool is_corrupt(const Status& status) {
  return status.code() == StatusCode::corrupt || status.code() == StatusCode::truncated;
}

EnforcedBound abs_bound(double value) {
  EnforcedBound bound;
  bound.kind = BoundKind::abs;
  bound.value = value;
  return bound;
}

Result<std::unique_ptr<ChunkDecoder>> open(const OwnedArray& array, std::span<const std::uint8_t> params) {
  OpenRequest request;
  request.dtype = array.dtype;
  request.shape = array.shape;
  request.bound = abs_bound(1);
  request.version = kCodecVersion;
  request.params = params;
  return interp_codec().open(request);
}

Example example(DType dtype, const Shape& shape, double bound, const char* layout = "auto") {
  Example e;
  e.array = testing::make_array(dtype, shape, Data::smooth);
  const PlainSample sample(e.array.bytes.data(), dtype, shape.elems());
  SerialRunner runner;
  PlanRequest request;
  request.dtype = dtype;
  request.shape = shape;
  request.bound = abs_bound(bound);
  request.sample = &sample;
  request.runner = &runner;
  request.settings = {{"layout", layout}};
  e.encoder = std::move(interp_codec().plan(request)).value();
  e.decoder = std::move(open(e.array, e.encoder->plan().params)).value();
  const ChunkGrid& grid = e.encoder->plan().grid;
  ConstBox3 box{e.array.bytes.data(), grid.chunk, {grid.extents[1] * grid.extents[2], grid.extents[2]}};
  AlignedBuffer scratch;
  EXPECT_TRUE(scratch.resize(e.encoder->scratch_bytes()).ok());
  e.chunk.resize(e.encoder->max_chunk_bytes());
  const auto size = e.encoder->encode(box, e.chunk, {scratch.data(), scratch.size()});
  EXPECT_TRUE(size.ok());
  e.chunk.resize(*size);
  return e;
}

/// Decodes to a box of its own with margins; false where something outside was written.
class Target {
 public:
  explicit Target(const Example& e) : e_(e), elems_(1) {
    for (const std::uint64_t extent : e.decoder->grid().chunk) elems_ *= extent;
    EXPECT_TRUE(scratch_.resize(std::max(e.decoder->scratch_bytes(), e.decoder->level_scratch_bytes())).ok());
  }

  void expect_data_or_corrupt(std::span<const std::uint8_t> bytes) {
    const Vector<std::uint8_t> exact(bytes.begin(), bytes.end());  // reads behind it are seen by sanitizers
    for (unsigned level = 0; level <= e_.decoder->levels(); ++level) {
      const std::size_t width = dtype_bytes(e_.array.dtype);
      MutableBox3 chunk{nullptr, e_.decoder->grid().chunk, {}};
      MutableBox3 out = chunk;
      if (level > 0)
        for (std::size_t a = 0; a < 3; ++a)
          out.extents[a] = e_.decoder->level_form(level).axes[a].points(chunk.extents[a]);
      out.strides = {out.extents[1] * out.extents[2], out.extents[2]};
      const std::size_t bytes_out = static_cast<std::size_t>(out.elems()) * width;
      memory_.assign(bytes_out + 2 * kMargin, 0xA5);
      out.data = memory_.data() + kMargin;
      const std::span<std::uint8_t> scratch{scratch_.data(), scratch_.size()};
      const Status status = level == 0 ? e_.decoder->decode(exact, out, scratch)
                                       : e_.decoder->decode_level(exact, chunk, level, out, scratch);
      ASSERT_TRUE(status.ok() || is_corrupt(status)) << status.text();
      for (std::size_t i = 0; i < kMargin; ++i) {
        ASSERT_EQ(memory_[i], 0xA5);
        ASSERT_EQ(memory_[kMargin + bytes_out + i], 0xA5);
      }
    }
  }

 private:
  static constexpr std::size_t kMargin = 256;
  const Example& e_;
  std::uint64_t elems_;
  AlignedBuffer scratch_;
  Vector<std::uint8_t> memory_;
};

TEST(InterpHostile, ChangedAndShortenedChunks_GiveDataOrCorrupt) {
  std::mt19937_64 random(17);
  for (const auto& [dtype, shape, bound, layout] :
       {std::tuple{DType::f32, testing::shape_of({19, 18, 21}), 1e-2, "auto"},
        {DType::f64, testing::shape_of({30, 41}), 1e-5, "auto"},
        {DType::i16, testing::shape_of({700}), 3.0, "auto"},
        // Tiles longer than their axes.
        {DType::f32, testing::shape_of({300}), 1e-2, "3d:1,1:0,0,5"},
        {DType::f32, testing::shape_of({20, 3}), 1e-2, "3d:0,1:4,1,7"}}) {
    const Example e = example(dtype, shape, bound, layout);
    ASSERT_GT(e.chunk[0], 1) << dtype_name(dtype) << " is not coded";
    Target target(e);
    target.expect_data_or_corrupt(e.chunk);
    const std::size_t step = testing::kInstrumented ? 5 : 1;
    for (std::size_t size = 0; size < e.chunk.size(); size += size < 200 ? step : 37 * step)
      target.expect_data_or_corrupt(std::span(e.chunk).first(size));
    Vector<std::uint8_t> changed = e.chunk;
    for (std::size_t byte = 0; byte < changed.size(); byte += byte < 400 ? step : 23 * step) {
      const std::uint8_t before = changed[byte];
      for (const std::uint8_t value : {std::uint8_t(before ^ 1), std::uint8_t(before ^ 0x80), std::uint8_t{255}}) {
        changed[byte] = value;
        target.expect_data_or_corrupt(changed);
        if (HasFatalFailure()) return;
      }
      changed[byte] = before;
    }
    for (int i = 0; i < 300; ++i) {
      changed = e.chunk;
      for (std::size_t k = random() % 8; k < 8; ++k)
        changed[random() % changed.size()] = static_cast<std::uint8_t>(random());
      target.expect_data_or_corrupt(changed);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(InterpHostile, TilesLongerThanTheirAxes_TakeMemoryInProportionToElements) {
  const OwnedArray array = testing::make_array(DType::f32, testing::shape_of({1u << 19}), Data::zeros);
  const std::array<std::uint8_t, 2> splits[] = {{0, 0}, {0, 1}, {1, 1}};
  for (const auto& [first, second] : splits) {
    for (const std::array<std::uint8_t, 3> logs : {std::array<std::uint8_t, 3>{0, 0, 12}, {0, 12, 0}, {12, 0, 0}}) {
      Vector<std::uint8_t> params{first, second, logs[0], logs[1], logs[2]};
      const auto axis = static_cast<std::uint8_t>(logs[0] > 0 ? 1 : logs[1] > 0 ? 2 : 4);
      params.insert(params.end(), 12, axis);  // linear
      const auto opened = open(array, params);
      ASSERT_TRUE(opened.ok()) << opened.status().text();
      std::uint64_t elems = 1;
      for (const std::uint64_t extent : (*opened)->grid().chunk) elems *= extent;
      EXPECT_LT((*opened)->scratch_bytes(), 64 * elems + (UINT64_C(1) << 20));
    }
  }
}

TEST(InterpHostile, ParametersThatBreakARule_AreRefused) {
  const Example e = example(DType::f32, testing::shape_of({19, 18, 21}), 1e-2);
  const Vector<std::uint8_t> params = e.encoder->plan().params;
  const auto refused = [&](Vector<std::uint8_t> bytes) {
    const auto opened = open(e.array, bytes);
    return !opened.ok() && is_corrupt(opened.status());
  };
  EXPECT_FALSE(refused(params));
  for (std::size_t size = 0; size < params.size(); ++size)
    EXPECT_TRUE(refused(Vector<std::uint8_t>(params.begin(), params.begin() + static_cast<std::ptrdiff_t>(size))));
  Vector<std::uint8_t> longer = params;
  longer.push_back(1);
  EXPECT_TRUE(refused(longer));
  const auto with = [&](std::size_t at, std::uint8_t value) {
    Vector<std::uint8_t> bytes = params;
    bytes[at] = value;
    return bytes;
  };
  EXPECT_TRUE(refused(with(0, 3)));   // the first axes end behind the second ones
  EXPECT_TRUE(refused(with(1, 9)));   // more axes than there are
  EXPECT_TRUE(refused(with(2, 13)));  // a tile of more than 4096 places
  EXPECT_TRUE(refused({0, 0, 0, 0, 0}));
  EXPECT_TRUE(refused(with(5, 0)));     // a predictor without axes
  EXPECT_TRUE(refused(with(5, 0x1C)));  // of an unknown kind
  EXPECT_TRUE(refused(with(5, 0x0F)));  // along an axis that is even in its class
}

}  // namespace
}  // namespace quern::codec::interp
