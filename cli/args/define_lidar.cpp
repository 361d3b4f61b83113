// Options of quern lidar, and how their texts are read.
#include <algorithm>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/args/lidar_options.h"
#include "cli/args/raw_args.h"
#include "cli/args/values.h"
#include "lidar/drive/frame_description.h"

namespace quern::cli {
namespace {

constexpr std::uint64_t kMostFrame = UINT64_C(1) << 59;
constexpr std::uint64_t kFineMode = 50'000'000;  // 5 cm: up to here every point is kept

void define_compress(CLI::App& verb, RawArgs& raw) {
  CLI::App& work = add_verb(verb, raw, "compress", "code scans as the frames of a drive", "IN",
                            ".bin .pcd .ply .npy .las files, one frame each; bags of ROS 2: .mcap, .db3; or folders");
  work.add_option("-o,--output", raw.output, "the drive, DRIVE.qnl")->type_name("OUT")->required();
  add_value(work, "--max-error", raw.max_error, "LENGTH",
            "largest distance in either direction: 15cm, 20mm, 0.1m; a bare number is in the file's unit, metres "
            "[nothing is lost: --mode exact]");
  add_value(work, "--mode", raw.mode, "MODE",
            "set: any points within the bound of the scan's and back; points: each point within the bound, in order; "
            "exact: every bit [points up to 5cm, set above]");
  work.add_flag("--no-attributes", raw.no_attributes, "coordinates alone: no intensity, ring, time, ...");
  add_value(work, "--times", raw.times, "FILE",
            "a time for each frame, one a line: seconds, or 2011-09-26 13:02:25.95 [of bags: the stamps of messages]");
  add_value(
      work, "--poses", raw.poses, "FILE",
      "a pose for each frame, 12 numbers a line: the rows of a 3x4 matrix in metres, from sensor to world as KITTI "
      "writes them; frames are then predicted from those before them");
  add_value(work, "--key-frames", raw.key_every, "N",
            "with --poses or --history: every N-th frame, 1 to 64, is predicted by no other frame [16]");
  add_value(
      work, "--history", raw.history, "DIR",
      "frames are predicted from earlier drives, too; decoding needs the history; without --poses they find their "
      "place in it");
  work.add_flag("--no-history", raw.no_history, "do not use --history: the drive can be read by itself");
  add_columns(work, raw);
  add_images(work, raw);
  work.add_flag("-f,--force", raw.force, "replace an existing drive");
  add_run(work, raw);
  work.footer(
      "Attributes come back bit for bit; in mode set a point has those of the scan's point nearest to it.\n"
      "Examples:\n"
      "  quern lidar compress --max-error 15cm velodyne/ -o drive.qnl -T 0\n"
      "  quern lidar compress --max-error 2cm 000000.bin 000001.bin -o drive.qnl\n"
      "  quern lidar compress --max-error 15cm --poses poses.txt velodyne/ -o drive.qnl\n"
      "  quern lidar compress --max-error 15cm --poses poses.txt --history streets velodyne/ -o drive.qnl\n"
      "  quern lidar compress --max-error 15cm --history streets velodyne/ -o drive.qnl\n"
      "  quern lidar compress survey.las -o survey.qnl\n"
      "  quern lidar compress --max-error 5cm --topic /points run.mcap -o run.qnl\n"
      "  quern lidar compress --sensor os1.json --channel reflectivity=refl.u8 range.u32 -o images.qnl\n");
}

void define_decompress(CLI::App& verb, RawArgs& raw) {
  CLI::App& work = add_verb(verb, raw, "decompress", "bring scans back", "DRIVE", "a drive");
  work.add_option("-o,--output", raw.output, "folder; file for one frame, or OUT.mcap for all; - for standard output")
      ->type_name("OUT")
      ->required();
  add_value(work, "--frame", raw.frame, "K", "only this one, counted from 0; the others are not read");
  add_value(
      work, "--format", raw.format, "FORMAT",
      "bin, pcd, ply, npy or las; mcap, u32 (range images): all frames in one file [by OUT's name, else as it was]");
  add_value(work, "--topic", raw.topic, "NAME", "OUT.mcap: topic of frames that come from no bag [/points]");
  add_repeatable(work, "--channel", raw.channels, "NAME=FILE", "OUT.u32: another image, as in reflectivity=r.u8");
  add_history(work, raw);
  work.add_flag("--keep-going", raw.keep_going, "leave out frames whose history is missing; exit code 6 all the same");
  work.add_flag("-f,--force", raw.force, "replace existing files");
  add_run(work, raw);
  work.footer(
      "Examples:\n"
      "  quern lidar decompress drive.qnl -o scans/\n"
      "  quern lidar decompress drive.qnl --frame 12 -o twelve.pcd\n"
      "  quern lidar decompress drive.qnl --history streets -o scans/\n"
      "  quern lidar decompress run.qnl -o back.mcap\n"
      "  quern lidar decompress images.qnl -o range.u32 --channel reflectivity=refl.u8\n");
}

void define_reading(CLI::App& verb, RawArgs& raw) {
  CLI::App& info = add_verb(verb, raw, "info", "say what drives, bags and range images hold, without decoding them",
                            "DRIVE", "drives; bags of ROS 2; range images, with --sensor");
  add_images(info, raw);
  add_run(info, raw);
  info.footer(
      "Examples:\n"
      "  quern lidar info drive.qnl\n"
      "  quern lidar info -v drive.qnl\n"
      "  quern lidar info --sensor os1.json range.u32\n");

  CLI::App& verify =
      add_verb(verb, raw, "verify", "check a drive, and the bound against the original scans", "DRIVE", "a drive");
  verify.add_option("--original", raw.originals, "the scans it was made from, in order; folders as for compress")
      ->type_name("IN");
  add_history(verify, raw);
  add_columns(verify, raw);
  add_images(verify, raw);
  add_run(verify, raw);
  verify.footer(
      "Without --original all checksums are checked and every frame is decoded. With it every point is held against "
      "the\n"
      "nearest of the other scan, in both directions, by code that shares nothing with the encoder; exit code 4 when "
      "one\n"
      "misses the bound.\n"
      "Examples:\n"
      "  quern lidar verify drive.qnl\n"
      "  quern lidar verify drive.qnl --original velodyne/ -T 0\n");
}

void define_measuring(CLI::App& verb, RawArgs& raw) {
  CLI::App& compare = add_verb(verb, raw, "compare", "measure how far two scans are apart, in both directions", "FILES",
                               "A B: files, or drives with --frame");
  add_value(compare, "--frame", raw.frame, "K", "which frame of drives [0]");
  add_history(compare, raw);
  add_columns(compare, raw);
  add_images(compare, raw);
  add_value(compare, "--html", raw.html, "FILE", "also write a report with pictures");
  compare.add_flag("-f,--force", raw.force, "replace an existing report");
  add_run(compare, raw);
  compare.footer(
      "Examples:\n"
      "  quern lidar compare 000000.bin decoded.bin\n"
      "  quern lidar compare 000012.bin drive.qnl --frame 12 --html report.html\n");

  CLI::App& bench = add_verb(verb, raw, "bench", "size, error and speed on your scans", "IN", "scans, or folders");
  add_repeatable(bench, "--max-error", raw.max_errors, "LIST", "bounds, as in 2cm,15cm; repeatable [2cm,5cm,15cm]");
  add_repeatable(bench, "--mode", raw.modes, "LIST",
                 "modes, as in set,exact; repeatable [points up to 5cm, set above]");
  add_value(bench, "--repeats", raw.repeats, "N", "runs of which the median is reported [3]");
  bench.add_flag("--no-attributes", raw.no_attributes, "coordinates alone");
  add_columns(bench, raw);
  add_images(bench, raw);
  add_run(bench, raw);
  bench.footer(
      "Examples:\n  quern lidar bench 000000.bin\n  quern lidar bench --max-error 1cm,15cm --json velodyne/\n");
}

LidarMode parse_mode(const std::string& text) {
  if (text == "set") return LidarMode::set;
  if (text == "points") return LidarMode::points;
  if (text == "exact") return LidarMode::exact;
  fail(Exit::usage, fmt::format("--mode {}: use set, points or exact", text));
}

LidarMode mode_for(std::uint64_t bound_nm) { return bound_nm <= kFineMode ? LidarMode::points : LidarMode::set; }

void read_compress(const RawArgs& raw, LidarArgs& out) {
  if (!raw.key_every.empty()) {
    if (raw.poses.empty() && out.history.empty())
      fail(Exit::usage, "--key-frames needs --poses, or a --history in which frames find their place");
    out.key_every = parse_count(raw.key_every, "--key-frames", lidar::kMostKeyDistance);
    if (out.key_every == 0) fail(Exit::usage, "--key-frames 0: use 1 to 64");
  }
  if (!raw.mode.empty()) out.modes = {parse_mode(raw.mode)};
  if (!raw.max_error.empty()) out.max_errors_nm = {parse_length(raw.max_error, "--max-error")};
  if (out.max_errors_nm.empty()) {
    if (!out.modes.empty() && out.modes[0] != LidarMode::exact)
      fail(Exit::usage, fmt::format("--mode {}: give the largest distance, as in --max-error 15cm", raw.mode));
    out.modes = {LidarMode::exact};
  }
  if (out.modes.empty()) out.modes = {mode_for(out.max_errors_nm[0])};
  if (out.modes[0] == LidarMode::exact && !out.max_errors_nm.empty())
    fail(Exit::usage, "--mode exact keeps every bit: leave --max-error out");
}

void read_bench(const RawArgs& raw, LidarArgs& out) {
  for (const std::string& list : raw.max_errors)
    for (const std::string& text : split_list(list, "--max-error"))
      out.max_errors_nm.push_back(parse_length(text, "--max-error"));
  if (out.max_errors_nm.empty()) out.max_errors_nm = {20'000'000, kFineMode, 150'000'000};
  for (const std::string& list : raw.modes)
    for (const std::string& text : split_list(list, "--mode")) out.modes.push_back(parse_mode(text));
  if (!raw.repeats.empty()) out.repeats = static_cast<unsigned>(parse_count(raw.repeats, "--repeats", 1000));
  if (out.repeats == 0) fail(Exit::usage, "--repeats 0: at least one run is needed");
}

void read_works(const RawArgs& raw, const CLI::App& verb, LidarArgs& out) {
  switch (out.work) {
    case LidarWork::history: return read_lidar_history(raw, *verb.get_subcommands().front(), out);
    case LidarWork::compress: return read_compress(raw, out);
    case LidarWork::bench: return read_bench(raw, out);
    case LidarWork::decompress:
    case LidarWork::verify:
      if (out.inputs.size() != 1) fail(Exit::usage, "one drive at a time");
      if (out.drops_zeros && out.originals.empty())
        fail(Exit::usage, "--drop-zeros is about the scans of --original: name them, or leave it out");
      return;
    case LidarWork::compare:
      if (out.inputs.size() != 2) fail(Exit::usage, "compare needs two files: A B");
      return;
    case LidarWork::info: return;
  }
}

}  // namespace

void define_lidar(CLI::App& program, RawArgs& raw) {
  CLI::App& verb = *program.add_subcommand("lidar", "LiDAR scans under a bound on distance, in both directions");
  verb.require_subcommand(1);
  define_compress(verb, raw);
  define_decompress(verb, raw);
  define_reading(verb, raw);
  define_measuring(verb, raw);
  define_lidar_history(verb, raw);
  verb.footer("'quern lidar WORK --help' has options and examples.");
}

void read_lidar(const RawArgs& raw, const CLI::App& verb, const RunArgs& run, LidarArgs& out) {
  const std::pair<const char*, LidarWork> works[] = {
      {"compress", LidarWork::compress}, {"decompress", LidarWork::decompress}, {"info", LidarWork::info},
      {"verify", LidarWork::verify},     {"compare", LidarWork::compare},       {"bench", LidarWork::bench},
      {"history", LidarWork::history}};
  for (const auto& [name, work] : works)
    if (verb.get_name() == name) out.work = work;
  out.inputs = raw.files;
  out.output = raw.output;
  out.force = raw.force;
  out.drop_attributes = raw.no_attributes;
  out.drops_zeros = raw.drop_zeros;
  out.times = raw.times;
  out.poses = raw.poses;
  out.history = raw.no_history ? std::string() : raw.history;
  while (out.history.size() > 1 && out.history.back() == '/') out.history.pop_back();
  out.keep_going = raw.keep_going;
  out.originals = raw.originals;
  out.html = raw.html;
  out.format = raw.format;
  out.topic = raw.topic;
  out.run = run;
  if (verb.get_option_no_throw("--history") != nullptr && verb.count("--history") != 0 && raw.history.empty())
    fail(Exit::usage, "--history: the name of the history's folder is empty");
  if (out.html == "-" ||
      (verb.get_option_no_throw("--html") != nullptr && verb.count("--html") != 0 && raw.html.empty()))
    fail(Exit::usage, "--html: name a file for the report");
  if (verb.get_option_no_throw("--topic") != nullptr && verb.count("--topic") != 0 && raw.topic.empty())
    fail(Exit::usage, "--topic: the name of the topic is empty");
  if (verb.get_option_no_throw("--output") != nullptr && out.output.empty())
    fail(Exit::usage, "-o: the output's name is empty");
  static constexpr const char* kFormats[] = {"bin", "pcd", "ply", "npy", "las", "mcap", "u32"};
  if (!out.format.empty() && std::find(std::begin(kFormats), std::end(kFormats), out.format) == std::end(kFormats))
    fail(Exit::usage, fmt::format("--format {}: use bin, pcd, ply, npy, las, mcap or u32", out.format));
  if (!raw.bin_columns.empty()) {
    out.bin_columns = static_cast<unsigned>(parse_count(raw.bin_columns, "--columns", 5));
    if (out.bin_columns < 4) fail(Exit::usage, fmt::format("--columns {}: use 4 or 5", raw.bin_columns));
  }
  out.sensor = raw.sensor;
  out.is_destaggered = raw.destaggered;
  for (const std::string& text : raw.channels) {
    const std::size_t at = text.find('=');
    if (at == 0 || at == std::string::npos || at + 1 == text.size())
      fail(Exit::usage, fmt::format("--channel {}: write NAME=FILE, as in reflectivity=r.u8", text));
    out.channels.emplace_back(text.substr(0, at), text.substr(at + 1));
  }
  if (verb.get_option_no_throw("--sensor") != nullptr) {
    if (verb.count("--sensor") != 0 && raw.sensor.empty()) fail(Exit::usage, "--sensor: the name of the file is empty");
    if (!raw.sensor.empty() && raw.drop_zeros)
      fail(Exit::usage, "--drop-zeros: pixels of range images without a return are no points at 0 0 0; leave it out");
    if (raw.sensor.empty() && (raw.destaggered || !raw.channels.empty()))
      fail(Exit::usage, "--destaggered and --channel are about range images, which need --sensor");
  }
  if (!raw.frame.empty()) out.frame = parse_count(raw.frame, "--frame", kMostFrame);
  read_works(raw, verb, out);
}

}  // namespace quern::cli
