// quern lidar history: what earlier drives saw. Its works are calls of lidar/history and tables of what they say.
#include <fmt/format.h>

#include "cli/args/values.h"
#include "cli/files/file_names.h"
#include "cli/files/memory.h"
#include "cli/lidar/scans.h"
#include "cli/lidar/verb.h"
#include "cli/messages/progress.h"
#include "lidar/history/addition.h"
#include "lidar/history/care.h"
#include "lidar/history/parity.h"

namespace quern::cli {
namespace {

std::string root_text(const lidar::ContentHash& root) { return plain(storage::hex(root)); }

std::string cell_text(std::uint32_t units) { return length_text(units / 10000.0); }

Exit run_init(const LidarArgs& args) {
  lidar::Report report;
  const Status made =
      lidar::History::init(storage::system_files(), String(args.history), {args.cell_units, args.most_bytes}, report);
  if (!made.ok()) fail_history(args.history, made, report);
  if (args.run.json) {
    print_json(Json{{"history", args.history},
                    {"resolution", args.cell_units / 10000.0},
                    {"max_bytes", args.most_bytes},
                    {"version", QUERN_VERSION}});
  } else if (!args.run.quiet) {
    print_note(fmt::format("{}: an empty history of cells of {}", args.history, cell_text(args.cell_units)));
  }
  return Exit::ok;
}

/// Adds the scans of drives, or files, to an addition.
class Adder {
 public:
  Adder(const LidarArgs& args, lidar::Addition& addition) : args_(args), addition_(addition) {}

  void add_drive(const std::string& path, TaskRunner& runner) {
    DriveFile source(path, args_.run, args_.history);
    for (std::uint64_t i = 0; i < source.drive().frames(); ++i) {
      auto coded = source.read_coded(i);
      if (!coded.description.pose)
        fail(Exit::usage, fmt::format("{}: {} has no pose; add scans with --poses, or drives that were made with it",
                                      path, frame_text(i, coded.description)));
      const auto cloud = source.decode(i, coded, runner);
      source.drive().remember(i, coded.description, cloud);
      add(path, cloud, *coded.description.pose);
    }
  }

  void add_scans(const Scans& scans) {
    const auto poses = read_poses(args_.poses, scans.size());
    for (std::size_t i = 0; i < scans.size(); ++i) {
      Progress progress(scans.label(i), args_.run);
      add(scans.label(i), scans.read(i).cloud, poses[i]);
    }
  }

 private:
  void add(const std::string& path, const lidar::PointCloud& cloud, const lidar::Pose& pose) {
    if (cloud.kind != lidar::CoordinateKind::f32)
      fail(Exit::usage, path + ": a history takes scans with 32-bit coordinates in metres");
    const Status added = addition_.add(pose, lidar::unit_points(cloud.words));
    if (!added.ok())
      fail(exit_for(added, Phase::encode),
           args_.history + ": " + added.text() + "; add fewer scans at a time, or raise --memory");
  }

