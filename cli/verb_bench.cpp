// quern bench: every codec under several bounds on the user's own arrays.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include <quern/compress.h>
#include <quern/metrics.h>

#include "cli/byte_streams.h"
#include "cli/clock.h"
#include "cli/file_report.h"
#include "cli/input_array.h"
#include "cli/memory.h"
#include "cli/stream_notes.h"
#include "cli/verbs.h"

namespace quern::cli {
namespace {

struct Row {
  std::string codec;
  ErrorBound bound;
  CompressReport report;
  Quality quality;
  std::uint64_t violations = 0;
  double compress_seconds = 0;
  double decompress_seconds = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double speed(std::uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / 1e6 / seconds : 0;
}

/// What copying the array costs on this machine, on one thread: the yardstick for all speeds.
double copy_seconds(const ArrayView& array, Buffer& to, unsigned repeats) {
  std::vector<double> seconds;
  for (unsigned i = 0; i < std::max(repeats, 3U); ++i) {
    const Stopwatch watch;
    if (array.bytes() != 0) std::memcpy(to.data(), array.data, array.bytes());
    seconds.push_back(watch.seconds());
  }
  return median(std::move(seconds));
}

struct Bench {
  const BenchArgs& args;
  const InputArray& input;
  ArrayView array;
  Buffer& stream;
  Buffer& decoded;
  Execution execution;
};

Row run_one(const Bench& bench, const std::string& codec, const ErrorBound& bound) {
  CompressOptions options;
  options.bound = bound;
  options.codec = codec;
  options.goal = bench.args.codec.goal;
  options.settings = bench.args.codec.settings;
  options.find_repeated = bench.args.codec.find_repeated;
  options.fill_bits = bench.input.fill_bits;
  Row row{codec, bound, {}, {}, 0, 0, 0};
  const std::string& name = bench.input.label;
  std::vector<double> compressing;
  std::vector<double> decompressing;
  for (unsigned i = 0; i < bench.args.repeats; ++i) {
    SpanSink sink(bench.stream.span());
    const Stopwatch first;
    row.report = check(compress(bench.array, options, builtin_codecs(), bench.execution, sink), Phase::encode, name);
    compressing.push_back(first.seconds());
    MemorySource source(sink.written());
    const Stopwatch second;
    (void)check(decompress(source, {bench.decoded.data(), bench.array.dtype, bench.array.shape}, builtin_codecs(),
                           bench.execution),
                Phase::decode, name);
    decompressing.push_back(second.seconds());
  }
  row.compress_seconds = median(std::move(compressing));
  row.decompress_seconds = median(std::move(decompressing));
  const ArrayView back{bench.decoded.data(), bench.array.dtype, bench.array.shape};
  QualityOptions quality;
  quality.validity.fill_bits = options.fill_bits;
  quality.with_ssim = false;
  quality.autocorrelation_lags = 0;
  row.quality = check(measure_quality(bench.array, back, quality, bench.execution), Phase::decode, name);
  row.violations =
      check(check_bound(bench.array, back, row.report.enforced, quality.validity, bench.execution), Phase::decode, name)
          .violations;
  return row;
}

void print_row(const Row& row, const Bench& bench, double copy) {
  const std::uint64_t bytes = bench.array.bytes();
  const double ratio =
      static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(row.report.output_bytes, 1));
  const bool has_bound = row.report.enforced.kind == BoundKind::abs && row.report.enforced.value > 0;
  const double error_share = has_bound ? row.quality.max_error / row.report.enforced.value : 0;
  if (bench.args.run.json) {
    Json out;
    out["input"] = bench.input.label;
    out["codec"] = row.codec;
    out["bound"] = bound_json(row.bound.kind, row.bound.value);
    out["enforced"] = bound_json(row.report.enforced.kind, row.report.enforced.value);
    out["input_bytes"] = bytes;
    out["output_bytes"] = row.report.output_bytes;
    out["ratio"] = ratio;
    out["psnr_db"] = number_or_null(row.quality.psnr_db);
    out["max_error"] = number_or_null(row.quality.max_error);
    out["max_error_over_bound"] = has_bound ? number_or_null(error_share) : Json(nullptr);
    out["violations"] = row.violations;
    out["compress_seconds"] = row.compress_seconds;
    out["decompress_seconds"] = row.decompress_seconds;
    out["compress_mb_per_s"] = speed(bytes, row.compress_seconds);
    out["decompress_mb_per_s"] = speed(bytes, row.decompress_seconds);
    out["copy_mb_per_s"] = speed(bytes, copy);
    out["repeats"] = bench.args.repeats;
    out["device"] = "cpu";
    out["threads"] = thread_count(bench.args.run);
    out["version"] = QUERN_VERSION;
    print_json(out);
    return;
  }
  const auto share = [&](double seconds) { return seconds > 0 ? 100 * copy / seconds : 0; };
  print_text(fmt::format(
      "{:10} {:>9} {:>9.2f} {:>8} {:>8} {:>9.0f} {:>4.0f}% {:>9.0f} {:>4.0f}%{}\n", row.codec,
      row.bound.kind == BoundKind::lossless ? std::string("lossless") : fmt::format("rel {:.0e}", row.bound.value),
      ratio, row.quality.psnr_db ? fmt::format("{:.1f}", *row.quality.psnr_db) : "inf",
      has_bound ? fmt::format("{:.4f}", error_share) : "-", speed(bytes, row.compress_seconds),
      share(row.compress_seconds), speed(bytes, row.decompress_seconds), share(row.decompress_seconds),
      row.violations == 0 ? "" : fmt::format("  {} VIOLATIONS", row.violations)));
}

std::vector<const ArrayCodec*> chosen_codecs(const BenchArgs& args) {
  const auto all = builtin_codecs().all();
  if (args.codecs.empty()) return {all.begin(), all.end()};
  std::vector<const ArrayCodec*> out;
  for (const std::string& name : args.codecs) {
    const ArrayCodec* codec = builtin_codecs().by_name(name);
    if (codec == nullptr) fail(Exit::usage, "--codec " + name + ": no such codec; see quern list codecs");
    out.push_back(codec);
  }
  return out;
}

void bench_one(const std::string& path, const BenchArgs& args, Exit& result) {
  InputArray input = open_input(path, args.data.datasets.empty() ? "" : args.data.datasets.front(), args.data);
  const std::uint64_t memory = memory_limit(args.run);
  if (!WholeArray::fits(input, memory / 4))
    fail(Exit::resource, input.label + ": too large to measure in memory; raise --memory or take a part of it");
  const WholeArray whole = WholeArray::load(input);
  Buffer stream(check(max_stream_bytes(input.meta.dtype, input.meta.shape), Phase::encode, path), path);
  Buffer decoded(input.bytes(), path);
  stream.touch();
  decoded.touch();
  touch_pages(whole.view().data, input.bytes());
  Bench bench{args, input, whole.view(), stream, decoded, {}};
  bench.execution.threads = args.run.threads;
  bench.execution.memory_limit = memory;
  const double copy = copy_seconds(bench.array, decoded, args.repeats);
  if (!args.run.json)
    print_text(
        fmt::format("{}: {} of {}, {} threads, median of {}, copy {:.0f} MB/s\n"
                    "{:10} {:>9} {:>9} {:>8} {:>8} {:>9} {:>5} {:>9} {:>5}\n",
                    input.label, input.meta.shape.text(), dtype_name(input.meta.dtype), thread_count(args.run),
                    args.repeats, speed(input.bytes(), copy), "codec", "bound", "ratio", "PSNR", "err/E", "comp MB/s",
                    "copy", "dec MB/s", "copy"));
  for (const ArrayCodec* codec : chosen_codecs(args)) {
    std::vector<ErrorBound> bounds;
    if (codec->supports(input.meta.dtype, BoundKind::abs)) {
      for (const double rel : args.rel) bounds.push_back({BoundKind::rel, rel});
    } else if (codec->supports(input.meta.dtype, BoundKind::lossless)) {
      bounds.push_back({BoundKind::lossless, 0.0});
    } else if (!args.run.quiet) {
      print_note(fmt::format("{}: {} does not take {}", input.label, codec->info().name, dtype_name(input.meta.dtype)));
    }
    for (const ErrorBound& bound : bounds) {
      const Row row = run_one(bench, codec->info().name, bound);
      print_row(row, bench, copy);
      if (row.violations != 0 && result == Exit::ok) result = Exit::bound;
    }
  }
}

}  // namespace

Exit run_bench(const BenchArgs& args) {
  check_device(args.run);
  Exit result = Exit::ok;
  (void)chosen_codecs(args);
  for (const std::string& input : args.inputs) attempt(result, [&] { bench_one(input, args, result); });
  return result;
}

}  // namespace quern::cli
