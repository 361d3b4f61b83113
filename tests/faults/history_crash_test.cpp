// Every operation of making, extending, collecting, bundling, guarding and mending a history is made to fail in every way; whatever is
// left must be the old state or the new one, whole, and the history must go on working.
#include <gtest/gtest.h>

#include <map>

#include "lidar/history/addition.h"
#include "lidar/history/care.h"
#include "lidar/history/parity.h"
#include "storage/parity/erasure.h"
#include "tests/faults/everywhere.h"
#include "tests/support/instrumented.h"

namespace quern::testing {
namespace {

using lidar::Addition;
using lidar::EpochName;
using lidar::History;
using lidar::Report;

constexpr std::size_t kLeastPoints = kInstrumented ? 20 : 300;
const String kRoot = "streets";

/// Points of a scan: a wall that moves on from day to day, so that each day has cells that others have not.
Vector<lidar::UnitPoint> wall(std::int64_t day) {
  Vector<lidar::UnitPoint> points;
  for (std::int64_t i = 0; i < 60; ++i) points.push_back({100'000 + 700 * i * day, 40'000 + 9'000 * i, 250 * i});
  return points;
}

Result<EpochName> add_day(SimulatedDisk& disk, std::int64_t day) {
  Report report;
  QUERN_ASSIGN_OR_RETURN(auto history, History::open(disk, kRoot, report));
  QUERN_ASSIGN_OR_RETURN(const auto lock, history.lock(report));
  Addition addition(history.options().cell_units);
  QUERN_RETURN_IF_ERROR(addition.add(lidar::Pose(), wall(day)));
  QUERN_ASSIGN_OR_RETURN(const auto added, addition.publish(history, report));
  return added.epoch;
}

Status make_empty(SimulatedDisk& disk) {
  Report report;
  return History::init(disk, kRoot, {200, 0}, report);
}

Status collect(SimulatedDisk& disk, std::uint64_t keep) {
  Report report;
  QUERN_ASSIGN_OR_RETURN(auto history, History::open(disk, kRoot, report));
  QUERN_ASSIGN_OR_RETURN(const auto lock, history.lock(report));
  lidar::CollectHistory options;
  options.keep = keep;
  return lidar::collect_history(history, options, report).status();
}

/// Roots of the epochs of a history in which nothing is damaged or missing.
Vector<EpochName> whole_epochs(SimulatedDisk& disk, const String& root, const std::string& where) {
  Report report;
  auto history = History::open(disk, root, report);
  EXPECT_TRUE(history.ok()) << where << ": " << report.problem;
  if (!history.ok()) return {};
  const auto check = lidar::check_history(*history, report);
  EXPECT_TRUE(check.ok()) << where << ": " << report.problem;
  if (check.ok()) {
    EXPECT_TRUE(check->damage.empty()) << where << ": " << (check->damage.empty() ? "" : check->damage.front());
  }
  return history->epochs(report).value();
}

bool has(const Vector<EpochName>& names, const EpochName& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(HistoryCrash, Init_NothingOrEmpty) {
  const auto counts =
      crash_everywhere(SimulatedDisk(), make_empty, [](SimulatedDisk& disk, bool succeeded, const std::string& where) {
        Report report;
        if (succeeded) {
          EXPECT_TRUE(History::open(disk, kRoot, report).ok()) << where << ": " << report.problem;
        }
        // Whatever is there, the next attempt works.
        if (!History::open(disk, kRoot, report).ok()) {
          EXPECT_TRUE(make_empty(disk).ok()) << where;
        }
        EXPECT_TRUE(add_day(disk, 1).ok()) << where;
        return !::testing::Test::HasFailure();
      });
  EXPECT_GE(counts.points, kLeastPoints);
}

TEST(HistoryCrash, Add_OldEpochsUntouchedNewOneWholeOrNot) {
  SimulatedDisk before;
  ASSERT_TRUE(make_empty(before).ok());
  const auto first = add_day(before, 1);
  ASSERT_TRUE(first.ok());
  std::size_t old_state = 0, new_state = 0;
  const auto counts = crash_everywhere(
      before, [](SimulatedDisk& disk) { return add_day(disk, 2).status(); },
      [&](SimulatedDisk& disk, bool succeeded, const std::string& where) {
        const auto names = whole_epochs(disk, kRoot, where);
        EXPECT_TRUE(has(names, *first)) << where;
        EXPECT_LE(names.size(), 2U) << where;
        if (succeeded) {
          EXPECT_EQ(names.size(), 2U) << where;
        }
        ++(names.size() == 2 ? new_state : old_state);
        const auto next = add_day(disk, 3);
        EXPECT_TRUE(next.ok()) << where;
        EXPECT_EQ(whole_epochs(disk, kRoot, where).size(), names.size() + 1) << where;
        const auto left = disk.list(storage::join({kRoot, "/tmp"}));
        EXPECT_TRUE(left.ok() && left->empty()) << where;
        return !::testing::Test::HasFailure();
      });
  EXPECT_GE(counts.points, kLeastPoints);
  EXPECT_GT(old_state, 0U);
  EXPECT_GT(new_state, 0U);
}

TEST(HistoryCrash, Collect_NewestEpochsStayWhole) {
  SimulatedDisk before;
  ASSERT_TRUE(make_empty(before).ok());
  EpochName newest;
  // The first day's segment loses all its parts but a few: tiles are merged when they have eight.
  for (std::int64_t day = 1; day <= 11; ++day) {
    const auto added = add_day(before, day);
    ASSERT_TRUE(added.ok());
    newest = *added;
  }
  const auto counts = crash_everywhere(
      before, [](SimulatedDisk& disk) { return collect(disk, 1); },
      [&](SimulatedDisk& disk, bool succeeded, const std::string& where) {
        const auto names = whole_epochs(disk, kRoot, where);
        EXPECT_TRUE(has(names, newest)) << where;
        if (succeeded) {
          EXPECT_EQ(names.size(), 1U) << where;
        }
        EXPECT_TRUE(collect(disk, 1).ok()) << where;
        EXPECT_EQ(whole_epochs(disk, kRoot, where).size(), 1U) << where;
        return !::testing::Test::HasFailure();
      });
  EXPECT_GE(counts.points, kLeastPoints);
}

TEST(HistoryCrash, Bundle_WholeOrNot) {
  SimulatedDisk before;
  ASSERT_TRUE(make_empty(before).ok());
  const auto first = add_day(before, 1);
  ASSERT_TRUE(first.ok());
  const auto bundle = [&](SimulatedDisk& disk) -> Status {
    Report report;
    QUERN_ASSIGN_OR_RETURN(auto history, History::open(disk, kRoot, report));
    return history.bundle("copy", {{first->root, {{0, 0, 0}, {7, 7, 7}}}}, report);
  };
  const auto counts =
      crash_everywhere(before, bundle, [&](SimulatedDisk& disk, bool succeeded, const std::string& where) {
        EXPECT_TRUE(has(whole_epochs(disk, kRoot, where), *first)) << where;
        if (succeeded || disk.exists("copy")) {
          EXPECT_TRUE(has(whole_epochs(disk, "copy", where), *first)) << where;
        } else {
          EXPECT_TRUE(bundle(disk).ok()) << where;
        }
        return !::testing::Test::HasFailure();
      });
  EXPECT_GE(counts.points, kLeastPoints);
}

Status guard(SimulatedDisk& disk) {
  Report report;
  QUERN_ASSIGN_OR_RETURN(auto history, History::open(disk, kRoot, report));
  QUERN_ASSIGN_OR_RETURN(const auto lock, history.lock(report));
  return lidar::guard_history(history, lidar::ParityNumbers{4, 2}, report).status();
}

/// What parity says of a history; with `mend` what it mends.
lidar::ParityCheck parity_of(SimulatedDisk& disk, bool mend, const std::string& where) {
  Report report;
  auto history = History::open(disk, kRoot, report);
  EXPECT_TRUE(history.ok()) << where << ": " << report.problem;
  if (!history.ok()) return {};
  const auto lock = history->lock(report);
  auto check = lidar::check_parity(*history, mend, report);
  EXPECT_TRUE(check.ok()) << where << ": " << report.problem;
  return check.ok() ? std::move(check).value() : lidar::ParityCheck();
}

void expect_guarded(SimulatedDisk& disk, const std::string& where) {
  const auto check = parity_of(disk, false, where);
  EXPECT_TRUE(check.damage.empty()) << where << ": " << (check.damage.empty() ? "" : check.damage.front());
  EXPECT_GT(check.sets, 0U) << where;
  EXPECT_EQ(check.unguarded, 0U) << where;
}

SimulatedDisk guarded_days(std::int64_t days) {
  SimulatedDisk disk;
  EXPECT_TRUE(make_empty(disk).ok());
  for (std::int64_t day = 1; day <= days; ++day) {
    EXPECT_TRUE(add_day(disk, day).ok());
    if (day + 1 == days) {
      EXPECT_TRUE(guard(disk).ok());
    }
  }
  return disk;
}

TEST(HistoryCrash, Guard_LosesNothingAndWorksAgain) {
  if (!storage::has_erasure_coding()) GTEST_SKIP() << "built without ISA-L";
  const SimulatedDisk before = guarded_days(3);
  const auto counts =
      crash_everywhere(before, guard, [](SimulatedDisk& disk, bool succeeded, const std::string& where) {
        EXPECT_EQ(whole_epochs(disk, kRoot, where).size(), 3U) << where;
        if (succeeded) expect_guarded(disk, where);
        EXPECT_TRUE(guard(disk).ok()) << where;
        expect_guarded(disk, where);
        return !::testing::Test::HasFailure();
      });
  EXPECT_GE(counts.points, kLeastPoints);
}

TEST(HistoryCrash, Repair_BringsBackAllSoonerOrLater) {
  if (!storage::has_erasure_coding()) GTEST_SKIP() << "built without ISA-L";
  SimulatedDisk before = guarded_days(2);
  ASSERT_TRUE(guard(before).ok());
  std::map<std::string, std::vector<std::uint8_t>> whole;
  const auto files = before.all_files();
  for (const std::string& file : files)
    if (file.find("/tmp/") == std::string::npos && file.find("/lock") == std::string::npos)
      whole[file] = before.bytes_of(file);
  std::size_t damaged = 0;
  for (const std::string& file : files) {
    if (damaged == 0 && file.find("/segments/") != std::string::npos) {
      ++damaged;
      ASSERT_TRUE(before.remove(file).ok());
    } else if (damaged == 1 && file.find("/segments/") != std::string::npos) {
      ++damaged;
      before.bytes_of(file)[40] ^= 1;
    }
  }
  ASSERT_EQ(damaged, 2U);
  const auto repair = [](SimulatedDisk& disk) -> Status {
    Report report;
    QUERN_ASSIGN_OR_RETURN(auto history, History::open(disk, kRoot, report));
    QUERN_ASSIGN_OR_RETURN(const auto lock, history.lock(report));
    return lidar::check_parity(history, true, report).status();
  };
  const auto counts =
      crash_everywhere(before, repair, [&](SimulatedDisk& disk, bool succeeded, const std::string& where) {
        const auto again = parity_of(disk, true, where);
        EXPECT_TRUE(again.damage.empty()) << where;
        if (succeeded) {
          EXPECT_TRUE(again.mended.empty()) << where;
        }
        for (const auto& [file, bytes] : whole) EXPECT_EQ(disk.bytes_of(file), bytes) << where << ": " << file;
        EXPECT_EQ(whole_epochs(disk, kRoot, where).size(), 2U) << where;
        return !::testing::Test::HasFailure();
      });
  EXPECT_GE(counts.points, kLeastPoints);
}

TEST(HistoryCrash, CollectWithParity_GuardsNothingThatIsGone) {
  if (!storage::has_erasure_coding()) GTEST_SKIP() << "built without ISA-L";
  SimulatedDisk before = guarded_days(11);
  const auto counts = crash_everywhere(
      before, [](SimulatedDisk& disk) { return collect(disk, 1); },
      [&](SimulatedDisk& disk, bool, const std::string& where) {
        EXPECT_FALSE(whole_epochs(disk, kRoot, where).empty()) << where;
        // At most parity files are missing: no set waits for a file that the collection removed.
        for (const String& sentence : parity_of(disk, false, where).damage)
          EXPECT_NE(sentence.find("/parity/"), String::npos) << where << ": " << sentence;
        EXPECT_TRUE(collect(disk, 1).ok()) << where;
        EXPECT_EQ(whole_epochs(disk, kRoot, where).size(), 1U) << where;
        EXPECT_TRUE(guard(disk).ok()) << where;
        expect_guarded(disk, where);
        return !::testing::Test::HasFailure();
      });
  EXPECT_GE(counts.points, kLeastPoints);
}

}  // namespace
}  // namespace quern::testing
