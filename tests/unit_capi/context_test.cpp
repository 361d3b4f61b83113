// Contexts: threads and runners that change no byte, limits, cancelling, errors.
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "tests/unit_capi/handles.h"

namespace quern::testing {
namespace {

std::vector<float> field(std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = std::sin(1e-3f * static_cast<float>(i)) * 10;
  return values;
}

struct CountingRunner {
  std::atomic<std::size_t> calls{0};
  std::atomic<std::size_t> tasks{0};
};

/// Two threads that take every second task, backwards.
void run_backwards(void* user, size_t tasks, void (*body)(void*, size_t), void* argument) {
  auto* counter = static_cast<CountingRunner*>(user);
  ++counter->calls;
  const auto part = [&](std::size_t first) {
    for (std::size_t i = tasks; i-- > 0;)
      if (i % 2 == first) {
        body(argument, i);
        ++counter->tasks;
      }
  };
  std::thread other(part, 1);
  part(0);
  other.join();
}

TEST(Context, CallersRunner_RunsEverythingAndChangesNoByte) {
  auto values = field(1 << 20);
  const quern_array array = make_array(QUERN_F32, {64, 128, 128}, values.data());
  const auto params = make_params("rel=1e-4");
  CountingRunner counter;
  quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
  desc.runner = {run_backwards, 2, &counter};
  const auto with_runner = make_context(&desc);
  const auto stream = compressed(with_runner.get(), params.get(), array);
  EXPECT_GT(counter.calls.load(), 0u);
  EXPECT_GT(counter.tasks.load(), 1u);
  EXPECT_EQ(stream, compressed(make_context().get(), params.get(), array));
}

TEST(Context, EightThreadsEachWithAContext_DoNotDisturbEachOther) {
  std::vector<std::vector<std::uint8_t>> streams(8);
  std::vector<std::string> errors(8);
  const auto work = [&](std::size_t t) {
    quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
    desc.threads = t % 3 == 2 ? 2 : 1;
    const auto context = make_context(&desc);
    for (int round = 0; round < 3; ++round) {
      auto values = field(120000);
      const auto params = make_params(t % 2 == 0 ? "rel=1e-3" : "lossless");
      quern_array array = make_array(QUERN_F32, {30, 40, 100}, values.data());
      streams[t] = compressed(context.get(), params.get(), array);
      EXPECT_EQ(quern_verify(context.get(), &array, streams[t].data(), streams[t].size(), nullptr), QUERN_OK);
      EXPECT_EQ(quern_decompress(context.get(), streams[t].data(), streams[t].size(), &array), QUERN_OK);
      EXPECT_NE(quern_decompress(context.get(), streams[t].data(), t, &array), QUERN_OK);
      errors[t] = quern_last_error(context.get());
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 8; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 2; t < 8; ++t) EXPECT_EQ(streams[t], streams[t % 2]);
  for (const std::string& error : errors) EXPECT_NE(error, "");
}

TEST(Context, RunnerWithoutWidth_IsRefused) {
  quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
  desc.runner.run = run_backwards;
  quern_context* context = nullptr;
  EXPECT_EQ(quern_context_create(&desc, &context), QUERN_ERROR_INVALID_ARGUMENT);
}

TEST(Context, ProgressThatReturnsZero_Cancels) {
  auto values = field(1 << 22);
  std::uint64_t seen = 0;
  quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
  desc.progress = [](void* user, std::uint64_t done, std::uint64_t total) {
    EXPECT_LE(done, total);
    *static_cast<std::uint64_t*>(user) = total;
    return 0;
  };
  desc.progress_user = &seen;
  const auto context = make_context(&desc);
  const auto params = make_params("abs=1e-3");
  const quern_array array = make_array(QUERN_F32, {1 << 22}, values.data());
  std::uint64_t room = 0;
  ASSERT_EQ(quern_compress_bound(&array, params.get(), &room), QUERN_OK);
  std::vector<std::uint8_t> stream(room);
  std::uint64_t size = 12345;
  EXPECT_EQ(quern_compress(context.get(), params.get(), &array, stream.data(), room, &size, nullptr),
            QUERN_ERROR_CANCELLED);
  EXPECT_EQ(seen, UINT64_C(1) << 22);
  EXPECT_EQ(size, 12345u) << "outputs stay as they were on failure";
}

TEST(Context, TinyMemoryLimit_IsAStatus) {
  auto values = field(1 << 16);
  quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
  desc.memory_limit = 100;
  const auto context = make_context(&desc);
  const auto params = make_params("abs=1e-3");
  const quern_array array = make_array(QUERN_F32, {1 << 16}, values.data());
  std::vector<std::uint8_t> stream(1 << 19);
  std::uint64_t size = 0;
  EXPECT_EQ(quern_compress(context.get(), params.get(), &array, stream.data(), stream.size(), &size, nullptr),
            QUERN_ERROR_MEMORY_LIMIT);
  EXPECT_STRNE(quern_last_error(context.get()), "");
}

TEST(Context, DestinationTooSmall_IsAStatusForEverySize) {
  auto values = field(5000);
  const auto context = make_context();
  const auto params = make_params("abs=1e-3");
  const quern_array array = make_array(QUERN_F32, {5000}, values.data());
  const auto stream = compressed(context.get(), params.get(), array);
  std::vector<std::uint8_t> out(stream.size());
  std::uint64_t size = 0;
  for (std::size_t room = 0; room < stream.size(); room += room < 300 ? 1 : 97)
    EXPECT_EQ(quern_compress(context.get(), params.get(), &array, out.data(), room, &size, nullptr),
              QUERN_ERROR_DESTINATION_TOO_SMALL)
        << room;
  EXPECT_EQ(quern_compress(context.get(), params.get(), &array, out.data(), out.size(), &size, nullptr), QUERN_OK);
  EXPECT_EQ(out, stream);
}

TEST(Context, SuccessAfterFailure_ClearsTheLine) {
  const auto context = make_context();
  std::uint8_t nothing = 0;
  float value = 0;
  quern_array array = make_array(QUERN_F32, {1}, &value);
  EXPECT_EQ(quern_decompress(context.get(), &nothing, 1, &array), QUERN_ERROR_BAD_MAGIC);
  EXPECT_STRNE(quern_last_error(context.get()), "");
  const auto stream = compressed(context.get(), make_params("lossless").get(), array);
  EXPECT_STREQ(quern_last_error(context.get()), "");
}

TEST(Context, BytesBehindTheStream_AreRefused) {
  const auto context = make_context();
  float value = 4;
  quern_array array = make_array(QUERN_F32, {1}, &value);
  auto stream = compressed(context.get(), make_params("lossless").get(), array);
  stream.push_back(0);
  EXPECT_EQ(quern_decompress(context.get(), stream.data(), stream.size(), &array), QUERN_ERROR_TRAILING_DATA);
}

TEST(Context, DecompressChecked_SameValuesAndLorenzoAlone) {
  const auto context = make_context();
  const auto values = field(100);
  auto given = values;
  quern_array array = make_array(QUERN_F32, {10, 10}, given.data());
  const auto stream = compressed(context.get(), make_params("abs=1e-3 codec=lorenzo verify=fault").get(), array);
  EXPECT_EQ(stream, compressed(context.get(), make_params("abs=1e-3 codec=lorenzo").get(), array));
  std::vector<float> plain(100), checked(100);
  quern_array out = make_array(QUERN_F32, {10, 10}, plain.data());
  ASSERT_EQ(quern_decompress(context.get(), stream.data(), stream.size(), &out), QUERN_OK);
  out = make_array(QUERN_F32, {10, 10}, checked.data());
  ASSERT_EQ(quern_decompress_checked(context.get(), stream.data(), stream.size(), &out), QUERN_OK)
      << quern_last_error(context.get());
  EXPECT_EQ(checked, plain);
  const auto other = compressed(context.get(), make_params("abs=1e-3 codec=stencil").get(), array);
  EXPECT_EQ(quern_decompress_checked(context.get(), other.data(), other.size(), &out), QUERN_ERROR_UNSUPPORTED);
  EXPECT_EQ(quern_decompress_checked(nullptr, stream.data(), stream.size(), &out), QUERN_ERROR_INVALID_ARGUMENT);
  auto damaged = stream;
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_NE(quern_decompress_checked(context.get(), damaged.data(), damaged.size(), &out), QUERN_OK);
}

TEST(Context, ArrayOfAnotherTypeOrShape_IsRefused) {
  const auto context = make_context();
  auto values = field(100);
  quern_array array = make_array(QUERN_F32, {10, 10}, values.data());
  const auto stream = compressed(context.get(), make_params("lossless").get(), array);
  array.dtype = QUERN_I32;
  EXPECT_EQ(quern_decompress(context.get(), stream.data(), stream.size(), &array), QUERN_ERROR_INVALID_ARGUMENT);
  array = make_array(QUERN_F32, {100}, values.data());
  EXPECT_EQ(quern_decompress(context.get(), stream.data(), stream.size(), &array), QUERN_ERROR_INVALID_SHAPE);
}

TEST(Compare, KnownError_IsMeasured) {
  const auto context = make_context();
  std::vector<double> original{0, 1, 2, 3};
  std::vector<double> other{0, 1, 2.5, 3};
  const quern_array a = make_array(QUERN_F64, {4}, original.data());
  const quern_array b = make_array(QUERN_F64, {4}, other.data());
  quern_quality quality = QUERN_QUALITY_INIT;
  ASSERT_EQ(quern_compare(context.get(), nullptr, &a, &b, &quality), QUERN_OK) << quern_last_error(context.get());
  EXPECT_EQ(quality.max_error, 0.5);
  EXPECT_EQ(quality.mse, 0.25 / 4);
  EXPECT_EQ(quality.min, 0);
  EXPECT_EQ(quality.max, 3);
  EXPECT_NEAR(quality.psnr_db, 20 * std::log10(3) - 10 * std::log10(0.0625), 1e-9);
  ASSERT_EQ(quern_compare(context.get(), nullptr, &a, &a, &quality), QUERN_OK);
  EXPECT_EQ(quality.psnr_db, std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace quern::testing
