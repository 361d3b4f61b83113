// quern lidar history parity and repair.
#include <fmt/format.h>

#include "cli/args/values.h"
#include "cli/lidar/verb.h"
#include "lidar/history/care.h"
#include "lidar/history/parity.h"

namespace quern::cli {
namespace {

Exit drop_parity(const LidarArgs& args, lidar::History& history) {
  lidar::Report report;
  const auto removed = check_history(lidar::drop_parity(history, report), args.history, report);
  if (args.run.json) {
    print_json(Json{{"history", args.history}, {"removed_sets", removed}, {"version", QUERN_VERSION}});
  } else if (!args.run.quiet) {
    print_note(fmt::format("{}: removed {} sets of parity", args.history, removed));
  }
  return Exit::ok;
}

}  // namespace

Exit run_history_parity(const LidarArgs& args) {
  const auto tiles = open_history(args.history, args.run);
  lidar::History& history = tiles->history();
  lidar::Report report;
  const auto lock = check_history(history.lock(report), args.history, report);
  if (args.drops_parity) return drop_parity(args, history);
  std::optional<lidar::ParityNumbers> numbers;
  if (args.parity_data != 0) numbers = {args.parity_data, args.parity_files};
  const auto done = check_history(lidar::guard_history(history, numbers, report), args.history, report);
  if (args.run.json) {
    print_json(Json{{"history", args.history},
                    {"data_files", done.numbers.data},
                    {"parity_files", done.numbers.parity},
                    {"guarded_files", done.files},
                    {"made_sets", done.made_sets},
                    {"parity_bytes", done.parity_bytes},
                    {"version", QUERN_VERSION}});
  } else if (!args.run.quiet) {
    print_note(fmt::format("{}: parity {}+{} over {} files in {}; {} sets are new", args.history, done.numbers.data,
                           done.numbers.parity, done.files, size_text(done.parity_bytes), done.made_sets));
  }
  return Exit::ok;
}

Exit run_history_repair(const LidarArgs& args) {
  const auto tiles = open_history(args.history, args.run);
  lidar::History& history = tiles->history();
  lidar::Report report;
  const auto lock = check_history(history.lock(report), args.history, report);
  const auto done = check_history(lidar::check_parity(history, true, report), args.history, report);
  if (done.sets == 0) {
    const auto whole = check_history(lidar::check_history(history, report), args.history, report);
    if (!whole.damage.empty())
      fail(Exit::stream,
           fmt::format("{}: {} things are damaged or missing, and there is no parity; restore the files from "
                       "a copy. quern lidar history verify {} names them",
                       args.history, whole.damage.size(), args.history));
    if (!args.run.quiet)
      print_note(fmt::format("{}: is whole, and has no parity; type quern lidar history parity {}", args.history,
                             args.history));
  }
  if (args.run.json) {
    Json mended = Json::array(), damage = Json::array();
    for (const String& one : done.mended) mended.push_back(plain(one));
    for (const String& one : done.damage) damage.push_back(plain(one));
    print_json(Json{{"history", args.history},
                    {"mended", mended},
                    {"damage", damage},
                    {"guarded_files", done.guarded},
                    {"unguarded_files", done.unguarded},
                    {"version", QUERN_VERSION}});
  } else if (!args.run.quiet) {
    for (const String& one : done.mended) print_text(plain(one) + ": brought back\n");
    for (const String& one : done.damage) print_text(plain(one) + "\n");
    if (done.mended.empty() && done.damage.empty())
      print_note(args.history + ": nothing that parity guards is damaged");
  }
  if (done.damage.empty()) return Exit::ok;
  fail(Exit::stream, fmt::format("{}: {} things are damaged beyond their parity; restore the files from a copy",
                                 args.history, done.damage.size()));
}

}  // namespace quern::cli
