// Names are FAMILY-NAME_tSTEP_SHAPE.TYPE; a name without a step is a series of its own, which trains.
#include "surrogate/train/runs_table.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include <quern/shape.h>

#include "surrogate/numbers.h"

namespace quern::surrogate {
namespace {

void name_parts(Row& row) {
  const std::string& name = row.run.input;
  row.family = name.substr(0, name.find('-'));
  row.series = name;
  for (std::size_t at = name.find("_t"); at != std::string::npos; at = name.find("_t", at + 1)) {
    const std::size_t end = name.find_first_not_of("0123456789", at + 2);
    if (end == std::string::npos || end == at + 2 || name[end] != '_') continue;
    row.series = name.substr(0, at);
    row.step = std::stol(name.substr(at + 2, std::min<std::size_t>(end - at - 2, 9)));
    return;
  }
}

void set_target(Row& row, Target target, double value, double most) {
  if (!std::isfinite(value)) return;
  row.targets[target] = std::clamp(value, -most, most);
  row.known[target] = true;
}

/// False for runs that say nothing: empty arrays, or inputs of another list.
bool set_targets(Row& row) {
  const Run& run = row.run;
  const auto shape = Shape::parse(run.shape);
  if (!shape.ok() || shape->elems() == 0 || run.stream_bytes == 0 || run.inputs.size() != input_count()) return false;
  const auto dtype = parse_dtype(run.dtype);
  if (!dtype) return false;
  row.dtype = *dtype;
  const double elems = static_cast<double>(shape->elems());
  const double bits = 8 * static_cast<double>(run.stream_bytes) / elems;
  set_target(row, kRate, log2_of(bits) - base_of(run.inputs, rate_base(run.codec)), 8);
  if (run.bound_abs > 0 && run.psnr_db && *run.psnr_db < 250) {
    set_target(row, kPsnr, *run.psnr_db - base_of(run.inputs, kBasePsnr), 40);
    if (run.ssim) set_target(row, kSsim, log2_of(1 + kSsimFloor - *run.ssim) - base_of(run.inputs, kBaseSsim), 14);
    // By the bound that the codec works with, as the inputs are.
    const double used = run.power_steps ? power_of_two_below(run.bound_abs) : run.bound_abs;
    set_target(row, kMaxError, run.max_error / used, 1);
    if (run.autocorrelation) set_target(row, kAutocorrelation, *run.autocorrelation, 1);
  }
  if (run.calibration_seconds > 0) {
    const double unit = run.calibration_seconds * elems * 1e-6;
    if (run.compress_seconds > 0) set_target(row, kCompressTime, log2_of(run.compress_seconds / unit), 40);
    if (run.decompress_seconds > 0) set_target(row, kDecompressTime, log2_of(run.decompress_seconds / unit), 40);
  }
  return true;
}

/// A codec with runs that round bounds and runs that do not; empty where there is none.
std::string mixed_steps(const std::vector<Row>& rows) {
  std::map<std::string, bool> known;
  for (const Row& row : rows) {
    const auto [found, is_new] = known.emplace(row.run.codec, row.run.power_steps);
    if (!is_new && found->second != row.run.power_steps) return row.run.codec;
  }
  return {};
}

void set_parts(std::vector<Row>& rows) {
  std::map<std::string, std::set<long>> steps;
  for (const Row& row : rows) steps[row.series].insert(row.step);
  std::map<std::string, Part> held;
  std::size_t number = 0;
  for (const auto& [series, found] : steps) held[series] = ++number % 5 == 0 ? Part::intervals : Part::train;
  for (Row& row : rows) {
    const std::set<long>& found = steps[row.series];
    const std::size_t later = found.size() < 2 ? 0 : std::max<std::size_t>(found.size() / 3, 1);
    const auto rank = static_cast<std::size_t>(std::distance(found.begin(), found.find(row.step)));
    const std::size_t earlier = found.size() - later;
    row.part = rank >= earlier ? Part::test : held[row.series];
    if (earlier > 2 && rank + 1 == earlier) row.part = Part::intervals;
  }
}

}  // namespace

bool read_runs(const std::string& path, RunsTable& table, std::string& problem) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) {
    problem = path + ": cannot be read, or is empty";
    return false;
  }
  if (line != runs_header()) {
    problem =
        path + ": its columns are not those of this version's quern bench --sweep; make runs of an older version again";
    return false;
  }
  while (std::getline(file, line)) {
    Row row;
    auto run = parse_run(line);
    if (!run) {
      ++table.unread;
      continue;
    }
    if (run->status != "ok") {
      ++table.failed;
      continue;
    }
    row.run = std::move(*run);
    row.inputs = row.run.inputs;
    name_parts(row);
    if (set_targets(row)) {
      table.rows.push_back(std::move(row));
    } else {
      ++table.unread;
    }
  }
  if (table.rows.empty()) {
    problem = path + (table.unread > 0 ? ": has no run of this version; make them again with quern bench --sweep"
                                       : ": has no run that was finished");
    return false;
  }
  if (const std::string peer = mixed_steps(table.rows); !peer.empty()) {
    problem = path + ": some runs of " + peer + " are with steps=2 and some without; keep those of one kind";
    return false;
  }
  set_parts(table.rows);
  return true;
}

}  // namespace quern::surrogate
