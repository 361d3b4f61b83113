// quern bench: every codec under several bounds on the user's own arrays.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include <quern/compress.h>
#include <quern/metrics.h>
#include <quern/stream_io.h>
#include <quern/survey.h>
#include <quern/quern.hpp>

#include "cli/files/byte_streams.h"
#include "cli/files/input_array.h"
#include "cli/files/memory.h"
#include "cli/files/stream_notes.h"
#include "cli/messages/clock.h"
#include "cli/messages/file_report.h"
#include "cli/verbs/run_device.h"
#include "cli/verbs/suspicions.h"
#include "cli/verbs/sweep.h"
#include "cli/verbs/verbs.h"

namespace quern::cli {
namespace {

struct Row {
  std::string codec;
  ErrorBound bound;
  quernxx::Report report = QUERN_REPORT_INIT;
  Quality quality{};
  std::uint64_t violations = 0;
  std::uint64_t mask_bytes = 0;  ///< of the stream
  double compress_seconds = 0;
  double decompress_seconds = 0;

  bool has_bound() const { return report.enforced_kind == QUERN_BOUND_ABS && report.enforced_value > 0; }
  double error_share() const { return has_bound() ? quality.max_error / report.enforced_value : 0; }
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::string codec_name(std::size_t index) {
  quern_codec_info info = QUERN_CODEC_INFO_INIT;
  return quern_codec_get(index, &info) == QUERN_OK ? info.name : "";
}

bool supports(std::size_t codec, DType dtype, quern_bound_kind kind) {
  int yes = 0;
  return quern_codec_supports(codec, static_cast<quern_dtype>(dtype), kind, &yes) == QUERN_OK && yes != 0;
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
  Vector<Suspicion> suspicions;
  std::optional<ValueRange> range;  ///< of the values that the file calls valid
  Buffer& stream;
  Buffer& decoded;
  std::uint64_t memory;
  quernxx::Context context;
};

quernxx::Extents extents_of(const ArrayView& array) {
  const auto extents = array.shape.extents();
  return {extents.begin(), extents.end()};
}

quernxx::Params params_for(const Bench& bench, const std::string& codec, const ErrorBound& bound) {
  quernxx::Params params;
  EnforcedBound kept{bound.kind, bound.value};
  if (bench.range) kept = enforced_bound(bound, *bench.range);
  params.bound(static_cast<quern_bound_kind>(kept.kind), kept.value);
  params.set("codec", codec).set("goal", bench.args.codec.goal);
  params.set("effort", std::to_string(bench.args.codec.effort));
  params.set("mask_search", bench.args.codec.find_repeated ? "1" : "0");
  params.set("idempotent", bench.args.codec.idempotent ? "1" : "0");
  for (const auto& [key, value] : bench.args.codec.settings) params.set(key.c_str(), value.c_str());
  for (const std::uint64_t bits : bench.input.fill_bits)
    params.add_fill(static_cast<quern_dtype>(bench.array.dtype), &bits);
  return params;
}

/// What came back last, by code that shares nothing with the codecs; without structural similarity, which takes longer.
void measure_row(const Bench& bench, Row& row) {
  const ArrayView back{bench.decoded.data(), bench.array.dtype, bench.array.shape};
  const EnforcedBound enforced{static_cast<BoundKind>(row.report.enforced_kind), row.report.enforced_value};
  Execution execution;
  execution.threads = bench.args.run.threads;
  execution.memory_limit = bench.memory;
  QualityOptions quality;
  ValidityRule declared;
  declared.fill_bits = bench.input.fill_bits;
  quality.validity = declared;
  for (const std::uint64_t bits : suspected_fills(bench.suspicions)) quality.validity.fill_bits.push_back(bits);
  quality.with_ssim = false;
  quality.autocorrelation_lags = 0;
  const std::string& name = bench.input.label;
  row.quality = check(measure_quality(bench.array, back, quality, execution), Phase::decode, name);
  row.violations = check(check_bound(bench.array, back, enforced, declared, execution), Phase::decode, name).violations;
  MemorySource stream(bench.stream.span().first(row.report.output_bytes));
  row.mask_bytes = check(survey_masks(stream, execution), Phase::decode, name).mask_bytes;
}

Row run_one(Bench& bench, const std::string& codec, const ErrorBound& bound) {
  Row row{codec, bound};
  const auto dtype = static_cast<quern_dtype>(bench.array.dtype);
  const quernxx::ConstArray original(bench.array.data, dtype, extents_of(bench.array));
  const quernxx::Array back(static_cast<void*>(bench.decoded.data()), dtype, extents_of(bench.array));
  std::vector<double> compressing;
  std::vector<double> decompressing;
  Phase phase = Phase::encode;
  try {
    const quernxx::Params params = params_for(bench, codec, bound);
    for (unsigned i = 0; i < bench.args.repeats; ++i) {
      phase = Phase::encode;
      const Stopwatch first;
      const std::size_t bytes = quernxx::compress_into(bench.context, params, original, bench.stream.data(),
                                                       bench.stream.span().size(), &row.report);
      compressing.push_back(first.seconds());
      phase = Phase::decode;
      const Stopwatch second;
      quernxx::decompress(bench.context, {bench.stream.data(), bytes}, back);
      decompressing.push_back(second.seconds());
    }
  } catch (const quernxx::Error& error) {
    fail_call(error.status(), error.what(), phase, bench.input.label);
  }
  row.compress_seconds = median(std::move(compressing));
  row.decompress_seconds = median(std::move(decompressing));
  measure_row(bench, row);
  return row;
}

void print_row(const Row& row, const Bench& bench, double copy) {
  const std::uint64_t bytes = bench.array.bytes();
  const double ratio =
      static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(row.report.output_bytes, 1));
  if (bench.args.run.json) {
    Json out;
    out["input"] = bench.input.label;
    out["codec"] = row.codec;
    out["bound"] = bound_json(row.bound.kind, row.bound.value);
    out["enforced"] = bound_json(static_cast<BoundKind>(row.report.enforced_kind), row.report.enforced_value);
    out["input_bytes"] = bytes;
    out["output_bytes"] = row.report.output_bytes;
    out["ratio"] = ratio;
    out["mask_bytes"] = row.mask_bytes;
    out["psnr_db"] = number_or_null(row.quality.psnr_db);
    out["max_error"] = number_or_null(row.quality.max_error);
    out["max_error_over_bound"] = row.has_bound() ? number_or_null(row.error_share()) : Json(nullptr);
    out["violations"] = row.violations;
    out["suspicions"] = suspicions_json(bench.suspicions, bench.input, bench.args.data);
    out["compress_seconds"] = row.compress_seconds;
    out["decompress_seconds"] = row.decompress_seconds;
    out["compress_mb_per_s"] = speed(bytes, row.compress_seconds);
    out["decompress_mb_per_s"] = speed(bytes, row.decompress_seconds);
    out["copy_mb_per_s"] = speed(bytes, copy);
    out["repeats"] = bench.args.repeats;
    out["device"] =
        row.report.ran_on == QUERN_MEMORY_CUDA ? fmt::format("cuda:{}", bench.args.run.device_index) : "cpu";
    out["threads"] = thread_count(bench.args.run);
    out["version"] = QUERN_VERSION;
    print_json(out);
    return;
  }
  const auto share = [&](double seconds) { return seconds > 0 ? 100 * copy / seconds : 0; };
  print_text(fmt::format(
      "{:10} {:>9} {:>9.2f} {:>5.1f}% {:>8} {:>8} {:>9.0f} {:>4.0f}% {:>9.0f} {:>4.0f}%{}\n", row.codec,
      row.bound.kind == BoundKind::lossless ? std::string("lossless") : fmt::format("rel {:.0e}", row.bound.value),
      ratio,
      100 * static_cast<double>(row.mask_bytes) /
          static_cast<double>(std::max<std::uint64_t>(row.report.output_bytes, 1)),
      row.quality.psnr_db ? fmt::format("{:.1f}", *row.quality.psnr_db) : "inf",
      row.has_bound() ? fmt::format("{:.4f}", row.error_share()) : "-", speed(bytes, row.compress_seconds),
      share(row.compress_seconds), speed(bytes, row.decompress_seconds), share(row.decompress_seconds),
      row.violations == 0 ? "" : fmt::format("  {} VIOLATIONS", row.violations)));
}

/// Indices for quern_codec_get.
std::vector<std::size_t> chosen_codecs(const BenchArgs& args) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; args.codecs.empty() && i < quern_codec_count(); ++i) out.push_back(i);
  for (const std::string& name : args.codecs) {
    std::size_t i = 0;
    while (i < quern_codec_count() && codec_name(i) != name) ++i;
    if (i == quern_codec_count()) fail(Exit::usage, "--codec " + name + ": no such codec; see quern list codecs");
    out.push_back(i);
  }
  return out;
}

