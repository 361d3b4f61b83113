#include "codecs/lidar/geometry/cover.h"

#include <algorithm>

#include "codecs/lidar/geometry/site_table.h"

namespace quern::codec::lidar {
namespace {

/// Steps to the sites that touch a site: of a centred lattice, 8 of the other parity and 6 of its own.
Vector<std::uint64_t> touching_steps(bool centred) {
  Vector<std::uint64_t> steps;
  const int reach = centred ? 2 : 1;
  for (int x = -reach; x <= reach; ++x)
    for (int y = -reach; y <= reach; ++y)
      for (int z = -reach; z <= reach; ++z) {
        const int length = x * x + y * y + z * z;
        const bool even = x % 2 == 0 && y % 2 == 0 && z % 2 == 0;
        const bool odd = x % 2 != 0 && y % 2 != 0 && z % 2 != 0;
        if (length == 0 || (centred && !(even && length == 4) && !(odd && length == 3))) continue;
        // Borrows cancel: the sum of a packed site and a packed step is the packed sum.
        steps.push_back((static_cast<std::uint64_t>(x) << (2 * kSiteBits)) +
                        (static_cast<std::uint64_t>(y) << kSiteBits) + static_cast<std::uint64_t>(z));
      }
  return steps;
}

class Cover {
 public:
  Cover(std::span<const FinePoint> points, const Lattice& lattice, std::int64_t reach,
        std::span<const std::uint64_t> expected, bool keep_expected)
      : steps_(touching_steps(lattice.centred)), table_(points.size()), keep_expected_(keep_expected) {
    const SiteFinder finder(lattice, reach);
    first_.reserve(points.size() + 1);
    for (const FinePoint& point : points) {
      first_.push_back(candidates_.size());
      finder.each_within(point, [&](std::uint64_t site, std::int64_t) { candidates_.push_back(table_.insert(site)); });
    }
    first_.push_back(candidates_.size());
    invert();
    covered_.assign(points.size(), 0);
    bonus_.assign(table_.size(), 0);
    expected_.assign(table_.size(), 0);
    for (const std::uint64_t site : expected)
      if (const std::uint32_t number = table_.find(site); number != SiteTable::kNone)
        expected_[number] = kExpectedBonus;
  }

  Vector<std::uint64_t> run() {
    if (keep_expected_) choose_expected();
    choose_only_ones();
    for (std::uint32_t site = 0; site < table_.size(); ++site) queue(site);
    while (highest_ > 0) {
      if (buckets_[highest_].empty()) {
        --highest_;
        continue;
      }
      const std::uint32_t site = buckets_[highest_].back();
      buckets_[highest_].pop_back();
      const std::size_t score = score_of(site);
      if (score == highest_) choose(site);
      if (score != 0 && score < highest_) queue(site);
    }
    return std::move(chosen_);
  }

 private:
  static constexpr std::size_t kBuckets = 1024;
  static constexpr std::uint8_t kMostBonus = 3;
  /// An expected site is worth as much as two more points.
  static constexpr std::uint8_t kExpectedBonus = 8;

  /// Points of each site, from the sites of each point.
  void invert() {
    uncovered_.assign(table_.size(), 0);
    for (const std::uint32_t site : candidates_) ++uncovered_[site];
    first_point_.assign(table_.size() + 1, 0);
    for (std::size_t site = 0; site < table_.size(); ++site)
      first_point_[site + 1] = first_point_[site] + uncovered_[site];
    points_.resize(candidates_.size());
    Vector<std::size_t> at(first_point_.begin(), first_point_.end() - 1);
    for (std::size_t point = 0; point + 1 < first_.size(); ++point)
      for (std::size_t i = first_[point]; i < first_[point + 1]; ++i)
        points_[at[candidates_[i]]++] = static_cast<std::uint32_t>(point);
  }

  void choose_expected() {
    for (std::uint32_t site = 0; site < table_.size(); ++site)
      if (expected_[site] != 0) choose(site);
  }

  /// Points with one candidate leave no choice.
  void choose_only_ones() {
    for (std::size_t point = 0; point + 1 < first_.size(); ++point)
      if (first_[point + 1] - first_[point] == 1 && covered_[point] == 0) choose(candidates_[first_[point]]);
  }

  /// Points that a site would newly cover; expected sites and, among equals, those beside chosen sites cost fewer bits.
  std::size_t score_of(std::uint32_t site) const {
    if (uncovered_[site] == 0) return 0;
    return std::min<std::size_t>(4 * uncovered_[site] + bonus_[site] + expected_[site], kBuckets - 1);
  }
  void queue(std::uint32_t site) {
    const std::size_t score = score_of(site);
    if (score == 0) return;
    buckets_[score].push_back(site);
    highest_ = std::max(highest_, score);
  }

  void choose(std::uint32_t site) {
    chosen_.push_back(table_.site(site));
    for (std::size_t i = first_point_[site]; i < first_point_[site + 1]; ++i) {
      const std::uint32_t point = points_[i];
      if (covered_[point] != 0) continue;
      covered_[point] = 1;
      for (std::size_t k = first_[point]; k < first_[point + 1]; ++k) --uncovered_[candidates_[k]];
    }
    for (const std::uint64_t step : steps_) {
      const std::uint32_t other = table_.find(table_.site(site) + step);
      if (other == SiteTable::kNone || bonus_[other] == kMostBonus) continue;
      ++bonus_[other];
      if (highest_ > 0) queue(other);
    }
  }

  Vector<std::uint64_t> steps_;
  SiteTable table_;
  bool keep_expected_;
  Vector<std::size_t> first_;  ///< into candidates_, for each point and the end
  Vector<std::uint32_t> candidates_;
  Vector<std::size_t> first_point_;  ///< into points_, for each site and the end
  Vector<std::uint32_t> points_;
  Vector<std::uint32_t> uncovered_;  ///< of each site
  Vector<std::uint8_t> covered_;
  Vector<std::uint8_t> bonus_;
  Vector<std::uint8_t> expected_;  ///< kExpectedBonus or 0
  Vector<Vector<std::uint32_t>> buckets_ = Vector<Vector<std::uint32_t>>(kBuckets);
  std::size_t highest_ = 0;
  Vector<std::uint64_t> chosen_;
};

}  // namespace

Vector<std::uint64_t> cover(std::span<const FinePoint> points, const Lattice& lattice, std::int64_t reach,
                            std::span<const std::uint64_t> expected, bool keep_expected) {
  return Cover(points, lattice, reach, expected, keep_expected).run();
}

}  // namespace quern::codec::lidar
