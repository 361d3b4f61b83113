// The ring: room in any order, contiguous for readers; and the choice between copying and coding.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "checkpoint/engine/rates.h"
#include "checkpoint/engine/segment_ring.h"

namespace quern::testing {
namespace {

using checkpoint::Report;
using checkpoint::RingPlace;
using checkpoint::SegmentRing;

constexpr std::uint64_t kSegment = SegmentRing::kSegmentBytes;

std::unique_ptr<SegmentRing> ring_of(std::uint64_t segments) {
  Report report;
  auto ring = SegmentRing::open(segments * kSegment, report);
  EXPECT_TRUE(ring.ok()) << report.problem;
  return std::move(ring).value();
}

void fill(RingPlace& place, std::uint8_t seed) {
  for (std::uint64_t i = 0; i < place.bytes; ++i) place.data[i] = static_cast<std::uint8_t>(seed + i * 7);
}

bool is_filled(const RingPlace& place, std::uint8_t seed) {
  for (std::uint64_t i = 0; i < place.bytes; ++i)
    if (place.data[i] != static_cast<std::uint8_t>(seed + i * 7)) return false;
  return true;
}

TEST(Ring, Open_SmallerThanASegment_Refused) {
  Report report;
  EXPECT_FALSE(SegmentRing::open(kSegment - 1, report).ok());
  EXPECT_NE(report.problem.find("smaller than a segment"), String::npos) << report.problem;
}

TEST(Ring, Take_SegmentsFreedInAnyOrder_OneTensorOverThem) {
  const auto ring = ring_of(6);
  std::vector<RingPlace> places;
  for (int i = 0; i < 6; ++i) places.push_back(std::move(*ring->take(kSegment)));
  EXPECT_FALSE(ring->take(1).has_value());
  fill(places[1], 1);
  fill(places[4], 4);
  for (const int i : {5, 0, 2}) ring->give_back(places[i]);
  auto scattered = ring->take(3 * kSegment - 100);
  ASSERT_TRUE(scattered.has_value());
  EXPECT_NE(scattered->view, nullptr);
  fill(*scattered, 9);
  EXPECT_TRUE(is_filled(*scattered, 9));
  EXPECT_TRUE(is_filled(places[1], 1));
  EXPECT_TRUE(is_filled(places[4], 4));
  ring->give_back(*scattered);
  EXPECT_EQ(ring->free_bytes(), 3 * kSegment);
  EXPECT_EQ(ring->peak_bytes(), 6 * kSegment);
}

TEST(Ring, Take_SmallTensors_ShareSegments) {
  const auto ring = ring_of(1);
  std::vector<RingPlace> places;
  while (auto place = ring->take(1000)) places.push_back(std::move(*place));
  EXPECT_GE(places.size(), kSegment / 1024 - 1);
  for (std::size_t i = 0; i < places.size(); ++i) fill(places[i], static_cast<std::uint8_t>(i));
  for (std::size_t i = 0; i < places.size(); ++i) ASSERT_TRUE(is_filled(places[i], static_cast<std::uint8_t>(i))) << i;
  for (RingPlace& place : places) ring->give_back(place);
  EXPECT_EQ(ring->free_bytes(), kSegment);
  EXPECT_TRUE(ring->take(kSegment).has_value());
}

TEST(Ring, TakeAndGiveBack_ByChance_NothingIsHitAndNothingLost) {
  const auto ring = ring_of(9);
  std::mt19937 random(7);
  std::vector<std::pair<RingPlace, std::uint8_t>> places;
  std::size_t views = 0;
  for (int round = 0; round < 600; ++round) {
    const bool large = random() % 4 == 0;
    auto place = ring->take(1 + random() % (large ? 3 * kSegment : 800000));
    if (place) {
      const auto seed = static_cast<std::uint8_t>(random());
      // Ends and middle: enough to notice that two places share bytes.
      place->data[0] = place->data[place->bytes / 2] = place->data[place->bytes - 1] = seed;
      views += place->view != nullptr ? 1 : 0;
      places.emplace_back(std::move(*place), seed);
      continue;
    }
    if (places.empty()) continue;
    const std::size_t k = random() % places.size();
    auto& [old, seed] = places[k];
    ASSERT_EQ(old.data[0], seed);
    ASSERT_EQ(old.data[old.bytes / 2], seed);
    ASSERT_EQ(old.data[old.bytes - 1], seed);
    ring->give_back(old);
    places.erase(places.begin() + static_cast<std::ptrdiff_t>(k));
  }
  EXPECT_GT(views, 0U);
  for (auto& [place, seed] : places) ring->give_back(place);
  EXPECT_EQ(ring->free_bytes(), ring->total_bytes());
}

TEST(Choice, CodeFirst_FasterWayWins) {
  checkpoint::CaptureChoice choice{100, 100, 0, 1000, 50, 50};
  EXPECT_FALSE(choice.code_first());  // copied in 0.1 s, coded in 2 s
  choice.own_rate = 2000;             // it never changes: only hashed
  EXPECT_TRUE(choice.code_first());
  choice.ahead_bytes = 100;  // but 2 s of work come before it
  EXPECT_FALSE(choice.code_first());
  choice.free_bytes = 0;  // and room for a copy takes as long
  EXPECT_TRUE(choice.code_first());
  choice.code_rate = choice.own_rate = 0;  // nothing measured yet
  EXPECT_FALSE(choice.code_first());
}

TEST(Choice, MovingRate_FollowsWhatIsMeasured) {
  checkpoint::MovingRate rate;
  EXPECT_FALSE(rate.known());
  rate.add(1 << 26, 1);
  EXPECT_DOUBLE_EQ(rate.per_second(), 1 << 26);
  for (int i = 0; i < 40; ++i) rate.add(1 << 26, 0.1);
  EXPECT_NEAR(rate.per_second(), 10.0 * (1 << 26), 0.01 * (1 << 26));
}

}  // namespace
}  // namespace quern::testing
