// A device of the simulator for each test, which leaves nothing behind.
#pragma once

#include <memory>

#include <gtest/gtest.h>

#include <quern/device.h>

#include "tests/simt/simt.h"

namespace quern::testing {

class SimulatedDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    simt::reset({});
    auto device = open_cuda_device(0);
    ASSERT_TRUE(device.ok()) << device.status().text();
    device_ = std::move(device).value();
  }
  void TearDown() override {
    device_.reset();
    EXPECT_EQ(simt::failure(), "");
    EXPECT_EQ(simt::counters().allocations, simt::counters().frees);
    EXPECT_EQ(simt::counters().host_allocations, simt::counters().host_frees);
    EXPECT_EQ(simt::live_handles(), 0u);
  }

  std::unique_ptr<Device> device_;
};

}  // namespace quern::testing
