// quern compress: jobs, outputs, time steps, reports.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/fs.h>
#endif

#include <cmath>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "cli/files/array_files.h"
#include "cli/files/byte_streams.h"
#include "cli/files/input_array.h"
#include "cli/files/memory.h"
#include "cli/files/safe_file.h"
#include "cli/messages/estimate_text.h"
#include "cli/messages/file_report.h"
#include "cli/models/model_files.h"
#include "cli/streams/step_decoders.h"
#include "cli/streams/stream_file.h"
#include "cli/verbs/calibration.h"
#include "cli/verbs/compress_jobs.h"
#include "cli/verbs/encode_array.h"
#include "cli/verbs/many_jobs.h"
#include "cli/verbs/run_device.h"
#include "cli/verbs/suspicions.h"
#include "cli/verbs/verbs.h"

namespace quern::cli {
namespace {

std::uint64_t input_file_bytes(const InputArray& input) {
  struct stat info {};
  const bool one_array = input.kind == io::FileKind::raw || input.kind == io::FileKind::npy;
  if (one_array && input.path != "-" && stat(input.path.c_str(), &info) == 0 && S_ISREG(info.st_mode))
    return static_cast<std::uint64_t>(info.st_size);
  return input.bytes();
}

/// A target that no bound gives, or that all the bits give for less.
void note_missed_target(const ErrorBound& asked, const CompressReport& made, const RunArgs& run,
                        const std::string& label) {
  constexpr double kNear = 1.03;
  if (!run.quiet && asked.kind == BoundKind::psnr && made.enforced.kind == BoundKind::lossless && made.input_bytes != 0)
    print_note(fmt::format("{}: every bit is kept; no smaller stream of {:.6g} dB was found", label, asked.value));
  const double ratio = static_cast<double>(made.input_bytes) / static_cast<double>(made.output_bytes);
  if (run.quiet || asked.kind != BoundKind::ratio || ratio <= kNear * asked.value) return;
  if (made.enforced.kind == BoundKind::lossless) {
    print_note(
        fmt::format("{}: lossless already gives a ratio of {:.4g}; {:.4g} were asked for", label, ratio, asked.value));
  } else if (made.ratio_below) {
    print_note(fmt::format("{}: the ratios nearest to {:.4g} are {:.4g} and {:.4g}; the stream has the larger one",
                           label, asked.value, *made.ratio_below, ratio));
  } else {
    print_note(fmt::format("{}: the smallest ratio found above {:.4g} is {:.4g}", label, asked.value, ratio));
  }
}

/// A codec that auto never takes was asked for: how it compares.
void note_stencil(const EncodedArray& encoded, const RunArgs& run, const std::string& label) {
  if (run.quiet || !encoded.stencil_bytes) return;
  const auto own = static_cast<double>(encoded.report.output_bytes);
  const auto other = static_cast<double>(*encoded.stencil_bytes);
  if (other < own) {
    print_note(fmt::format("{}: codec stencil would take {} bytes, {:.0f} % less", label, *encoded.stencil_bytes,
                           100 * (1 - other / own)));
  } else {
    print_note(fmt::format("{}: codec stencil would take {} bytes, {:.0f} % more", label, *encoded.stencil_bytes,
                           100 * (other / own - 1)));
  }
}

/// The bound the stream keeps. Of a packed array it is one of stored numbers, and is said in physical units, too.
std::string kept_text(const EncodedArray& encoded, const InputArray& input) {
  const EnforcedBound& kept = encoded.report.enforced;
  std::string text = bound_text(kept.kind, kept.value);
  if (input.meta.packed && kept.kind == BoundKind::abs)
    text = fmt::format("{} ({:.6g} stored)", bound_text(kept.kind, kept.value * std::fabs(input.meta.scale_factor)),
                       kept.value);
  if ((input.meta.valid_min || input.meta.valid_max) && encoded.report.range)
    text += fmt::format(" (valid values {:.6g} to {:.6g})", encoded.report.range->min, encoded.report.range->max);
  return text + stretched_text(encoded.suspicions, encoded.report.range, input);
}

/// Ratio, sizes, bound, codec, quality and speed, as far as there is something to say.
std::string one_line(const FileReport& report, const EncodedArray& encoded, const InputArray& input) {
  const CompressReport& made = encoded.report;
  std::vector<std::string> parts;
  const double raw = static_cast<double>(report.raw_bytes);
  parts.push_back(report.raw_bytes == 0 ? "empty"
                                        : fmt::format("{:.2f}x", raw / static_cast<double>(std::max<std::uint64_t>(
                                                                           made.output_bytes, 1))));
  parts.push_back(fmt::format("{} -> {} bytes", report.raw_bytes, made.output_bytes));
  if (encoded.precision) parts.push_back(precision_text(*encoded.precision));
  const std::string bound = kept_text(encoded, input);
  const std::string why = choice_text(made, true);
  parts.push_back(bound);
  if (bound != made.codec || !why.empty())
    parts.push_back(std::string(made.codec) + (why.empty() ? "" : " (" + why + ")"));
  if (report.requested.kind == BoundKind::psnr && made.psnr_db && std::isfinite(*made.psnr_db))
    parts.push_back(fmt::format("PSNR {:.2f} dB", *made.psnr_db));
  if (const std::string speed = speed_text(report.raw_bytes, report.seconds); !speed.empty()) parts.push_back(speed);
  if (encoded.reference) parts.emplace_back("predicted from the step before");
  if (encoded.checked) parts.emplace_back("verified");
  return fmt::format("{}", fmt::join(parts, "  "));
}

/// A line for each codec that was tried: what was expected of it under its bound, and what came of it.
std::string explanation(const EncodedArray& encoded) {
  const CompressReport& made = encoded.report;
  std::string out;
  for (const Estimate& e : encoded.expected) {
    // Estimates are of arrays that stand alone.
    std::uint64_t bytes = encoded.reference ? encoded.alone_bytes : made.output_bytes;
    double psnr = made.psnr_db.value_or(INFINITY);
    for (const CodecTrial& trial : made.tried) {
      if (trial.codec != e.codec) continue;
      bytes = trial.bytes;
      psnr = trial.psnr_db.value_or(INFINITY);
    }
    out += fmt::format("  {}, {}: expected {}x", e.codec, bound_text(e.bound.kind, e.bound.value),
                       interval_text(e.ratio, "{:.4g}"));
    if (e.psnr_db) out += fmt::format(", {} dB", interval_text(*e.psnr_db, "{:.1f}"));
    out += fmt::format("; obtained {:.4g}x",
                       static_cast<double>(made.input_bytes) / static_cast<double>(std::max<std::uint64_t>(bytes, 1)));
    out += std::isfinite(psnr) ? fmt::format(", {:.2f} dB\n", psnr) : "\n";
  }
  if (encoded.expected.empty()) out += "  nothing was expected: estimates are for absolute bounds and for every bit\n";
  out += fmt::format("  encoded {} time{}", made.encodings, made.encodings == 1 ? "" : "s");
  if (made.sample_encodings != 0) out += fmt::format(", and a part of it {} times", made.sample_encodings);
  return out + "\n";
}

void report(const CompressJob& job, const InputArray& input, const EncodedArray& encoded, const CompressArgs& args,
            const Device* device) {
  const CompressReport& made = encoded.report;
  FileReport out;
  out.input = input.label;
  out.output = job.output;
  out.input_bytes = input_file_bytes(input);
  out.output_bytes = made.output_bytes;
  out.raw_bytes = input.bytes();
  out.stream_bytes = made.output_bytes;
  out.codec = made.codec;
  out.reason = made.reason;
  out.tried = made.tried;
  out.stencil_bytes = encoded.stencil_bytes;
  out.requested = encoded.precision ? encoded.precision->found.bound : job.bound;
  out.enforced = made.enforced;
  out.seconds = encoded.seconds;
  out.psnr_db = made.psnr_db;
  out.run = args.run;
  out.device = device_name(device, made.on_device);
  note_unused_device(args.run, device, made.on_device, input.label, made.codec, !made.tried.empty());
  note_missed_target(job.bound, made, args.run, input.label);
  note_stencil(encoded, args.run, input.label);
  if (encoded.checked) {
    out.max_error = encoded.checked->quality.max_error;
    out.psnr_db = encoded.checked->quality.psnr_db;
    out.violations = encoded.checked->bound.violations;
  }
  // Estimates are of arrays that stand alone.
  if (records_compressions(args) && !encoded.reference && !encoded.expected.empty() &&
      encoded.expected.front().codec == made.codec)
    record_compression(args.calibration, encoded.expected.front(),
                       static_cast<double>(made.input_bytes) / static_cast<double>(made.output_bytes));
  if (args.run.json) {
    Json line = to_json(out);
    line["dtype"] = dtype_name(input.meta.dtype);
    line["shape"] = input.meta.shape.extents();
    line["goal"] = args.codec.goal;
    line["effort"] = args.codec.goal == "speed" ? 1 : args.codec.effort;
    line["masked_elems"] = made.masked_elems;
    line["chunks"] = made.chunks;
    line["raw_chunks"] = made.raw_chunks;
    line["ratio_below"] = number_or_null(made.ratio_below);
    line["range"] = made.range ? Json{made.range->min, made.range->max} : Json(nullptr);
    line["range_stretched"] = !stretched_text(encoded.suspicions, made.range, input).empty();
    line["scale_factor"] = input.meta.packed ? Json(input.meta.scale_factor) : Json(nullptr);
    line["suspicions"] = suspicions_json(encoded.suspicions, input, args.data);
    line["encodings"] = made.encodings;
    line["reference"] = encoded.reference ? Json(fmt::format("{:016x}", encoded.reference->hash)) : Json(nullptr);
    line["steps_to_key"] = encoded.reference ? encoded.reference->depth : 0;
    line["sample_encodings"] = made.sample_encodings;
    if (encoded.precision) line["precision"] = precision_json(*encoded.precision);
    if (args.explain) line["expected"] = estimates_json(encoded.expected);
    print_json(line, job.output == "-");
  } else if (!args.run.quiet) {
    print_message(input.label + ": " + one_line(out, encoded, input) + "\n");
    if (args.run.verbose)
      print_message(fmt::format("  {}: {}\n  {} of {} in {} chunks ({} raw), {} masked values, {:.3f} s, to {}\n",
                                made.codec, choice_text(made, false), input.meta.shape.text(),
                                dtype_name(input.meta.dtype), made.chunks, made.raw_chunks, made.masked_elems,
                                encoded.seconds, job.output));
    if (args.explain) print_message(explanation(encoded));
  }
}

void remove_input(const std::string& path) {
  if (path != "-" && unlink(path.c_str()) != 0) fail_errno(path, "remove it after compressing");
}

/// Nothing moves that nobody named: flags are codes, and what CF calls coordinates or bounds is no field. The bound
/// then becomes lossless, with a line that says so.
void keep_exact_unless_named(CompressJob& job, const InputArray& input, const RunArgs& run) {
  if (job.bound.kind == BoundKind::lossless) return;
  const bool flags = input.meta.holds_flags;
  const std::string why = flags ? "it holds flags (flag_values or flag_masks)" : input.meta.role;
  if (why.empty()) return;
  const std::string name = input.dataset.empty() ? "NAME" : input.dataset;
  if (job.choice == CompressJob::Choice::named) {
    if (flags && !run.quiet)
      print_note(
          fmt::format("{}: {}, and gets the bound because it was named; --lossless keeps them", input.label, why));
    return;
  }
  if (job.choice == CompressJob::Choice::only && !flags) return;
  job.bound = {BoundKind::lossless, 0.0};
  if (!run.quiet)
    print_note(fmt::format("{}: every bit is kept: {}; --dataset {} gives it the bound", input.label, why, name));
}

/// Of all arrays of a file, those whose numbers have no digits of their own keep every bit.
void keep_what_has_no_digits(CompressJob& job, const InputArray& input, const CompressArgs& args) {
  if (!args.precision || job.choice != CompressJob::Choice::all || job.bound.kind == BoundKind::lossless) return;
  if (has_digits(input)) return;
  job.bound = {BoundKind::lossless, 0.0};
  if (!args.run.quiet)
    print_note(fmt::format("{}: every bit is kept: its numbers are integers, or scaled by attributes", input.label));
}

/// `outcome` gets the sizes.
void compress_one(CompressJob job, const CompressArgs& args, Device* device, FileOutcome& outcome) {
  const auto note_sizes = [&](const InputArray& input, const EncodedArray& encoded) {
    outcome.raw_bytes = input.bytes();
    outcome.stored_bytes = encoded.report.output_bytes;
  };
  if (job.output == "-") {
    check_stdout(args.output.force);
  } else {
    check_output(job.input, job.output, args.output.force);
  }
  InputArray input = open_input(job.input, job.dataset, args.data);
  keep_exact_unless_named(job, input, args.run);
  keep_what_has_no_digits(job, input, args);
  if (job.output == "-") {
    const EncodedArray encoded = encode_array(input, job.bound, args, device, STDOUT_FILENO, "standard output");
    report(job, input, encoded, args, device);
    note_sizes(input, encoded);
    return;
  }
  if (args.many.any()) make_folders_for(job.output);
  SafeFile file(job.output, {.replace = args.output.force, .mode = mode_like(job.input)});
  file.take_time_of(job.input);
  const EncodedArray encoded = encode_array(input, job.bound, args, device, file.descriptor(), job.output);
  file.commit();
  report(job, input, encoded, args, device);
  note_sizes(input, encoded);
}

/// Puts the old file's bytes in front of the new steps: shared blocks where the file system can, else copied.
void copy_existing(const std::string& path, int to, const std::string& name) {
  const int from = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) fail_errno(path, "open");
  bool copied = false;
#ifdef FICLONE
  copied = ioctl(to, FICLONE, from) == 0;
#endif
  try {
    if (!copied) {
      const Mapping old = Mapping::of_descriptor(from, path);
      if (!write_all(to, old.bytes())) fail_errno(name, "write");
    }
  } catch (...) {
    close(from);
    throw;
  }
  close(from);
  if (lseek(to, 0, SEEK_END) < 0) fail_errno(name, "write");
}

/// All steps of a file are of one array.
void require_same_array(const StreamInfo& first, const InputArray& input, const std::string& output) {
  if (first.dtype == input.meta.dtype && first.shape == input.meta.shape) return;
  fail(Exit::usage, fmt::format("{}: is {} of {}, but the steps in {} are {} of {}; all must be equal", input.label,
                                input.meta.shape.text(), dtype_name(input.meta.dtype), output, first.shape.text(),
                                dtype_name(first.dtype)));
}

/// Whether the next step may be predicted from a stream of `codec`, as far as options tell.
bool may_be_predicted(const CompressJob& next, const CompressArgs& args, const std::string& codec) {
  if (args.codec.idempotent || (args.codec.codec != "auto" && args.codec.codec != codec)) return false;
  const BoundKind kind = next.bound.kind;
  return args.precision || kind == BoundKind::abs || kind == BoundKind::rel;
}

/// The session that the steps of one call make. It goes on after the last step of a file that
/// exists, if `next` may be predicted from that; what cannot be decoded stops nothing.
std::unique_ptr<StepEncoder> start_session(const std::string& output, bool exists, const CompressJob& next,
                                           const CompressArgs& args) {
  auto session = check(StepEncoder::create(codecs(), args.key_every), Phase::encode, output);
  if (!exists || args.key_every == 1) return session;
  const Mapping file = Mapping::of_file(output);
  const auto streams = split_streams(file.bytes(), output);
  const std::size_t last = streams.size() - 1;
  MemorySource source(streams[last]);
  const StreamInfo info = check(inspect(source, builtin_codecs()), Phase::decode, output);
  if (!may_predict_next(info) || !may_be_predicted(next, args, std::string(info.codec_name))) return session;
  StepDecoders steps(streams, output);
  const auto& reference = steps.reference(last);
  if (reference && reference->depth + 1U >= args.key_every) return session;
  const auto begin_anew = [&](const std::string& why) {
    if (!args.run.quiet) print_note(fmt::format("{}: the next step is a key step: {}", output, why));
  };
  const std::uint64_t bytes = info.shape.elems() * dtype_bytes(info.dtype);
  if (bytes > memory_limit(args.run) / 8) {
    begin_anew(fmt::format("going on after the last one takes {} of memory; raise --memory", size_text(8 * bytes)));
    return session;
  }
  Execution execution;
  execution.threads = args.run.threads;
  execution.memory_limit = memory_limit(args.run) - 3 * bytes;
  Buffer values(bytes, output);
  const auto decode = [&]() -> Status {
    if (const auto before = steps.approach(last, info, execution); !before.ok()) return before.status();
    const auto decoder = steps.try_open(last, execution, {});
    if (!decoder.ok()) return decoder.status();
    return (*decoder)->pull(values.span()).status();
  };
  const Status decoded = decode();
  if (decoded.ok()) {
    check(session->resume(streams[last], {values.data(), info.dtype, info.shape}), Phase::decode, output);
  } else if (decoded.code() == StatusCode::memory_limit) {
    begin_anew(fmt::format("decoding the last one: {}; raise --memory", decoded.text()));
  } else {
    begin_anew(fmt::format("the last one cannot be decoded ({}); quern info --check lists damage", decoded.text()));
  }
  return session;
}

/// Steps go into a copy that replaces the file at the end: whatever happens, also a killed process or a lost machine,
/// the old file is whole. Several steps in one call cost one copy.
void append_all(std::vector<CompressJob>& jobs, const CompressArgs& args, Device* device) {
  const std::string& output = args.output.path;
  for (const CompressJob& job : jobs) check_output(job.input, output, true);
  std::optional<StreamInfo> first;
  struct stat info {};
  const bool exists = stat(output.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) fail(Exit::usage, output + ": --append needs a regular file");
  if (exists) first = inspect_all(output).front();

  const auto session = start_session(output, exists, jobs.front(), args);
  SafeFile file(output, {.replace = true, .mode = mode_like(jobs.front().input)});
  if (exists) copy_existing(output, file.descriptor(), output);
  std::vector<std::function<void()>> reports;
  for (CompressJob& job : jobs) {
    auto input = std::make_shared<InputArray>(open_input(job.input, job.dataset, args.data));
    if (first) {
      require_same_array(*first, *input, output);
    } else {
      first = StreamInfo{};
      first->dtype = input->meta.dtype;
      first->shape = input->meta.shape;
    }
    keep_exact_unless_named(job, *input, args.run);
    const EncodedArray encoded =
        encode_array(*input, job.bound, args, device, file.descriptor(), output, session.get());
    input->reader.reset();
    reports.push_back([&job, &args, input, encoded, device] { report(job, *input, encoded, args, device); });
  }
  file.commit();
  for (const auto& print : reports) print();
}

/// Compresses every job into a file of its own. An input goes when all its jobs went well.
Exit compress_all(CompressPlan plan, std::uint64_t others, const CompressArgs& args, Device* device) {
  ManyJobs work;
  std::map<std::string, std::size_t> left;  // of an input: jobs that have not gone well so far
  for (const CompressJob& job : plan.jobs) {
    work.inputs.push_back(job.input);
    work.in_one_process |= device != nullptr || job.input == "-" || job.output == "-";
    ++left[job.input];
  }
  work.work = [&](std::size_t i, const RunArgs& run, FileOutcome& outcome) {
    CompressArgs own = args;
    own.run = run;
    compress_one(plan.jobs[i], own, device, outcome);
  };
  work.finished = [&](std::size_t i, const FileOutcome& outcome) {
    const std::string& input = plan.jobs[i].input;
    const bool all_done = outcome.code == Exit::ok && --left[input] == 0 && !plan.kept_inputs.contains(input);
    if (all_done && args.output.remove_input) remove_input(input);
  };
  work.done_word = "compressed";
  work.left_alone = plan.left_alone;
  work.failed_before = plan.failed;
  work.others = others;
  const Exit result = run_jobs(work, args.many, args.run);
  return plan.result != Exit::ok ? plan.result : result;
}

}  // namespace

