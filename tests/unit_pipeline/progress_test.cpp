// Progress over several passes: it never goes back, moves under every codec and goal, and ends when all is done.
#include <cmath>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <quern/codec.h>
#include <quern/compress.h>
#include <quern/stream_io.h>

#include "libcompress/pipeline/pass_progress.h"
#include "tests/support/array_cases.h"

namespace quern::testing {
namespace {

OwnedArray wave(std::initializer_list<std::uint64_t> extents) {
  const Shape shape = shape_of(extents);
  OwnedArray a{Vector<std::uint8_t>(shape.elems() * sizeof(float)), DType::f32, shape};
  for (std::uint64_t i = 0; i < shape.elems(); ++i) {
    const double x = static_cast<double>(i % 128), y = static_cast<double>(i / 128);
    store_element(a, i, 60 + 40 * std::sin(0.11 * x + 0.05 * y) + 10 * std::cos(0.013 * y) + 0.01 * std::sin(x * y));
  }
  return a;
}

TEST(PassProgress, Passes_TakeSharesOfWhatIsLeft) {
  std::vector<std::uint64_t> seen;
  const ProgressCallback report = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, 1000u);
    seen.push_back(done);
    return true;
  };
  PassProgress passes(report, 1000);
  EXPECT_FALSE(passes.begun());
  passes.begin_pass(0.5);
  EXPECT_TRUE(passes.begun());
  EXPECT_TRUE(passes.update(0, 7));
  EXPECT_TRUE(passes.update(7, 7));
  passes.begin_pass(0.5);
  EXPECT_TRUE(passes.update(1, 2));
  EXPECT_TRUE(passes.update(0, 2)) << "a pass that begins again";
  passes.begin_pass(1);
  EXPECT_TRUE(passes.update(1, 1));
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{0, 500, 625, 625, 999})) << "the last element is not reported";
}

TEST(PassProgress, NobodyListens_GoesOn) {
  const ProgressCallback none;
  PassProgress passes(none, 10);
  EXPECT_FALSE(passes.callback());
  passes.begin_pass(1);
  EXPECT_TRUE(passes.update(1, 1));
}

TEST(PassProgress, NoElements_StayAtZero) {
  std::uint64_t last = 99;
  const ProgressCallback report = [&](std::uint64_t done, std::uint64_t) {
    last = done;
    return false;
  };
  PassProgress passes(report, 0);
  passes.begin_pass(1);
  EXPECT_FALSE(passes.update(0, 0)) << "the caller's no is handed on";
  EXPECT_EQ(last, 0u);
}

TEST(ChunkProgress, OtherThreads_DoNotCallTheCaller) {
  std::vector<std::uint64_t> seen;
  const ProgressCallback report = [&](std::uint64_t done, std::uint64_t) {
    seen.push_back(done);
    return done < 30;
  };
  ChunkProgress chunks(report, 5, 100);
  EXPECT_TRUE(chunks.begin_chunk()) << "nothing new to tell";
  std::thread other([&] {
    EXPECT_TRUE(chunks.begin_chunk());
    chunks.end_chunk(10);
    EXPECT_TRUE(chunks.begin_chunk());
  });
  other.join();
  EXPECT_TRUE(seen.empty());
  EXPECT_TRUE(chunks.begin_chunk());
  chunks.end_chunk(20);
  EXPECT_FALSE(chunks.begin_chunk());
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{15, 35}));
}

struct Request {
  const char* what;
  ErrorBound bound;
  const char* codec;
  const char* goal;
};

const Request kRequests[] = {
    {"default", {BoundKind::abs, 1e-3}, "auto", "ratio"},    {"goal psnr", {BoundKind::rel, 1e-3}, "auto", "psnr"},
    {"goal speed", {BoundKind::abs, 1e-3}, "auto", "speed"}, {"PSNR", {BoundKind::psnr, 60}, "auto", "ratio"},
    {"ratio", {BoundKind::ratio, 8}, "auto", "ratio"},       {"lossless", {BoundKind::lossless, 0}, "auto", "ratio"},
    {"lorenzo", {BoundKind::abs, 1e-3}, "lorenzo", "ratio"}, {"stencil", {BoundKind::abs, 1e-3}, "stencil", "ratio"}};

CompressOptions options_of(const Request& request) {
  CompressOptions options;
  options.bound = request.bound;
  options.codec = request.codec;
  options.goal = request.goal;
  return options;
}

