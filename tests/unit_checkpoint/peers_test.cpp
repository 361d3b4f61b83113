// Parity over the memories of several keepers: every loss of as many members as parity covers is made good, bit for bit.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "checkpoint/peers/fill_from_peers.h"
#include "checkpoint/peers/unix_peers.h"
#include "checkpoint/tiers/keeper.h"
#include "libcompress/core/task_runner.h"
#include "storage/parity/erasure.h"
#include "tests/faults/simulated_disk.h"
#include "tests/faults/small_store.h"

namespace quern::testing {
namespace {

using checkpoint::PeerHoldings;
using checkpoint::PeerLayout;
using checkpoint::PeerMember;
using checkpoint::PeerRequest;
using checkpoint::PeerRound;
using checkpoint::Report;
using checkpoint::SaveOptions;
using checkpoint::Store;

TEST(PeerLayout, EverySize_StripesAndPieces_OneColumnOfEachMember) {
  for (std::uint32_t members = 2; members <= 12; ++members)
    for (std::uint32_t parity = 1; parity < members; ++parity) {
      const PeerLayout layout{members, parity};
      for (std::uint32_t stripe = 0; stripe < members; ++stripe) {
        std::uint64_t seen = 0;
        for (std::uint32_t column = 0; column < members; ++column) {
          const std::uint32_t member = layout.member(stripe, column);
          ASSERT_EQ(layout.column(stripe, member), column);
          seen |= std::uint64_t{1} << member;
        }
        ASSERT_EQ(seen, (std::uint64_t{1} << members) - 1);
      }
      for (std::uint32_t member = 0; member < members; ++member) {
        for (std::uint32_t nth = 0; nth < parity; ++nth)
          ASSERT_EQ(layout.column(layout.parity_stripe(member, nth), member), layout.data() + nth);
        for (std::uint32_t piece = 0; piece < layout.data(); ++piece)
          ASSERT_EQ(layout.piece(layout.piece_stripe(member, piece), member), piece);
      }
    }
}

constexpr std::uint32_t kBlock = 4096;  // so that columns have several

/// Members in this process, each with a memory of its own, and requests that are calls.
class Cluster final : public checkpoint::PeerTransport {
 public:
  Cluster(std::uint32_t members, std::uint32_t parity) : layout_{members, parity} {
    for (std::uint32_t i = 0; i < members; ++i) restart(i);
  }

  Result<Vector<std::uint8_t>> ask(std::uint32_t member, std::span<const std::uint8_t> request) override {
    ++asked;
    if (away.contains(member)) return Status(StatusCode::io_error, "away");
    if (--answers_left == 0) away[member] = true;
    return members_[member]->answer(request);
  }

  /// A keeper of an empty memory in the place of one that is lost.
  void restart(std::uint32_t member) {
    disks_[member] = std::make_unique<SimulatedDisk>();
    stores_[member] = std::make_unique<Store>(*disks_[member], "memory");
    members_[member] =
        std::make_unique<PeerMember>(*stores_[member], checkpoint::PeerGroup{layout_, member, kBlock}, *this);
    Report report;
    EXPECT_TRUE(stores_[member]->make_folders(report).ok() && members_[member]->prepare(report).ok()) << report.problem;
  }

  /// Members save other states: of some every value comes back, of others within a bound, one has parity within.
  void save(std::uint32_t member, std::uint64_t step, std::optional<std::uint64_t> base = {}) {
    Report report;
    SaveOptions options;
    options.step = step;
    options.base = base;
    if (member == 1) options.parity_data = options.parity_files = 1;
    const auto save_state = member % 2 == 0 ? save_small : save_small_lossy;
    const Status status = save_state(*stores_[member], options, report);
    ASSERT_TRUE(status.ok()) << report.problem;
    ASSERT_TRUE(members_[member]->hash_images(report).ok()) << report.problem;
  }
  PeerRound protect(std::uint32_t member) {
    PeerRound round;
    Report report;
    EXPECT_TRUE(members_[member]->protect(round, report).ok()) << report.problem;
    return round;
  }
  void protect_all() {
    for (std::uint32_t i = 0; i < layout_.members; ++i) protect(i);
  }
  Status fill(std::uint32_t member, Report& report) {
    SerialRunner runner;
    return checkpoint::fill_from_peers(*stores_[member], {}, *members_[member], runner, {}, {}, report);
  }
  std::vector<std::uint8_t> values(std::uint32_t member, std::uint64_t step) {
    Report report;
    auto out = restore_small(*stores_[member], step, report);
    EXPECT_TRUE(out.ok()) << member << ": " << report.problem;
    return out.ok() ? std::move(out).value() : std::vector<std::uint8_t>();
  }
  Store& store(std::uint32_t member) { return *stores_[member]; }
  SimulatedDisk& disk(std::uint32_t member) { return *disks_[member]; }
  PeerMember& member(std::uint32_t number) { return *members_[number]; }

