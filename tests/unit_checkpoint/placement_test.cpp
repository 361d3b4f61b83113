// The choice of nodes, parts and parity: chances against all subsets, sizes against all choices, schedulers against what
// they promise.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "checkpoint/placement/loss.h"
#include "checkpoint/placement/simulate.h"

namespace quern::testing {
namespace {

using checkpoint::Item;
using checkpoint::Node;
using checkpoint::Placed;

/// By the definition: the sum over all subsets with more than `most` events.
double by_subsets(const std::vector<double>& chances, std::size_t most) {
  double sum = 0;
  for (std::uint32_t set = 0; set < 1U << chances.size(); ++set) {
    if (static_cast<std::size_t>(std::popcount(set)) <= most) continue;
    double product = 1;
    for (std::size_t i = 0; i < chances.size(); ++i) product *= (set >> i & 1) != 0 ? chances[i] : 1 - chances[i];
    sum += product;
  }
  return sum;
}

TEST(Placement, ChanceOfMore_AllSubsets_IsTheirSum) {
  std::mt19937_64 random(41);
  std::uniform_real_distribution<double> exponent(-9, 0);
  for (int round = 0; round < 20; ++round) {
    std::vector<double> chances(1 + random() % 10);
    for (double& chance : chances) chance = std::pow(10, exponent(random));
    if (round == 0) chances = {0, 1, 0.5, 1};
    for (std::size_t most = 0; most <= chances.size(); ++most) {
      const double expected = by_subsets(chances, most);
      EXPECT_NEAR(checkpoint::chance_of_more(chances, most), expected, expected * 1e-12) << round << " " << most;
    }
  }
}

TEST(Placement, ChanceOfMore_TinyChances_KeepsItsDigits) {
  const std::vector<double> chances(20, 1e-6);
  EXPECT_NEAR(checkpoint::chance_of_more(chances, 5), 38760 * 1e-36, 38760 * 1e-36 * 2e-5);
}

TEST(Placement, FailureChance_RatesAndDays_IsExponential) {
  EXPECT_EQ(checkpoint::failure_chance(0, 1000), 0);
  EXPECT_NEAR(checkpoint::failure_chance(1e-12, 365.25), 1e-12, 1e-23);  // 1 - exp(-x) would keep four digits
  EXPECT_DOUBLE_EQ(checkpoint::failure_chance(2, 365.25 / 2), 1 - std::exp(-1));
}

Vector<Node> made_nodes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Vector<Node> out;
  for (std::size_t i = 0; i < count; ++i) {
    Node node;
    node.name = String("n") + String(std::to_string(i).c_str());
    node.bytes = 1000 + random() % 4000;
    node.used = random() % 1000;
    node.write_rate = static_cast<double>(10 + random() % 90);
    node.read_rate = static_cast<double>(10 + random() % 90);
    node.yearly_failures = static_cast<double>(1 + random() % 200) / 1000;
    out.push_back(std::move(node));
  }
  return out;
}

/// What every choice must be, computed anew from the nodes.
void check_choice(const Vector<Node>& nodes, const Item& item, const Placed& placed) {
  ASSERT_GE(placed.data, 1U);
  ASSERT_GE(placed.parity, 1U);
  ASSERT_EQ(placed.nodes.size(), placed.data + placed.parity);
  EXPECT_GE(placed.piece_bytes * placed.data, item.bytes);
  std::vector<double> chances;
  std::vector<bool> met(nodes.size(), false);
  for (const std::uint32_t i : placed.nodes) {
    ASSERT_LT(i, nodes.size());
    EXPECT_FALSE(met[i]);
    met[i] = true;
    EXPECT_LE(placed.piece_bytes, nodes[i].bytes - nodes[i].used);
    chances.push_back(checkpoint::failure_chance(nodes[i].yearly_failures, item.days));
  }
  EXPECT_LE(by_subsets(chances, placed.parity), (1 - item.target) * (1 + 1e-9));
}

TEST(Placement, Schedulers_MadeUpNodes_RoomAndTargetHold) {
  std::size_t placed_items = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Vector<Node> nodes = made_nodes(2 + seed % 9, seed);
    const Item item{1 + seed * 97, seed % 2 == 0 ? 0.99 : 0.99999, 365.25};
    for (const auto scheduler : checkpoint::kSchedulers) {
      const auto placed = checkpoint::place(nodes, item, scheduler);
      if (!placed) continue;
      ++placed_items;
      check_choice(nodes, item, *placed);
    }
    if (const auto fixed = checkpoint::place_fixed(nodes, item, 4, 2)) {
      EXPECT_EQ(fixed->data, 4U);
      check_choice(nodes, item, *fixed);
    }
  }
  EXPECT_GT(placed_items, 60U);
}

TEST(Placement, MinStorage_EveryChoice_NoneStoresLess) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const Vector<Node> nodes = made_nodes(7, seed);
    const Item item{500 + seed * 131, seed % 3 == 0 ? 0.9999 : 0.99, 365.25};
    std::uint64_t least = UINT64_MAX;
    for (std::uint32_t set = 0; set < 1U << nodes.size(); ++set) {
      const auto count = static_cast<std::uint32_t>(std::popcount(set));
      for (std::uint32_t parity = 1; parity < count; ++parity) {
        const std::uint64_t piece = (item.bytes + count - parity - 1) / (count - parity);
        std::vector<double> chances;
        bool fits = true;
        for (std::size_t i = 0; i < nodes.size(); ++i) {
          if ((set >> i & 1) == 0) continue;
          fits = fits && nodes[i].free() >= piece;
          chances.push_back(checkpoint::failure_chance(nodes[i].yearly_failures, item.days));
        }
        if (fits && by_subsets(chances, parity) <= 1 - item.target) least = std::min(least, piece * count);
      }
    }
    const auto placed = checkpoint::place(nodes, item, checkpoint::Scheduler::min_storage);
    ASSERT_EQ(placed.has_value(), least != UINT64_MAX) << seed;
    if (placed) {
      EXPECT_EQ(placed->stored_bytes(), least) << seed;
    }
  }
}

