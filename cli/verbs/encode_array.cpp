// From an opened array to stream bytes on a descriptor.
#include "cli/verbs/encode_array.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/args/values.h"
#include "cli/files/byte_streams.h"
#include "cli/files/stream_notes.h"
#include "cli/messages/clock.h"
#include "cli/messages/file_report.h"
#include "cli/messages/progress.h"
#include "cli/models/model_files.h"
#include "cli/verbs/calibration.h"
#include "cli/verbs/suspicions.h"

namespace quern::cli {
namespace {

constexpr std::uint64_t kBlockBytes = UINT64_C(4) << 20;
constexpr std::uint64_t kMaxMetadataBytes = UINT64_C(1) << 20;

CompressOptions options_for(const InputArray& input, const ErrorBound& bound, const CompressArgs& args) {
  CompressOptions options;
  options.bound = stored_bound(bound, input);
  options.codec = args.codec.codec;
  options.goal = args.codec.goal;
  options.effort = args.codec.effort;
  options.settings = args.codec.settings;
  if (const ModelArguments& models = args.run.models; !models.file.empty()) {
    // Settings that are given say what they want after these.
    Settings chosen{{"model", String(model_id_of(models.file))}};
    if (!models.stores.empty()) chosen.push_back({"embed", "no"});
    const bool says = std::any_of(options.settings.begin(), options.settings.end(),
                                  [](const auto& setting) { return setting.first == "embed"; });
    if (models.stores.empty() && !says && !args.run.quiet && !can_embed(models.file))
      print_note(models.file + ": is too large for a stream and was not used; name its folder with --model-store DIR");
    options.settings.insert(options.settings.begin(), chosen.begin(), chosen.end());
  }
  options.idempotent = args.codec.idempotent;
  options.find_repeated = args.codec.find_repeated;
  options.fill_bits = input.fill_bits;
  options.range = stored_range(args.range, input);
  options.metadata = notes_for(input);
  if (options.metadata.size() > kMaxMetadataBytes) {
    options.metadata.clear();
    print_note(input.label + ": its attributes are larger than a stream may carry (1 MiB) and were left out");
  }
  return options;
}

/// --digits and --information are for what does not keep every bit anyway.
bool finds_bound(const CompressOptions& options, const CompressArgs& args) {
  return args.precision && options.bound.kind != BoundKind::lossless;
}

/// What the estimator would have said is for people, or for the calibration file; it decides nothing.
bool wants_estimates(const CompressArgs& args) { return args.explain || records_compressions(args); }

/// The highest effort encodes the whole array again and again.
bool tries_alternatives(const CompressOptions& options) {
  return options.effort == 9 && options.goal == "ratio" && options.bound.kind != BoundKind::lossless;
}

/// Whether the codec predicts by a trained model, and is held against one that does not.
bool is_trained(const std::string& name) { return name == "autoencoder"; }

/// What looks at all values before the first one is coded: some kinds of bound, and a choice between codecs by their
/// streams' sizes. A pipe is not kept for the latter: its first values decide.
bool needs_whole_array(const CompressOptions& options, const CompressArgs& args, bool from_pipe) {
  if (args.verify || wants_estimates(args) || finds_bound(options, args)) return true;
  if (!from_pipe && is_trained(options.codec)) return true;  // it is held against another
  if (!from_pipe && options.codec == "auto" && options.goal != "speed" && options.bound.kind != BoundKind::lossless)
    return true;
  if (tries_alternatives(options)) return true;
  if (options.bound.kind == BoundKind::psnr || options.bound.kind == BoundKind::ratio) return true;
  return options.bound.kind == BoundKind::rel && !options.range;
}

/// And how to do without, if there is a way.
std::string who_wants_all(const CompressArgs& args, const CompressOptions& options) {
  if (args.verify) return "--verify";
  if (args.explain) return "--explain";
  if (records_compressions(args)) return "--calibration";
  if (finds_bound(options, args)) return args.precision->information ? "--information" : "--digits";
  if (options.bound.kind == BoundKind::psnr || options.bound.kind == BoundKind::ratio) return "this bound";
  if (options.bound.kind == BoundKind::rel && !options.range) return "a relative bound (without --range MIN:MAX)";
  if (tries_alternatives(options)) return "--effort 9";
  if (is_trained(options.codec)) return "the comparison with stencil";
  return "the choice of a codec (without --codec or --goal speed)";
}

[[noreturn]] void fail_write(const FdSink& sink, const Status& status, const std::string& name) {
  if (sink.error() != 0) fail(Exit::io, name + ": cannot write: " + errno_text(sink.error()));
  fail_status(status, Phase::encode, name);
}

/// A failure of the codec speaks of the input, one of the descriptor of the output.
CompressReport finish(Result<CompressReport> result, const FdSink* sink, const InputArray& input,
                      const std::string& output_name) {
  if (result.ok()) return std::move(result).value();
  if (sink != nullptr && sink->error() != 0) fail_write(*sink, result.status(), output_name);
  fail_status(result.status(), Phase::encode, input.label);
}

StreamCheck verify(std::span<const std::uint8_t> stream, const ArrayView& original, const ArrayView& before,
                   const Execution& execution, std::uint64_t memory, const std::string& name) {
  MemorySource source(stream);
  const auto* at = static_cast<const std::uint8_t*>(original.data);
  const auto next = [&at](std::uint64_t bytes) {
    const void* piece = at;
    at += bytes;
    return piece;
  };
  CheckOptions options;
  options.before = before;
  options.piece_bytes = std::max<std::uint64_t>(memory / 4, kBlockBytes);
  StreamCheck check = check_stream(source, stream.size(), next, options, execution, name);
  if (!check.passed())
    fail(Exit::bound, name + ": " + describe_failure(check) + "; the output was not kept, please report this");
  return check;
}

bool is_regular(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

/// Everything one run of the encoder needs.
struct Job {
  InputArray& input;
  const CompressOptions& options;
  const CompressArgs& args;
  Execution execution;
  std::uint64_t memory;
  int fd;
  const std::string& output_name;
  StepEncoder* steps;  ///< null: the array stands alone
};

/// The stream is made in memory, checked there, then written.
EncodedArray encode_in_memory(const Job& job, const ArrayView& array, std::uint64_t capacity) {
  EncodedArray out;
  Buffer stream(capacity, job.input.label);
  SpanSink sink(stream.span());
  touch_pages(array.data, array.bytes());
  const Stopwatch watch;
  ArrayView before;
  if (job.steps != nullptr) {
    auto step = job.steps->encode(array, job.options, job.execution, sink);
    if (!step.ok()) fail_status(step.status(), Phase::encode, job.input.label);
    out.report = std::move(step->compressed);
    out.reference = step->reference;
    if (out.reference) out.alone_bytes = step->alone_bytes;
    before = job.steps->before();
  } else {
    out.report =
        finish(compress(array, job.options, codecs(), job.execution, sink), nullptr, job.input, job.output_name);
  }
  out.seconds = watch.seconds();
  if (job.args.verify) out.checked = verify(sink.written(), array, before, job.execution, job.memory, job.output_name);
  if (!write_all(job.fd, sink.written())) fail_errno(job.output_name, "write");
  return out;
}

/// The stream goes to the descriptor as it is made; it is read back from there to be checked.
EncodedArray encode_to_descriptor(const Job& job, const ArrayView& array, int fd) {
  EncodedArray out;
  const off_t begin = job.args.verify ? lseek(fd, 0, SEEK_CUR) : 0;
  FdSink sink(fd);
  const Stopwatch watch;
  auto result = compress(array, job.options, codecs(), job.execution, sink);
  out.seconds = watch.seconds() - sink.seconds();
  out.report = finish(std::move(result), &sink, job.input, job.output_name);
  if (job.args.verify) {
    const Mapping written = Mapping::of_descriptor(fd, job.output_name);
    out.checked = verify(written.bytes().subspan(static_cast<std::size_t>(begin)), array, {}, job.execution, job.memory,
                         job.output_name);
  }
  return out;
}

/// Under a bound that keeps every bit nothing can go wrong.
Vector<Suspicion> examine(const Job& job, const ArrayView& array) {
  if (job.options.bound.kind == BoundKind::lossless && !job.args.data.strict_input) return {};
  return examine_input(job.input, array, job.args.data, job.args.run);
}

EncodedArray encode_view(Job job, const WholeArray& whole) {
  const ArrayView array = whole.view();
  const auto capacity =
      check(max_stream_bytes(array.dtype, array.shape, job.options.metadata.size()), Phase::encode, job.input.label);
  const std::uint64_t held = whole.memory_bytes();
  // A session has two more streams, and the values of the step before twice while it decodes the last one.
  const std::uint64_t session = job.steps != nullptr ? 2 * capacity + 2 * array.bytes() : 0;
  if (job.steps != nullptr && held + session + capacity > job.memory / 4 * 3) {
    if (!job.args.run.quiet)
      print_note(fmt::format("{}: stands alone: predicting it from the step before takes {} of memory; raise --memory",
                             job.input.label, size_text(held + session + capacity)));
    job.steps->restart();
    job.steps = nullptr;
  }
  if (job.steps != nullptr) {
    job.execution.memory_limit = job.memory - held - session - capacity;
    return encode_in_memory(job, array, capacity);
  }
  if (capacity <= job.memory / 2 && held + capacity <= job.memory / 4 * 3) {
    job.execution.memory_limit = job.memory - held - capacity;
    return encode_in_memory(job, array, capacity);
  }
  job.execution.memory_limit = job.memory - std::min(held, job.memory);
  if (!job.args.verify || is_regular(job.fd)) return encode_to_descriptor(job, array, job.fd);
  // A pipe cannot be read back, and nobody may see the stream before it was checked.
  const SpoolFile file;
  EncodedArray out = encode_to_descriptor(job, array, file.descriptor());
  if (!write_all(job.fd, file.map().bytes())) fail_errno(job.output_name, "write");
  return out;
}

/// What the estimator says of each codec that was tried, at the bound where its search ended.
std::vector<Estimate> expect(const Job& job, const ArrayView& array, const CompressReport& made) {
  EstimateOptions options;
  options.fill_bits = job.options.fill_bits;
  options.range = made.range;
  options.all_codecs = true;  // of those, what was tried is picked below
  Vector<std::pair<std::string, EnforcedBound>> ends{{made.codec, made.enforced}};
  for (const CodecTrial& trial : made.tried)
    if (!trial.at_least && trial.codec != made.codec) ends.emplace_back(trial.codec, trial.enforced);
  for (const auto& end : ends)
    if (end.second.kind == BoundKind::abs && end.second.value > 0)
      options.bounds.push_back({BoundKind::abs, end.second.value});
  const auto report = builtin_estimator().estimate(array, options, job.execution);
  std::vector<Estimate> out;
  if (!report.ok()) return out;
  for (const auto& [codec, bound] : ends)
    for (const Estimate& e : report->estimates)
      if (e.codec == codec && e.bound.kind == bound.kind &&
          (bound.kind == BoundKind::lossless || e.bound.value == bound.value)) {
        out.push_back(e);
        break;
      }
  return out;
}

/// What codec stencil would have written under the same bound, where a codec with trained models was asked for. Of
/// arrays above 64 MiB, about: the first 64 MiB stand for all.
std::optional<std::uint64_t> stencil_bytes(const Job& job, const ArrayView& array, const CompressReport& made) {
  constexpr std::uint64_t kSampleBytes = UINT64_C(64) << 20;
  if (!is_trained(made.codec) || array.shape.rank() == 0 || array.bytes() == 0) return {};
  const std::uint64_t row = array.bytes() / std::max<std::uint64_t>(array.shape[0], 1);
  const std::uint64_t rows =
      std::clamp<std::uint64_t>(kSampleBytes / std::max<std::uint64_t>(row, 1), 1, array.shape[0]);
  std::vector<std::uint64_t> extents;
  for (std::size_t axis = 0; axis < array.shape.rank(); ++axis) extents.push_back(array.shape[axis]);
  extents[0] = rows;
  const auto shape = Shape::make(extents);
  if (!shape.ok()) return {};
  CompressOptions options = job.options;
  options.codec = "stencil";
  options.settings.clear();
  options.metadata.clear();
  options.goal = "ratio";
  options.bound = {made.enforced.kind, made.enforced.value};
  Vector<std::uint8_t> stream;
  VectorSink sink(stream);
  const auto report = compress({array.data, array.dtype, *shape}, options, builtin_codecs(), job.execution, sink);
  if (!report.ok()) return {};
  return rows == array.shape[0]
             ? report->output_bytes
             : static_cast<std::uint64_t>(static_cast<double>(report->output_bytes) *
                                          static_cast<double>(array.shape[0]) / static_cast<double>(rows));
}

EncodedArray encode_whole(const Job& job, const WholeArray& whole, CompressOptions& options) {
  Vector<Suspicion> suspicions = examine(job, whole.view());
  std::optional<FoundPrecision> precision;
  if (finds_bound(options, job.args)) {
    precision = find_precision(*job.args.precision, job.input, whole.view(), job.execution);
    options.bound = precision->found.bound;
  }
  use_valid_range(job.input, whole.view(), job.execution, options);
  EncodedArray out = encode_view(job, whole);
  out.suspicions = std::move(suspicions);
  out.precision = precision;
  out.stencil_bytes = stencil_bytes(job, whole.view(), out.report);
  if (wants_estimates(job.args)) out.expected = expect(job, whole.view(), out.report);
  return out;
}

/// Bounded memory, whatever the size: elements go in as they come. Those of the first block are looked at before
/// anything is written.
EncodedArray encode_streaming(const Job& job) {
  EncodedArray out;
  const std::uint64_t total = job.input.bytes();
  Buffer block(std::min(total, kBlockBytes), job.input.label);
  if (total != 0) {
    read_exactly(job.input, {block.data(), block.size()});
    const std::uint64_t elems = block.size() / dtype_bytes(job.input.meta.dtype);
    out.suspicions = examine(
        job, {block.data(), job.input.meta.dtype, check(Shape::make({{elems}}), Phase::encode, job.input.label)});
  }
  FdSink sink(job.fd);
  auto encoder =
      check(Encoder::create(job.input.meta.dtype, job.input.meta.shape, job.options, codecs(), job.execution, sink),
            Phase::encode, job.input.label);
  for (std::uint64_t left = total; left != 0;) {
    const std::span<std::uint8_t> piece{block.data(), std::min(left, block.size())};
    if (left != total) read_exactly(job.input, piece);
    const Stopwatch watch;
    const Status status = encoder->push(piece);
    out.seconds += watch.seconds();
    if (!status.ok()) (void)finish(status, &sink, job.input, job.output_name);
    left -= piece.size();
  }
  expect_end(job.input);
  const Stopwatch watch;
  auto result = encoder->finish();
  out.seconds += watch.seconds() - sink.seconds();
  out.report = finish(std::move(result), &sink, job.input, job.output_name);
  return out;
}

}  // namespace

EncodedArray encode_array(InputArray& input, const ErrorBound& bound, const CompressArgs& args, Device* device, int fd,
                          const std::string& output_name, StepEncoder* steps) {
  if (args.precision && bound.kind != BoundKind::lossless) require_digits(*args.precision, input);
  CompressOptions options = options_for(input, bound, args);
  check(options.bound.check(input.meta.dtype), Phase::encode, input.label);
  Progress progress(input.label, args.run, dtype_bytes(input.meta.dtype));
  Job job{input, options, args, Execution{}, memory_limit(args.run), fd, output_name, steps};
  job.execution.threads = args.run.threads;
  job.execution.device = device;
  job.execution.memory_limit = job.memory;
  job.execution.progress = progress.callback();

  const bool from_pipe = input.path == "-";
  const bool whole_wanted = needs_whole_array(options, args, from_pipe);
  if (input.reader->mapped() != nullptr) return encode_whole(job, WholeArray::load(input), options);
  if ((whole_wanted || steps != nullptr || !from_pipe) && WholeArray::fits(input, job.memory / 3))
    return encode_whole(job, WholeArray::load(input), options);
  if (!whole_wanted) {
    if (steps != nullptr) steps->restart();
    return encode_streaming(job);
  }
  if (!args.run.quiet)
    print_note(fmt::format("{}: {} do not fit in memory and {} must see all values first; using a temporary file",
                           input.label, size_text(input.bytes()), who_wants_all(args, options)));
  return encode_whole(job, WholeArray::spool(input), options);
}

}  // namespace quern::cli