  std::map<std::uint32_t, bool> away;
  std::uint64_t asked = 0, answers_left = 0;  ///< 0: no end

 private:
  const PeerLayout layout_;
  std::map<std::uint32_t, std::unique_ptr<SimulatedDisk>> disks_;
  std::map<std::uint32_t, std::unique_ptr<Store>> stores_;
  std::map<std::uint32_t, std::unique_ptr<PeerMember>> members_;
};

class Peers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!storage::has_erasure_coding()) GTEST_SKIP() << "a build without ISA-L";
  }
};

TEST_F(Peers, EveryLossThatParityCovers_ComesBackBitForBit) {
  for (const auto& [members, parity] : {std::pair{2U, 1U}, {3U, 1U}, {4U, 2U}, {5U, 3U}}) {
    Cluster cluster(members, parity);
    std::vector<std::vector<std::uint8_t>> was;
    for (std::uint32_t i = 0; i < members; ++i) {
      cluster.save(i, 1);
      cluster.save(i, 2, 1);
      was.push_back(cluster.values(i, 2));
    }
    EXPECT_FALSE(cluster.protect(0).safe);
    cluster.protect_all();
    ASSERT_EQ(cluster.protect(0).safe->step, 2U);
    for (std::uint32_t lost = 1; lost < 1U << members; ++lost) {
      if (std::popcount(lost) > static_cast<int>(parity)) continue;
      for (std::uint32_t i = 0; i < members; ++i)
        if ((lost >> i & 1) != 0) cluster.restart(i);
      for (std::uint32_t i = 0; i < members; ++i) {
        if ((lost >> i & 1) == 0) continue;
        Report report;
        ASSERT_TRUE(cluster.fill(i, report).ok()) << report.problem;
        ASSERT_EQ(cluster.values(i, 2), was[i]) << members << "+" << parity << ", lost " << lost << ", member " << i;
        EXPECT_FALSE(cluster.disk(i).list("memory/peers/staging").ok());
      }
      cluster.protect_all();  // what was lost of columns is made again
      ASSERT_EQ(cluster.protect(members - 1).safe->step, 2U);
    }
  }
}

TEST_F(Peers, MoreLost_NothingComesBack_AndItIsSaid) {
  Cluster cluster(4, 1);
  for (std::uint32_t i = 0; i < 4; ++i) cluster.save(i, 7);
  cluster.protect_all();
  cluster.restart(1);
  cluster.restart(3);
  Report report;
  EXPECT_TRUE(cluster.fill(1, report).ok());
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_NE(report.notes.front().find("parity covers 1"), String::npos) << report.notes.front();
  EXPECT_TRUE(cluster.store(1).list(report)->empty());
}

TEST_F(Peers, MembersThatGoAwayInTheMiddle_OthersStandIn) {
  Cluster cluster(5, 2);
  for (std::uint32_t i = 0; i < 5; ++i) cluster.save(i, 3);
  const auto was = cluster.values(2, 3);
  cluster.protect_all();
  cluster.asked = 0;
  cluster.restart(2);
  Report report;
  ASSERT_TRUE(cluster.fill(2, report).ok());
  const std::uint64_t all = cluster.asked;
  for (std::uint64_t last = 1; last <= all; ++last) {
    cluster.restart(2);
    cluster.answers_left = last;
    const Status status = cluster.fill(2, report);
    ASSERT_TRUE(status.ok()) << last << ": " << report.problem;
    ASSERT_EQ(cluster.values(2, 3), was) << last;
    cluster.away.clear();
    cluster.answers_left = 0;
  }
}

TEST_F(Peers, NewStepHalfProtected_TheSafeOneStaysAndComesBack) {
  Cluster cluster(3, 1);
  for (std::uint32_t i = 0; i < 3; ++i) cluster.save(i, 1);
  cluster.protect_all();
  for (std::uint32_t i = 0; i < 3; ++i) cluster.save(i, 2);
  cluster.save(0, 3);
  cluster.protect(0);  // the others have no columns of step 2 yet
  checkpoint::KeeperOptions options;
  options.memory_bytes = 1;
  options.stays = cluster.protect(0).safe;
  ASSERT_EQ(options.stays->step, 1U);
  Report report;
  checkpoint::KeeperState state;
  checkpoint::Kept kept;
  SimulatedDisk far;
  ASSERT_TRUE(checkpoint::keep_once(cluster.store(0), Store(far, "store"), options, state, kept, report).ok());
  EXPECT_EQ(std::vector<std::uint64_t>(kept.steps.begin(), kept.steps.end()), (std::vector<std::uint64_t>{1, 3}));
  const std::map<std::uint64_t, std::vector<std::uint8_t>> was{{1, cluster.values(2, 1)}, {2, cluster.values(2, 2)}};
  cluster.restart(2);
  ASSERT_TRUE(cluster.fill(2, report).ok()) << report.problem;
  // Step 1, or the newer one where the columns that there are happen to be enough for this member's image.
  const auto names = cluster.store(2).list(report);
  ASSERT_FALSE(names->empty());
  EXPECT_EQ(cluster.values(2, names->back().step), was.at(names->back().step));
  // What left memory takes its columns along.
  for (std::uint32_t i : {0U, 1U}) cluster.protect(i);
  EXPECT_LE(cluster.disk(0).list("memory/peers")->size(), 2U);
}

