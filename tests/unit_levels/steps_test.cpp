// Time steps that are predicted from the one before: the bound over a chain, chunks alone, what is lost and where that
// ends, sessions that go on.
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include <quern/steps.h>

#include "libcompress/format/grid/header.h"
#include "tests/unit_levels/support.h"

namespace quern::testing {
namespace {

constexpr double kBound = 0.02;

/// Rough values that move by one place a step along the last axis, and change a little; f32.
std::vector<float> moving(const Shape& shape, unsigned step) {
  const auto columns = static_cast<std::size_t>(shape[shape.rank() - 1]);
  std::vector<float> rough(static_cast<std::size_t>(shape.elems()));
  std::mt19937 random(17);
  for (float& v : rough) v = static_cast<float>(random() % 4096) / 1024;
  std::vector<float> out(rough.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t row = i / columns * columns;
    const std::size_t from = (i - row + columns * step - step) % columns;
    out[i] = rough[row + from] + 0.004F * static_cast<float>((5 * i + 3 * step) % 11);
  }
  return out;
}

ArrayView view(const std::vector<float>& values, const Shape& shape) { return {values.data(), DType::f32, shape}; }

CompressOptions bounded(const char* layout = nullptr) {
  CompressOptions options;
  options.bound = {BoundKind::abs, kBound};
  options.codec = "stencil";
  if (layout != nullptr) options.settings = {{"layout", layout}};
  return options;
}

struct Series {
  std::vector<Bytes> streams;
  std::vector<StepReport> reports;
};

void add_step(StepEncoder& session, const std::vector<float>& values, const Shape& shape,
              const CompressOptions& options, Series& run, const Execution& execution = {}) {
  Bytes out;
  VectorSink sink(out);
  auto made = session.encode(view(values, shape), options, execution, sink);
  ASSERT_TRUE(made.ok()) << made.status().text();
  run.reports.push_back(std::move(made).value());
  run.streams.push_back(std::move(out));
}

Series encode_run(const Shape& shape, unsigned steps, unsigned key_every, const CompressOptions& options,
                  const Execution& execution = {}) {
  const auto session = StepEncoder::create(builtin_codecs(), key_every);
  Series run;
  for (unsigned i = 0; i < steps; ++i) add_step(**session, moving(shape, i), shape, options, run, execution);
  return run;
}

/// A decoder of one step by the streams from its key step on.
struct Chain {
  std::vector<std::unique_ptr<MemorySource>> sources;
  Result<std::unique_ptr<Decoder>> decoder = Status(StatusCode::internal, "");

