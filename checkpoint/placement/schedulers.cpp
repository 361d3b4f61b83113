#include "checkpoint/placement/schedulers.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "checkpoint/placement/loss.h"

namespace quern::checkpoint {
namespace {

using Order = Vector<std::uint32_t>;

/// One item, and the nodes in the orders that schedulers take them in.
class Planner {
 public:
  Planner(std::span<const Node> nodes, const Item& item) : nodes_(nodes), item_(item) {
    for (const Node& node : nodes) chances_.push_back(failure_chance(node.yearly_failures, item.days));
    reliable_ = sorted([&](std::uint32_t i) { return chances_[i]; });
    roomy_ = sorted([&](std::uint32_t i) { return -static_cast<double>(nodes[i].free()); });
    fast_ = sorted([&](std::uint32_t i) { return -nodes[i].write_rate; });
    empty_ = sorted([&](std::uint32_t i) { return used_part(i, 0); });
  }

  const Order& reliable() const { return reliable_; }
  const Order& roomy() const { return roomy_; }
  const Order& fast() const { return fast_; }
  const Order& empty() const { return empty_; }
  std::uint32_t most_pieces() const {
    return static_cast<std::uint32_t>(std::min<std::size_t>(nodes_.size(), kMostPieces));
  }

  /// The first nodes of an order that have room, with so much parity; nothing where the target is missed.
  std::optional<Placed> attempt(const Order& order, std::uint32_t count, std::uint32_t parity) const {
    Placed out;
    out.data = count - parity;
    out.parity = parity;
    out.piece_bytes = (item_.bytes + out.data - 1) / out.data;
    for (const std::uint32_t i : order) {
      if (nodes_[i].free() < out.piece_bytes) continue;
      out.nodes.push_back(i);
      if (out.nodes.size() == count) break;
    }
    if (out.nodes.size() < count) return std::nullopt;
    Vector<double> chances;
    for (const std::uint32_t i : out.nodes) chances.push_back(chances_[i]);
    out.loss = chance_of_more(chances, parity);
    if (!(out.loss <= 1 - item_.target)) return std::nullopt;
    std::sort(out.nodes.begin(), out.nodes.end(), [&](std::uint32_t a, std::uint32_t b) {
      return nodes_[a].read_rate != nodes_[b].read_rate ? nodes_[a].read_rate > nodes_[b].read_rate : a < b;
    });
    const auto piece = static_cast<double>(out.piece_bytes);
    for (const std::uint32_t i : out.nodes)
      out.write_seconds = std::max(out.write_seconds, piece / nodes_[i].write_rate);
    out.read_seconds = piece / nodes_[out.nodes[out.data - 1]].read_rate;
    return out;
  }

  /// For each number of nodes the fewest parity files that meet the target.
  template <class Take>
  void each(const Order& order, const Take& take) const {
    for (std::uint32_t count = 2; count <= most_pieces(); ++count) {
      for (std::uint32_t parity = 1; parity < count; ++parity) {
        if (auto placed = attempt(order, count, parity)) {
          take(std::move(*placed));
          break;
        }
      }
    }
  }

  /// Of a node that got so much more.
  double used_part(std::uint32_t i, std::uint64_t more) const {
    const double bytes = static_cast<double>(nodes_[i].bytes);
    return bytes == 0 ? 1 : (static_cast<double>(nodes_[i].used) + static_cast<double>(more)) / bytes;
  }

  /// Bytes on each node at a price that grows with how full it is.
  double price(const Placed& placed) const {
    double sum = 0;
    for (const std::uint32_t i : placed.nodes) {
      const double used = used_part(i, placed.piece_bytes);
      double price = 1 + used;  // to its eighth power, 1 to 256
      for (int square = 0; square < 3; ++square) price *= price;
      sum += price;
    }
    return sum * static_cast<double>(placed.piece_bytes);
  }

  /// How unlike the used parts of the nodes would be: the sum of their distances from the mean.
  double imbalance(const Placed& placed) const {
    Vector<std::uint64_t> more(nodes_.size(), 0);
    for (const std::uint32_t i : placed.nodes) more[i] = placed.piece_bytes;
    Vector<double> filled;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) filled.push_back(used_part(i, more[i]));
    const double mean = std::accumulate(filled.begin(), filled.end(), 0.0) / static_cast<double>(filled.size());
    double sum = 0;
    for (const double one : filled) sum += std::abs(one - mean);
    return sum;
  }

 private:
  template <class Key>
  Order sorted(const Key& key) const {
    Order out(nodes_.size());
    std::iota(out.begin(), out.end(), 0U);
    std::stable_sort(out.begin(), out.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    return out;
  }

  std::span<const Node> nodes_;
  const Item& item_;
  Vector<double> chances_;
  Order reliable_, roomy_, fast_, empty_;
};

/// The candidate with the least cost; of equal ones the first.
class Best {
 public:
  void offer(Placed&& placed, double cost, double second) {
    if (best_ && !(cost < cost_ || (cost == cost_ && second < second_))) return;
    best_ = std::move(placed);
    cost_ = cost;
    second_ = second;
  }
  std::optional<Placed> take() { return std::move(best_); }

 private:
  std::optional<Placed> best_;
  double cost_ = 0, second_ = 0;
};

/// The first nodes of an order that store the fewest bytes. In the order of reliability no other set stores less, for of
/// n nodes those that fail least allow the fewest parity files.
std::optional<Placed> fewest_bytes(const Planner& planner, const Order& order) {
  Best best;
  planner.each(order, [&](Placed&& one) {
    const auto bytes = static_cast<double>(one.stored_bytes());
    const double seconds = one.write_seconds;
    best.offer(std::move(one), bytes, seconds);
  });
  return best.take();
}

std::optional<Placed> balanced(const Planner& planner) {
  Best best;
  for (const Order* const order : {&planner.roomy(), &planner.reliable()})
    planner.each(*order, [&](Placed&& one) {
      const double imbalance = planner.imbalance(one);
      const auto bytes = static_cast<double>(one.stored_bytes());
      best.offer(std::move(one), imbalance, bytes);
    });
  return best.take();
}

std::optional<Placed> saturation(const Planner& planner) {
  // A wide code needs room on many nodes: what fills those that are nearly full must store much less elsewhere.
  Best best;
  for (const Order* const order : {&planner.empty(), &planner.roomy(), &planner.reliable(), &planner.fast()})
    planner.each(*order, [&](Placed&& one) {
      const double cost = planner.price(one), seconds = one.write_seconds;
      best.offer(std::move(one), cost, seconds);
    });
  return best.take();
}

}  // namespace

std::optional<Placed> place(std::span<const Node> nodes, const Item& item, Scheduler scheduler) {
  const Planner planner(nodes, item);
  switch (scheduler) {
    case Scheduler::min_storage: return fewest_bytes(planner, planner.reliable());
    case Scheduler::least_used: return fewest_bytes(planner, planner.roomy());
    case Scheduler::balanced: return balanced(planner);
    case Scheduler::saturation: return saturation(planner);
  }
  return std::nullopt;
}

std::optional<Placed> place_fixed(std::span<const Node> nodes, const Item& item, std::uint32_t data,
                                  std::uint32_t parity) {
  const Planner planner(nodes, item);
  auto placed = planner.attempt(planner.roomy(), data + parity, parity);
  return placed ? placed : planner.attempt(planner.reliable(), data + parity, parity);
}

}  // namespace quern::checkpoint