TEST(Placement, Place_NoRoomOrNoTarget_IsNothing) {
  Vector<Node> nodes = made_nodes(5, 3);
  for (const auto scheduler : checkpoint::kSchedulers) {
    EXPECT_FALSE(checkpoint::place(nodes, {checkpoint::kMostItemBytes, 0.5, 1}, scheduler));
    EXPECT_FALSE(checkpoint::place(std::span(nodes).first(1), {1, 0.5, 1}, scheduler));
    EXPECT_FALSE(checkpoint::place(nodes, {1, 0.9999999999999999, 36525}, scheduler));
  }
  for (Node& node : nodes) node.used = node.bytes;
  EXPECT_FALSE(checkpoint::place(nodes, {1, 0.5, 1}, checkpoint::Scheduler::saturation));
}

TEST(Placement, ParseNodes_WhatIsNoList_IsRefusedByName) {
  checkpoint::Report report;
  const auto good = checkpoint::parse_nodes(
      R"({"nodes": [{"name": "a", "capacity": 4e12, "write": 2e8, "read": 4e8, "yearly_failure_rate": 0.02},
                    {"name": "b", "folder": "/mnt/b", "capacity": 9007199254740993, "used": 3, "write": 1, "read": 1,
                     "yearly_failure_rate": 0}]})",
      report);
  ASSERT_TRUE(good.ok()) << report.problem;
  EXPECT_EQ(good->at(0).bytes, 4'000'000'000'000U);
  EXPECT_EQ(good->at(1).bytes, 9007199254740993U);
  EXPECT_EQ(good->at(1).folder, "/mnt/b");
  const std::string rest = R"("write": 1, "read": 1, "yearly_failure_rate": 0)";
  const std::pair<std::string, std::string> bad[] = {
      {"[]", "nodes"},
      {R"({"nodes": []})", "1 to 1024"},
      {R"({"nodes": [{"capacity": 1, )" + rest + "}]}", "node 1: has no 'name'"},
      {R"({"nodes": [{"name": "a", )" + rest + "}]}", "node 'a': needs 'capacity'"},
      {R"({"nodes": [{"name": "a", "capacity": -1, )" + rest + "}]}", "'capacity' must be"},
      {R"({"nodes": [{"name": "a", "capacity": 1e300, )" + rest + "}]}", "'capacity' must be"},
      {R"({"nodes": [{"name": "a", "capacity": "4T", )" + rest + "}]}", "'capacity' must be"},
      {R"({"nodes": [{"name": "a", "capacity": 1, "used": 2, )" + rest + "}]}", "more than 'capacity'"},
      {R"({"nodes": [{"name": "a", "capacity": 1, "speed": 2, )" + rest + "}]}", "'speed' is not known"},
      {R"({"nodes": [{"name": "a", "capacity": 1, "write": 0, "read": 1, "yearly_failure_rate": 0}]})", "'write'"},
      {R"({"nodes": [{"name": "a", "capacity": 1, "write": 1, "read": 1, "yearly_failure_rate": 1e9}]})",
       "'yearly_failure_rate'"},
      {R"({"nodes": [{"name": "a", "capacity": 1, )" + rest + R"(}, {"name": "a", "capacity": 1, )" + rest + "}]}",
       "twice"},
  };
  for (const auto& [text, part] : bad) {
    checkpoint::Report own;
    EXPECT_FALSE(checkpoint::parse_nodes(text, own).ok()) << text;
    EXPECT_NE(own.problem.find(part), String::npos) << text << ": " << own.problem;
  }
}

TEST(Placement, Simulation_UnlikeNodes_SchedulersStoreMoreThanFixedCodes) {
  Vector<Node> nodes;
  for (const auto& [bytes, failures] : {std::pair{4e6, .003},
                                        {4e6, .011},
                                        {6e6, .008},
                                        {8e6, .014},
                                        {8e6, .025},
                                        {10e6, .006},
                                        {12e6, .009},
                                        {14e6, .018},
                                        {16e6, .035},
                                        {20e6, .012}}) {
    Node node;
    node.bytes = static_cast<std::uint64_t>(bytes);
    node.write_rate = node.read_rate = 1e6;
    node.yearly_failures = failures;
    nodes.push_back(node);
  }
  const auto items = checkpoint::make_workload(nodes, 200, 1);
  double bytes = 0;
  for (const Item& item : items) bytes += static_cast<double>(item.bytes);
  EXPECT_NEAR(bytes, 102e6, 1e3);
  const auto found = checkpoint::simulate(nodes, items);
  ASSERT_EQ(found.size(), 6U);
  for (const auto& one : found) {
    EXPECT_LE(one.stored_bytes, 102e6) << one.name;
    EXPECT_LE(one.items, items.size()) << one.name;
  }
  EXPECT_EQ(found[4].name, std::string("RS(4,2)"));
  EXPECT_EQ(found[5].items, 0U);  // 14 pieces have no place on 10 nodes
  EXPECT_GT(found[3].item_bytes, found[4].item_bytes);
  const auto again = checkpoint::simulate(nodes, checkpoint::make_workload(nodes, 200, 1));
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(again[i].item_bytes, found[i].item_bytes);
}

}  // namespace
}  // namespace quern::testing