TEST_F(Peers, OthersAreAway_TheStepThatTheyHaveStaysSafe) {
  Cluster cluster(3, 1);
  for (std::uint32_t i = 0; i < 3; ++i) cluster.save(i, 1);
  cluster.protect_all();
  ASSERT_EQ(cluster.protect(0).safe->step, 1U);
  for (std::uint32_t i = 0; i < 3; ++i) cluster.save(i, 2);
  EXPECT_EQ(cluster.protect(0).made, 1U);
  cluster.away[1] = cluster.away[2] = true;
  const PeerRound round = cluster.protect(0);
  EXPECT_EQ(round.silent.size(), 2U);
  ASSERT_TRUE(round.safe);
  EXPECT_EQ(round.safe->step, 1U);
}

TEST_F(Peers, WhatACheckpointNeedsIsNotWithAll_ItIsNotSafe) {
  Cluster cluster(3, 1);
  cluster.save(0, 1);  // alone
  cluster.save(0, 2, 1);
  for (std::uint32_t i : {1U, 2U}) cluster.save(i, 2);
  cluster.protect_all();
  EXPECT_FALSE(cluster.protect(0).safe);
  EXPECT_EQ(cluster.protect(1).safe->step, 2U);
}

TEST_F(Peers, ImageThatWasNotHashed_IsNotOffered) {
  Cluster cluster(2, 1);
  Report report;
  SaveOptions options;
  options.step = 1;
  for (std::uint32_t i : {0U, 1U}) ASSERT_TRUE(save_small(cluster.store(i), options, report).ok());
  EXPECT_EQ(cluster.protect(0).made, 0U);
  EXPECT_EQ(cluster.protect(1).made, 1U);
}

TEST_F(Peers, NobodyAnswers_ANoteForEach_AndTheDiskIsStillThere) {
  Cluster cluster(3, 1);
  cluster.away[1] = cluster.away[2] = true;
  Report report;
  EXPECT_TRUE(cluster.fill(0, report).ok());
  ASSERT_EQ(report.notes.size(), 2U);
  EXPECT_NE(report.notes.front().find("member 1"), String::npos);
}

TEST_F(Peers, NewerOnTheDisk_ComesFromThere) {
  Cluster cluster(2, 1);
  for (std::uint32_t i = 0; i < 2; ++i) cluster.save(i, 1);
  cluster.protect_all();
  SimulatedDisk far;
  const Store store(far, "store");
  Report report;
  for (const std::uint64_t step : {1, 2}) {
    SaveOptions options;
    options.step = step;
    ASSERT_TRUE(save_small(store, options, report).ok());
  }
  cluster.restart(0);
  SerialRunner runner;
  ASSERT_TRUE(
      checkpoint::fill_from_peers(cluster.store(0), std::span(&store, 1), cluster.member(0), runner, {}, {}, report)
          .ok());
  EXPECT_TRUE(cluster.store(0).list(report)->empty());  // fill_memory() brings step 2
}

TEST_F(Peers, DamageInAColumn_DoesNotComeBackAsValues) {
  Cluster cluster(3, 1);
  for (std::uint32_t i = 0; i < 3; ++i) cluster.save(i, 1);
  cluster.protect_all();
  const auto names = cluster.disk(0).list("memory/peers");
  ASSERT_EQ(names->size(), 1U);
  const String path = checkpoint::join({"memory/peers/", names->front()});
  auto bytes = *checkpoint::read_file(cluster.disk(0), path, 1 << 30);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(cluster.disk(0).remove(path).ok());
  ASSERT_TRUE(checkpoint::write_fully(**cluster.disk(0).create(path), 0, bytes).ok());
  for (const std::uint32_t lost : {1U, 2U}) {
    const auto was = cluster.values(lost, 1);
    cluster.restart(lost);
    Report report;
    ASSERT_TRUE(cluster.fill(lost, report).ok());
    // One of them needs the damaged byte.
    if (!cluster.store(lost).list(report)->empty()) {
      EXPECT_EQ(cluster.values(lost, 1), was);
    }
    cluster.save(lost, 2);
  }
}

