// What tests on the simulator share: a fresh device for each test.
#pragma once

#include <gtest/gtest.h>

#include "tests/simt/simt.h"
#include "tests/support/device_buffer.h"

namespace quern::testing {

/// Starts every test on a fresh simulator and ends it with nothing failed and nothing left behind.
class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override { simt::reset({}); }
  void TearDown() override {
    EXPECT_EQ(simt::failure(), "");
    EXPECT_EQ(simt::counters().allocations, simt::counters().frees);
    EXPECT_EQ(simt::counters().host_allocations, simt::counters().host_frees);
    EXPECT_EQ(simt::live_handles(), 0u);
  }
};

}  // namespace quern::testing
