// quern bench --sweep: compresses, decompresses and measures, one run after another, on one thread. Times are of the
// processor, so that other work on the machine counts little, and stand beside the time of a fixed piece of work.
#include "cli/verbs/sweep.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

#include <fmt/format.h>

#include <quern/compress.h>
#include <quern/metrics.h>

#include "cli/files/byte_streams.h"
#include "cli/files/input_array.h"
#include "cli/files/memory.h"
#include "cli/files/stream_notes.h"
#include "cli/messages/messages.h"
#include "cli/verbs/verbs.h"
#include "surrogate/calibrate.h"
#include "surrogate/features.h"
#include "surrogate/inputs.h"
#include "surrogate/runs.h"
#include "surrogate/sha256.h"

namespace quern::cli {
namespace {

using surrogate::Run;

struct Sweep {
  const BenchArgs& args;
  std::set<std::string> done;
  int csv = -1;
};

std::string key_of(const std::string& digest, const std::string& codec, double bound) {
  return fmt::format("{} {} {:.6g}", digest, codec, bound);
}

/// What the file has already; a file of other columns is refused.
std::set<std::string> runs_in(const std::string& path) {
  std::set<std::string> out;
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) return out;
  if (line != surrogate::runs_header())
    fail(Exit::usage, path + ": has other columns than this version of quern writes; name a new file");
  while (std::getline(file, line)) {
    const auto run = surrogate::parse_run(line);
    if (run) out.insert(key_of(run->sha256, run->codec, run->bound_rel));
  }
  return out;
}

void append(const Sweep& sweep, const Run& run) {
  const std::string line = surrogate::run_line(run) + "\n";
  if (!write_all(sweep.csv, {reinterpret_cast<const std::uint8_t*>(line.data()), line.size()}))
    fail_errno(sweep.args.csv, "write");
}

Execution one_thread(const BenchArgs& args) {
  Execution execution;
  execution.threads = 1;
  execution.memory_limit = memory_limit(args.run);
  return execution;
}

struct Subject {
  const InputArray& input;
  ArrayView array;
  const surrogate::Features& features;
  Buffer& decoded;
};

/// Fills the measured part of a run.
Status measure(const Subject& subject, const CompressOptions& options, const Execution& execution, Run& run) {
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  run.calibration_seconds = surrogate::calibration_seconds();
  double began = surrogate::process_seconds();
  QUERN_ASSIGN_OR_RETURN(const CompressReport made,
                         compress(subject.array, options, builtin_codecs(), execution, sink));
  run.compress_seconds = surrogate::process_seconds() - began;
  run.stream_bytes = made.output_bytes;
  run.bound_abs = made.enforced.kind == BoundKind::abs ? made.enforced.value : 0;
  MemorySource source(stream);
  const MutableArrayView back{subject.decoded.data(), subject.array.dtype, subject.array.shape};
  began = surrogate::process_seconds();
  QUERN_ASSIGN_OR_RETURN(const DecompressReport done, decompress(source, back, builtin_codecs(), execution));
  (void)done;
  run.decompress_seconds = surrogate::process_seconds() - began;
  QualityOptions quality;
  quality.validity.fill_bits = subject.input.fill_bits;
  quality.autocorrelation_lags = 1;
  QUERN_ASSIGN_OR_RETURN(const Quality found, measure_quality(subject.array, back, quality, execution));
  run.psnr_db = found.psnr_db;
  run.ssim = found.ssim;
  run.max_error = found.max_error;
  if (!found.error_autocorrelation.empty()) run.autocorrelation = found.error_autocorrelation.front();
  return {};
}

void sweep_bounds(Sweep& sweep, const Subject& subject, const ArrayCodec& codec, Run run) {
  const CodecInfo info = codec.info();
  run.codec = info.name;
  run.codec_version = info.version;
  std::vector<double> bounds = sweep.args.rel;
  if (info.tier == CodecTier::archive) bounds = {0};
  for (const double bound : bounds) {
    if (sweep.done.contains(key_of(run.sha256, run.codec, bound))) continue;
    CompressOptions options;
    options.codec = info.name;
    options.fill_bits = subject.input.fill_bits;
    options.bound = bound == 0 ? ErrorBound{BoundKind::lossless, 0.0} : ErrorBound{BoundKind::rel, bound};
    if (bound != 0) use_valid_range(subject.input, subject.array, Execution{}, options);
    Run one = run;
    one.bound_rel = bound;
    one.inputs = surrogate::inputs_for(subject.features, bound == 0 ? surrogate::kLosslessBound : bound);
    const Status status = measure(subject, options, one_thread(sweep.args), one);
    one.status = status.ok() ? "ok" : status_name(status.code());
    append(sweep, one);
    if (!sweep.args.run.quiet)
      print_note(fmt::format("{}: {} {:.3g}: {}", subject.input.label, run.codec, bound,
                             status.ok() ? fmt::format("{} bytes", one.stream_bytes) : status.text()));
  }
}

void sweep_file(Sweep& sweep, const std::string& path) {
  const BenchArgs& args = sweep.args;
  InputArray input = open_input(path, args.data.datasets.empty() ? "" : args.data.datasets.front(), args.data);
  if (!WholeArray::fits(input, memory_limit(args.run) / 4))
    fail(Exit::resource, input.label + ": too large to measure in memory; raise --memory or take a part of it");
  const WholeArray whole = WholeArray::load(input);
  const ArrayView array = whole.view();
  Buffer decoded(input.bytes(), path);
  Run run;
  run.input = path.substr(path.rfind('/') + 1) + (input.dataset.empty() ? "" : ":" + input.dataset);
  run.sha256 = surrogate::hex(surrogate::sha256({static_cast<const std::uint8_t*>(array.data), array.bytes()}));
  run.dtype = dtype_name(array.dtype);
  run.shape = array.shape.text();
  run.raw_bytes = array.bytes();
  CompressOptions valid;
  valid.bound = {BoundKind::rel, 1.0};
  use_valid_range(input, array, Execution{}, valid);
  if (!valid.range) valid.range = value_range(array, input.fill_bits, Execution{});
  if (valid.range) run.range = valid.range->max - valid.range->min;
  const surrogate::Features features =
      check(surrogate::extract_features(array, valid.range, input.fill_bits, one_thread(args)), Phase::encode, path);
  const Subject subject{input, array, features, decoded};
  for (const ArrayCodec* codec : builtin_codecs().all()) {
    const std::string name = codec->info().name;
    const auto& asked = args.codecs;
    if (asked.empty() || std::find(asked.begin(), asked.end(), name) != asked.end())
      sweep_bounds(sweep, subject, *codec, run);
  }
}

}  // namespace

Exit run_sweep(const BenchArgs& args) {
  Sweep sweep{args, runs_in(args.csv)};
  const bool fresh = access(args.csv.c_str(), F_OK) != 0;
  sweep.csv = open(args.csv.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (sweep.csv < 0) fail_errno(args.csv, "open");
  if (fresh) {
    const std::string line = surrogate::runs_header() + "\n";
    if (!write_all(sweep.csv, {reinterpret_cast<const std::uint8_t*>(line.data()), line.size()}))
      fail_errno(args.csv, "write");
  }
  Exit result = Exit::ok;
  for (const std::string& input : args.inputs) attempt(result, [&] { sweep_file(sweep, input); });
  close(sweep.csv);
  return result;
}

}  // namespace quern::cli
