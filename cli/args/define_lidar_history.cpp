// Options of quern lidar history, and how their texts are read.
#include <algorithm>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/args/lidar_options.h"
#include "cli/args/parity_numbers.h"
#include "cli/args/values.h"
#include "lidar/history/tile.h"

namespace quern::cli {
namespace {

constexpr std::uint64_t kUnitNm = 100'000;  // 0.1 mm
constexpr std::uint64_t kMostEpochs = 999'999'999;

CLI::App& add_history_work(CLI::App& verb, RawArgs& raw, const char* name, const char* what) {
  CLI::App& work = *verb.add_subcommand(name, what);
  work.add_option("DIR", raw.history, "the history's folder")->required()->type_name("");
  return work;
}

void define_changing(CLI::App& verb, RawArgs& raw) {
  CLI::App& init = add_history_work(verb, raw, "init", "make an empty history");
  add_value(init, "--resolution", raw.resolution, "LENGTH", "a side of a cell, 5mm to 4m; it must go into 32 m [2cm]");
  add_value(init, "--max-size", raw.max_size, "SIZE",
            "most bytes of an epoch's tiles, such as 10G; those not seen for the longest time are left out [no limit]");
  add_run(init, raw);
  init.footer("Examples:\n  quern lidar history init streets\n  quern lidar history init streets --max-size 20G\n");

  CLI::App& add = add_history_work(verb, raw, "add", "add what scans saw, as a new epoch");
  add.add_option("IN", raw.files, "drives with poses; or scans, with --poses")->required()->type_name("");
  add_value(add, "--poses", raw.poses, "FILE", "a pose for each scan, as for compress");
  add_columns(add, raw);
  add_images(add, raw);
  add_run(add, raw);
  add.footer(
      "Drives that were predicted from this history are decoded with it.\n"
      "Examples:\n"
      "  quern lidar history add streets drive.qnl\n"
      "  quern lidar history add streets velodyne/ --poses poses.txt\n");

  CLI::App& gc = add_history_work(verb, raw, "gc", "remove old epochs and what no epoch needs");
  add_value(gc, "--keep", raw.keep, "N", "keep the N newest epochs [all]");
  add_repeatable(gc, "--drive", raw.drives, "DRIVE", "keep the epochs of this drive, too; repeatable");
  gc.add_flag("--damaged", raw.damaged_epochs,
              "remove epochs whose files are damaged, too; --keep does not count them");
  gc.add_flag("--dry-run", raw.dry_run, "only say what would go");
  add_run(gc, raw);
  gc.footer(
      "A drive that was predicted from an epoch can only be read as long as the epoch is there, or a bundle of it.\n"
      "Examples:\n"
      "  quern lidar history gc streets --keep 60 --drive drive.qnl\n"
      "  quern lidar history gc streets --keep 60 --dry-run\n"
      "  quern lidar history gc streets --damaged\n");
}

void define_parity(CLI::App& verb, RawArgs& raw) {
  CLI::App& parity =
      add_history_work(verb, raw, "parity", "write parity over all files, from which lost ones come back");
  add_value(
      parity, "--parity", raw.parity, "K+M|none",
      "sets of K files with M parity files, any M of which may be lost; none: remove all parity [as before, 8+2]");
  add_run(parity, raw);
  parity.footer(
      "Again after scans were added or old epochs removed: sets that are full stay, new files come into new ones.\n"
      "Examples:\n"
      "  quern lidar history parity streets\n"
      "  quern lidar history parity streets --parity 10+3\n");
  CLI::App& repair = add_history_work(verb, raw, "repair", "bring back what parity allows, bit for bit");
  add_run(repair, raw);
  repair.footer(
      "Exit code 3 when something cannot be brought back.\nExamples:\n  quern lidar history repair streets\n");
}

void define_looking(CLI::App& verb, RawArgs& raw) {
  CLI::App& ls = add_history_work(verb, raw, "ls", "list epochs");
  add_run(ls, raw);
  ls.footer("Examples:\n  quern lidar history ls streets\n");
  CLI::App& stat = add_history_work(verb, raw, "stat", "say what the history holds and takes");
  add_run(stat, raw);
  stat.footer("Examples:\n  quern lidar history stat streets\n");
  CLI::App& verify = add_history_work(verb, raw, "verify", "read everything and compare it with its hashes");
  add_run(verify, raw);
  verify.footer("Exit code 3 when something is damaged or missing.\nExamples:\n  quern lidar history verify streets\n");
  CLI::App& bundle = add_history_work(verb, raw, "bundle", "copy what drives need into a small history of their own");
  bundle.add_option("DRIVE", raw.files, "drives")->required()->type_name("");
  bundle.add_option("-o,--output", raw.output, "the bundle, a new folder")->type_name("OUT")->required();
  add_run(bundle, raw);
  bundle.footer("Examples:\n  quern lidar history bundle streets drive.qnl -o drive.history\n");
}

}  // namespace

void define_lidar_history(CLI::App& verb, RawArgs& raw) {
  CLI::App& history = *verb.add_subcommand("history", "what earlier drives saw, to predict scans from");
  history.require_subcommand(1);
  define_changing(history, raw);
  define_parity(history, raw);
  define_looking(history, raw);
  history.footer("'quern lidar history WORK --help' has options and examples.");
}

void read_lidar_history(const RawArgs& raw, const CLI::App& work, LidarArgs& out) {
  const std::pair<const char*, HistoryWork> works[] = {
      {"init", HistoryWork::init},     {"add", HistoryWork::add},       {"ls", HistoryWork::ls},
      {"stat", HistoryWork::stat},     {"gc", HistoryWork::gc},         {"verify", HistoryWork::verify},
      {"bundle", HistoryWork::bundle}, {"parity", HistoryWork::parity}, {"repair", HistoryWork::repair}};
  for (const auto& [name, one] : works)
    if (work.get_name() == name) out.history_work = one;
  if (out.history.empty()) fail(Exit::usage, "DIR: the name of the history's folder is empty");
  if (out.history_work == HistoryWork::add && out.drops_zeros && out.poses.empty())
    fail(Exit::usage, "--drop-zeros is about scans, which need --poses: give it to the compress that makes the drive");
  if (out.history_work == HistoryWork::bundle && out.output.empty())
    fail(Exit::usage, "-o: the output's name is empty");
  if (!raw.resolution.empty()) {
    const std::uint64_t nm = parse_length(raw.resolution, "--resolution");
    if (nm % kUnitNm != 0 || !lidar::is_cell_size(nm / kUnitNm))
      fail(Exit::usage,
           fmt::format("--resolution {}: use a length that goes into 32 m, as in 2cm, 5cm or 10cm", raw.resolution));
    out.cell_units = static_cast<std::uint32_t>(nm / kUnitNm);
  }
  if (!raw.max_size.empty()) out.most_bytes = parse_size(raw.max_size, "--max-size");
  if (!raw.keep.empty()) {
    out.keep = parse_count(raw.keep, "--keep", kMostEpochs);
    if (*out.keep == 0) fail(Exit::usage, "--keep 0: would remove everything; keep at least 1");
  }
  if (raw.parity == "none") {
    out.drops_parity = true;
  } else if (!raw.parity.empty()) {
    const ParityNumbers numbers = parse_parity(raw.parity);
    out.parity_data = numbers.data;
    out.parity_files = numbers.parity;
  }
  out.drives = raw.drives;
  out.damaged_too = raw.damaged_epochs;
  out.dry_run = raw.dry_run;
}

}  // namespace quern::cli
