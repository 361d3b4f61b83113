// What the progress line says.
#include "cli/progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace quern::cli {
namespace {

RunArgs asking(ProgressMode mode) {
  RunArgs run;
  run.progress = mode;
  return run;
}

TEST(Progress, TellsShares_AndSecondsWhileNothingIsDone) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress("name", asking(ProgressMode::always));
    const ProgressCallback callback = progress.callback();
    std::this_thread::sleep_for(std::chrono::milliseconds(1150));
    EXPECT_TRUE(callback(0, 100));
    EXPECT_TRUE(callback(100, 100));
  }
  const std::string shown = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(shown.find("name  0 %, "), std::string::npos) << shown;
  EXPECT_NE(shown.find("name  100 %\r"), std::string::npos) << shown;
  EXPECT_TRUE(shown.ends_with("\r\033[K")) << shown;
}

TEST(Progress, SwitchedOff_SaysNothing) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress("name", asking(ProgressMode::never));
    EXPECT_FALSE(progress.is_on());
    progress.update(100, 100);
    EXPECT_FALSE(progress.callback());
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace quern::cli
