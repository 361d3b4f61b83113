// A store that is spread over nodes: where files lie, what comes back after nodes are lost, what is refused.
#include <gtest/gtest.h>

#include <bit>
#include <cerrno>

#include "checkpoint/tiers/copy_checkpoint.h"
#include "storage/forwarding_files.h"
#include "storage/parity/erasure.h"
#include "tests/faults/placed_nodes.h"
#include "tests/faults/small_store.h"

namespace quern::testing {
namespace {

using checkpoint::Report;
using checkpoint::SaveOptions;
using checkpoint::Store;

/// A node that answers everything with an I/O error.
class DeadNode final : public storage::ForwardingFiles {
 public:
  DeadNode(storage::FileSystem& files, std::string folder) : ForwardingFiles(files), prefix_(std::move(folder) + "/") {}
  Result<std::unique_ptr<storage::File>> open(std::string_view path) override {
    return is_dead(path) ? dead() : ForwardingFiles::open(path);
  }
  Status remove(std::string_view path) override { return is_dead(path) ? dead() : ForwardingFiles::remove(path); }
  Status remove_folder(std::string_view path) override {
    return is_dead(path) ? dead() : ForwardingFiles::remove_folder(path);
  }
  Status sync_folder(std::string_view path) override {
    return is_dead(path) ? dead() : ForwardingFiles::sync_folder(path);
  }
  Result<Vector<String>> list(std::string_view path) override {
    return is_dead(path) ? dead() : ForwardingFiles::list(path);
  }

 private:
  static Status dead() { return {StatusCode::io_error, "the node is dead", EIO}; }
  bool is_dead(std::string_view path) const { return path.starts_with(prefix_); }
  std::string prefix_;
};

class PlacedStore : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!storage::has_erasure_coding()) GTEST_SKIP() << "built without ISA-L";
    place(3, 2, 6);
  }
  void place(std::uint32_t data, std::uint32_t parity, std::size_t nodes) {
    ASSERT_TRUE(place_small(disk_, data, parity, nodes, report_).ok()) << report_.problem;
  }
  static Store open(SimulatedDisk& disk) {
    Report report;
    auto store = Store::open(disk, "store", report);
    EXPECT_TRUE(store.ok()) << report.problem;
    return std::move(store).value();
  }
  Status save(std::uint64_t step, std::optional<std::uint64_t> base = {}, bool share = true) {
    SaveOptions options;
    options.step = step;
    options.search_equal = share;
    options.base = base;
    options.least_shared_bytes = 0;
    return save_small(open(disk_), options, report_);
  }
  /// Files of nodes, and of the store, whose path has this in it.
  static std::size_t count(const SimulatedDisk& disk, const std::string& folder, const std::string& part) {
    std::size_t out = 0;
    for (const std::string& path : disk.all_files())
      if (path.find(folder + "/") == 0 && path.find(part) != std::string::npos) ++out;
    return out;
  }
  /// All but the copy of the placement that a node has.
  void lose_own_folder() {
    std::string copy;
    for (const std::string& path : disk_.all_files())
      if (path.find("node4/") == 0 && path.find("/placement.json") != std::string::npos) copy = path;
    const std::vector<std::uint8_t> bytes = disk_.bytes_of(copy);
    lose(disk_, "store");
    ASSERT_TRUE(disk_.make_folder("store").ok());
    const auto file = disk_.create("store/placement.json");
    ASSERT_TRUE(file.ok() && storage::write_fully(**file, 0, bytes).ok());
  }
  /// Mends everything; the first problem, empty: all is whole.
  static std::string repair(SimulatedDisk& disk) {
    Report report;
    const Store store = open(disk);
    EXPECT_TRUE(store.make_folders(report).ok()) << report.problem;
    const auto names = checkpoint::names_to_repair(store, report);
    EXPECT_TRUE(names.ok()) << report.problem;
    SerialRunner runner;
    for (const auto& name : *names) {
      const auto finding = checkpoint::repair_checkpoint(store, name, runner);
      if (!finding.good) return std::string(finding.problems.front().c_str());
    }
    return {};
  }
  static void expect_whole(SimulatedDisk& disk, std::initializer_list<std::uint64_t> steps, const std::string& where) {
    const Store store = open(disk);
    for (const std::uint64_t step : steps) {
      Report report;
      EXPECT_TRUE(check_small(store, step, report).ok()) << where << ": " << report.problem;
    }
  }

  SimulatedDisk disk_;
  Report report_;
};

