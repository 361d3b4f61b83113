// What the progress line says.
#include "cli/messages/progress.h"

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

TEST(ProgressText, PartDone_TellsShareRateAndTimeLeft) {
  EXPECT_EQ(progress_text(250, 1000, 4000000, 2), "25 %, 500 MB/s, 6 s left");
  EXPECT_EQ(progress_text(1, 1000, 8, 0.5), "0 %, 0.0 MB/s");
  EXPECT_EQ(progress_text(500, 1000, 40000, 10), "50 %, 2.0 MB/s, 10 s left");
  EXPECT_EQ(progress_text(1, 2, 0, 100), "50 %, 1 min 40 s left");
  EXPECT_EQ(progress_text(1, 3, 0, 3720), "33 %, 2 h 4 min left");
  EXPECT_EQ(progress_text(999, 1000, 0, 0.5), "99 %");
}

TEST(ProgressText, NothingDone_TellsWhatHasPassedAndNothingOfWhatIsLeft) {
  EXPECT_EQ(progress_text(0, 1000, 4, 0.2), "0 %");
  EXPECT_EQ(progress_text(0, 1000, 4, 51), "0 %, began 51 s ago");
  EXPECT_EQ(progress_text(0, 0, 4, 0), "100 %");
}

TEST(ProgressText, AllDone_HasNoTimeLeft) { EXPECT_EQ(progress_text(1000, 1000, 1000000, 10), "100 %, 100 MB/s"); }

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
  EXPECT_NE(shown.find("name  0 %, began 1 s ago"), std::string::npos) << shown;
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
