// The order of a scan's points, once all their sites are known. A scan walks along surfaces: the next point is looked
// for where the last ones lead to, and what is coded is its rank among the sites there that still have points, the
// nearest first. A point that lies elsewhere is named by its site.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/lidar/coding/number_coder.h"
#include "codecs/lidar/geometry/blocks.h"

namespace quern::codec::lidar {

/// The sites that still have points, in a hashed grid of cells of 2^cell_bits lattice steps.
class RemainingSites {
 public:
  static constexpr std::size_t kMostSeen = 512;

  /// Both spans outlive the object. May throw std::bad_alloc.
  RemainingSites(std::span<const Site> sites, std::span<const std::uint32_t> counts, unsigned cell_bits);

  std::uint32_t left(std::uint32_t site) const { return left_[site]; }
  /// Takes a point from a site that has one.
  void take(std::uint32_t site);
  /// Sites in the 27 cells around a place, the nearest first, lower numbers first among equals; none where there are
  /// too many to look at. Valid until the next call.
  std::span<const std::uint32_t> around(const Site& place);

 private:
  struct Seen {
    std::int64_t square;
    std::uint32_t site;
  };
  std::size_t bucket_of(const Site& cell) const;
  Site cell_of(const Site& place) const {
    return {place[0] >> cell_bits_, place[1] >> cell_bits_, place[2] >> cell_bits_};
  }

  std::span<const Site> sites_;
  Vector<std::uint32_t> left_;
  unsigned cell_bits_;
  std::size_t mask_ = 0;
  Vector<std::uint32_t> first_;  ///< of each bucket
  Vector<std::uint32_t> size_;   ///< of each bucket, as far as points are left
  Vector<std::uint32_t> entries_;
  Vector<std::uint32_t> place_;  ///< of each site in entries_
  Vector<Seen> seen_;
  Vector<std::uint32_t> ranked_;
};

/// Describes the order in both directions.
template <class Coder>
class OrderCoder {
 public:
  OrderCoder(Coder& coder, std::span<const Site> sites, RemainingSites& remaining)
      : coder_(coder), sites_(sites), remaining_(remaining) {}

  /// The site of the next point; for an encoder `site` is it. kFailed where a decoder's bytes name none.
  static constexpr std::uint32_t kFailed = UINT32_MAX;
  std::uint32_t next(std::uint32_t site = 0) {
    const auto ranked = remaining_.around(place());
    std::uint32_t result = kFailed;
    unsigned elsewhere = 1;
    std::uint64_t rank = 0;
    if (!ranked.empty()) {
      if constexpr (!Coder::kDecodes) {
        rank = static_cast<std::uint64_t>(std::find(ranked.begin(), ranked.end(), site) - ranked.begin());
        elsewhere = rank == ranked.size() ? 1 : 0;
      }
      elsewhere = code_bit(coder_, elsewhere_[was_elsewhere_], elsewhere);
    }
    if (elsewhere != 0) {
      const std::uint64_t named = name_model_.code(coder_, kernels::zigzag(std::uint64_t{site} - last_site_));
      const std::uint64_t at = last_site_ + kernels::unzigzag(named);
      if (at >= sites_.size()) return kFailed;
      result = static_cast<std::uint32_t>(at);
    } else {
      rank = rank_models_[std::min<std::uint64_t>(last_rank_, 3)].code(coder_, rank);
      if (rank >= ranked.size()) return kFailed;
      result = ranked[static_cast<std::size_t>(rank)];
      last_rank_ = rank;
    }
    if (remaining_.left(result) == 0) return kFailed;
    remaining_.take(result);
    was_elsewhere_ = elsewhere;
    last_site_ = result;
    remember(sites_[result]);
    return result;
  }

 private:
  static constexpr unsigned kMemory = 5;

  /// Where the last points lead to: one mean step of the last four beyond the last.
  Site place() const {
    if (steps_ == 0) return {};
    const Site& last = past_[(steps_ - 1) % kMemory];
    const unsigned back = std::min(steps_, kMemory) - 1;
    if (back == 0) return last;
    const Site& first = past_[(steps_ - 1 - back) % kMemory];
    Site place;
    for (unsigned axis = 0; axis < 3; ++axis)
      place[axis] = last[axis] + (last[axis] - first[axis]) / static_cast<std::int64_t>(back);
    return place;
  }
  /// A jump ends a walk.
  void remember(const Site& site) {
    if (was_elsewhere_ != 0) steps_ = 0;
    past_[steps_ % kMemory] = site;
    ++steps_;
    if (steps_ == 2 * kMemory) steps_ = kMemory;
  }

  Coder& coder_;
  std::span<const Site> sites_;
  RemainingSites& remaining_;
  std::array<Site, kMemory> past_{};
  unsigned steps_ = 0;
  std::uint64_t last_site_ = 0;
  std::uint64_t last_rank_ = 0;
  unsigned was_elsewhere_ = 1;
  std::array<Counter, 2> elsewhere_;
  NumberModel name_model_;
  std::array<NumberModel, 4> rank_models_;
};

/// Codes the order in which points visit their sites. May throw std::bad_alloc.
Vector<std::uint8_t> encode_order(std::span<const Site> sites, std::span<const std::uint32_t> counts,
                                  std::span<const std::uint32_t> order);
/// The inverse; `order` has as many elements as the counts have points. Any bytes are safe; fails with `corrupt`.
Status decode_order(std::span<const std::uint8_t> bytes, std::span<const Site> sites,
                    std::span<const std::uint32_t> counts, std::span<std::uint32_t> order);

}  // namespace quern::codec::lidar
