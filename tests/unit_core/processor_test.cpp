// Threads leave a processor and may run where they might before. Only where a system tells where they run.
#include <gtest/gtest.h>

#include <cstddef>
#include <thread>

#include "libcompress/core/processor.h"

#ifdef __linux__
#include <sched.h>

namespace quern {
namespace {

cpu_set_t allowed_now() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  return set;
}

bool same(const cpu_set_t& a, const cpu_set_t& b) { return CPU_EQUAL(&a, &b) != 0; }

TEST(Processor, AThreadLeavesItAndMayRunWhereItMightBefore) {
  std::thread([] {
    const cpu_set_t before = allowed_now();
    if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one processor";
    // The system may move the thread back at any time, but not every time.
    int moved = 0;
    for (int i = 0; i < 20; ++i) {
      const int from = current_processor();
      ASSERT_GE(from, 0);
      leave_processor(from);
      moved += current_processor() != from ? 1 : 0;
      EXPECT_TRUE(same(allowed_now(), before));
    }
    EXPECT_GT(moved, 0);
  }).join();
}

TEST(Processor, AThreadStaysWhereItMayRunOnlyThere) {
  std::thread([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    const int here = current_processor();
    ASSERT_GE(here, 0);
    CPU_SET(static_cast<std::size_t>(here), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    leave_processor(here);
    EXPECT_EQ(current_processor(), here);
    EXPECT_TRUE(same(allowed_now(), one));
  }).join();
}

TEST(Processor, NoneAndOthersAreNotLeft) {
  std::thread([] {
    const cpu_set_t before = allowed_now();
    leave_processor(-1);
    leave_processor(1 << 30);
    EXPECT_TRUE(same(allowed_now(), before));
  }).join();
}

}  // namespace
}  // namespace quern
#endif
