// The caller's allocator: memory comes from it and goes back, and each of its calls may fail.
#include <thread>

#include "tests/support/instrumented.h"
#include "tests/unit_capi/failing_allocator.h"
#include "tests/unit_checkpoint_capi/handles.h"

namespace quern::testing {
namespace {

void run_on_two(void*, size_t tasks, void (*body)(void*, size_t), void* argument) {
  std::thread other([=] {
    for (size_t i = 1; i < tasks; i += 2) body(argument, i);
  });
  for (size_t i = 0; i < tasks; i += 2) body(argument, i);
  other.join();
}

/// Saves two steps and reads the second back, wholly in the allocator's memory; the first status that is not ok.
quern_status whole_session(FailingAllocator& allocator, const std::string& path, bool threaded) {
  quern_checkpoint_store_desc desc = QUERN_CHECKPOINT_STORE_DESC_INIT;
  desc.mode = QUERN_CHECKPOINT_WRITE;
  desc.allocator = allocator.get();
  if (threaded) desc.runner = {&run_on_two, 2, nullptr};
  quern_checkpoint_store* raw = nullptr;
  if (const auto status = quern_checkpoint_store_open(path.c_str(), &desc, &raw)) return status;
  const StoreHandle store(raw);
  auto values = weights(3000, 1);
  for (std::uint64_t step = 1; step <= 2; ++step) {
    auto save = save_desc(step);
    if (step == 2) save.base = 1;
    quern_checkpoint_writer* writing = nullptr;
    if (const auto status = quern_checkpoint_begin(store.get(), &save, &writing)) return status;
    const WriterHandle writer(writing);
    const auto w = tensor_of("a tensor with a long name, w", QUERN_F32, {3000}, values.data());
    const auto v = tensor_of("a tensor with a long name, exp_avg", QUERN_F32, {30, 100}, values.data());
    if (const auto status = quern_checkpoint_add(writer.get(), &w)) return status;
    if (const auto status = quern_checkpoint_add(writer.get(), &v)) return status;
    if (const auto status = quern_checkpoint_add_blob(writer.get(), "blob", values.data(), 100)) return status;
    if (const auto status = quern_checkpoint_publish(writer.get(), nullptr)) return status;
    for (float& value : values) value *= 1.000001f;
  }
  quern_checkpoint_reader* reading = nullptr;
  if (const auto status = quern_checkpoint_open(store.get(), 2, &reading)) return status;
  const ReaderHandle reader(reading);
  std::vector<float> back(3000);
  quern_checkpoint_target target = QUERN_CHECKPOINT_TARGET_INIT;
  target.data = back.data();
  target.bytes = back.size() * 4;
  if (const auto status = quern_checkpoint_read(reader.get(), 0, nullptr, nullptr, &target)) return status;
  if (const auto status = quern_checkpoint_verify(store.get(), 2, 1)) return status;
  if (const auto status = quern_checkpoint_compact(store.get(), 2, nullptr)) return status;
  return quern_checkpoint_collect(store.get(), 1, nullptr, 0, nullptr);
}

TEST(CheckpointMemory, AnyAllocationMayFail) {
  for (const bool threaded : {false, true}) {
    FailingAllocator allocator;
    std::size_t calls = 0;
    {
      const ScratchFolder folder;
      allocator.fail_at(0);
      ASSERT_EQ(whole_session(allocator, folder.store(), threaded), QUERN_OK) << quern_checkpoint_last_error();
      calls = allocator.calls();
    }
    ASSERT_GT(calls, 100u);
    EXPECT_EQ(allocator.live(), 0u);
    // Every one of the first hundred, then some all the way.
    std::size_t failed = 0;
    for (std::size_t n = 1; n <= calls; n += n < 100 ? 1 : calls / (kInstrumented ? 40 : 300) + 1) {
      const ScratchFolder folder;
      allocator.fail_at(n);
      const quern_status status = whole_session(allocator, folder.store(), threaded);
      if (status != QUERN_OK) ++failed;
      // A damaged neighbour is passed over, and what is tidied up may fail: then the session goes on.
      EXPECT_TRUE(status == QUERN_OK || status == QUERN_ERROR_OUT_OF_MEMORY || status == QUERN_ERROR_CORRUPT)
          << n << " of " << calls << ": " << status << " " << quern_checkpoint_last_error();
      ASSERT_EQ(allocator.live(), 0u) << n << " of " << calls;
      ASSERT_EQ(allocator.mistakes(), 0u) << n << " of " << calls;
    }
    EXPECT_GT(failed, 50u);
  }
}

}  // namespace
}  // namespace quern::testing
