// Metadata to JSON and back, and bounds of packed arrays.
#include "cli/files/stream_notes.h"

#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/args/exit_codes.h"

namespace quern::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kVersionKey = "quern_array";

/// The value under `key` when it has the right type, else `other`. The text may come from anybody.
template <class T>
T value_or(const Json& object, const char* key, T other) {
  const auto found = object.find(key);
  if (found == object.end()) return other;
  if constexpr (std::is_same_v<T, bool>) return found->is_boolean() ? found->template get<bool>() : other;
  if constexpr (std::is_same_v<T, double>) return found->is_number() ? found->template get<double>() : other;
  if constexpr (std::is_same_v<T, std::string>) return found->is_string() ? found->template get<std::string>() : other;
}

}  // namespace

Vector<std::uint8_t> notes_for(const InputArray& input) {
  const io::ArrayMeta& meta = input.meta;
  Json notes;
  if (!input.dataset.empty()) notes["dataset"] = input.dataset;
  if (meta.is_complex) notes["complex"] = true;
  if (meta.packed) {
    notes["scale_factor"] = meta.scale_factor;
    notes["add_offset"] = meta.add_offset;
  }
  if (!meta.attributes_json.empty()) notes["attributes"] = meta.attributes_json;
  if (notes.empty()) return {};
  notes[kVersionKey] = 1;
  const std::string text = notes.dump(-1, ' ', false, Json::error_handler_t::replace);
  return {text.begin(), text.end()};
}

RestoredMeta restore_meta(const StreamInfo& info) {
  RestoredMeta out;
  out.meta.dtype = info.dtype;
  out.meta.shape = info.shape;
  out.meta.fill_bits = info.fill_bits;
  const Json notes = Json::parse(info.metadata.begin(), info.metadata.end(), nullptr, false);
  if (!notes.is_object() || value_or(notes, kVersionKey, 0.0) != 1.0) return out;
  out.dataset = value_or(notes, "dataset", std::string());
  out.meta.is_complex = value_or(notes, "complex", false);
  out.meta.packed = notes.contains("scale_factor") || notes.contains("add_offset");
  out.meta.scale_factor = value_or(notes, "scale_factor", 1.0);
  out.meta.add_offset = value_or(notes, "add_offset", 0.0);
  out.meta.attributes_json = value_or(notes, "attributes", std::string());
  // The only variable of a file keeps its name, too.
  const Json in_file = Json::parse(out.meta.attributes_json, nullptr, false);
  if (out.dataset.empty() && in_file.is_object()) out.dataset = value_or(in_file, "dataset", std::string());
  return out;
}

ErrorBound stored_bound(const ErrorBound& bound, const InputArray& input) {
  std::string why;
  const auto stored = io::stored_bound(bound, input.meta, why);
  if (!stored.ok()) fail(Exit::usage, input.label + ": " + why);
  return *stored;
}

std::optional<ValueRange> stored_range(const std::optional<ValueRange>& range, const InputArray& input) {
  std::optional<ValueRange> out = range;
  if (out) io::stored_range(input.meta, out->min, out->max);
  return out;
}

void use_valid_range(const InputArray& input, const ArrayView& array, const Execution& execution,
                     CompressOptions& options) {
  const io::ArrayMeta& meta = input.meta;
  if (options.range || (!meta.valid_min && !meta.valid_max)) return;
  if (options.bound.kind != BoundKind::rel && options.bound.kind != BoundKind::psnr) return;
  constexpr double kAny = std::numeric_limits<double>::infinity();
  options.range =
      value_range(array, input.fill_bits, {meta.valid_min.value_or(-kAny), meta.valid_max.value_or(kAny)}, execution);
}

}  // namespace quern::cli
