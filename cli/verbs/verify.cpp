// quern verify: a stream against the original it was made from.
#include <algorithm>

#include <fmt/format.h>

#include "cli/files/byte_streams.h"
#include "cli/files/input_array.h"
#include "cli/files/memory.h"
#include "cli/messages/progress.h"
#include "cli/messages/quality_text.h"
#include "cli/models/model_files.h"
#include "cli/streams/stream_file.h"
#include "cli/verbs/record_report.h"
#include "cli/verbs/run_device.h"
#include "cli/verbs/stream_check.h"
#include "cli/verbs/suspicions.h"
#include "cli/verbs/verbs.h"

namespace quern::cli {
namespace {

/// The original's type and shape come from the stream where the file does not know them.
InputArray open_original(const VerifyArgs& args, DType dtype, const Shape& shape) {
  DataArgs data = args.data;
  std::string detail;
  const auto kind = io::input_kind(args.original, detail);
  const bool is_raw = kind.ok() && *kind == io::FileKind::raw;
  if (is_raw && !data.dtype) data.dtype = dtype;
  if (is_raw && !data.shape) {
    std::vector<std::uint64_t> extents(shape.extents().begin(), shape.extents().end());
    if (data.column_major) std::reverse(extents.begin(), extents.end());
    data.shape = check(Shape::make(extents), Phase::encode, args.original);
  }
  if (data.datasets.size() > 1) fail(Exit::usage, "--dataset: a stream has one original, give one name");
  InputArray original = open_input(args.original, data.datasets.empty() ? "" : data.datasets.front(), data);
  if (original.meta.dtype != dtype || !(original.meta.shape == shape))
    fail(Exit::usage, fmt::format("{}: is {} of {}, but {} holds {} of {}; this is not its original", original.label,
                                  original.meta.shape.text(), dtype_name(original.meta.dtype), args.stream,
                                  shape.text(), dtype_name(dtype)));
  return original;
}

Json violations_json(const StreamCheck& check) {
  Json out = Json::array();
  for (const Violation& violation : check.bound.first)
    out.push_back({{"index", index_text(violation.index, check.info.shape)},
                   {"original", number_or_null(violation.original)},
                   {"reconstructed", number_or_null(violation.reconstructed)},
                   {"error", number_or_null(violation.error)},
                   {"ulps", violation.ulps}});
  return out;
}

std::string violations_text(const StreamCheck& check) {
  std::string out;
  for (const Violation& violation : check.bound.first)
    out +=
        fmt::format("  misses at {}: {} became {}, error {}, {} ulps\n", index_text(violation.index, check.info.shape),
                    violation.original, violation.reconstructed, violation.error, violation.ulps);
  return out;
}

Json step_json(const StreamCheck& check) {
  Json out;
  out["codec"] = check.info.codec_name;
  out["bound"] = bound_json(check.info.requested.kind, check.info.requested.value);
  out["enforced"] = bound_json(check.info.enforced.kind, check.info.enforced.value);
  add_quality(check.quality, check.info.shape, check.info.dtype, out);
  out["violations"] = check.bound.violations;
  out["first_violations"] = violations_json(check);
  out["target_missed"] = check.missed_target.empty() ? Json(nullptr) : Json(check.missed_target);
  return out;
}

/// One object a file: the figures of the worst step, and all steps when there are several.
Json report_json(const std::vector<StreamCheck>& checks, std::uint64_t stream_bytes, const VerifyArgs& args) {
  const auto worst = std::min_element(checks.begin(), checks.end(), [](const StreamCheck& a, const StreamCheck& b) {
    if (a.bound.violations != b.bound.violations) return a.bound.violations > b.bound.violations;
    return a.quality.max_error > b.quality.max_error;
  });
  std::uint64_t raw = 0;
  std::uint64_t violations = 0;
  double seconds = 0;
  for (const StreamCheck& check : checks) {
    raw += check.info.shape.elems() * dtype_bytes(check.info.dtype);
    violations += check.bound.violations;
    seconds += check.decode_seconds;
  }
  FileReport report;
  report.input = args.stream;
  report.output = args.original;
  report.input_bytes = stream_bytes;
  report.output_bytes = raw;
  report.raw_bytes = raw;
  report.stream_bytes = stream_bytes;
  report.codec = worst->info.codec_name;
  report.requested = worst->info.requested;
  report.enforced = worst->info.enforced;
  report.seconds = seconds;
  report.run = args.run;
  Json out = to_json(report);
  out.update(step_json(*worst));
  out["violations"] = violations;
  if (checks.size() > 1) {
    out["steps"] = Json::array();
    for (const StreamCheck& check : checks) out["steps"].push_back(step_json(check));
  }
  return out;
}

}  // namespace

Exit run_verify(const VerifyArgs& args) {
  use_models(args.run.models);
  const bool has_records = is_record_file(args.stream);
  if (args.original.empty()) {
    if (has_records) return run_verify_records(args);
    if (args.stream != "-") Mapping::of_file(args.stream);  // a file that is not there is said to be missing
    fail(Exit::usage, kVerifyFiles);
  }
  if (has_records)
    fail(Exit::usage, fmt::format("{}: holds records, which are checked without an original; type quern verify {}",
                                  args.stream, args.stream));
  if (is_stream_file(args.original) && !is_stream_file(args.stream))
    fail(Exit::usage, fmt::format("{}: is the stream, and the original comes first; type quern verify {} {}",
                                  args.original, args.stream, args.original));
  const auto device = open_device(args.run);
  const Mapping file = args.stream == "-" ? map_standard_input() : Mapping::of_file(args.stream);
  const auto streams = split_streams(file.bytes(), args.stream);
  std::vector<StreamInfo> infos;
  for (const auto& stream : streams) {
    MemorySource source(stream);
    infos.push_back(check(inspect(source, builtin_codecs()), Phase::decode, args.stream));
  }
  InputArray original = open_original(args, infos.front().dtype, combined_shape(infos, args.stream));

  const std::uint64_t memory = memory_limit(args.run);
  CheckOptions options;
  options.piece_bytes = std::max<std::uint64_t>(memory / 4, UINT64_C(1) << 20);
  options.with_ssim = true;
  const auto* mapped = static_cast<const std::uint8_t*>(original.reader->mapped());
  Vector<Suspicion> suspicions;
  if (mapped != nullptr && infos.front().enforced.kind != BoundKind::lossless)
    suspicions = examine_input(original, {mapped, original.meta.dtype, original.meta.shape}, args.data, args.run);
  options.left_out = suspected_fills(suspicions);
  Buffer piece;
  const NextOriginal next = [&](std::uint64_t bytes) -> const void* {
    if (mapped != nullptr) {
      mapped += bytes;
      return mapped - bytes;
    }
    if (piece.size() < bytes) piece = Buffer(bytes, original.label);
    read_exactly(original, {piece.data(), bytes});
    return piece.data();
  };
  Progress progress(args.stream, args.run);
  Execution execution;
  execution.threads = args.run.threads;
  execution.device = device.get();
  execution.memory_limit = memory;
  execution.progress = progress.callback();
  std::vector<StreamCheck> checks;
  StepDecoders steps(streams, args.stream);
  for (std::size_t i = 0; i < streams.size(); ++i)
    checks.push_back(check_step(steps, i, streams[i].size(), next, options, execution, args.stream));
  if (mapped == nullptr) expect_end(original);

  // That an element misses its bound is said, and told by the exit code, also where the report cannot be written.
  Exit printed = Exit::ok;
  if (args.run.json) {
    Json line = report_json(checks, file.bytes().size(), args);
    line["suspicions"] = suspicions_json(suspicions, original, args.data);
    attempt(printed, [&] { print_json(line); });
  }
  const StreamCheck* failed = nullptr;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const StreamCheck& check = checks[i];
    if (!check.passed() && failed == nullptr) failed = &check;
    if (args.run.json || args.run.quiet) continue;
    std::string text = fmt::format("{}{}: {} {}\n", args.stream, checks.size() > 1 ? fmt::format(" step {}", i) : "",
                                   check.passed() ? "keeps" : "MISSES",
                                   bound_text(check.info.enforced.kind, check.info.enforced.value));
    text += quality_text(check.quality, check.info.shape, check.info.dtype) + violations_text(check);
    if (printed == Exit::ok) attempt(printed, [&] { print_text(text); });
  }
  if (failed != nullptr) fail(Exit::bound, args.stream + ": " + describe_failure(*failed));
  return printed;
}

}  // namespace quern::cli
