// Parameters: bound, codec, goal, fill values, metadata and the codec's settings, from calls or from text.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "libcompress/capi/handles.h"

namespace quern::capi {
namespace {

constexpr std::size_t kMaxFills = 255;
constexpr std::size_t kMaxMetadata = std::size_t{1} << 20;
constexpr std::size_t kMaxText = 4096;

/// A whole text as a number; from_chars, because a program's locale is its own business.
bool parse_number(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

String number_text(double value) {
  std::array<char, 32> text;
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), error == std::errc() ? end : text.data()};
}

Status set_bound(CompressOptions& options, quern_bound_kind kind, double value) {
  if (kind < QUERN_BOUND_LOSSLESS || kind > QUERN_BOUND_RATIO)
    return Status(StatusCode::invalid_bound, "{0} is no kind of bound", kind);
  const ErrorBound bound{static_cast<BoundKind>(kind), kind == QUERN_BOUND_LOSSLESS ? 0.0 : value};
  QUERN_RETURN_IF_ERROR(bound.check(DType::f64));  // what holds for every type; the rest when the array is known
  options.bound = bound;
  return {};
}

Status set_range(CompressOptions& options, std::string_view value) {
  const std::size_t colon = value.find(':');
  ValueRange range;
  if (colon == std::string_view::npos || !parse_number(value.substr(0, colon), range.min) ||
      !parse_number(value.substr(colon + 1), range.max) || !(range.min <= range.max))
    return Status(StatusCode::invalid_argument, "range: give the smallest and the largest value, as in -1.5:40");
  options.range = range;
  return {};
}

Status set_key(CompressOptions& options, std::string_view key, std::string_view value) {
  if (key.empty()) return Status(StatusCode::invalid_argument, "a setting without a name");
  if (key == "codec") {
    if (value != "auto" && builtin_codecs().by_name(value) == nullptr)
      return Status(StatusCode::unknown_codec, "codec: no codec of that name; quern_codec_get lists them");
    options.codec = value;
    return {};
  }
  if (key == "goal") {
    if (value != "ratio" && value != "psnr" && value != "speed")
      return Status(StatusCode::invalid_argument, "goal: ratio, psnr or speed");
    options.goal = value;
    return {};
  }
  if (key == "effort") {
    if (value.size() != 1 || value[0] < '1' || value[0] > '9')
      return Status(StatusCode::invalid_argument, "effort: a number from 1 to 9");
    options.effort = static_cast<unsigned>(value[0] - '0');
    return {};
  }
  if (key == "mask_search") {
    if (value != "0" && value != "1") return Status(StatusCode::invalid_argument, "mask_search: 0 or 1");
    options.find_repeated = value == "1";
    return {};
  }
  if (key == "idempotent") {
    if (value != "0" && value != "1") return Status(StatusCode::invalid_argument, "idempotent: 0 or 1");
    options.idempotent = value == "1";
    return {};
  }
  if (key == "range") return set_range(options, value);
  for (auto& [name, old] : options.settings) {
    if (name == key) {
      old = value;
      return {};
    }
  }
  options.settings.emplace_back(key, value);
  return {};
}

Status get_key(const CompressOptions& options, std::string_view key, String& value) {
  if (key == "bound") {
    value = bound_kind_name(options.bound.kind);
    if (options.bound.kind != BoundKind::lossless) value += "=" + number_text(options.bound.value);
  } else if (key == "codec") {
    value = options.codec;
  } else if (key == "goal") {
    value = options.goal;
  } else if (key == "effort") {
    value = std::to_string(options.effort);
  } else if (key == "mask_search") {
    value = options.find_repeated ? "1" : "0";
  } else if (key == "idempotent") {
    value = options.idempotent ? "1" : "0";
  } else if (key == "range" && options.range) {
    value = number_text(options.range->min) + ":" + number_text(options.range->max);
  } else {
    const auto found = std::find_if(options.settings.begin(), options.settings.end(),
                                    [&](const auto& setting) { return setting.first == key; });
    if (found == options.settings.end())
      return Status(StatusCode::unknown_setting, "no setting of that name has a value");
    value = found->second;
  }
  return {};
}

/// One item of a text: a bound or KEY=VALUE. `bounds` counts the bounds.
Status parse_item(CompressOptions& options, std::string_view item, int& bounds) {
  static constexpr std::pair<std::string_view, quern_bound_kind> kBounds[] = {{"abs", QUERN_BOUND_ABS},
                                                                              {"rel", QUERN_BOUND_REL},
                                                                              {"pwrel", QUERN_BOUND_PWREL},
                                                                              {"psnr", QUERN_BOUND_PSNR},
                                                                              {"ratio", QUERN_BOUND_RATIO}};
  const std::size_t equals = item.find('=');
  const std::string_view key = item.substr(0, equals);
  if (item == "lossless") {
    ++bounds;
    return set_bound(options, QUERN_BOUND_LOSSLESS, 0);
  }
  if (equals == std::string_view::npos)
    return Status(StatusCode::invalid_argument, "an item of the text is neither KEY=VALUE nor lossless");
  const std::string_view value = item.substr(equals + 1);
  for (const auto& [name, kind] : kBounds) {
    if (key != name) continue;
    double number = 0;
    if (!parse_number(value, number)) return Status(StatusCode::invalid_bound, "the bound's value is not a number");
    ++bounds;
    return set_bound(options, kind, number);
  }
  return set_key(options, key, value);
}

Status parse_text(CompressOptions& options, std::string_view text) {
  if (text.size() > kMaxText)
    return Status(StatusCode::invalid_argument, "the text is longer than {0} bytes", std::int64_t{kMaxText});
  CompressOptions next = options;
  int bounds = 0;
  while (true) {
    const std::size_t begin = text.find_first_not_of(" ,\t\n");
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(" ,\t\n"), text.size());
    QUERN_RETURN_IF_ERROR(parse_item(next, text.substr(0, end), bounds));
    text.remove_prefix(end);
  }
  if (bounds > 1) return Status(StatusCode::invalid_bound, "the text has {0} bounds; give one", bounds);
  options = std::move(next);
  return {};
}

