// The tree of values on top of the event parser of nlohmann-json, which checks UTF-8 and keeps no recursion.
#include "checkpoint/safetensors/json.h"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

namespace quern::checkpoint {
namespace {

String signed_decimal(std::int64_t value) {
  return value < 0 ? join({"-", decimal(0 - static_cast<std::uint64_t>(value))}) : decimal(value);
}

/// The code unit of the escape \uXXXX at that place, or 0 where there is none.
unsigned escaped_unit(std::string_view text, std::size_t at) {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return 0;
  unsigned unit = 0;
  const char* const end = text.data() + at + 6;
  const auto read = std::from_chars(text.data() + at + 2, end, unit, 16);
  return read.ec == std::errc() && read.ptr == end ? unit : 0;
}

/// The same JSON with U+FFFD, an escape of equal length, for each half of a surrogate pair. The parser refuses halves.
String without_lone_surrogates(std::string_view text) {
  const auto is_high = [](unsigned unit) { return unit >= 0xD800 && unit < 0xDC00; };
  const auto is_low = [](unsigned unit) { return unit >= 0xDC00 && unit < 0xE000; };
  String out(text);
  for (std::size_t at = text.find('\\'); at != text.npos;) {
    const unsigned unit = escaped_unit(text, at);
    std::size_t bytes = unit == 0 ? 2 : 6;
    if (is_high(unit) && is_low(escaped_unit(text, at + 6)))
      bytes = 12;
    else if (is_high(unit) || is_low(unit))
      out.replace(at + 2, 4, "fffd");
    at = text.find('\\', at + bytes);
  }
  return out;
}

/// Builds the tree; returning false ends the parsing.
class TreeBuilder {
 public:
  using Json = nlohmann::json;
  TreeBuilder(const JsonLimits& limits, JsonValue& root) : limits_(limits), root_(root) {}

  // The events; their names are the parser's.
  bool null() { return other("null is not allowed"); }
  bool boolean(bool value) {
    if (!limits_.settings) return other("true and false are not allowed");
    JsonValue* const made = add(JsonValue::Kind::truth);
    if (made != nullptr) made->number = value ? 1 : 0;
    return made != nullptr;
  }
  bool number_integer(Json::number_integer_t value) {
    return limits_.settings ? real(static_cast<double>(value), signed_decimal(value)) : other("a number is negative");
  }
  bool number_float(Json::number_float_t, const std::string& text) {
    if (!limits_.settings) return other("a number is a fraction or does not fit in 64 bits");
    double value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    return read.ec == std::errc() ? real(value, text) : refuse("a number is out of range");
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    JsonValue* const made = add(JsonValue::Kind::number);
    if (made != nullptr) {
      made->number = value;
      made->real = static_cast<double>(value);
    }
    return made != nullptr;
  }
  bool string(std::string& text) {
    JsonValue* const made = add(JsonValue::Kind::text);
    if (made != nullptr) made->text.assign(text.data(), text.size());
    return made != nullptr;
  }
  bool binary(Json::binary_t&) { return refuse("binary data is not allowed"); }
  bool start_object(std::size_t) { return open(JsonValue::Kind::object); }
  bool start_array(std::size_t) { return open(JsonValue::Kind::array); }
  bool key(std::string& text) {
    key_.assign(text.data(), text.size());
    return true;
  }
  bool end_object() {
    const bool unique = keys_differ(*open_.back());
    open_.pop_back();
    return unique || refuse("a key is given twice");
  }
  bool end_array() {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) {
    position_ = position;
    return refuse("it is not JSON");
  }

  const char* problem() const { return problem_; }
  std::size_t position() const { return position_; }

 private:
  bool refuse(const char* problem) {
    if (problem_ == nullptr) problem_ = problem;
    return false;
  }
  bool real(double value, std::string_view written) {
    JsonValue* const made = add(JsonValue::Kind::real);
    if (made == nullptr) return false;
    made->real = value;
    made->text.assign(written.data(), written.size());
    return true;
  }
  bool other(const char* problem) {
    if (!limits_.others) return refuse(problem);
    return add(JsonValue::Kind::other) != nullptr;
  }
  JsonValue* add(JsonValue::Kind kind) {
    if (++values_ > limits_.values) {
      refuse("it has too many values");
      return nullptr;
    }
    JsonValue* made = &root_;
    if (!open_.empty()) {
      JsonValue& parent = *open_.back();
      made = &parent.items.emplace_back();
      if (parent.is(JsonValue::Kind::object)) made->key = std::move(key_);
    }
    made->kind = kind;
    return made;
  }
  bool open(JsonValue::Kind kind) {
    if (open_.size() >= limits_.depth) return refuse("it is nested too deeply");
    JsonValue* const made = add(kind);
    // Pointers to open values stay good: a value's own items grow, those of its parents do not while it is open.
    if (made != nullptr) open_.push_back(made);
    return made != nullptr;
  }
  static bool keys_differ(const JsonValue& object) {
    Vector<std::string_view> keys;
    keys.reserve(object.items.size());
    for (const JsonValue& item : object.items) keys.push_back(item.key);
    std::sort(keys.begin(), keys.end());
    return std::adjacent_find(keys.begin(), keys.end()) == keys.end();
  }

  const JsonLimits& limits_;
  JsonValue& root_;
  Vector<JsonValue*> open_;
  String key_;
  std::size_t values_ = 0;
  const char* problem_ = nullptr;
  std::size_t position_ = 0;
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  for (const JsonValue& item : items)
    if (item.key == name) return &item;
  return nullptr;
}

Result<JsonValue> parse_json(std::string_view text, const JsonLimits& limits, Report& report) {
  JsonValue root;
  TreeBuilder builder(limits, root);
  String whole;
  if (limits.lone_surrogates) {
    whole = without_lone_surrogates(text);
    text = whole;
  }
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    if (builder.position() != 0)
      return fail(report, StatusCode::corrupt,
                  join({builder.problem(), " (near byte ", decimal(builder.position()), ")"}));
    return fail(report, StatusCode::corrupt,
                String(builder.problem() == nullptr ? "it is not JSON" : builder.problem()));
  }
  return root;
}

void append_json_text(String& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += "\\u00";
          out += kHex[static_cast<unsigned char>(c) >> 4];
          out += kHex[c & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void append_json_number(String& out, std::uint64_t value) { out += decimal(value); }

}  // namespace quern::checkpoint
