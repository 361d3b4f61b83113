// quern estimate: what codecs would make of arrays, without compressing them.
#include <fmt/format.h>

#include <quern/estimate.h>

#include "cli/bounds/precision.h"
#include "cli/files/byte_streams.h"
#include "cli/files/file_names.h"
#include "cli/files/input_array.h"
#include "cli/files/memory.h"
#include "cli/files/page_file.h"
#include "cli/files/stream_notes.h"
#include "cli/messages/clock.h"
#include "cli/messages/estimate_text.h"
#include "cli/messages/file_report.h"
#include "cli/models/model_errors.h"
#ifdef QUERN_HAVE_REPORT
#include "cli/report/estimate_report.h"
#endif
#include "cli/verbs/calibration.h"
#include "cli/verbs/suspicions.h"
#include "cli/verbs/verbs.h"
#include "surrogate/estimator.h"
#include "surrogate/model.h"

namespace quern::cli {
namespace {

WholeArray addressable(InputArray& input, std::uint64_t memory) {
  if (WholeArray::fits(input, memory)) return WholeArray::load(input);
  print_note(input.label + ": does not fit in memory; using a temporary file");
  return WholeArray::spool(input);
}

std::string bound_name(const Estimate& e) {
  if (e.bound.kind == BoundKind::lossless) return "lossless";
  return fmt::format("{} {:.3g}", bound_kind_name(e.bound.kind), e.bound.value);
}

void print_rows(const EstimateReport& report) {
  print_text(fmt::format("{:9} {:11} {:>28} {:>26} {:>7} {:>10} {:>10}\n", "codec", "bound", "ratio (10 %..90 %)",
                         "PSNR dB (10 %..90 %)", "SSIM", "comp MB/s", "dec MB/s"));
  for (const Estimate& e : report.estimates)
    print_text(fmt::format("{:9} {:11} {:>28} {:>26} {:>7} {:>10.3g} {:>10.3g}{}\n", e.codec, bound_name(e),
                           interval_text(e.ratio, "{:.4g}"), e.psnr_db ? interval_text(*e.psnr_db, "{:.1f}") : "exact",
                           e.ssim ? fmt::format("{:.4f}", e.ssim->value) : "-", e.compress_mb_per_s.value,
                           e.decompress_mb_per_s.value, e.wide ? "  wide" : ""));
}

std::vector<std::uint8_t> model_bytes(const std::string& path) {
  if (path.empty()) return {};
  const Mapping file = Mapping::of_file(path);
  const auto bytes = file.bytes();
  if (bytes.empty()) fail(Exit::stream, path + ": is empty, and no model");
  check_model(surrogate::check_versions(check_model(surrogate::read_model(bytes), path), builtin_codecs()), path);
  return {bytes.begin(), bytes.end()};
}

/// Estimates are for absolute bounds.
ErrorBound estimated_bound(const InputArray& input, const ErrorBound& found) {
  if (found.kind == BoundKind::abs) return found;
  fail(Exit::usage,
       found.kind == BoundKind::lossless
           ? fmt::format("{}: no value has digits to lose; quern estimate --codec lossless says what all bits take",
                         input.label)
           : fmt::format("{}: its values differ in magnitude: the bound is --pwrel {:.6g}, for which there are no "
                         "estimates; quern compress takes it",
                         input.label, found.value));
}

/// An array and what is estimated of it.
struct Estimated {
  std::string name, kind;
  EstimateReport report;
};

Estimated estimate_one(const std::string& path, const std::string& dataset, const EstimateArgs& args,
                       const std::vector<std::uint8_t>& model) {
  InputArray input = open_input(path, dataset, args.data);
  const std::uint64_t memory = memory_limit(args.run);
  const WholeArray whole = addressable(input, memory / 2);
  const Vector<Suspicion> suspicions = examine_input(input, whole.view(), args.data, args.run);
  Execution execution;
  execution.threads = args.run.threads;
  execution.memory_limit = memory;
  EstimateOptions options;
  std::optional<FoundPrecision> precision;
  if (args.precision) {
    precision = find_precision(*args.precision, input, whole.view(), execution);
    if (!args.run.json) print_text(input.label + ": " + precision_text(*precision) + "\n");
    options.bounds = {estimated_bound(input, precision->found.bound)};
  } else {
    for (const double value : args.at)
      options.bounds.push_back({args.absolute ? BoundKind::abs : BoundKind::rel, value});
  }
  options.codecs = args.codecs;
  options.all_codecs = true;
  options.features = args.features;
  options.fill_bits = input.fill_bits;
  options.model = model;
  CompressOptions valid;
  valid.bound = {BoundKind::rel, 1.0};
  use_valid_range(input, whole.view(), execution, valid);
  options.range = valid.range;
  const Stopwatch watch;
  EstimateReport report =
      check(builtin_estimator().estimate(whole.view(), options, execution), Phase::encode, input.label);
  const double seconds = watch.seconds();
  if (!args.calibration.empty()) correct_by_compressions(args.calibration, report);
  const std::string kind = input.meta.shape.text() + " of " + dtype_name(input.meta.dtype);
  if (args.run.json) {
    Json out;
    out["input"] = input.label;
    out["dtype"] = dtype_name(input.meta.dtype);
    out["shape"] = input.meta.shape.extents();
    if (precision) out["precision"] = precision_json(*precision);
    out["range"] = report.range;
    out["sampled_values"] = report.sampled;
    out["estimates"] = estimates_json(report.estimates);
    out["notes"] = report.notes;
    out["suspicions"] = suspicions_json(suspicions, input, args.data);
    out["seconds"] = seconds;
    out["version"] = QUERN_VERSION;
    print_json(out);
    return {input.label, kind, std::move(report)};
  }
  print_text(fmt::format("{}: {}, estimated in {:.2f} s\n", input.label, kind, seconds));
  print_rows(report);
  for (const std::string& note : report.notes) print_note(input.label + ": " + note);
  return {input.label, kind, std::move(report)};
}

void write_html([[maybe_unused]] const EstimateArgs& args, [[maybe_unused]] std::vector<Estimated>& all) {
#ifdef QUERN_HAVE_REPORT
  std::vector<report::EstimatedArray> arrays;
  for (Estimated& one : all) arrays.push_back({base_name(one.name), one.kind, std::move(one.report)});
  write_page(args.html, report::estimate_report_html(arrays, "quern " QUERN_VERSION), args.force);
#endif
}

/// Those that were named, or all fields of a file that holds several arrays: what CF calls coordinates is left out.
std::vector<std::string> datasets_of(const std::string& path, const EstimateArgs& args) {
  const auto& named = args.data.datasets;
  if (!named.empty() && named.front() != "*") return named;
  std::string detail;
  const auto kind = io::input_kind(path, detail);
  if (!kind.ok()) fail_file(kind.status(), detail);
  if (*kind != io::FileKind::hdf5 && *kind != io::FileKind::netcdf) return {std::string()};
  auto names = io::list_arrays(path, *kind, detail);
  if (!names.ok()) fail_file(names.status(), detail);
  std::vector<std::string> fields;
  for (const std::string& name : *names) {
    const InputArray input = open_input(path, name, args.data);
    if (input.meta.role.empty() && !input.meta.holds_flags) fields.push_back(name);
  }
  return fields.empty() ? std::vector<std::string>(names->begin(), names->end()) : fields;
}

}  // namespace

Exit run_estimate(const EstimateArgs& args) {
  check_page(args.inputs, args.html, args.force);
  const std::vector<std::uint8_t> model = model_bytes(args.model);
  Exit result = Exit::ok;
  std::vector<Estimated> all;
  for (const std::string& input : args.inputs) {
    attempt(result, [&] {
      for (const std::string& dataset : datasets_of(input, args))
        attempt(result, [&] { all.push_back(estimate_one(input, dataset, args, model)); });
    });
  }
  if (!args.html.empty() && !all.empty()) attempt(result, [&] { write_html(args, all); });
  return result;
}

}  // namespace quern::cli
