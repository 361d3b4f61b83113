// Processes that do not end by themselves.
#include "cli/files/child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "cli/messages/clock.h"

namespace quern::cli {
namespace {

std::vector<std::string> shell(const std::string& script) { return {"sh", "-c", script}; }

/// Waits until it has printed a process id.
pid_t printed_id(const Child& child) {
  const Stopwatch watch;
  while (child.text().find('\n') == std::string::npos && watch.seconds() < 20) usleep(1000);
  return std::stoi(child.text());
}

/// Whether it still runs after a while. One that has ended, and that nobody waits for, does not.
bool goes_on(pid_t id) {
  const Stopwatch watch;
  while (watch.seconds() < 5) {
    std::ifstream file("/proc/" + std::to_string(id) + "/stat");
    std::string number, name, state;
    if (!(file >> number >> name >> state) || state == "Z" || state == "X") return false;
    usleep(1000);
  }
  return true;
}

TEST(Child, EndsWhatIgnoresTheRequest) {
  pid_t id = 0;
  const Stopwatch watch;
  {
    const Child child(shell("trap '' TERM; echo $$; while :; do sleep 100; done"), Child::Group::own);
    id = printed_id(child);
  }
  EXPECT_LT(watch.seconds(), 30);
  EXPECT_FALSE(goes_on(id));
}

TEST(Child, EndsWithItsGroup) {
  pid_t id = 0;
  {
    Child child(shell("sleep 1000 & echo $!; wait"), Child::Group::own);
    id = printed_id(child);
    EXPECT_FALSE(child.has_ended(false));
    EXPECT_EQ(kill(id, 0), 0);
  }
  EXPECT_FALSE(goes_on(id));
}

TEST(Child, LeavesNothingRunning) {
  Child child(shell("sleep 1000 & echo $!; exit 3"), Child::Group::own);
  EXPECT_TRUE(child.has_ended(true));
  EXPECT_EQ(child.code(), 3);
  EXPECT_EQ(child.signal(), 0);
  EXPECT_FALSE(goes_on(std::stoi(child.text())));
}

TEST(Child, SharesTheGroupUnlessAsked) {
  Child child(shell("cut -d ' ' -f 5 /proc/self/stat"));
  EXPECT_TRUE(child.has_ended(true));
  EXPECT_EQ(std::stoi(child.text()), getpgrp());
}

}  // namespace
}  // namespace quern::cli
