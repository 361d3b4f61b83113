// The caller's allocator: everything comes from it, all of it goes back, and any of its calls may fail.
#include "tests/unit_capi/failing_allocator.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <thread>

#include "tests/support/thorough.h"
#include "tests/unit_capi/handles.h"

namespace quern::testing {
namespace {

constexpr std::uint64_t kExtents[] = {3, 12, 70};
constexpr std::size_t kElems = 3 * 12 * 70;

std::vector<float> field_with_gaps() {
  std::vector<float> values(kElems);
  for (std::size_t i = 0; i < kElems; ++i) {
    values[i] = std::sin(0.01f * static_cast<float>(i)) + static_cast<float>(i % 70) / 50;
    if (i % 70 < 12 + i / 840 || i % 997 == 5) values[i] = std::numeric_limits<float>::quiet_NaN();
    if (i % 70 > 60) values[i] = 0;
  }
  return values;
}

quern_array array_of(float* values) {
  quern_array array;
  EXPECT_EQ(quern_array_init(&array, QUERN_F32, 3, kExtents, values), QUERN_OK);
  return array;
}

/// Threads of the test's own, watched like the calling one.
void run_watched(void*, size_t tasks, void (*body)(void*, size_t), void* argument) {
  const Watched off(false);
  std::vector<std::thread> threads;
  for (std::size_t first = 0; first < 2; ++first)
    threads.emplace_back([=] {
      const Watched on;
      for (std::size_t i = first; i < tasks; i += 2) body(argument, i);
    });
  for (std::thread& thread : threads) thread.join();
}

/// One user's whole session with every handle in the allocator's memory; the first status that is not ok.
using Session = std::function<quern_status(quern_context*, quern_params*)>;

quern_status whole_session(FailingAllocator& allocator, bool threaded, const std::string& settings,
                           const Session& session) {
  const Watched on;
  quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
  desc.allocator = allocator.get();
  if (threaded) desc.runner = {&run_watched, 2, nullptr};
  const quern_allocator own = allocator.get();
  quern_context* context = nullptr;
  quern_params* params = nullptr;
  quern_status status = quern_context_create(&desc, &context);
  if (status == QUERN_OK) status = quern_params_create_with_allocator(&own, &params);
  if (status == QUERN_OK) status = quern_params_parse(params, settings.c_str());
  if (status == QUERN_OK) status = session(context, params);
  quern_params_destroy(params);
  quern_context_destroy(context);
  return status;
}

/// Runs the session without a failure, then with the first, the second, ... allocation failing.
void sweep(const char* name, const std::string& settings, const Session& session) {
  for (const bool threaded : {false, true}) {
    SCOPED_TRACE(std::string(name) + (threaded ? ", on a runner" : ""));
    FailingAllocator allocator;
    ASSERT_EQ(whole_session(allocator, threaded, settings, session), QUERN_OK);
    HeapWatch::reset();
    allocator.fail_at(0);
    ASSERT_EQ(whole_session(allocator, threaded, settings, session), QUERN_OK);
    EXPECT_EQ(HeapWatch::strays(), 0u) << "memory was taken past the allocator";
    const std::size_t calls = allocator.calls();
    EXPECT_GE(calls, 2u);
    for (std::size_t n = 1; n <= calls; ++n) {
      // Set-up and end whole; calls between come in loops: every 7th, unless thorough.
      if (!testing::thorough() && n > 64 && n + 16 < calls && n % 7 != 0) continue;
      allocator.fail_at(n);
      const quern_status status = whole_session(allocator, threaded, settings, session);
      // On a runner, tasks after the failing one may ask less often than they did.
      if (!threaded || allocator.calls() >= n) {
        EXPECT_EQ(status, QUERN_ERROR_OUT_OF_MEMORY) << "allocation " << n << " of " << calls;
      }
      ASSERT_EQ(allocator.live(), 0u) << "allocation " << n << " of " << calls;
      ASSERT_EQ(allocator.mistakes(), 0u) << "allocation " << n << " of " << calls;
    }
  }
}

struct Compressing {
  std::vector<float> values = field_with_gaps();
  std::vector<float> back = std::vector<float>(kElems);
  std::vector<std::uint8_t> stream = std::vector<std::uint8_t>(kElems * 4 + 4096);
  std::uint64_t size = 0;

