// What tiers are written through: token buckets, learnt rates, queues of writes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <unistd.h>

#include "storage/token_bucket.h"
#include "storage/write_rates.h"

namespace quern::testing {
namespace {

using namespace std::chrono_literals;
using storage::Report;
using storage::TokenBucket;
using storage::WriteRates;

TEST(TokenBucket, Take_OverALongTime_KeepsTheRateAndABurstOfATenth) {
  TokenBucket bucket(1000);  // bytes a second
  const TokenBucket::Clock::time_point begin{100s};
  // Nobody wrote for long: a tenth of a second is saved up, no more.
  EXPECT_EQ(bucket.take(100, begin), begin);
  EXPECT_EQ(bucket.take(500, begin), begin + 500ms);
  EXPECT_EQ(bucket.take(500, begin), begin + 1s);
  EXPECT_EQ(bucket.take(100, begin + 3s), begin + 3s);
  bucket.set_rate(100);
  EXPECT_EQ(bucket.take(100, begin + 3s), begin + 4s);
  bucket.set_rate(0);
  EXPECT_EQ(bucket.take(1 << 30, begin + 3s), begin + 3s);
}

TEST(TokenBucket, WaitTurn_Stopped_ReturnsAtOnce) {
  TokenBucket bucket(1);
  EXPECT_FALSE(storage::wait_turn(bucket, 1 << 20, [] { return true; }));
}

TEST(WriteRates, Depth_SmallestWithinATenthOfTheBest) {
  WriteRates rates;
  EXPECT_FALSE(rates.known());
  rates.add(1, 1 << 20, 0.010);
  rates.add(2, 1 << 20, 0.0052);
  rates.add(4, 1 << 20, 0.0050);
  rates.add(8, 1 << 20, 0.0049);
  EXPECT_EQ(rates.best_depth(), 2U);
  // The device is busy with others: what was learnt changes with use.
  for (int i = 0; i < 20; ++i) rates.add(2, 64 << 20, 1.0);
  EXPECT_EQ(rates.best_depth(), 4U);
  // Neighbours are tried now and then.
  std::size_t others = 0;
  for (int i = 0; i < 32; ++i) others += rates.next_depth() != 4 ? 1 : 0;
  EXPECT_EQ(others, 2U);
}

class Queues : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/quern-queue-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  String path(const char* name) const { return String(folder_) + "/" + name; }

  static std::uint8_t byte_at(std::uint64_t i) { return static_cast<std::uint8_t>(i * 2654435761U >> 13); }
  static Status fill(storage::WriteQueue& queue, std::uint64_t bytes) {
    for (std::uint64_t at = 0; at < bytes;) {
      QUERN_ASSIGN_OR_RETURN(const auto block, queue.block());
      EXPECT_EQ(block.size(), storage::kQueueBlock);
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), bytes - at));
      for (std::size_t i = 0; i < count; ++i) block[i] = byte_at(at + i);
      QUERN_RETURN_IF_ERROR(queue.write(count));
      at += count;
    }
    return queue.finish();
  }
  void expect_filled(const String& name, std::uint64_t bytes) {
    std::ifstream file(name.c_str(), std::ios::binary);
    const std::vector<char> found{std::istreambuf_iterator<char>(file), {}};
    ASSERT_EQ(found.size(), bytes) << name;
    for (std::uint64_t i = 0; i < bytes; ++i)
      ASSERT_EQ(static_cast<std::uint8_t>(found[i]), byte_at(i)) << name << " at " << i;
  }
  std::string folder_;
};

TEST_F(Queues, AnyLengthAndDepth_TheFileIsWhatWasWritten) {
  for (const unsigned depth : WriteRates::kDepths) {
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{4096}, std::uint64_t{1} << 20,
                                      (std::uint64_t{1} << 20) + 1, (std::uint64_t{5} << 20) + 12345}) {
      const String name = path("file");
      auto queue = storage::system_files().create_queue(name, depth);
      ASSERT_TRUE(queue.ok()) << queue.status().text();
      const Status status = fill(**queue, bytes);
      EXPECT_TRUE(status.ok()) << status.text();
      expect_filled(name, bytes);
      EXPECT_FALSE(storage::system_files().create_queue(name, depth).ok()) << "never over a file that is there";
      std::filesystem::remove(name.c_str());
    }
  }
}

TEST_F(Queues, Uring_IsUsedWhereTheKernelHasIt) {
  const String name = path("file");
  const int fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  auto queue = storage::make_uring_queue(fd, false, 4);
  if (queue == nullptr) {
    ::close(fd);
    GTEST_SKIP() << "this build or this kernel has no io_uring";
  }
  const Status status = fill(*queue, (std::uint64_t{9} << 20) + 5);
  EXPECT_TRUE(status.ok()) << status.text();
  queue.reset();
  expect_filled(name, (std::uint64_t{9} << 20) + 5);
}

TEST_F(Queues, DiskThatIsFull_FailsWithItsError) {
  const int fd = ::open("/dev/full", O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  auto queue = storage::make_uring_queue(fd, false, 2);
  if (queue == nullptr) {
    ::close(fd);
    GTEST_SKIP() << "this build or this kernel has no io_uring";
  }
  const Status status = fill(*queue, std::uint64_t{8} << 20);
  EXPECT_EQ(status.code(), StatusCode::io_error);
  EXPECT_EQ(status.first(), ENOSPC);
}

TEST_F(Queues, Probe_LearnsEveryDepthAndLeavesNothing) {
  WriteRates rates;
  Report report;
  double time = 0;
  const auto clock = [&] { return time += 0.01; };
  const auto always = [](std::size_t) { return true; };
  const Status status = storage::probe_writes(storage::system_files(), path("probe"), clock, always, rates, report);
  EXPECT_TRUE(status.ok()) << report.problem;
  EXPECT_TRUE(rates.known());
  EXPECT_EQ(rates.best_depth(), 1U);  // all take 10 ms of that clock
  EXPECT_DOUBLE_EQ(rates.per_second(), (8 << 20) / 0.01);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  const auto never = [](std::size_t) { return false; };
  EXPECT_EQ(storage::probe_writes(storage::system_files(), path("probe"), clock, never, rates, report).code(),
            StatusCode::cancelled);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace quern::testing