TEST(Progress, EveryCodecAndGoal_MovesForwardAndEndsAtAll) {
  const OwnedArray a = wave({16, 64, 128});
  for (const Request& request : kRequests) {
    for (const std::size_t threads : {1, 2}) {
      // Pools are slow on a busy machine, and it is one call that reports: the default shows it.
      if (threads > 1 && std::string(request.what) != "default") continue;
      SCOPED_TRACE(std::string(request.what) + ", threads " + std::to_string(threads));
      std::set<std::uint64_t> places;
      std::uint64_t last = 0;
      Execution execution;
      execution.threads = threads;
      execution.progress = [&](std::uint64_t done, std::uint64_t total) {
        EXPECT_EQ(total, a.shape.elems());
        EXPECT_GE(done, last);
        EXPECT_LE(done, total);
        last = done;
        places.insert(done);
        return true;
      };
      Vector<std::uint8_t> out;
      VectorSink sink(out);
      ASSERT_TRUE(compress(a.view(), options_of(request), builtin_codecs(), execution, sink).ok());
      EXPECT_EQ(last, a.shape.elems());
      // One codec alone has a chunk of this array to tell of.
      const bool several = std::string(request.codec) == "auto" && request.goal != std::string("speed") &&
                           request.bound.kind != BoundKind::lossless;
      EXPECT_GE(places.size(), several ? 3u : 1u);
    }
  }
}

TEST(Progress, ChunksOfOneBatch_AreToldOneByOne) {
  const OwnedArray a = wave({24, 320, 320});
  CompressOptions options;
  options.bound = {BoundKind::abs, 1e-2};
  options.codec = "stencil";
  std::vector<std::uint64_t> places;
  Execution execution;
  execution.progress = [&](std::uint64_t done, std::uint64_t) {
    places.push_back(done);
    return true;
  };
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  ASSERT_TRUE(compress(a.view(), options, builtin_codecs(), execution, sink).ok());
  ASSERT_GE(places.size(), 2u);
  EXPECT_GT(places.front(), 0u);
  EXPECT_LT(places.front(), a.shape.elems());
  EXPECT_EQ(places.back(), a.shape.elems());

  places.clear();
  MemorySource source(stream);
  Vector<std::uint8_t> back(a.bytes.size());
  ASSERT_TRUE(decompress(source, {back.data(), a.dtype, a.shape}, builtin_codecs(), execution).ok());
  ASSERT_GE(places.size(), 2u);
  EXPECT_LT(places.front(), a.shape.elems());
}

TEST(Progress, CancelledAtAnyCall_IsAStatusAndTheLastCall) {
  const OwnedArray a = wave({12, 40, 64});
  for (const Request& request : kRequests) {
    SCOPED_TRACE(request.what);
    for (int allowed = 0; allowed < 6; ++allowed) {
      int calls = 0;
      Execution execution;
      execution.progress = [&](std::uint64_t, std::uint64_t) { return ++calls <= allowed; };
      Vector<std::uint8_t> out;
      VectorSink sink(out);
      const auto report = compress(a.view(), options_of(request), builtin_codecs(), execution, sink);
      if (calls <= allowed) break;  // it was done before
      EXPECT_EQ(report.status().code(), StatusCode::cancelled);
      EXPECT_EQ(calls, allowed + 1);
    }
  }
}

TEST(Progress, Decoding_MovesForwardAndEndsAtAll) {
  const OwnedArray a = wave({16, 64, 128});
  for (const char* codec : {"stencil", "lorenzo"}) {
    CompressOptions options;
    options.bound = {BoundKind::abs, 1e-3};
    options.codec = codec;
    Vector<std::uint8_t> stream;
    VectorSink sink(stream);
    ASSERT_TRUE(compress(a.view(), options, builtin_codecs(), {}, sink).ok());
    std::uint64_t last = 0;
    Execution execution;
    execution.progress = [&](std::uint64_t done, std::uint64_t total) {
      EXPECT_GE(done, last);
      EXPECT_EQ(total, a.shape.elems());
      last = done;
      return true;
    };
    MemorySource source(stream);
    Vector<std::uint8_t> back(a.bytes.size());
    ASSERT_TRUE(decompress(source, {back.data(), a.dtype, a.shape}, builtin_codecs(), execution).ok());
    EXPECT_EQ(last, a.shape.elems());
  }
}

}  // namespace
}  // namespace quern::testing
