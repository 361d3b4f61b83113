// What quern h5 asks of the library itself; in the program, also where the verb is in a module.
#include "cli/h5/values.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <quern/estimate.h>
#include <quern/metrics.h>
#include <quern/suspicions.h>

#include "cli/args/exit_codes.h"
#include "cli/bounds/precision.h"
#include "cli/files/memory.h"
#include "cli/files/stream_notes.h"
#include "cli/messages/file_report.h"

namespace quern::cli {
namespace {

/// Takes a stream of which only the report is of interest.
class NoSink final : public ByteSink {
 public:
  Status write(std::span<const std::uint8_t> /*bytes*/) override { return {}; }
};

/// The bound that the library finds for a PSNR or a ratio. A PSNR is that of the codec, and of the goal under which it
/// is searched.
ErrorBound searched_bound(const ErrorBound& asked, const ArrayView& values, CodecArgs& codec, const InputArray& array,
                          const Execution& execution) {
  CompressOptions options;
  options.bound = asked;
  options.codec = codec.codec;
  options.goal = codec.goal;
  options.effort = codec.effort;
  options.find_repeated = codec.find_repeated;
  options.fill_bits = array.fill_bits;
  use_valid_range(array, values, execution, options);
  NoSink sink;
  const auto report = check(compress(values, options, builtin_codecs(), execution, sink), Phase::encode, array.label);
  if (asked.kind == BoundKind::psnr && report.enforced.kind == BoundKind::abs) {
    codec.codec = report.codec;
    if (codec.goal == "ratio") codec.goal = "psnr";
  }
  return {report.enforced.kind, report.enforced.value};
}

/// A value that stretches the range and that nothing declares; the filter learns of it from an attribute.
void note_suspected_fills(const InputArray& array, const ArrayView& values, const RunArgs& run) {
  if (run.quiet || array.meta.valid_min || array.meta.valid_max) return;
  for (const Suspicion& s :
       check(find_suspicions(values, array.fill_bits, SuspicionScope::values), Phase::encode, array.label))
    print_note(
        fmt::format("{}: {:.2g} % of the values are {:.6g}, far outside the others ({:.6g} to {:.6g}), and stretch "
                    "the range; name that value in the attribute missing_value if it marks missing data",
                    array.label, 100 * s.share, s.value, s.others_min, s.others_max));
}

}  // namespace

bool open_dataset(const std::string& path, const std::string& name, InputArray& out, std::string& why) {
  out.path = path;
  out.label = path + " " + name;
  out.dataset = name;
  out.kind = io::FileKind::hdf5;
  io::OpenOptions options;
  options.dataset = name;
  options.find_role = false;  // h5_fields looks for the roles of all datasets at once
  auto reader = io::open_reader(path, out.kind, options, why);
  if (!reader.ok()) return false;
  out.reader = std::move(reader).value();
  out.meta = out.reader->meta();
  out.fill_bits = out.meta.fill_bits;
  return true;
}

bool bound_in_file_units(const ErrorBound& asked, const InputArray& array, ErrorBound& out, std::string& why) {
  const auto bound = io::stored_bound(asked, array.meta, why);
  if (bound.ok()) out = *bound;
  return bound.ok();
}

ErrorBound bound_of_values(const ErrorBound& stored, CodecArgs& codec, InputArray& array, const RunArgs& run) {
  if (stored.kind != BoundKind::rel && stored.kind != BoundKind::psnr && stored.kind != BoundKind::ratio) return stored;
  const std::uint64_t memory = memory_limit(run);
  const WholeArray whole = WholeArray::fits(array, memory / 3) ? WholeArray::load(array) : WholeArray::spool(array);
  Execution execution;
  execution.threads = run.threads;
  execution.memory_limit = memory - std::min(memory / 3, whole.memory_bytes());
  if (stored.kind != BoundKind::rel) return searched_bound(stored, whole.view(), codec, array, execution);
  note_suspected_fills(array, whole.view(), run);
  CompressOptions options;
  options.bound = stored;
  use_valid_range(array, whole.view(), execution, options);
  const EnforcedBound bound = options.range ? enforced_bound(stored, *options.range)
                                            : enforced_bound(whole.view(), stored, array.fill_bits, execution);
  return {bound.kind, bound.value};
}

std::vector<ExpectedSize> expected_sizes(InputArray& array, const CodecArgs& codec, const RunArgs& run) {
  constexpr int kBounds = 52;
  const std::uint64_t memory = memory_limit(run);
  const WholeArray whole = WholeArray::fits(array, memory / 3) ? WholeArray::load(array) : WholeArray::spool(array);
  EstimateOptions options;
  for (int i = 1; i <= kBounds; ++i) options.bounds.push_back({BoundKind::rel, std::exp2(-i / 2.0)});
  if (codec.codec != "auto") options.codecs = {codec.codec};
  options.fill_bits = array.fill_bits;
  options.speeds = false;
  Execution execution;
  execution.threads = run.threads;
  const auto report = builtin_estimator().estimate(whole.view(), options, execution);
  std::vector<ExpectedSize> out;
  if (!report.ok()) return out;
  const double raw = static_cast<double>(array.bytes());
  for (const Estimate& e : report->estimates)
    if (e.psnr_db) out.push_back({e.psnr_db->value, raw / e.ratio.value});
  std::sort(out.begin(), out.end(), [](const ExpectedSize& a, const ExpectedSize& b) { return a.psnr_db < b.psnr_db; });
  // What reaches more for less is better than what stands before it.
  for (std::size_t i = out.size(); i-- > 1;) out[i - 1].bytes = std::min(out[i - 1].bytes, out[i].bytes);
  return out;
}

bool precise_bound(const PrecisionArgs& asked, InputArray& array, const RunArgs& run, ErrorBound& out,
                   std::string& why) {
  if (!has_digits(array)) {
    why = "its numbers are integers, or scaled by attributes, and have no digits of their own";
    return false;
  }
  const std::uint64_t memory = memory_limit(run);
  const WholeArray whole = WholeArray::fits(array, memory / 3) ? WholeArray::load(array) : WholeArray::spool(array);
  Execution execution;
  execution.threads = run.threads;
  out = find_precision(asked, array, whole.view(), execution).found.bound;
  return true;
}

std::optional<std::uint32_t> codec_id(const std::string& name) {
  const ArrayCodec* found = builtin_codecs().by_name(name);
  if (found == nullptr) return std::nullopt;
  return found->info().id;
}

std::string codec_name(std::uint32_t id) {
  if (id == 0) return "auto";
  const ArrayCodec* found = builtin_codecs().by_id(static_cast<std::uint16_t>(id));
  return found == nullptr ? "unknown" : std::string(found->info().name);
}

PieceCheck check_piece(const void* original, const void* packed, DType dtype, std::uint64_t elems,
                       const ErrorBound& bound, const Vector<std::uint64_t>& fill_bits, const RunArgs& run) {
  const std::uint64_t extent[1] = {elems};
  const Shape shape = check(Shape::make(extent), Phase::encode, "a piece of a dataset");
  Execution execution;
  execution.threads = run.threads;
  const ArrayView a{original, dtype, shape};
  const ArrayView b{packed, dtype, shape};
  QualityOptions options;
  options.validity.fill_bits = fill_bits;
  options.with_ssim = false;
  options.autocorrelation_lags = 0;
  const Quality quality = check(measure_quality(a, b, options, execution), Phase::decode, "a piece of a dataset");
  PieceCheck out;
  out.violations = check(check_bound(a, b, {bound.kind, bound.value}, options.validity, execution), Phase::decode,
                         "a piece of a dataset")
                       .violations;
  out.max_error = quality.max_error;
  out.squares = quality.mse * static_cast<double>(quality.valid);
  out.valid = quality.valid;
  out.min = quality.min;
  out.max = quality.max;
  return out;
}

}  // namespace quern::cli
