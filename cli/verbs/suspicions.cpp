// Suspicions as sentences and JSON.
#include "cli/verbs/suspicions.h"

#include <bit>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"

namespace quern::cli {
namespace {

/// A value as --fill takes it: the fewest digits that give the same bits.
std::string fill_text(const Suspicion& s, DType dtype) {
  switch (dtype) {
    case DType::f32: return fmt::format("{}", std::bit_cast<float>(static_cast<std::uint32_t>(s.bits)));
    case DType::f64: return fmt::format("{}", std::bit_cast<double>(s.bits));
    case DType::i64: return fmt::format("{}", std::bit_cast<std::int64_t>(s.bits));
    case DType::u64: return fmt::format("{}", s.bits);
    case DType::f16:
    case DType::bf16: return fmt::format("{:.6g}", s.value);
    default: return fmt::format("{:.0f}", s.value);
  }
}

std::string share_text(double share) { return fmt::format("{:.2g} %", 100 * share); }

const char* kind_name(Suspicion::Kind kind) {
  switch (kind) {
    case Suspicion::Kind::fill_value: return "fill_value";
    case Suspicion::Kind::byte_order: return "byte_order";
    case Suspicion::Kind::element_type: return "element_type";
  }
  return "unknown";
}

std::string option_for(const Suspicion& s, DType dtype, const DataArgs& data) {
  switch (s.kind) {
    case Suspicion::Kind::fill_value: return "--fill " + fill_text(s, dtype);
    case Suspicion::Kind::byte_order: return data.big_endian ? "" : "--big-endian";
    case Suspicion::Kind::element_type: return fmt::format("-t {}", dtype_name(s.likely));
  }
  return "";
}

}  // namespace

std::string suspicion_text(const Suspicion& s, const InputArray& input, const DataArgs& data) {
  const DType dtype = input.meta.dtype;
  const std::string option = option_for(s, dtype, data);
  switch (s.kind) {
    case Suspicion::Kind::fill_value:
      return fmt::format(
          "{} of the values are {}, far outside the others ({:.6g} to {:.6g}); give {} if they mark missing data",
          share_text(s.share), fill_text(s, dtype), s.others_min, s.others_max, option);
    case Suspicion::Kind::byte_order:
      return data.big_endian
                 ? "the values jump as if the bytes of each were reversed; leave --big-endian out if the "
                   "file is little-endian"
                 : "the values jump as if the bytes of each were reversed; give --big-endian if the file is "
                   "big-endian";
    case Suspicion::Kind::element_type:
      return fmt::format("the bytes look like {} read as {}; give {} and the shape of {} if they are",
                         dtype_name(s.likely), dtype_name(dtype), option, dtype_name(s.likely));
  }
  return "";
}

Vector<Suspicion> examine_input(const InputArray& input, const ArrayView& array, const DataArgs& data,
                                const RunArgs& run) {
  const auto scope = input.kind == io::FileKind::raw ? SuspicionScope::values_and_layout : SuspicionScope::values;
  Vector<Suspicion> found = check(find_suspicions(array, input.fill_bits, scope), Phase::encode, input.label);
  if (data.strict_input && !found.empty())
    fail(Exit::usage, fmt::format("{}: {} (--strict-input; leave it out if the data are right)", input.label,
                                  suspicion_text(found.front(), input, data)));
  if (!run.quiet)
    for (const Suspicion& s : found) print_note(input.label + ": " + suspicion_text(s, input, data));
  return found;
}

Json suspicions_json(const Vector<Suspicion>& suspicions, const InputArray& input, const DataArgs& data) {
  Json out = Json::array();
  for (const Suspicion& s : suspicions) {
    Json one;
    one["kind"] = kind_name(s.kind);
    one["option"] = option_for(s, input.meta.dtype, data);
    if (s.kind == Suspicion::Kind::fill_value) {
      one["value"] = s.value;
      one["share"] = s.share;
      one["others"] = {s.others_min, s.others_max};
    }
    one["text"] = suspicion_text(s, input, data);
    out.push_back(std::move(one));
  }
  return out;
}

Vector<std::uint64_t> suspected_fills(const Vector<Suspicion>& suspicions) {
  Vector<std::uint64_t> out;
  for (const Suspicion& s : suspicions)
    if (s.kind == Suspicion::Kind::fill_value) out.push_back(s.bits);
  return out;
}

std::string stretched_text(const Vector<Suspicion>& suspicions, const std::optional<ValueRange>& range,
                           const InputArray& input) {
  std::string values;
  for (const Suspicion& s : suspicions)
    if (s.kind == Suspicion::Kind::fill_value && range && range->min <= s.value && s.value <= range->max)
      values += (values.empty() ? "" : ", ") + fill_text(s, input.meta.dtype);
  return values.empty() ? "" : fmt::format(" (range stretched by {})", values);
}

}  // namespace quern::cli