  quern_status compress(quern_context* context, quern_params* params) {
    const quern_array array = array_of(values.data());
    return quern_compress(context, params, &array, stream.data(), stream.size(), &size, nullptr);
  }
};

TEST(AllocatorSweep, Compress) {
  Compressing work;
  const auto session = [&](quern_context* c, quern_params* p) { return work.compress(c, p); };
  for (const char* settings :
       {"abs=1e-3", "rel=1e-4 codec=lorenzo", "pwrel=1e-2", "lossless", "lossless codec=lossless zstd=3",
        "abs=1e-2 codec=stencil layout=raster", "abs=1e-2 codec=stencil layout=levels",
        "abs=1e-2 codec=stencil layout=planes", "abs=0.2 codec=stencil layout=wavelet"})
    sweep(settings, settings, session);
}

TEST(AllocatorSweep, CompressBySearch) {
  std::vector<float> values(300);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(0.05f * static_cast<float>(i));
  std::vector<std::uint8_t> stream(4096);
  for (const char* settings : {"psnr=60", "ratio=2"})
    sweep(settings, settings, [&](quern_context* c, quern_params* p) {
      quern_array array;
      const std::uint64_t extent = values.size();
      std::uint64_t size = 0;
      if (const auto status = quern_array_init(&array, QUERN_F32, 1, &extent, values.data())) return status;
      return quern_compress(c, p, &array, stream.data(), stream.size(), &size, nullptr);
    });
}

TEST(AllocatorSweep, CompressAStridedArrayWithMetadataAndFills) {
  Compressing work;
  const std::string note(300, 'n');
  const float fill = 0;
  sweep("strided", "abs=1e-3 codec=lorenzo layout=2d:1 goal=ratio range=-3:3", [&](quern_context* c, quern_params* p) {
    if (const auto status = quern_params_add_fill(p, QUERN_F32, &fill)) return status;
    if (const auto status = quern_params_set_metadata(p, note.data(), note.size())) return status;
    quern_array array = array_of(work.values.data());
    std::swap(array.extents[0], array.extents[2]);
    array.strides[0] = 1;
    array.strides[1] = 70;
    array.strides[2] = 12 * 70;
    return quern_compress(c, p, &array, work.stream.data(), work.stream.size(), &work.size, nullptr);
  });
}

TEST(AllocatorSweep, Decompress) {
  for (const char* settings :
       {"abs=1e-3", "lossless", "lossless codec=lossless zstd=3", "abs=1e-2 codec=stencil layout=raster",
        "abs=1e-2 codec=stencil layout=planes", "abs=0.2 codec=stencil layout=wavelet"}) {
    Compressing work;
    ASSERT_EQ(work.compress(make_context().get(), make_params(settings).get()), QUERN_OK);
    sweep("decompress", "lossless", [&](quern_context* c, quern_params*) {
      quern_array array = array_of(work.back.data());
      return quern_decompress(c, work.stream.data(), work.size, &array);
    });
    sweep("region", "lossless", [&](quern_context* c, quern_params*) {
      const std::uint64_t begin[] = {1, 3, 4};
      const std::uint64_t end[] = {3, 11, 61};
      quern_array array = array_of(work.back.data());
      for (std::size_t a = 0; a < 3; ++a) array.extents[a] = end[a] - begin[a];
      return quern_decompress_region(c, work.stream.data(), work.size, begin, end, &array);
    });
  }
}

TEST(AllocatorSweep, Levels) {
  Compressing work;
  ASSERT_EQ(work.compress(make_context().get(), make_params("abs=1e-3 codec=stencil layout=levels").get()), QUERN_OK);
  std::uint32_t levels = 0;
  std::uint64_t extents[QUERN_MAX_RANK] = {};
  sweep("extents", "lossless", [&](quern_context* c, quern_params*) {
    return quern_level_extents(c, work.stream.data(), work.size, 1, &levels, extents);
  });
  EXPECT_GE(levels, 3u);
  sweep("level", "lossless", [&](quern_context* c, quern_params*) {
    quern_array array = array_of(work.back.data());
    for (std::size_t a = 0; a < 3; ++a) array.extents[a] = extents[a];
    return quern_decompress_level(c, work.stream.data(), work.size, 1, &array);
  });
}

TEST(AllocatorSweep, PlanAndQueuedCalls) {
  Compressing work;
  sweep("plan", "abs=1e-3 a_setting_for_no_codec_at_all=1", [&](quern_context* c, quern_params* p) {
    quern_array array = array_of(work.values.data());
    quern_array back = array_of(work.back.data());
    quern_plan* plan = nullptr;
    if (const auto status = quern_plan_create(c, p, &array, &plan)) return status;
    quern_plan_destroy(plan);
    const quern_allocator own = quern_allocator{};
    quern_params* plain = nullptr;
    const Watched off(false);
    EXPECT_EQ(quern_params_create_with_allocator(&own, &plain), QUERN_OK);
    EXPECT_EQ(quern_params_parse(plain, "abs=1e-2"), QUERN_OK);
    const Watched on;
    quern_status status = quern_plan_create(c, plain, &array, &plan);
    if (status == QUERN_OK)
      status = quern_compress_async(c, plan, &array, nullptr, 0, work.stream.data(), work.stream.size(), &work.size,
                                    nullptr);
    if (status == QUERN_OK)
      status = quern_decompress_async(c, work.stream.data(), work.size, &back, nullptr, 0, nullptr);
    quern_plan_destroy(plan);
    quern_params_destroy(plain);
    return status;
  });
}

TEST(AllocatorSweep, VerifyAndCompare) {
  Compressing work;
  ASSERT_EQ(work.compress(make_context().get(), make_params("abs=1e-3").get()), QUERN_OK);
  quern_array back = array_of(work.back.data());
  ASSERT_EQ(quern_decompress(make_context().get(), work.stream.data(), work.size, &back), QUERN_OK);
  const quern_array original = array_of(work.values.data());
  sweep("verify", "lossless", [&](quern_context* c, quern_params*) {
    return quern_verify(c, &original, work.stream.data(), work.size, nullptr);
  });
  sweep("compare", "lossless", [&](quern_context* c, quern_params* p) {
    quern_quality quality = QUERN_QUALITY_INIT;
    return quern_compare(c, p, &original, &back, &quality);
  });
}

TEST(AllocatorSweep, ParametersAndTheirValues) {
  sweep("parameters", "psnr=90 a_setting_with_a_long_name=a_value_with_many_letters",
        [](quern_context*, quern_params* p) {
          char value[64];
          std::size_t needed = 0;
          if (const auto status = quern_params_set(p, "a_setting_with_a_long_name", "another_value_with_many_letters"))
            return status;
          return quern_params_get(p, "a_setting_with_a_long_name", value, sizeof(value), &needed);
        });
}

TEST(Allocator, OneFunctionAlone_IsRefused) {
  FailingAllocator allocator;
  quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
  desc.allocator = allocator.get();
  desc.allocator.release = nullptr;
  quern_context* context = nullptr;
  EXPECT_EQ(quern_context_create(&desc, &context), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(context, nullptr);
  quern_params* params = nullptr;
  EXPECT_EQ(quern_params_create_with_allocator(&desc.allocator, &params), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(params, nullptr);
}

TEST(Allocator, ChangesNoByte) {
  Compressing ours;
  Compressing theirs;
  FailingAllocator allocator;
  quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
  desc.allocator = allocator.get();
  desc.threads = 3;
  const auto params = make_params("abs=1e-3");
  ASSERT_EQ(ours.compress(make_context(&desc).get(), params.get()), QUERN_OK);
  ASSERT_EQ(theirs.compress(make_context().get(), params.get()), QUERN_OK);
  ours.stream.resize(ours.size);
  theirs.stream.resize(theirs.size);
  EXPECT_EQ(ours.stream, theirs.stream);
  EXPECT_GT(allocator.calls(), 10u);
  EXPECT_EQ(allocator.live(), 0u);
}

}  // namespace
}  // namespace quern::testing