Exit run_compress(const CompressArgs& args) {
  use_models(args.run.models);
  const auto device = open_device(args.run);
  if (args.codec.codec != "auto" && builtin_codecs().by_name(args.codec.codec) == nullptr)
    fail(Exit::usage, "--codec " + args.codec.codec + ": no such codec; see quern list codecs");
  const FoundFiles found =
      find_inputs(args.inputs, args.many, [&](const std::string& path) { return is_array_file(path, args.data); });
  if (found.files.empty())
    fail(Exit::usage,
         "no array was found: folders are searched for .npy, .h5 and .nc files and for raw files named "
         "like vx_50x100x100.f32; -t and -s say what other files hold");
  CompressPlan plan = plan_compress_jobs(args, found.files);
  if (plan.jobs.empty() && plan.left_alone == 0 && plan.failed == 0)
    fail(Exit::usage, "no variable of the input has a bound; nothing was written");
  if (!args.calibration.empty()) check_calibration_file(args.calibration);
  if (!args.calibration.empty() && !records_compressions(args) && !args.run.quiet)
    print_note(
        "--calibration: nothing is recorded: estimates are of the default effort and goal, without --set and "
        "--no-mask-search");
  if (!args.append) return compress_all(std::move(plan), found.others, args, device.get());
  if (plan.result != Exit::ok) return plan.result;
  append_all(plan.jobs, args, device.get());
  if (args.output.remove_input)
    for (const CompressJob& job : plan.jobs) remove_input(job.input);
  return Exit::ok;
}

}  // namespace quern::cli