  Chain(const Series& run, std::size_t step, const DecompressOptions& options = {}) {
    const std::size_t depth = run.reports[step].reference ? run.reports[step].reference->depth : 0;
    std::vector<ByteSource*> chain;
    for (std::size_t i = step - depth; i <= step; ++i) {
      sources.push_back(std::make_unique<MemorySource>(run.streams[i]));
      chain.push_back(sources.back().get());
    }
    decoder = open_step_chain(chain, builtin_codecs(), {}, options);
  }
};

Status decode_step(const Series& run, std::size_t step, std::vector<float>& out,
                   const DecompressOptions& options = {}) {
  Chain chain(run, step, options);
  QUERN_RETURN_IF_ERROR(chain.decoder.status());
  const auto bytes = (*chain.decoder)->pull({reinterpret_cast<std::uint8_t*>(out.data()), out.size() * 4});
  return bytes.status();
}

/// Elements further from the original than the bound, counted in binary80 by nothing of the library.
std::size_t count_missed(const std::vector<float>& original, const std::vector<float>& back) {
  std::size_t missed = 0;
  for (std::size_t i = 0; i < original.size(); ++i)
    if (!(std::fabs(static_cast<long double>(original[i]) - static_cast<long double>(back[i])) <=
          static_cast<long double>(kBound)))
      ++missed;
  return missed;
}

TEST(Steps_Chain, FiftySteps_KeepTheBoundAndNeedAtMostAKeyDistance) {
  const Shape shape = shape_of({10, 14, 20});
  const Series run = encode_run(shape, 50, 16, bounded());
  std::uint64_t together = 0;
  std::uint64_t alone = 0;
  std::size_t predicted = 0;
  std::vector<float> back(static_cast<std::size_t>(shape.elems()));
  for (unsigned i = 0; i < 50; ++i) {
    const auto& reference = run.reports[i].reference;
    if (reference) {
      ++predicted;
      EXPECT_LT(reference->depth, 16u);
      // The name of the reference is what the step before decodes to.
      EXPECT_EQ(reference->hash, hash_values(view(back, shape)));
    }
    const Status status = decode_step(run, i, back);
    ASSERT_TRUE(status.ok()) << i << ": " << status.text();
    EXPECT_EQ(count_missed(moving(shape, i), back), 0u) << "step " << i;
    together += run.streams[i].size();
    alone += run.reports[i].alone_bytes;
  }
  EXPECT_FALSE(run.reports[0].reference);
  EXPECT_FALSE(run.reports[16].reference);
  EXPECT_GE(predicted, 40u);
  EXPECT_LT(together * 10, alone * 8);
}

TEST(Steps_Chain, EveryLayoutAndType_KeepTheBoundWithSpecialValues) {
  const Shape shape = shape_of({9, 17, 40});
  for (const char* layout : {"raster", "levels", "planes", "wavelet"}) {
    SCOPED_TRACE(layout);
    const auto session = StepEncoder::create(builtin_codecs(), 16);
    Series run;
    std::vector<std::vector<float>> originals;
    for (unsigned i = 0; i < 4; ++i) {
      originals.push_back(moving(shape, i));
      // Land that moves, an infinity, and zeros of both signs.
      for (std::size_t k = 40 * i; k < originals[i].size(); k += 7 + i) originals[i][k] = std::nanf("");
      originals[i][3] = std::numeric_limits<float>::infinity();
      originals[i][5] = -0.0F;
      originals[i][6] = 0.0F;
      add_step(**session, originals[i], shape, bounded(layout), run);
    }
    std::vector<float> back(originals[0].size());
    for (unsigned i = 0; i < 4; ++i) {
      ASSERT_TRUE(decode_step(run, i, back).ok());
      for (std::size_t k = 0; k < back.size(); ++k) {
        const float wanted = originals[i][k];
        const bool exact = !std::isfinite(wanted) || std::bit_cast<std::uint32_t>(wanted) == 0x80000000u;
        if (exact)
          ASSERT_EQ(std::bit_cast<std::uint32_t>(wanted), std::bit_cast<std::uint32_t>(back[k])) << k;
        else
          ASSERT_LE(std::fabs(double{wanted} - double{back[k]}), kBound) << k;
        ASSERT_FALSE(k == 6 && back[k] == 0 && std::signbit(back[k]));
      }
    }
  }
}

TEST(Steps_Bytes, ThreadsAndPauses_ChangeNone) {
  const Shape shape = shape_of({14, 15, 16});
  const Series one = encode_run(shape, 6, 4, bounded());
  Execution many;
  many.threads = 3;
  const Series three = encode_run(shape, 6, 4, bounded(), many);
  EXPECT_EQ(one.streams, three.streams);
  // Another session that goes on after step 1.
  Series rest{{one.streams[0], one.streams[1]}, {one.reports[0], one.reports[1]}};
  std::vector<float> back(static_cast<std::size_t>(shape.elems()));
  ASSERT_TRUE(decode_step(one, 1, back).ok());
  const auto session = StepEncoder::create(builtin_codecs(), 4);
  ASSERT_TRUE((*session)->resume(one.streams[1], view(back, shape)).ok());
  for (unsigned i = 2; i < 6; ++i) add_step(**session, moving(shape, i), shape, bounded(), rest);
  EXPECT_EQ(one.streams, rest.streams);
}

TEST(Steps_Regions, OfAChain_AreThoseOfTheWholeStep) {
  const Shape shape = shape_of({300000});  // more than one chunk
  const Series run = encode_run(shape, 3, 16, bounded("levels"));
  ASSERT_TRUE(run.reports[2].reference);
  std::vector<float> whole(static_cast<std::size_t>(shape.elems()));
  ASSERT_TRUE(decode_step(run, 2, whole).ok());
  EXPECT_EQ(count_missed(moving(shape, 2), whole), 0u);
  const Box box = Box::parse("280000:280100", shape).value();
  const Shape part = box.shape().value();
  std::vector<float> out(static_cast<std::size_t>(part.elems()));
  Chain chain(run, 2);
  ASSERT_TRUE(chain.decoder.ok());
  const Status status = (*chain.decoder)->region(box, {out.data(), DType::f32, part});
  ASSERT_TRUE(status.ok()) << status.text();
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], whole[280000 + i]);
}

