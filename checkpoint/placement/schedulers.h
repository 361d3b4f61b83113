// Which nodes get the parts and the parity files of an item, and how many of each: schedulers after D-Rex (Gonthier et
// al., arXiv 2506.02026), each with a rule of its own for what is best.
//
// All of them look at sets of n nodes, the first n of an order that have room, with the fewest parity files m for which
// the chance of losing more than m nodes in time is at most 1 - target. More than these m would only store more.
#pragma once

#include <optional>
#include <span>

#include "checkpoint/placement/nodes.h"

namespace quern::checkpoint {

inline constexpr std::uint32_t kMostPieces = 64;                             ///< parts and parity files together
inline constexpr std::uint64_t kMostItemBytes = 100'000'000'000'000'000ULL;  ///< so that 64 of them can be counted

/// What is to be stored.
struct Item {
  std::uint64_t bytes = 0;  ///< 1 to kMostItemBytes
  double target = 0.99999;  ///< least chance that it can be read when `days` are over; above 0, below 1
  double days = 365.25;
};

enum class Scheduler {
  min_storage,  ///< D-Rex's GreedyMinStorage, exact: fewest bytes with parity; then the shortest time to write
  least_used,   ///< GreedyLeastUsed: of the nodes with the most room, as many as store the fewest bytes
  balanced,     ///< D-Rex LB: nodes are filled to parts that differ least
  saturation,   ///< D-Rex SC: bytes cost more on a node the fuller it is; then the shortest time
};

struct Placed {
  std::uint32_t data = 0;
  std::uint32_t parity = 0;
  Vector<std::uint32_t> nodes;    ///< places in the list: those of parts, the fastest to read first, then of parity
  std::uint64_t piece_bytes = 0;  ///< on each node, for parts of equal size
  double loss = 0;                ///< chance that more than `parity` of the nodes fail in time
  double write_seconds = 0;       ///< all nodes at once, the slowest counts
  double read_seconds = 0;        ///< of the parts alone

  std::uint64_t stored_bytes() const { return piece_bytes * nodes.size(); }
};

/// Nothing when no set of nodes has the room and meets the target. At least one part and one parity file. Deterministic:
/// of equal choices the one with fewer nodes. Time: O(nodes log nodes + pieces^3 * nodes) at most.
std::optional<Placed> place(std::span<const Node> nodes, const Item& item, Scheduler scheduler);

/// A fixed code, on the nodes with the most room where these meet the target, else on those that fail least.
std::optional<Placed> place_fixed(std::span<const Node> nodes, const Item& item, std::uint32_t data,
                                  std::uint32_t parity);

}  // namespace quern::checkpoint
