// Strict readers of what users type: numbers, sizes, ranges, key=value, fill values. All throw CliError (usage).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <quern/bound.h>
#include <quern/compress.h>
#include <quern/dtype.h>

namespace quern::cli {

/// An element type by quern's name, numpy's (float32) or C's (float). Not numpy's short codes: they count bytes, so
/// that its i8 has 64 bits and quern's 8.
std::optional<DType> parse_type(std::string_view text);

/// A finite decimal number and nothing else. `what` names the option in the message.
double parse_real(std::string_view text, std::string_view what);

/// A decimal integer in [0, limit] and nothing else.
std::uint64_t parse_count(std::string_view text, std::string_view what, std::uint64_t limit);

/// Bytes: "100000", "64K", "512M", "1G", "2T"; K is 1024, a trailing "B" or "iB" is allowed. At least 1.
std::uint64_t parse_size(std::string_view text, std::string_view what);

/// A length as whole nanometres: "15cm", "20mm", "0.1m"; a bare number is in metres. Above 0 and at most 104 m; what is
/// below a nanometre is cut off.
std::uint64_t parse_length(std::string_view text, std::string_view what);

/// "123 B", "1.2 MiB", ...
std::string size_text(std::uint64_t bytes);

/// "MIN:MAX" with MIN <= MAX.
ValueRange parse_range(std::string_view text);

/// "key=value" with a key.
std::pair<String, String> parse_setting(std::string_view text);

/// The value of an error bound: finite, not negative. Whether it fits an element type is checked when that is known.
ErrorBound parse_bound(BoundKind kind, std::string_view text, std::string_view what);

/// One variable's bound: of a bounds file, or of an option that is given several times.
struct VariableBound {
  std::string variable;
  ErrorBound bound;
};

/// "abs", "rel", ...; nothing for another word.
std::optional<BoundKind> bound_kind_of(std::string_view name);

/// "NAME=KIND:VALUE", as in "tas=abs:0.01" and "mask=lossless".
VariableBound parse_variable_bound(std::string_view text, std::string_view what);

/// The element bits of a fill value, rounded to the type; "nan" for floating-point types. Integer types take integers
/// that fit.
std::uint64_t parse_fill(std::string_view text, DType dtype);

/// "a,b,c" cut at commas; empty pieces are refused.
std::vector<std::string> split_list(std::string_view text, std::string_view what);

}  // namespace quern::cli