TEST_F(PlacedStore, Save_ChosenNodes_OneFileOnEach) {
  ASSERT_TRUE(save(1).ok()) << report_.problem;
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(count(disk_, node_folder(i), i < 3 ? "/part-" : "/parity-"), 1U) << i;
    EXPECT_EQ(count(disk_, node_folder(i), i < 3 ? "/parity-" : "/part-"), 0U) << i;
    EXPECT_EQ(count(disk_, node_folder(i), "/manifest"), 1U) << i;
  }
  EXPECT_EQ(count(disk_, "node5", "/data/"), 0U);
  EXPECT_EQ(count(disk_, "store", "/part-") + count(disk_, "store", "/parity-"), 0U);
  expect_whole(disk_, {1}, "saved");
}

TEST_F(PlacedStore, Repair_EveryErasure_AllBackOrRefused) {
  ASSERT_TRUE(save(1).ok()) << report_.problem;
  ASSERT_TRUE(save(2, 1).ok()) << report_.problem;
  std::size_t mended = 0, refused = 0;
  for (std::uint32_t lost = 0; lost < 1U << 6; ++lost) {
    SimulatedDisk disk(disk_);
    lose_nodes(disk, lost);
    const std::string where = "nodes lost: " + std::to_string(lost);
    const std::string problem = repair(disk);
    if (std::popcount(lost & 31) <= 2) {
      EXPECT_EQ(problem, "") << where;
      expect_whole(disk, {1, 2}, where);
      ++mended;
      continue;
    }
    EXPECT_NE(problem.find("part-000"), std::string::npos) << where << ": " << problem;
    ++refused;
    // Nothing was made of what is left.
    for (const std::string& path : disk.all_files()) {
      if (path.find("node") == 0) {
        EXPECT_EQ(disk.bytes_of(path), disk_.bytes_of(path)) << where;
      }
    }
  }
  EXPECT_EQ(mended, 32U);
  EXPECT_EQ(refused, 32U);
}

TEST_F(PlacedStore, Repair_NodeGone_FreeNodeThenOwnFolder) {
  ASSERT_TRUE(save(1).ok()) << report_.problem;
  lose_nodes(disk_, 1U << 0 | 1U << 4);
  ASSERT_EQ(repair(disk_), "");
  EXPECT_EQ(count(disk_, "node5", "/part-") + count(disk_, "node5", "/parity-"), 1U);
  EXPECT_EQ(count(disk_, "store", "/part-") + count(disk_, "store", "/parity-"), 1U);
  lose_nodes(disk_, 1U << 1 | 1U << 5);
  ASSERT_EQ(repair(disk_), "");
  expect_whole(disk_, {1}, "two more lost");
}

TEST_F(PlacedStore, Repair_DamagedFile_MendedWhereItIs) {
  ASSERT_TRUE(save(1).ok()) << report_.problem;
  for (const std::string& path : disk_.all_files())
    if (path.find("/part-0001") != std::string::npos) disk_.bytes_of(path)[5000] ^= 1;
  ASSERT_EQ(repair(disk_), "");
  EXPECT_EQ(count(disk_, "node1", "/part-0001"), 1U);
  EXPECT_EQ(count(disk_, "", "/part-0001"), 0U);
  expect_whole(disk_, {1}, "mended");
}

TEST_F(PlacedStore, Repair_OwnFolderLost_CopyOfPlacementBringsItBack) {
  ASSERT_TRUE(save(1).ok()) << report_.problem;
  ASSERT_TRUE(save(2).ok()) << report_.problem;
  lose_own_folder();
  lose_nodes(disk_, 1U << 2);
  ASSERT_EQ(repair(disk_), "");
  expect_whole(disk_, {1, 2}, "own folder lost");
}