/// A call on parameters: its memory is theirs, its text the thread's.
template <class Body>
quern_status guarded_by(const quern_params* params, const Body& body) noexcept {
  if (params == nullptr) return guarded(thread_error(), [] { return null_argument("the parameters are NULL"); });
  return guarded(thread_error(), &params->memory, body);
}

}  // namespace
}  // namespace quern::capi

using quern::Status;
using quern::StatusCode;
using quern::capi::guarded;
using quern::capi::guarded_by;
using quern::capi::null_argument;
using quern::capi::thread_error;

quern_status quern_params_create(quern_params** params) { return quern_params_create_with_allocator(nullptr, params); }

quern_status quern_params_create_with_allocator(const quern_allocator* allocator, quern_params** params) {
  return guarded(thread_error(), [&]() -> Status {
    if (params == nullptr) return null_argument("quern_params_create: the place for the parameters is NULL");
    *params = nullptr;
    const quern_allocator used = allocator != nullptr ? *allocator : quern_allocator{};
    QUERN_RETURN_IF_ERROR(quern::capi::check_allocator(used));
    *params = quern::capi::make_handle<quern_params>(used);
    return {};
  });
}

void quern_params_destroy(quern_params* params) { quern::capi::destroy_handle(params); }

quern_status quern_params_set_bound(quern_params* params, quern_bound_kind kind, double value) {
  return guarded_by(params, [&]() -> Status { return quern::capi::set_bound(params->options, kind, value); });
}

quern_status quern_params_set(quern_params* params, const char* key, const char* value) {
  return guarded_by(params, [&]() -> Status {
    if (key == nullptr || value == nullptr) return null_argument("quern_params_set: NULL argument");
    return quern::capi::set_key(params->options, key, value);
  });
}

quern_status quern_params_get(const quern_params* params, const char* key, char* value, size_t capacity,
                              size_t* needed) {
  return guarded_by(params, [&]() -> Status {
    if (key == nullptr || (value == nullptr && capacity != 0)) return null_argument("quern_params_get: NULL argument");
    quern::String text;
    QUERN_RETURN_IF_ERROR(quern::capi::get_key(params->options, key, text));
    if (needed != nullptr) *needed = text.size() + 1;
    if (value == nullptr) return {};
    if (capacity <= text.size())
      return Status(StatusCode::destination_too_small, "the value takes {0} bytes",
                    static_cast<std::int64_t>(text.size() + 1));
    std::memcpy(value, text.c_str(), text.size() + 1);
    return {};
  });
}

quern_status quern_params_parse(quern_params* params, const char* text) {
  return guarded_by(params, [&]() -> Status {
    if (text == nullptr) return null_argument("quern_params_parse: NULL argument");
    return quern::capi::parse_text(params->options, text);
  });
}

quern_status quern_params_add_fill(quern_params* params, quern_dtype dtype, const void* element) {
  return guarded_by(params, [&]() -> Status {
    if (element == nullptr) return null_argument("quern_params_add_fill: NULL argument");
    if (dtype < 0 || dtype > 255 || !quern::is_known_dtype(static_cast<std::uint8_t>(dtype)))
      return Status(StatusCode::invalid_argument, "{0} is no element type", dtype);
    auto& fills = params->options.fill_bits;
    if (fills.size() >= quern::capi::kMaxFills)
      return Status(StatusCode::invalid_argument, "more than {0} fill values",
                    static_cast<std::int64_t>(quern::capi::kMaxFills));
    std::uint64_t bits = 0;
    std::memcpy(&bits, element, quern::dtype_bytes(static_cast<quern::DType>(dtype)));
    fills.push_back(bits);
    return {};
  });
}

quern_status quern_params_set_metadata(quern_params* params, const void* bytes, size_t size) {
  return guarded_by(params, [&]() -> Status {
    if ((bytes == nullptr && size != 0)) return null_argument("quern_params_set_metadata: NULL argument");
    if (size > quern::capi::kMaxMetadata)
      return Status(StatusCode::invalid_argument, "{0} bytes of metadata; at most {1} are kept",
                    static_cast<std::int64_t>(size), static_cast<std::int64_t>(quern::capi::kMaxMetadata));
    const auto* first = static_cast<const std::uint8_t*>(bytes);
    params->options.metadata.assign(first, first + size);
    return {};
  });
}