quernxx::Context context_for(const RunArgs& run, std::uint64_t memory) {
  quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
  desc.threads = static_cast<std::uint32_t>(run.threads);
  desc.memory_limit = memory;
  const auto device = open_device(run);
  if (device != nullptr) {
    desc.runs_on = QUERN_MEMORY_CUDA;
    desc.device = device->info().ordinal;
  }
  return quernxx::Context(desc);
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
  Bench bench{args,
              input,
              whole.view(),
              examine_input(input, whole.view(), args.data, args.run),
              {},
              stream,
              decoded,
              memory,
              context_for(args.run, memory)};
  CompressOptions valid;
  valid.bound = {BoundKind::rel, 1.0};
  use_valid_range(input, whole.view(), Execution{}, valid);
  bench.range = valid.range;
  const double copy = copy_seconds(bench.array, decoded, args.repeats);
  if (!args.run.json)
    print_text(
        fmt::format("{}: {} of {}, {} threads, median of {}, copy {:.0f} MB/s\n"
                    "{:10} {:>9} {:>9} {:>6} {:>8} {:>8} {:>9} {:>5} {:>9} {:>5}\n",
                    input.label, input.meta.shape.text(), dtype_name(input.meta.dtype), thread_count(args.run),
                    args.repeats, speed(input.bytes(), copy), "codec", "bound", "ratio", "masks", "PSNR", "err/E",
                    "comp MB/s", "copy", "dec MB/s", "copy"));
  for (const std::size_t codec : chosen_codecs(args)) {
    std::vector<ErrorBound> bounds;
    if (supports(codec, input.meta.dtype, QUERN_BOUND_ABS)) {
      for (const double rel : args.rel) bounds.push_back({BoundKind::rel, rel});
    } else if (supports(codec, input.meta.dtype, QUERN_BOUND_LOSSLESS)) {
      bounds.push_back({BoundKind::lossless, 0.0});
    } else if (!args.run.quiet) {
      print_note(fmt::format("{}: {} does not take {}", input.label, codec_name(codec), dtype_name(input.meta.dtype)));
    }
    for (const ErrorBound& bound : bounds) {
      const Row row = run_one(bench, codec_name(codec), bound);
      print_row(row, bench, copy);
      if (row.violations != 0 && result == Exit::ok) result = Exit::bound;
    }
  }
}

}  // namespace

Exit run_bench(const BenchArgs& args) {
  if (args.sweep) return run_sweep(args);
  Exit result = Exit::ok;
  (void)chosen_codecs(args);
  for (const std::string& input : args.inputs) attempt(result, [&] { bench_one(input, args, result); });
  return result;
}

}  // namespace quern::cli