TEST_F(PlacedStore, OwnFolderLost_PlacedAgainWithMoreParts_SmallCodeComesBack) {
  const auto place_as = [&](std::uint32_t data, std::uint32_t parity) {
    checkpoint::Placement placement;
    placement.data = data;
    placement.parity = parity;
    for (std::size_t i = 0; i < 6; ++i) placement.nodes.push_back({node_folder(i).c_str(), node_folder(i).c_str()});
    ASSERT_TRUE(checkpoint::write_placement(disk_, "store", placement, report_).ok()) << report_.problem;
  };
  place_as(1, 2);
  ASSERT_TRUE(save(1).ok()) << report_.problem;
  place_as(4, 2);
  ASSERT_TRUE(save(2, {}, false).ok()) << report_.problem;
  lose_own_folder();
  // A save does not take what repair could bring back.
  ASSERT_TRUE(open(disk_).make_folders(report_).ok());
  SimulatedDisk other(disk_);
  SaveOptions options;
  options.step = 3;
  ASSERT_TRUE(save_small(open(other), options, report_).ok()) << report_.problem;
  for (SimulatedDisk* const disk : {&disk_, &other}) {
    // One damaged copy hides no other.
    for (const std::string& path : disk->all_files())
      if (path.find("node0/") == 0 && path.ends_with("/manifest")) disk->bytes_of(path)[20] ^= 1;
    ASSERT_EQ(repair(*disk), "");
    expect_whole(*disk, {1, 2}, "own folder lost");
  }
}

TEST_F(PlacedStore, Repair_LostPieceOnSpare_HasCopyOfManifestThere) {
  ASSERT_TRUE(save(1).ok()) << report_.problem;
  lose_nodes(disk_, 1U << 0);
  ASSERT_EQ(repair(disk_), "");
  EXPECT_EQ(count(disk_, "node5", "/manifest"), 1U);
  EXPECT_EQ(count(disk_, "node5", "/part-0000"), 1U);
}

TEST_F(PlacedStore, Repair_SpareRefuses_NextPlace) {
  ASSERT_TRUE(save(1).ok()) << report_.problem;
  lose_nodes(disk_, 1U << 0);
  disk_.on_open([](std::string_view path) {
    const bool refuses = path.starts_with("node5/") && path.find("/tmp/") != std::string_view::npos;
    return refuses ? Status(StatusCode::io_error, "read-only", EROFS) : Status();
  });
  ASSERT_EQ(repair(disk_), "");
  EXPECT_EQ(count(disk_, "store", "/part-0000"), 1U);
  expect_whole(disk_, {1}, "mended elsewhere");
}

TEST_F(PlacedStore, Save_NodesOfAnotherFolder_RefusedUntilAdopted) {
  ASSERT_TRUE(save(1).ok()) << report_.problem;
  for (const std::string& path : disk_.all_files())
    if (path.ends_with("/owner")) disk_.bytes_of(path)[0] ^= 1;
  EXPECT_FALSE(save(2).ok());
  EXPECT_NE(report_.problem.find("place --adopt --store store"), String::npos) << report_.problem;
  EXPECT_FALSE(checkpoint::collect(open(disk_), {}, report_).ok());
  EXPECT_FALSE(checkpoint::names_to_repair(open(disk_), report_).ok());
  expect_whole(disk_, {1}, "read all the same");
  ASSERT_TRUE(checkpoint::adopt_placement(disk_, "store", report_).ok()) << report_.problem;
  EXPECT_TRUE(save(2).ok()) << report_.problem;
}

TEST_F(PlacedStore, Save_OpenedBeforePlace_IsRefused) {
  const Store before(disk_, "store");
  SaveOptions options;
  options.step = 1;
  EXPECT_FALSE(save_small(before, options, report_).ok());
  EXPECT_NE(report_.problem.find("open the store again"), String::npos) << report_.problem;
  EXPECT_FALSE(checkpoint::collect(before, {}, report_).ok());
}

TEST_F(PlacedStore, PlaceAgain_GroupSavedInPart_IsRefused) {
  checkpoint::Placement placement = *open(disk_).placed()->placement();
  ASSERT_TRUE(disk_.make_folder("store/tmp/group").ok());
  ASSERT_TRUE(disk_.create("store/tmp/group/sub-0000").ok());
  EXPECT_FALSE(checkpoint::write_placement(disk_, "store", placement, report_).ok());
  EXPECT_NE(report_.problem.find("store/tmp/group"), String::npos) << report_.problem;
}

TEST_F(PlacedStore, PlaceAgain_FormerNodeUnmounted_NotWrittenBelow) {
  checkpoint::Placement placement = *open(disk_).placed()->placement();
  placement.nodes.resize(5);
  lose_nodes(disk_, 1U << 5);
  ASSERT_TRUE(disk_.make_folder("node5").ok());
  ASSERT_TRUE(checkpoint::write_placement(disk_, "store", placement, report_).ok()) << report_.problem;
  EXPECT_TRUE(disk_.list("node5")->empty());
}