TEST(PeerMessages, CutAndFlipped_AreRefusedOrRead) {
  PeerRequest request;
  request.layout = {4, 2};
  request.kind = PeerRequest::Kind::image;
  request.id = "abc";
  request.bytes = 100;
  const auto wire = write_peer_request(request);
  ASSERT_TRUE(checkpoint::read_peer_request(wire).ok());
  PeerHoldings holdings;
  checkpoint::PeerOffer offer{3, 4, "id-1", 1000, {1, 2}};
  holdings.images = {offer, offer};
  holdings.sets.push_back({{2, 1}, 0, {offer, offer}});
  const auto list = checkpoint::write_holdings(holdings);
  ASSERT_EQ(checkpoint::read_holdings(list)->sets.front().column_bytes, 1024U);
  std::mt19937 random(7);
  for (const auto& good : {wire, list})
    for (int i = 0; i < 2000; ++i) {
      auto bad = good;
      bad.resize(random() % (good.size() + 1));
      for (int flips = static_cast<int>(random() % 3); flips > 0 && !bad.empty(); --flips)
        bad[random() % bad.size()] = static_cast<std::uint8_t>(random());
      (void)checkpoint::read_peer_request(bad);
      (void)checkpoint::read_holdings(bad);
      EXPECT_FALSE(checkpoint::open_answer(bad).ok() && bad.size() < 8);
    }
  Vector<std::uint8_t> many;  // a count of 2^32 - 1, and nothing behind it
  many.assign(4, 0xFF);
  EXPECT_FALSE(checkpoint::read_holdings(many).ok());
}

TEST_F(Peers, UnixSockets_KilledAndSilentMembers_AreMissedInTime) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("quern-peers-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  constexpr std::uint32_t kMembers = 3;
  constexpr double kSeconds = 0.5;
  Vector<String> sockets;
  for (std::uint32_t i = 0; i < kMembers; ++i) sockets.emplace_back((folder / ("s" + std::to_string(i))).c_str());
  SimulatedDisk disks[kMembers];
  std::vector<std::unique_ptr<Store>> stores;
  std::vector<std::unique_ptr<checkpoint::UnixPeers>> transports;
  std::vector<std::unique_ptr<PeerMember>> members;
  std::vector<std::unique_ptr<checkpoint::UnixPeerServer>> servers;
  Report report;
  for (std::uint32_t i = 0; i < kMembers; ++i) {
    stores.push_back(std::make_unique<Store>(disks[i], "memory"));
    transports.push_back(std::make_unique<checkpoint::UnixPeers>(sockets, 30));
    members.push_back(
        std::make_unique<PeerMember>(*stores[i], checkpoint::PeerGroup{{kMembers, 1}, i}, *transports[i]));
    SaveOptions options;
    options.step = 5;
    ASSERT_TRUE(save_small(*stores[i], options, report).ok());
    ASSERT_TRUE(members[i]->prepare(report).ok());
    ASSERT_TRUE(members[i]->hash_images(report).ok()) << report.problem;
    auto server = checkpoint::UnixPeerServer::start(sockets[i], *members[i], 30, report);
    ASSERT_TRUE(server.ok()) << report.problem;
    servers.push_back(std::move(server).value());
  }
  EXPECT_FALSE(checkpoint::UnixPeerServer::start(sockets[0], *members[0], 1, report).ok());
  for (auto& member : members) {
    PeerRound round;
    ASSERT_TRUE(member->protect(round, report).ok()) << report.problem;
    EXPECT_TRUE(round.silent.empty());
  }
  // Member 2 is lost with its memory, and comes back with an empty one.
  servers[2].reset();
  SimulatedDisk empty;
  const Store fresh(empty, "memory");
  PeerMember again(fresh, {{kMembers, 1}, 2}, *transports[2]);
  SerialRunner runner;
  ASSERT_TRUE(checkpoint::fill_from_peers(fresh, {}, again, runner, {}, {}, report).ok()) << report.problem;
  EXPECT_TRUE(check_small(fresh, 5, report).ok()) << report.problem;
  // In its place one that takes requests and says nothing.
  const int listening = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, sockets[2].data(), sockets[2].size());
  ASSERT_EQ(bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(listening, 8), 0);
  checkpoint::UnixPeers impatient(sockets, kSeconds);
  PeerMember first(*stores[0], {{kMembers, 1}, 0}, impatient);
  const auto begin = std::chrono::steady_clock::now();
  PeerRound round;
  ASSERT_TRUE(first.protect(round, report).ok()) << report.problem;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(round.silent.size(), 1U);
  close(listening);
  servers.clear();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace quern::testing