  const LidarArgs& args_;
  lidar::Addition& addition_;
};

Exit run_add(const LidarArgs& args) {
  const auto tiles = open_history(args.history, args.run);
  lidar::History& history = tiles->history();
  lidar::Report report;
  // Held while scans are read, too: a second writer is told before it has worked for nothing.
  const auto lock = check_history(history.lock(report), args.history, report);
  lidar::Addition addition(history.options().cell_units, memory_limit(args.run) / 2);
  Adder adder(args, addition);
  if (!args.poses.empty()) {
    adder.add_scans(Scans(args.inputs, args));
  } else {
    Execution execution;
    execution.threads = args.run.threads;
    RunnerHandle runner(execution);
    for (const std::string& path : args.inputs) {
      if (is_there(path) && !is_drive_file(path)) fail(Exit::usage, path + ": this is no drive; scans need --poses");
      adder.add_drive(path, runner.get());
    }
  }
  const auto published = addition.publish(history, report);
  if (!published.ok() && lidar::is_lost(published.status()))
    fail(Exit::stream, plain(report.problem) + "; restore it from a copy, or remove damaged epochs with quern lidar " +
                           "history gc --damaged");
  const auto added = check_history(published, args.history, report);
  for (const String& note : report.notes) print_note(plain(note));
  if (args.run.json) {
    print_json(Json{{"history", args.history},
                    {"epoch", added.epoch.number},
                    {"root", root_text(added.epoch.root)},
                    {"frames", addition.frames()},
                    {"new_cells", added.new_cells},
                    {"new_bytes", added.new_bytes},
                    {"tiles", added.tiles},
                    {"evicted_tiles", added.evicted_tiles},
                    {"version", QUERN_VERSION}});
  } else if (!args.run.quiet) {
    print_note(fmt::format("{}: epoch {} of {} scans, {} new cells in {}, {} tiles{}", args.history, added.epoch.number,
                           addition.frames(), added.new_cells, size_text(added.new_bytes), added.tiles,
                           added.evicted_tiles == 0
                               ? std::string()
                               : fmt::format(", {} left out to keep the limit", added.evicted_tiles)));
  }
  return Exit::ok;
}

Exit run_ls(const LidarArgs& args) {
  const auto tiles = open_history(args.history, args.run);
  lidar::Report report;
  const auto names = check_history(tiles->history().epochs(report), args.history, report);
  Json list = Json::array();
  std::string out;
  for (const auto& name : names) {
    const auto read = tiles->history().read(name, report);
    if (!read.ok() && !lidar::is_lost(read.status())) fail_history(args.history, read.status(), report);
    if (!read.ok()) {
      list.push_back(Json{{"epoch", name.number}, {"root", root_text(name.root)}, {"damaged", true}});
      out += fmt::format("{:>6}  {}  damaged\n", name.number, root_text(name.root));
      continue;
    }
    const lidar::Epoch& epoch = *read;
    list.push_back(Json{{"epoch", name.number},
                        {"root", root_text(name.root)},
                        {"damaged", false},
                        {"frames", epoch.frames},
                        {"tiles", epoch.tiles.size()},
                        {"cells", epoch.cells()},
                        {"bytes", epoch.bytes()}});
    out += fmt::format("{:>6}  {}  {:>6} scans  {:>6} tiles  {:>10} cells  {:>10}\n", name.number, root_text(name.root),
                       epoch.frames, epoch.tiles.size(), epoch.cells(), size_text(epoch.bytes()));
  }
  if (args.run.json) {
    print_json(Json{{"history", args.history}, {"epochs", list}, {"version", QUERN_VERSION}});
  } else {
    print_text(out);
  }
  return Exit::ok;
}

Exit run_stat(const LidarArgs& args) {
  const auto tiles = open_history(args.history, args.run);
  lidar::History& history = tiles->history();
  lidar::Report report;
  const auto names = check_history(history.epochs(report), args.history, report);
  const auto newest = history.newest(report);
  const bool is_damaged = !newest.ok() && lidar::is_lost(newest.status());
  if (!newest.ok() && !is_damaged) fail_history(args.history, newest.status(), report);
  const auto stored = check_history(history.stored_bytes(report), args.history, report);
  const lidar::Epoch epoch = is_damaged ? lidar::Epoch() : newest->value_or(lidar::Epoch());
  const auto figure = [&](std::uint64_t value) { return is_damaged ? Json(nullptr) : Json(value); };
  if (args.run.json) {
    print_json(Json{{"history", args.history},
                    {"bundle", history.is_bundle()},
                    {"resolution", history.options().cell_units / 10000.0},
                    {"max_bytes", history.options().most_bytes},
                    {"epochs", names.size()},
                    {"root", names.empty() ? Json(nullptr) : Json(root_text(names.back().root))},
                    {"damaged", is_damaged},
                    {"tiles", figure(epoch.tiles.size())},
                    {"cells", figure(epoch.cells())},
                    {"bytes", figure(epoch.bytes())},
                    {"stored_bytes", stored},
                    {"version", QUERN_VERSION}});
    return Exit::ok;
  }
  const std::uint64_t limit = history.options().most_bytes;
  const std::string newest_text =
      is_damaged ? "damaged; restore it from a copy, or remove it with quern lidar history gc --damaged"
                 : fmt::format("{} tiles, {} cells of {}, {}{}", epoch.tiles.size(), epoch.cells(),
                               cell_text(history.options().cell_units), size_text(epoch.bytes()),
                               limit == 0 ? std::string() : " of at most " + size_text(limit));
  print_text(fmt::format("{}{}\n  epochs      {}{}\n  newest      {}\n  on disk     {}\n", args.history,
                         history.is_bundle() ? " (a bundle)" : "", names.size(),
                         names.empty() ? std::string() : ", the newest " + root_text(names.back().root), newest_text,
                         size_text(stored)));
  return Exit::ok;
}

constexpr const char* kRestore = "; restore the history from a copy";

/// Epochs and tiles that the frames of drives need.
lidar::NeededTiles needed_by(const std::vector<std::string>& paths, const lidar::History& history,
                             const LidarArgs& args) {
  lidar::NeededTiles needed;
  std::map<lidar::ContentHash, lidar::Epoch> epochs;
  for (const std::string& path : paths) {
    DriveFile source(path, args.run);
    std::vector<std::optional<lidar::ContentHash>> epochs_of_frames;
    for (std::uint64_t i = 0; i < source.drive().frames(); ++i) {
      const auto frame = source.drive().describe(i);
      if (!frame.ok()) fail_frame(path, i, frame.status());
      const auto& description = frame->description;
      epochs_of_frames.push_back(description.epoch);
      if (!description.reach || description.key_distance > i) continue;
      const auto named = epochs_of_frames[static_cast<std::size_t>(i - description.key_distance)];
      if (!named) continue;
      if (epochs.count(*named) == 0) {
        lidar::Report report;
        auto epoch = history.read(*named, report);
        if (!epoch.ok()) fail_needed(path + ": ", epoch.status(), report, kRestore);
        epochs.emplace(*named, std::move(epoch).value());
      }
      for (const auto* tile : lidar::tiles_around(epochs.at(*named), *description.pose, *description.reach))
        needed[*named].insert(tile->key);
    }
  }
  return needed;
}

Exit run_gc(const LidarArgs& args) {
  const auto tiles = open_history(args.history, args.run);
  lidar::History& history = tiles->history();
  lidar::Report report;
  const auto lock = check_history(history.lock(report), args.history, report);
  lidar::CollectHistory options;
  if (args.keep) options.keep = *args.keep;
  for (const auto& [root, keys] : needed_by(args.drives, history, args)) options.roots.push_back(root);
  options.dry_run = args.dry_run;
  options.damaged_too = args.damaged_too;
  const auto collected = lidar::collect_history(history, options, report);
  if (!collected.ok() && lidar::is_lost(collected.status()) && !args.damaged_too)
    fail(Exit::stream, plain(report.problem) + "; restore it from a copy, or remove damaged epochs with --damaged");
  const auto done = check_history(collected, args.history, report);
  if (args.run.json) {
    Json removed = Json::array();
    for (const auto& name : done.removed)
      removed.push_back(Json{{"epoch", name.number}, {"root", root_text(name.root)}});
    print_json(Json{{"history", args.history},
                    {"removed", removed},
                    {"freed_bytes", done.freed_bytes},
                    {"without_parity", done.without_parity},
                    {"dry_run", args.dry_run},
                    {"version", QUERN_VERSION}});
  } else if (!args.run.quiet) {
    print_note(fmt::format("{}: {} {} epochs, {}", args.history, args.dry_run ? "would remove" : "removed",
                           done.removed.size(), size_text(done.freed_bytes)));
    if (done.without_parity != 0)
      print_note(fmt::format("{}: {} files lost their parity; type quern lidar history parity {}", args.history,
                             done.without_parity, args.history));
  }
  return Exit::ok;
}

Exit run_verify(const LidarArgs& args) {
  const auto tiles = open_history(args.history, args.run);
  lidar::Report report;
  auto found = check_history(lidar::check_history(tiles->history(), report), args.history, report);
  const auto parity = check_history(lidar::check_parity(tiles->history(), false, report), args.history, report);
  found.damage.insert(found.damage.end(), parity.damage.begin(), parity.damage.end());
  if (args.run.json) {
    Json damage = Json::array();
    for (const String& one : found.damage) damage.push_back(plain(one));
    print_json(Json{{"history", args.history},
                    {"whole", found.damage.empty()},
                    {"epochs", found.epochs},
                    {"tiles", found.tiles},
                    {"parts", found.parts},
                    {"left_out", found.left_out},
                    {"parity_sets", parity.sets},
                    {"guarded_files", parity.guarded},
                    {"unguarded_files", parity.unguarded},
                    {"damage", damage},
                    {"version", QUERN_VERSION}});
  } else if (!args.run.quiet) {
    for (const String& one : found.damage) print_text(plain(one) + "\n");
    if (found.damage.empty())
      print_text(
          fmt::format("{}: whole: {} epochs, {} parts of tiles read{}{}\n", args.history, found.epochs, found.parts,
                      found.left_out == 0 ? std::string() : fmt::format(", {} not in this bundle", found.left_out),
                      parity.sets == 0 ? std::string() : fmt::format(", parity over {} files", parity.guarded)));
    if (parity.unguarded != 0)
      print_note(fmt::format("{}: {} files have no parity yet; type quern lidar history parity {}", args.history,
                             parity.unguarded, args.history));
  }
  if (found.damage.empty()) return Exit::ok;
  if (parity.sets != 0)
    fail(Exit::stream,
         fmt::format("{}: {} things are damaged or missing; quern lidar history repair {} brings back what "
                     "parity allows, a copy of the files the rest",
                     args.history, found.damage.size(), args.history));
  fail(Exit::stream, fmt::format("{}: {} things are damaged or missing; restore the files from a copy. Damaged epochs "
                                 "go with quern lidar history gc --damaged; a damaged tile begins anew when scans are "
                                 "added there",
                                 args.history, found.damage.size()));
}

Exit run_bundle(const LidarArgs& args) {
  const auto tiles = open_history(args.history, args.run);
  const auto needed = needed_by(args.inputs, tiles->history(), args);
  if (needed.empty()) fail(Exit::usage, args.inputs.front() + ": no frame of it was predicted from a history");
  lidar::Report report;
  const Status made = tiles->history().bundle(String(args.output), needed, report);
  if (!made.ok()) fail_needed({}, made, report, kRestore);
  std::size_t count = 0;
  for (const auto& [root, keys] : needed) count += keys.size();
  if (args.run.json) {
    print_json(Json{{"output", args.output}, {"epochs", needed.size()}, {"tiles", count}, {"version", QUERN_VERSION}});
  } else if (!args.run.quiet) {
    print_note(fmt::format("{}: {} tiles of {} epochs", args.output, count, needed.size()));
  }
  return Exit::ok;
}

}  // namespace

Exit run_lidar_history(const LidarArgs& args) {
  switch (args.history_work) {
    case HistoryWork::init: return run_init(args);
    case HistoryWork::add: return run_add(args);
    case HistoryWork::ls: return run_ls(args);
    case HistoryWork::stat: return run_stat(args);
    case HistoryWork::gc: return run_gc(args);
    case HistoryWork::verify: return run_verify(args);
    case HistoryWork::bundle: return run_bundle(args);
    case HistoryWork::parity: return run_history_parity(args);
    case HistoryWork::repair: return run_history_repair(args);
  }
  return Exit::usage;
}

}  // namespace quern::cli
