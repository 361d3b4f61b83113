#include "checkpoint/placement/simulate.h"

#include <algorithm>
#include <cmath>

namespace quern::checkpoint {
namespace {

/// SplitMix64.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t end) { return next() % end; }

 private:
  std::uint64_t state_;
};

template <class Rule>
Simulated run(const char* name, std::span<const Node> nodes, std::span<const Item> items, const Rule& rule) {
  Vector<Node> filled(nodes.begin(), nodes.end());
  Simulated out;
  out.name = name;
  for (const Item& item : items) {
    const auto placed = rule(filled, item);
    if (!placed) continue;
    for (const std::uint32_t i : placed->nodes) filled[i].used += placed->piece_bytes;
    ++out.items;
    out.item_bytes += static_cast<double>(item.bytes);
    out.stored_bytes += static_cast<double>(placed->stored_bytes());
    out.write_seconds += placed->write_seconds;
    out.read_seconds += placed->read_seconds;
  }
  return out;
}

}  // namespace

const char* scheduler_name(Scheduler scheduler) {
  switch (scheduler) {
    case Scheduler::min_storage: return "min-storage";
    case Scheduler::least_used: return "least-used";
    case Scheduler::balanced: return "balanced";
    case Scheduler::saturation: return "saturation";
  }
  return "";
}

Vector<Item> make_workload(std::span<const Node> nodes, std::size_t count, std::uint64_t seed) {
  constexpr double kTargets[] = {0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999};
  constexpr double kDays[] = {30, 90, 365.25, 1461};
  Numbers numbers(seed);
  Vector<double> weights;
  Vector<Item> out;
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    // A power of two, and between two of them on a straight line.
    const std::uint64_t whole = std::uint64_t{1} << numbers.below(8);
    const double part = static_cast<double>(numbers.below(1U << 20)) / (1U << 20);
    weights.push_back(static_cast<double>(whole) * (1 + part));
    sum += weights.back();
    Item item;
    item.target = kTargets[numbers.below(std::size(kTargets))];
    item.days = kDays[numbers.below(std::size(kDays))];
    out.push_back(item);
  }
  double room = 0;
  for (const Node& node : nodes) room += static_cast<double>(node.free());
  for (std::size_t i = 0; i < count; ++i) {
    const double bytes = std::clamp(room * (weights[i] / sum), 1.0, static_cast<double>(kMostItemBytes));
    out[i].bytes = static_cast<std::uint64_t>(bytes);
  }
  return out;
}

Vector<Simulated> simulate(std::span<const Node> nodes, std::span<const Item> items) {
  Vector<Simulated> out;
  for (const Scheduler scheduler : kSchedulers)
    out.push_back(run(scheduler_name(scheduler), nodes, items,
                      [&](const Vector<Node>& filled, const Item& item) { return place(filled, item, scheduler); }));
  out.push_back(run("RS(4,2)", nodes, items,
                    [](const Vector<Node>& filled, const Item& item) { return place_fixed(filled, item, 4, 2); }));
  out.push_back(run("RS(10,4)", nodes, items,
                    [](const Vector<Node>& filled, const Item& item) { return place_fixed(filled, item, 10, 4); }));
  return out;
}

}  // namespace quern::checkpoint