TEST_F(PlacedStore, Place_NodeInAnother_IsRefused) {
  ASSERT_TRUE(disk_.make_folder("node0/inner").ok());
  checkpoint::Placement placement;
  placement.data = 1;
  placement.parity = 1;
  placement.nodes = {{"a", "node0/inner"}, {"b", "node0"}};
  EXPECT_FALSE(checkpoint::write_placement(disk_, "store", placement, report_).ok());
  EXPECT_NE(report_.problem.find("lies in"), String::npos) << report_.problem;
}

TEST_F(PlacedStore, SaveAndCollect_NodeDead_GoOn) {
  ASSERT_TRUE(save(1, {}, false).ok()) << report_.problem;
  for (const std::size_t node : {5, 0}) {
    DeadNode files(disk_, node_folder(node));
    const auto store = Store::open(files, "store", report_);
    ASSERT_TRUE(store.ok()) << report_.problem;
    SaveOptions options;
    options.step = 2;
    EXPECT_EQ(save_small(*store, options, report_).ok(), node == 5) << report_.problem;
    if (node == 5) continue;
    checkpoint::CollectOptions collect;
    collect.remove = {2};
    ASSERT_TRUE(checkpoint::collect(*store, collect, report_).ok()) << report_.problem;
    EXPECT_EQ(count(disk_, "node1", "/data/"), 2U);
    EXPECT_EQ(count(disk_, "node0", "/data/"), 4U);
  }
  ASSERT_TRUE(checkpoint::collect(open(disk_), {}, report_).ok()) << report_.problem;
  EXPECT_EQ(count(disk_, "node0", "/data/"), 2U);
  expect_whole(disk_, {1}, "collected");
}

TEST_F(PlacedStore, Save_NodeAway_RefusedByNameAndNothingLeft) {
  ASSERT_TRUE(save(1).ok()) << report_.problem;
  lose_nodes(disk_, 1U << 3);
  EXPECT_FALSE(save(2).ok());
  EXPECT_NE(report_.problem.find("node 'n3'"), String::npos) << report_.problem;
  EXPECT_NE(report_.problem.find("checkpoint place"), String::npos) << report_.problem;
  EXPECT_EQ(count(disk_, "store", "/tmp/"), 0U);
}

TEST_F(PlacedStore, Save_OtherParity_IsRefused) {
  SaveOptions options;
  options.step = 1;
  options.parity_data = 4;
  options.parity_files = 2;
  EXPECT_FALSE(save_small(open(disk_), options, report_).ok());
  EXPECT_NE(report_.problem.find("3+2"), String::npos) << report_.problem;
  options.parity_data = 3;
  EXPECT_TRUE(save_small(open(disk_), options, report_).ok()) << report_.problem;
}

TEST_F(PlacedStore, Collect_PlacedCheckpoint_GoneOnEveryNode) {
  ASSERT_TRUE(save(1, {}, false).ok()) << report_.problem;
  ASSERT_TRUE(save(2, {}, false).ok()) << report_.problem;
  const std::size_t before = count(disk_, "node0", "/data/");
  checkpoint::CollectOptions options;
  options.keep = 1;
  ASSERT_TRUE(checkpoint::collect(open(disk_), options, report_).ok()) << report_.problem;
  EXPECT_EQ(before, 4U);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(count(disk_, node_folder(i), "/data/"), 2U) << i;
  expect_whole(disk_, {2}, "collected");
}

TEST_F(PlacedStore, PlacedAgain_OtherNodes_OldStaysNewGoesThere) {
  ASSERT_TRUE(save(1).ok()) << report_.problem;
  const Store reader = open(disk_);  // knows the former placement
  checkpoint::Placement placement;
  placement.data = 1;
  placement.parity = 2;
  for (const char* name : {"node7", "node8", "node2"}) {
    ASSERT_TRUE(disk_.make_folder(name).ok() || std::string(name) == "node2");
    placement.nodes.push_back({name, name});
  }
  ASSERT_TRUE(checkpoint::write_placement(disk_, "store", placement, report_).ok()) << report_.problem;
  ASSERT_TRUE(save(2).ok()) << report_.problem;
  EXPECT_EQ(count(disk_, "node7", "/part-"), 1U);
  expect_whole(disk_, {1, 2}, "placed again");
  EXPECT_TRUE(check_small(reader, 2, report_).ok()) << report_.problem;
  lose_nodes(disk_, 1U << 7 | 1U << 8);
  ASSERT_EQ(repair(disk_), "");
  expect_whole(disk_, {1, 2}, "new nodes lost");
}

