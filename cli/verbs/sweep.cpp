// quern bench --sweep: compresses, decompresses and measures, one run after another, on one thread. Times are of the
// processor, so that other work on the machine counts little, and stand beside the time of a fixed piece of work.
#include "cli/verbs/sweep.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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
#include "cli/peers/run_peer.h"
#include "cli/peers/shipped.h"
#include "cli/verbs/verbs.h"
#include "models/sha256.h"
#include "surrogate/calibrate.h"
#include "surrogate/estimator.h"
#include "surrogate/features.h"
#include "surrogate/inputs.h"
#include "surrogate/runs.h"

namespace quern::cli {
namespace {

using surrogate::kForeignVersion;
using surrogate::Run;

/// A peer and how it is run here.
struct UsablePeer {
  std::string name;
  Peer::Way way;
  bool power_steps = false;
};

struct Sweep {
  const BenchArgs& args;
  std::vector<UsablePeer> peers = {};
  std::set<std::string> done = {};
  int csv = -1;

  bool wants(const std::string& codec) const {
    return args.codecs.empty() || std::find(args.codecs.begin(), args.codecs.end(), codec) != args.codecs.end();
  }
};

/// The peers that are asked for, each with a tool that is there. Names that are used twice, or that nothing has, are
/// refused.
std::vector<UsablePeer> usable_peers(const BenchArgs& args) {
  std::vector<UsablePeer> out;
  std::set<std::string> names;
  for (const ArrayCodec* codec : builtin_codecs().all()) names.insert(codec->info().name);
  for (const std::string& text : args.peers) {
    const Peer peer = peer_of(text);
    if (!names.insert(peer.name).second)
      fail(Exit::usage, fmt::format("--peer {}: that name is taken; give the peer another", peer.name));
    const bool wanted =
        args.codecs.empty() || std::find(args.codecs.begin(), args.codecs.end(), peer.name) != args.codecs.end();
    if (wanted) out.push_back({peer.name, usable_way(peer), peer.power_steps});
  }
  for (const std::string& name : args.codecs) {
    const ArrayCodec* const codec = builtin_codecs().by_name(name);
    if (codec != nullptr && !surrogate::is_estimated(*codec))
      fail(Exit::usage, fmt::format("--codec {}: {}", name, surrogate::kNotEstimated));
    if (!names.contains(name))
      fail(Exit::usage, fmt::format("--codec {}: no such codec or peer; see quern list codecs", name));
  }
  return out;
}

std::string key_of(const std::string& digest, const std::string& codec, double bound) {
  return fmt::format("{} {} {:.6g}", digest, codec, bound);
}

/// While it lives, no other sweep appends to the file; on file systems without locks it does nothing.
class Lock {
 public:
  explicit Lock(int file) : file_(file) {
    while (flock(file_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Lock() { flock(file_, LOCK_UN); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int file_;
};

void write_text(const Sweep& sweep, const std::string& text) {
  if (!write_all(sweep.csv, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}))
    fail_errno(sweep.args.csv, "write");
}

/// Opens the file of runs, and finds what it has already. A file of other columns is refused. A last line without its end
/// was cut when a sweep was stopped: it is taken off the file.
void open_runs(Sweep& sweep) {
  const std::string& path = sweep.args.csv;
  sweep.csv = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (sweep.csv < 0) fail_errno(path, "open");
  const Lock lock(sweep.csv);
  const std::string header = surrogate::runs_header();
  std::ifstream file(path);
  if (!file) fail_errno(path, "read");
  std::string line;
  std::uint64_t whole = 0;  // bytes of whole lines
  bool cut = false;
  while (!cut && std::getline(file, line)) {
    cut = file.eof();
    if (whole == 0 && (cut ? !header.starts_with(line) : line != header))
      fail(Exit::usage, path + ": has other columns than this version of quern writes; name a new file");
    if (cut) continue;
    const auto run = surrogate::parse_run(line);
    if (run && run->inputs.size() != surrogate::input_count())
      fail(Exit::usage, path + ": holds runs of another version of quern; name a new file");
    if (run) sweep.done.insert(key_of(run->sha256, run->codec, run->bound_rel));
    whole += line.size() + 1;
  }
  if (file.bad()) fail_errno(path, "read");
  if (cut && ftruncate(sweep.csv, static_cast<off_t>(whole)) != 0) fail_errno(path, "cut");
  if (whole == 0) write_text(sweep, header + "\n");
}

void append(const Sweep& sweep, const Run& run) {
  const Lock lock(sweep.csv);
  write_text(sweep, surrogate::run_line(run) + "\n");
}

struct Subject {
  const InputArray& input;
  ArrayView array;
  const surrogate::Features& features;
  Buffer& decoded;
};

/// Writes the run, and a line of what came of it.
void finish(const Sweep& sweep, const Subject& subject, const Run& run, const std::string& message) {
  append(sweep, run);
  if (sweep.args.run.quiet) return;
  const bool ok = run.status == "ok";
  print_note(fmt::format("{}: {} {:.3g}: {}{}{}", subject.input.label, run.codec, run.bound_rel,
                         ok ? fmt::format("{} bytes", run.stream_bytes) : run.status, message.empty() ? "" : ": ",
                         message));
}

Execution one_thread(const BenchArgs& args) {
  Execution execution;
  execution.threads = 1;
  execution.memory_limit = memory_limit(args.run);
  return execution;
}

/// Fills in how far what came back is from the original.
Status score(const Subject& subject, const Execution& execution, Run& run) {
  QualityOptions quality;
  quality.validity.fill_bits = subject.input.fill_bits;
  quality.autocorrelation_lags = 1;
  const ArrayView back{subject.decoded.data(), subject.array.dtype, subject.array.shape};
  QUERN_ASSIGN_OR_RETURN(const Quality found, measure_quality(subject.array, back, quality, execution));
  run.psnr_db = found.psnr_db;
  run.ssim = found.ssim;
  run.max_error = found.max_error;
  if (!found.error_autocorrelation.empty()) run.autocorrelation = found.error_autocorrelation.front();
  return {};
}

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
  return score(subject, execution, run);
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
    one.inputs =
        bound == 0 ? surrogate::lossless_inputs(subject.features) : surrogate::inputs_for(subject.features, bound);
    const Status status = measure(subject, options, one_thread(sweep.args), one);
    one.status = status.ok() ? "ok" : status_name(status.code());
    finish(sweep, subject, one, status.ok() ? "" : status.text());
  }
}

void sweep_peer(Sweep& sweep, const Subject& subject, const UsablePeer& peer, PeerRunner& runner, Run run) {
  run.codec = peer.name;
  run.codec_version = kForeignVersion;
  for (const double bound : sweep.args.rel) {
    if (sweep.done.contains(key_of(run.sha256, run.codec, bound))) continue;
    Run one = run;
    one.bound_rel = bound;
    one.bound_abs = bound * run.range;
    one.power_steps = peer.power_steps;
    const double used =
        peer.power_steps && one.bound_abs > 0 ? surrogate::power_of_two_below(one.bound_abs) / run.range : bound;
    one.inputs = surrogate::inputs_for(subject.features, used);
    PeerResult result;
    if (one.bound_abs > 0) {
      one.calibration_seconds = surrogate::calibration_seconds();
      result = runner.run(peer.way, one.bound_abs, subject.decoded);
    } else {
      result.status = "no_range";
      result.message = "no two values differ: a relative bound says nothing";
    }
    one.status = result.status;
    one.stream_bytes = result.stream_bytes;
    one.compress_seconds = result.compress_seconds;
    one.decompress_seconds = result.decompress_seconds;
    if (result.status == "ok") {
      const Status status = score(subject, one_thread(sweep.args), one);
      if (!status.ok()) one.status = status_name(status.code());
      if (one.max_error > one.bound_abs)
        result.message = fmt::format("misses its bound: {:.6g} is {:.6g} times {:.6g}", one.max_error,
                                     one.max_error / one.bound_abs, one.bound_abs);
    }
    finish(sweep, subject, one, result.message);
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
  run.sha256 = models::hex(models::sha256({static_cast<const std::uint8_t*>(array.data), array.bytes()}));
  run.dtype = dtype_name(array.dtype);
  run.shape = array.shape.text();
  run.raw_bytes = array.bytes();
  CompressOptions valid;
  valid.bound = {BoundKind::rel, 1.0};
  use_valid_range(input, array, Execution{}, valid);
  if (!valid.range) valid.range = value_range(array, input.fill_bits, Execution{});
  if (valid.range) run.range = valid.range->max - valid.range->min;
  const surrogate::Features features =
      check(surrogate::extract_features(array, valid.range, input.fill_bits, builtin_codecs(), one_thread(args)),
            Phase::encode, path);
  const Subject subject{input, array, features, decoded};
  for (const ArrayCodec* codec : builtin_codecs().all()) {
    if (!surrogate::is_estimated(*codec)) continue;
    if (sweep.wants(codec->info().name)) sweep_bounds(sweep, subject, *codec, run);
  }
  if (sweep.peers.empty()) return;
  PeerRunner runner(array);
  for (const UsablePeer& peer : sweep.peers) sweep_peer(sweep, subject, peer, runner, run);
}

}  // namespace

Exit run_sweep(const BenchArgs& args) {
  Sweep sweep{args, usable_peers(args)};
  open_runs(sweep);
  Exit result = Exit::ok;
  for (const std::string& input : args.inputs) attempt(result, [&] { sweep_file(sweep, input); });
  close(sweep.csv);
  return result;
}

}  // namespace quern::cli