TEST(Steps_Loss, OtherValues_AreNamedByTheirHash) {
  const Shape shape = shape_of({12, 13, 14});
  const Series run = encode_run(shape, 3, 16, bounded());
  ASSERT_TRUE(run.reports[2].reference);
  std::vector<float> before(static_cast<std::size_t>(shape.elems()));
  ASSERT_TRUE(decode_step(run, 1, before).ok());
  before[100] = std::nextafter(before[100], 9.0F);
  const auto opened = [&](const ArrayView& values) {
    MemorySource source(run.streams[2]);
    return open_step_beside(source, values, builtin_codecs(), {}).status();
  };
  const Status status = opened(view(before, shape));
  EXPECT_EQ(status.code(), StatusCode::reference_missing);
  std::array<char, 24> hash{};
  std::snprintf(hash.data(), hash.size(), "%016llx", static_cast<unsigned long long>(run.reports[2].reference->hash));
  EXPECT_NE(status.text().find(hash.data()), std::string::npos) << status.text();
  EXPECT_EQ(opened({}).code(), StatusCode::reference_missing);
  before[100] = std::nextafter(before[100], -9.0F);
  EXPECT_TRUE(opened(view(before, shape)).ok());
  // Without anything, the header can be read, and no value.
  MemorySource source(run.streams[2]);
  auto plain = Decoder::open(source, builtin_codecs(), {});
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ((*plain)->pull({reinterpret_cast<std::uint8_t*>(before.data()), before.size() * 4}).status().code(),
            StatusCode::reference_missing);
}

/// A stream of one element whose header says that it was predicted, and that it has no axes.
Bytes hostile_scalar() {
  const std::vector<float> one{1.5F};
  Bytes alone;
  VectorSink sink(alone);
  EXPECT_TRUE(compress(view(one, shape_of({1})), bounded(), builtin_codecs(), {}, sink).ok());
  MemorySource source(alone);
  ReadHeader read = *read_header(source);
  read.header.shape = Shape();
  read.header.must_understand = 1U << 5;
  read.header.params = {0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8};
  const auto bytes = serialize_header(read.header);
  EXPECT_TRUE(bytes.ok()) << bytes.status().text();
  Bytes out(bytes->begin(), bytes->end());
  out.insert(out.end(), alone.begin() + static_cast<std::ptrdiff_t>(read.bytes), alone.end());
  return out;
}

TEST(Steps_Loss, NoValues_AreNotTakenForAScalar) {
  const Bytes hostile = hostile_scalar();
  for (const bool keep_going : {false, true}) {
    MemorySource source(hostile);
    DecompressOptions options;
    options.keep_going = keep_going;
    const Status status = open_step_beside(source, {}, builtin_codecs(), {}, options).status();
    EXPECT_EQ(status.code(), StatusCode::reference_missing) << status.text();
  }
}

TEST(Steps_Loss, AKeyStepInsideAChain_IsNamedByTheLaterStep) {
  const Shape shape = shape_of({12, 13, 14});
  const Series run = encode_run(shape, 3, 16, bounded());
  ASSERT_TRUE(run.reports[2].reference);
  MemorySource first(run.streams[0]);
  MemorySource again(run.streams[0]);
  MemorySource last(run.streams[2]);
  const std::array<ByteSource*, 3> chain{&first, &again, &last};
  const Status status = open_step_chain(chain, builtin_codecs(), {}).status();
  EXPECT_EQ(status.code(), StatusCode::reference_missing) << status.text();
  EXPECT_EQ(static_cast<std::uint64_t>(status.first()), run.reports[2].reference->hash);
}