TEST_F(PlacedStore, Place_FoldersThatAreOne_AreRefused) {
  checkpoint::Placement placement;
  placement.data = 1;
  placement.parity = 1;
  placement.nodes = {{"a", "node0"}, {"b", "store"}};
  EXPECT_FALSE(checkpoint::write_placement(disk_, "store", placement, report_).ok());
  EXPECT_NE(report_.problem.find("'b'"), String::npos) << report_.problem;
  placement.nodes = {{"a", "node0"}, {"b", "store/data"}};
  EXPECT_FALSE(checkpoint::write_placement(disk_, "store", placement, report_).ok());
  placement.nodes = {{"a", "node0"}, {"b", "node0"}};
  EXPECT_FALSE(checkpoint::write_placement(disk_, "store", placement, report_).ok());
  placement.nodes = {{"a", "node0"}, {"b", "nowhere"}};
  EXPECT_FALSE(checkpoint::write_placement(disk_, "store", placement, report_).ok());
  EXPECT_NE(report_.problem.find("nowhere"), String::npos) << report_.problem;
  ASSERT_TRUE(save(1).ok()) << report_.problem;
  EXPECT_EQ(count(disk_, node_folder(4), "/parity-"), 1U);  // as it was placed first
}

TEST_F(PlacedStore, Open_HostilePlacement_IsRefused) {
  const std::string good(reinterpret_cast<const char*>(disk_.bytes_of("store/placement.json").data()),
                         disk_.bytes_of("store/placement.json").size());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), with("\"data\": 3", "\"data\": 0"),
        with("\"data\": 3", "\"data\": 4294967297"), with("\"parity\": 2", "\"parity\": 63"), with("\"n1\"", "\"n0\""),
        with("\"node1\"", "\"node0\""), with("\"node1\"", "\"\""), with("\"store\": \"", "\"store\": \"../"),
        with("\"nodes\"", "\"nodez\"")}) {
    disk_.bytes_of("store/placement.json").assign(text.begin(), text.end());
    Report report;
    EXPECT_EQ(Store::open(disk_, "store", report).status().code(), StatusCode::corrupt) << text;
    EXPECT_NE(report.problem.find("placement.json"), String::npos) << report.problem;
  }
}

TEST_F(PlacedStore, CopyThere_OtherParity_IsRefused) {
  const Store plain(disk_, "plain");
  SaveOptions options;
  options.step = 1;
  ASSERT_TRUE(save_small(plain, options, report_).ok()) << report_.problem;
  const auto name = plain.list(report_)->front();
  EXPECT_EQ(checkpoint::copy_checkpoint(plain, open(disk_), name, {}, report_).status().code(),
            StatusCode::unsupported);
  EXPECT_NE(report_.problem.find("3+2"), String::npos) << report_.problem;
  // Without its nodes the store is no place for copies.
  EXPECT_EQ(checkpoint::copy_checkpoint(plain, Store(disk_, "store"), name, {}, report_).status().code(),
            StatusCode::unsupported);
  options.parity_data = 3;
  options.parity_files = 2;
  options.step = 2;
  options.search_equal = false;
  ASSERT_TRUE(save_small(plain, options, report_).ok()) << report_.problem;
  const auto fits = plain.list(report_)->back();
  ASSERT_TRUE(checkpoint::copy_checkpoint(plain, open(disk_), fits, {}, report_).ok()) << report_.problem;
  EXPECT_EQ(count(disk_, "node4", "/parity-"), 1U);
  lose_nodes(disk_, 1U << 1 | 1U << 3);
  ASSERT_EQ(repair(disk_), "");
  expect_whole(disk_, {2}, "copied");
  // And back out of the nodes.
  const Store other(disk_, "other");
  ASSERT_TRUE(checkpoint::copy_checkpoint(open(disk_), other, fits, {}, report_).ok()) << report_.problem;
  EXPECT_TRUE(check_small(other, 2, report_).ok()) << report_.problem;
}

}  // namespace
}  // namespace quern::testing
