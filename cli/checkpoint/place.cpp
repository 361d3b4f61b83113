// quern checkpoint place: nodes, parts and parity for a size, a time and a target; what a store does with them; and
// schedulers compared on a made-up workload.
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "checkpoint/placement/simulate.h"
#include "cli/args/values.h"
#include "cli/checkpoint/verb.h"
#include "cli/messages/file_report.h"

namespace quern::cli {
namespace {

namespace ck = quern::checkpoint;

constexpr std::uint64_t kMostNodesFile = 16 << 20;

std::string text(const String& s) { return {s.data(), s.size()}; }

Vector<ck::Node> read_nodes(const std::string& path) {
  ck::Report report;
  const auto bytes = ck::read_file(ck::system_files(), path, kMostNodesFile);
  if (!bytes.ok()) {
    (void)ck::fail_file(report, path, "read it", bytes.status());
    fail(Exit::io, text(report.problem));
  }
  auto nodes = ck::parse_nodes({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, report);
  if (!nodes.ok()) fail(Exit::usage, fmt::format("{}: {}", path, text(report.problem)));
  return std::move(nodes).value();
}

Exit simulate(const CheckpointArgs& args, const Vector<ck::Node>& nodes) {
  auto items = ck::make_workload(nodes, static_cast<std::size_t>(args.simulated), args.seed);
  double bytes = 0;
  for (ck::Item& item : items) {
    if (args.target_given) item.target = args.target;
    bytes += static_cast<double>(item.bytes);
  }
  Json rows = Json::array();
  std::string out = fmt::format("{:<12} {:>7} {:>7} {:>9} {:>12} {:>12}\n", "", "items", "bytes", "overhead",
                                "write s/TB", "read s/TB");
  for (const ck::Simulated& one : ck::simulate(nodes, items)) {
    rows.push_back(Json{{"scheduler", one.name},
                        {"items", one.items},
                        {"item_bytes", one.item_bytes},
                        {"stored_bytes", one.stored_bytes},
                        {"write_seconds", one.write_seconds},
                        {"read_seconds", one.read_seconds}});
    const double stored = one.item_bytes > 0 ? one.item_bytes : 1;
    out += fmt::format("{:<12} {:>7} {:>6.1f}% {:>9.3f} {:>12.0f} {:>12.0f}\n", one.name, one.items,
                       100 * one.item_bytes / bytes, one.stored_bytes / stored, one.write_seconds / stored * 1e12,
                       one.read_seconds / stored * 1e12);
  }
  if (args.run.json) {
    print_json(Json{{"items", items.size()}, {"item_bytes", bytes}, {"seed", args.seed}, {"schedulers", rows}});
  } else {
    print_text(out);
  }
  return Exit::ok;
}

ck::Scheduler scheduler_of(const std::string& name) {
  for (const ck::Scheduler one : ck::kSchedulers)
    if (name == ck::scheduler_name(one)) return one;
  fail(Exit::usage, fmt::format("--scheduler {}: unknown", name));
}

/// The chosen nodes first, in the order of the pieces, then all others that have a folder.
ck::Placement placement_of(const CheckpointArgs& args, const Vector<ck::Node>& nodes, const ck::Placed& placed) {
  ck::Placement out;
  out.data = placed.data;
  out.parity = placed.parity;
  const auto add = [&](const ck::Node& node) {
    // Whoever opens the store may stand elsewhere.
    std::error_code error;
    const auto folder = std::filesystem::absolute(std::string(node.folder), error).lexically_normal();
    std::string path = folder.string();
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    out.nodes.push_back({node.name, String(path)});
  };
  for (const std::uint32_t i : placed.nodes) {
    if (nodes[i].folder.empty())
      fail(Exit::usage, fmt::format("{}: node '{}' was chosen and has no 'folder'; a store needs one",
                                    args.inputs.front(), text(nodes[i].name)));
    add(nodes[i]);
  }
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    if (std::find(placed.nodes.begin(), placed.nodes.end(), i) == placed.nodes.end() && !nodes[i].folder.empty())
      add(nodes[i]);
  return out;
}

void check_placed(const CheckpointArgs& args, const Status& status, const ck::Report& report) {
  if (status.ok()) return;
  if (report.problem.empty()) fail_status(status, Phase::encode, args.store);
  fail(exit_for(status, Phase::encode), text(report.problem));
}

void place_store(const CheckpointArgs& args, ck::Placement placement) {
  ck::Report report;
  const ck::Store store = open_store(args.store);
  Status status = store.make_folders(report);
  if (status.ok()) status = ck::write_placement(ck::system_files(), store.root(), std::move(placement), report);
  check_placed(args, status, report);
}

Exit adopt(const CheckpointArgs& args) {
  ck::Report report;
  const ck::Store store = open_store(args.store);
  if (store.placed() == nullptr)
    fail(Exit::io,
         fmt::format("{}/placement.json: is missing; each node's folder has a copy, in quern-*/placement.json",
                     args.store));
  Status status = store.make_folders(report);
  if (status.ok()) status = ck::adopt_placement(ck::system_files(), store.root(), report);
  check_placed(args, status, report);
  if (args.run.json) print_json(Json{{"store", args.store}, {"adopted", true}});
  return Exit::ok;
}

}  // namespace

Exit run_checkpoint_place(const CheckpointArgs& args) {
  if (args.adopt) return adopt(args);
  const Vector<ck::Node> nodes = read_nodes(args.inputs.front());
  if (args.simulated != 0) return simulate(args, nodes);
  const ck::Item item{args.item_bytes, args.target, args.days};
  const auto placed = ck::place(nodes, item, scheduler_of(args.scheduler));
  if (!placed)
    fail(Exit::bound,
         fmt::format("{}: no choice of nodes has room for {} and meets --target {} over {} days; add nodes, "
                     "or lower --target or --days",
                     args.inputs.front(), size_text(args.item_bytes), args.target, args.days));
  if (!args.store.empty()) place_store(args, placement_of(args, nodes, *placed));
  Json chosen = Json::array();
  std::string out = fmt::format("{}+{}: any {} of {} nodes may be lost\n", placed->data, placed->parity, placed->parity,
                                placed->nodes.size());
  for (std::size_t i = 0; i < placed->nodes.size(); ++i) {
    const ck::Node& node = nodes[placed->nodes[i]];
    const bool is_part = i < placed->data;
    const std::string piece = fmt::format("{} {}", is_part ? "part" : "parity", is_part ? i : i - placed->data);
    chosen.push_back(Json{{"name", text(node.name)}, {"folder", text(node.folder)}, {"piece", piece}});
    out += fmt::format("  {:<10} {} {}\n", piece, text(node.name), text(node.folder));
  }
  out += fmt::format(
      "each node {}, together {}, {:.3f} times the size\n"
      "chance of a loss in {} days {:.3g}, at most {:.3g} asked for\n"
      "writing takes {:.3g} s, reading {:.3g} s\n",
      size_text(placed->piece_bytes), size_text(placed->stored_bytes()),
      static_cast<double>(placed->stored_bytes()) / static_cast<double>(args.item_bytes), args.days, placed->loss,
      1 - args.target, placed->write_seconds, placed->read_seconds);
  if (args.run.json) {
    print_json(Json{{"data", placed->data},
                    {"parity", placed->parity},
                    {"nodes", chosen},
                    {"piece_bytes", placed->piece_bytes},
                    {"stored_bytes", placed->stored_bytes()},
                    {"loss", placed->loss},
                    {"target", args.target},
                    {"days", args.days},
                    {"write_seconds", placed->write_seconds},
                    {"read_seconds", placed->read_seconds},
                    {"store", args.store.empty() ? Json(nullptr) : Json(args.store)}});
  } else if (!args.run.quiet) {
    print_text(out);
  }
  return Exit::ok;
}

}  // namespace quern::cli