TEST(Steps_Loss, Damage_EndsAtTheNextKeyStep) {
  const Shape shape = shape_of({12, 13, 14});
  Series run = encode_run(shape, 10, 4, bounded());
  ASSERT_TRUE(run.reports[1].reference && run.reports[3].reference && !run.reports[4].reference);
  run.streams[1][run.streams[1].size() / 2] ^= 0x40;
  std::vector<float> back(static_cast<std::size_t>(shape.elems()));
  DecompressOptions keep_going;
  keep_going.keep_going = true;
  for (std::size_t i = 0; i < 10; ++i) {
    const bool hit = i >= 1 && i < 4;
    EXPECT_EQ(decode_step(run, i, back).ok(), !hit) << i;
    Chain chain(run, i, keep_going);
    ASSERT_TRUE(chain.decoder.ok());
    ASSERT_TRUE((*chain.decoder)->pull({reinterpret_cast<std::uint8_t*>(back.data()), back.size() * 4}).ok());
    EXPECT_EQ((*chain.decoder)->report().holes.empty(), !hit) << i;
    EXPECT_EQ(count_missed(moving(shape, static_cast<unsigned>(i)), back) == 0, !hit) << i;
  }
}

TEST(Steps_Alone, WhereNothingMayBePredicted) {
  const Shape shape = shape_of({12, 13, 14});
  const auto predicted = [&](const CompressOptions& options, unsigned key_every) {
    std::size_t count = 0;
    for (const StepReport& report : encode_run(shape, 3, key_every, options).reports) count += report.reference ? 1 : 0;
    return count;
  };
  EXPECT_EQ(predicted(bounded(), 16), 2u);
  EXPECT_EQ(predicted(bounded(), 1), 0u);
  CompressOptions options = bounded();
  options.idempotent = true;
  EXPECT_EQ(predicted(options, 16), 0u);
  options = bounded();
  options.bound = {BoundKind::psnr, 60};
  EXPECT_EQ(predicted(options, 16), 0u);
  options = bounded();
  options.codec = "lorenzo";
  EXPECT_EQ(predicted(options, 16), 0u);
  EXPECT_FALSE(StepEncoder::create(builtin_codecs(), 0).ok());
  EXPECT_FALSE(StepEncoder::create(builtin_codecs(), 257).ok());
}

TEST(Steps_Report, OfASearchOverCodecs_HasItsTrialsAndProgressOfBothEncodings) {
  const Shape shape = shape_of({12, 13, 14});
  CompressOptions options = bounded();
  options.codec = "auto";
  std::uint64_t calls = 0;
  Execution counted;
  counted.progress = [&calls](std::uint64_t, std::uint64_t) {
    ++calls;
    return true;
  };
  const auto session = StepEncoder::create(builtin_codecs(), 16);
  Series run;
  std::uint64_t of_first = 0;
  for (unsigned i = 0; i < 2; ++i) {
    calls = 0;
    add_step(**session, moving(shape, i), shape, options, run, counted);
    if (i == 0) of_first = calls;
  }
  ASSERT_TRUE(run.reports[1].reference);
  EXPECT_EQ(run.reports[1].compressed.tried.size(), run.reports[0].compressed.tried.size());
  EXPECT_FALSE(run.reports[1].compressed.tried.empty());
  EXPECT_GT(calls, of_first);
}

TEST(Steps_Alone, UnrelatedSteps_AreKeySteps) {
  const Shape shape = shape_of({14, 15, 16});
  const auto session = StepEncoder::create(builtin_codecs(), 16);
  Series run;
  for (unsigned i = 0; i < 3; ++i) {
    std::vector<float> noise(static_cast<std::size_t>(shape.elems()));
    std::mt19937 random(i);
    for (float& v : noise) v = static_cast<float>(random() % 1000) * 0.01F;
    add_step(**session, noise, shape, bounded(), run);
    EXPECT_FALSE(run.reports.back().reference);
    EXPECT_EQ(run.streams.back().size(), run.reports.back().alone_bytes);
  }
}

}  // namespace
}  // namespace quern::testing
