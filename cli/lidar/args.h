// quern lidar: what the user asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/args/run_args.h"

namespace quern::cli {

enum class LidarWork { compress, decompress, info, verify, compare, bench, history };
enum class HistoryWork { init, add, ls, stat, gc, verify, bundle, parity, repair };
enum class LidarMode { set, points, exact };

struct LidarArgs {
  LidarWork work = LidarWork::info;
  HistoryWork history_work = HistoryWork::ls;
  std::vector<std::string> inputs;
  std::string output;
  bool force = false;
  std::vector<std::uint64_t> max_errors_nm;                   ///< bench: several; else at most one; empty: mode exact
  std::vector<LidarMode> modes;                               ///< bench: several; else exactly one
  std::string sensor;                                         ///< metadata of range images; empty: inputs are none
  bool is_destaggered = false;                                ///< range images
  std::vector<std::pair<std::string, std::string>> channels;  ///< images beside ranges: name and file
  std::string topic;                                          ///< of bags; empty: the only one with scans
  unsigned bin_columns = 0;                                   ///< 0: told from the file
  bool drop_attributes = false;
  bool drops_zeros = false;  ///< of scans that are read: points at the origin
  std::string poses;         ///< file with a pose a line; empty: none
  std::uint64_t key_every = 16;
  std::string history;                ///< folder; empty: none
  bool keep_going = false;            ///< without frames whose history is missing
  std::uint32_t cell_units = 200;     ///< history init: a side of a cell, in 0.1 mm
  std::uint64_t most_bytes = 0;       ///< history init; 0: no limit
  std::optional<std::uint64_t> keep;  ///< history gc: epochs
  std::vector<std::string> drives;    ///< history gc: whose epochs stay
  bool damaged_too = false;           ///< history gc: damaged epochs go
  bool dry_run = false;
  std::uint32_t parity_data = 0;  ///< history parity: files of a set; 0: as they are
  std::uint32_t parity_files = 0;
  bool drops_parity = false;
  std::string times;  ///< file with a time a line; empty: none
  std::optional<std::uint64_t> frame;
  std::string format;  ///< empty: by the output's name, else as the frame was
  std::vector<std::string> originals;
  std::string html;
  unsigned repeats = 3;
  RunArgs run;

  /// Whether compress codes one frame after the other: each may be predicted from those before it.
  bool is_in_turn() const { return !poses.empty() || !history.empty(); }
};

}  // namespace quern::cli
