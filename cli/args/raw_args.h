// The command line as CLI11 delivers it, before values are read, and the definition of every verb's options.
// Internal to the argument layer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/args/args.h"
#include "cli/checkpoint/args.h"
#include "cli/lidar/args.h"
#include "cli/offload/args.h"

namespace quern::cli {

/// Texts and flags shared by all verbs; a verb uses those it has an option for.
struct RawArgs {
  std::vector<std::string> codecs;  ///< not read: what this build has, for texts
  std::vector<std::string> files;
  std::string abs, rel, pwrel, psnr, ratio, digits, information, total_size, psnr_floor, bounds;
  std::vector<std::string> rel_list, codec_list, peers;
  bool lossless = false;
  std::string type, shape, skip, order, range;
  std::vector<std::string> fills, datasets, settings, variable_bounds;
  bool big_endian = false, strict_input = false;
  std::string codec, goal, effort;
  bool no_mask_search = false;
  std::string device, threads, memory, progress;
  bool recursive = false, skip_existing = false;
  std::string files_from;
  std::string csv, model, runs, seed, epochs, deep_epochs, experts, hidden, features, without, rows, test, calibration;
  std::vector<std::string> at_list, at_abs_list;
  bool sweep = false, families = false;
  std::string output, html, region, level, repeats;
  bool to_stdout = false, force = false, remove = false, keep_input = false, quiet = false, verbose = false,
       json = false;
  std::string verify;  ///< true: given without a word
  bool explain = false;
  bool append = false, keep_going = false, check = false, headers_only = false;
  bool optional = false, rechunk = false, rewritable = false, again = false;
  std::string store, step, base, preset, policy, replay, parity, zstd_level, group, writer, keep, keep_every, keep_best,
      shard_size, slice, hf, dtype, state_size, tensor_count, forward, backward, every, ring, throttle, target, days,
      scheduler, simulate, keeper_memory, keeper_folder, member, peer_parity;
  std::vector<std::string> roles, tensors, steps, tags, strip, model_stores, tiers;
  std::string max_error, mode, times, poses, key_every, bin_columns, topic, sensor, frame, format, history, resolution,
      max_size;
  std::vector<std::string> max_errors, modes, originals, drives, channels;
  bool no_attributes = false, destaggered = false, no_history = false, drop_zeros = false;
  std::string parameters, subgroup, forms;
  std::vector<std::string> folders;
  bool bench_tier = false, once = false, adopt = false;
  bool dry_run = false, damaged_epochs = false, full = false, replace = false;
  TrainingData training;  ///< of train autoencoder and superres
  std::string what;       ///< list codecs|devices, completion bash|zsh|fish, h5 args|pack|unpack|check
};

/// The program with its verbs as subcommands, writing into `raw`.
std::unique_ptr<CLI::App> define_program(RawArgs& raw);

/// The verb checkpoint with its works as subcommands.
void define_checkpoint(CLI::App& program, RawArgs& raw);
/// quern checkpoint place and keeper, and their readers.
void define_place(CLI::App& verb, RawArgs& raw);
void define_keeper(CLI::App& verb, RawArgs& raw);
void read_keeper(const RawArgs& raw, CheckpointArgs& out);
void read_place(const RawArgs& raw, CheckpointArgs& out);
/// Reads one of them, the verb's chosen subcommand. Throws CliError.
void read_checkpoint(const RawArgs& raw, const CLI::App& verb, const RunArgs& run, CheckpointArgs& out);

/// The verb lidar with its works as subcommands, and the reader of one of them, the verb's chosen subcommand, which
/// throws CliError.
void define_lidar(CLI::App& program, RawArgs& raw);
/// The works of quern lidar history, and the reader of one of them.
void define_lidar_history(CLI::App& verb, RawArgs& raw);
void read_lidar_history(const RawArgs& raw, const CLI::App& work, LidarArgs& out);
void read_lidar(const RawArgs& raw, const CLI::App& verb, const RunArgs& run, LidarArgs& out);

/// The verb offload with its work as subcommand, and its reader, which throws CliError.
void define_offload(CLI::App& program, RawArgs& raw);
void read_offload(const RawArgs& raw, const RunArgs& run, OffloadArgs& out);

/// The arguments of quern model and quern train; throw CliError.
void read_model_verb(const RawArgs& raw, ModelArgs& out);
void read_train(const RawArgs& raw, TrainArgs& out);

/// A completion script for the shell `raw.what`, bash, zsh or fish, made from the program's own definition.
std::string completion_script(const CLI::App& program, const RawArgs& raw);

}  // namespace quern::cli
