// JSON as stored files use it: objects, arrays, texts and whole numbers from 0 on, read strictly from bytes that may be
// hostile. Keys given twice and deep nesting are refused, and so are fractions, negative numbers, true, false and null
// unless they are asked for.
#pragma once

#include <cstdint>
#include <string_view>

#include <quern/memory.h>
#include <quern/status.h>

#include "checkpoint/storage.h"

namespace quern::checkpoint {

/// A value and what it holds. Members of an object keep the order they were written in.
struct JsonValue {
  enum class Kind : std::uint8_t { number, text, array, object, other, real, truth };

  Kind kind = Kind::number;
  std::uint64_t number = 0;  ///< truth: 1 or 0
  double real = 0;           ///< of numbers too
  String text;               ///< of a real too: as it was written
  String key;                ///< of a member of an object
  Vector<JsonValue> items;

  bool is(Kind wanted) const { return kind == wanted; }
  /// The member of that name, or null.
  const JsonValue* find(std::string_view name) const;
};

struct JsonLimits {
  std::size_t depth = 8;                      ///< arrays and objects inside each other
  std::size_t values = std::size_t{1} << 24;  ///< all values together
  bool others = false;                        ///< Kind::other is allowed
  bool settings = false;         ///< fractions, negative numbers, true and false are allowed and have their value
  bool lone_surrogates = false;  ///< an escape of half a surrogate pair (Python writes such) is read as U+FFFD
};

/// Reads one value and nothing behind it. Texts are UTF-8, checked; escapes are resolved. The sentence of a failure
/// does not name the file. May throw std::bad_alloc.
Result<JsonValue> parse_json(std::string_view text, const JsonLimits& limits, Report& report);

/// Appends a text in quotes, with the escapes JSON demands and no others.
void append_json_text(String& out, std::string_view text);
void append_json_number(String& out, std::uint64_t value);

}  // namespace quern::checkpoint
