// Metadata to JSON and back, and bounds of packed arrays.
#include "cli/stream_notes.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/exit_codes.h"

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
  return out;
}

ErrorBound stored_bound(const ErrorBound& bound, const InputArray& input, bool has_range) {
  if (!input.meta.packed) return bound;
  if (bound.kind == BoundKind::pwrel)
    fail(Exit::usage, input.label +
                          ": is packed with scale_factor and add_offset, and --pwrel cannot hold for the "
                          "physical values; use --abs (physical units) or --rel");
  if (has_range)
    fail(Exit::usage, input.label + ": is packed, and --range is not known in packed units; leave it out or use --abs");
  const double scale = std::fabs(input.meta.scale_factor);
  if (!std::isfinite(scale) || scale == 0)
    fail(Exit::usage, fmt::format("{}: its scale_factor is {}, so physical units mean nothing; use --lossless",
                                  input.label, input.meta.scale_factor));
  if (bound.kind != BoundKind::abs) return bound;
  double stored = bound.value / scale;
  // The quotient is rounded; the largest number whose product with the scale does not exceed the bound is at most one
  // step below it. fma gives the sign of the exact difference.
  if (std::isinf(stored)) stored = std::numeric_limits<double>::max();
  while (stored > 0 && std::fma(stored, scale, -bound.value) > 0) stored = std::nextafter(stored, 0.0);
  return {BoundKind::abs, stored};
}

}  // namespace quern::cli
