// Options that several works of quern lidar have. Internal to the argument layer.
#pragma once

#include "cli/args/options.h"

namespace quern::cli {

inline void add_run(CLI::App& work, RawArgs& raw) {
  add_value(work, "-T,--threads", raw.threads, "N", "threads; 0 = all [1]");
  add_value(work, "--memory", raw.memory, "SIZE", "upper limit of memory, such as 512M or 4G [3/4 of the machine's]");
  add_value(work, "--progress", raw.progress, "WHEN", "auto (on a terminal), always or never [auto]");
  work.add_flag("-q,--quiet", raw.quiet, "only errors");
  work.add_flag("-v,--verbose", raw.verbose, "a line for each frame");
  work.add_flag("--json", raw.json, "one JSON object on standard output");
}

inline void add_columns(CLI::App& work, RawArgs& raw) {
  add_value(work, "--columns", raw.bin_columns, "4|5",
            ".bin files: numbers of a point, x y z intensity (KITTI) or with ring (nuScenes) [told from the file]");
  add_value(work, "--topic", raw.topic, "NAME",
            "bags of ROS 2: the topic of PointCloud2 messages, each a scan [the only one there is]");
  work.add_flag(
      "--drop-zeros", raw.drop_zeros,
      "scans: leave out points at 0 0 0, which some sensors write where nothing came back [kept as all others]");
}

inline void add_images(CLI::App& work, RawArgs& raw) {
  add_value(work, "--sensor", raw.sensor, "FILE",
            "inputs are range images of an Ouster sensor, .u32 or .npy; FILE is its metadata (JSON)");
  work.add_flag("--destaggered", raw.destaggered, "range images: rows are shifted already [as the sensor sent them]");
  add_repeatable(work, "--channel", raw.channels, "NAME=FILE", "range images: another image, as in reflectivity=r.u8");
}

inline void add_history(CLI::App& work, RawArgs& raw) {
  add_value(work, "--history", raw.history, "DIR", "the history, or a bundle of it, that frames were predicted from");
}

}  // namespace quern::cli
