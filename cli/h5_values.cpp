// What quern h5 asks of the library itself; in the program, also where the verb is in a module.
#include "cli/h5_values.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include <quern/metrics.h>
#include <quern/suspicions.h>

#include "cli/exit_codes.h"
#include "cli/file_report.h"
#include "cli/memory.h"
#include "cli/stream_notes.h"

namespace quern::cli {
namespace {

/// Takes a stream of which only the report is of interest.
class NoSink final : public ByteSink {
 public:
  Status write(std::span<const std::uint8_t> /*bytes*/) override { return {}; }
};

/// The bound that the library finds for a PSNR or a ratio.
ErrorBound searched_bound(const ErrorBound& asked, const ArrayView& values, const CodecArgs& codec,
                          const InputArray& array, const Execution& execution) {
  CompressOptions options;
  options.bound = asked;
  options.codec = codec.codec;
  options.goal = codec.goal;
  options.find_repeated = codec.find_repeated;
  options.fill_bits = array.fill_bits;
  use_valid_range(array, values, execution, options);
  NoSink sink;
  const auto report = check(compress(values, options, builtin_codecs(), execution, sink), Phase::encode, array.label);
  return {report.enforced.kind, report.enforced.value};
}

std::uint64_t load_bits(const std::uint8_t* element, std::size_t width) {
  std::uint64_t bits = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&bits, element, width);
  } else {
    std::memcpy(reinterpret_cast<std::uint8_t*>(&bits) + sizeof bits - width, element, width);
  }
  return bits;
}

bool is_zero(std::uint64_t bits, DType dtype) {
  const std::size_t width = 8 * dtype_bytes(dtype);
  const std::uint64_t sign = is_integer(dtype) ? 0 : UINT64_C(1) << (width - 1);
  return (bits & ~sign) == 0;
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

/// The candidates that are among the elements; zeros of either sign are one value.
Vector<std::uint64_t> find_present(const ArrayView& values, Vector<std::uint64_t> candidates) {
  Vector<std::uint64_t> present;
  const std::size_t width = dtype_bytes(values.dtype);
  const auto* at = static_cast<const std::uint8_t*>(values.data);
  for (std::uint64_t i = 0; i < values.shape.elems() && !candidates.empty(); ++i, at += width) {
    const std::uint64_t bits = load_bits(at, width);
    const auto found = std::find_if(candidates.begin(), candidates.end(), [&](std::uint64_t c) {
      return c == bits || (is_zero(c, values.dtype) && is_zero(bits, values.dtype));
    });
    if (found == candidates.end()) continue;
    present.push_back(*found);
    candidates.erase(found);
  }
  return present;
}

}  // namespace

bool open_dataset(const std::string& path, const std::string& name, InputArray& out, std::string& why) {
  out.path = path;
  out.label = path + " " + name;
  out.dataset = name;
  out.kind = io::FileKind::hdf5;
  io::OpenOptions options;
  options.dataset = name;
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

ValueFacts examine_values(const ErrorBound& stored, const Vector<std::uint64_t>& candidates, const CodecArgs& codec,
                          InputArray& array, const RunArgs& run) {
  const bool needs_values = stored.kind == BoundKind::rel || stored.kind == BoundKind::psnr ||
                            stored.kind == BoundKind::ratio || !candidates.empty();
  if (!needs_values) return {stored, {}};
  const std::uint64_t memory = memory_limit(run);
  const WholeArray whole = WholeArray::fits(array, memory / 3) ? WholeArray::load(array) : WholeArray::spool(array);
  Execution execution;
  execution.threads = run.threads;
  execution.memory_limit = memory - std::min(memory / 3, whole.memory_bytes());
  ValueFacts out{stored, find_present(whole.view(), candidates)};
  if (stored.kind == BoundKind::rel) {
    note_suspected_fills(array, whole.view(), run);
    CompressOptions options;
    options.bound = stored;
    use_valid_range(array, whole.view(), execution, options);
    const EnforcedBound bound = options.range ? enforced_bound(stored, *options.range)
                                              : enforced_bound(whole.view(), stored, array.fill_bits, execution);
    out.bound = {bound.kind, bound.value};
  } else if (stored.kind == BoundKind::psnr || stored.kind == BoundKind::ratio) {
    out.bound = searched_bound(stored, whole.view(), codec, array, execution);
  }
  return out;
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
