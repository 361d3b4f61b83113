// A hash table from packed sites to small numbers, in order of first appearance.
#pragma once

#include <cstdint>

#include <quern/memory.h>

namespace quern::codec::lidar {

class SiteTable {
 public:
  /// May throw std::bad_alloc.
  explicit SiteTable(std::size_t expected) {
    std::size_t size = 64;
    while (size < 2 * expected) size *= 2;
    slots_.assign(size, 0);
  }

  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// Number of a site; a new one gets the next. May throw std::bad_alloc.
  std::uint32_t insert(std::uint64_t site) {
    if (2 * (sites_.size() + 1) > slots_.size()) grow();
    std::size_t slot = slot_of(site);
    if (slots_[slot] == 0) {
      sites_.push_back(site);
      slots_[slot] = static_cast<std::uint32_t>(sites_.size());
    }
    return slots_[slot] - 1;
  }
  /// Its number, or kNone.
  std::uint32_t find(std::uint64_t site) const {
    const std::uint32_t found = slots_[slot_of(site)];
    return found == 0 ? kNone : found - 1;
  }
  std::size_t size() const { return sites_.size(); }
  std::uint64_t site(std::uint32_t number) const { return sites_[number]; }

 private:
  std::size_t slot_of(std::uint64_t site) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = static_cast<std::size_t>((site * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & mask;
    while (slots_[slot] != 0 && sites_[slots_[slot] - 1] != site) slot = (slot + 1) & mask;
    return slot;
  }
  void grow() {
    const std::size_t size = 2 * slots_.size();
    slots_.assign(size, 0);
    for (std::size_t i = 0; i < sites_.size(); ++i) slots_[slot_of(sites_[i])] = static_cast<std::uint32_t>(i + 1);
  }

  Vector<std::uint32_t> slots_;  ///< number + 1; 0: free
  Vector<std::uint64_t> sites_;
};

}  // namespace quern::codec::lidar
