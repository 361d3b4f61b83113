// --digits and --information: the bound that follows from an array's values, and how it is told of.
#pragma once

#include <string>

#include <quern/precision.h>

#include "cli/args/args.h"
#include "cli/files/input_array.h"
#include "cli/messages/file_report.h"

namespace quern::cli {

/// What was asked for and what came of it.
struct FoundPrecision {
  PrecisionArgs asked;
  PrecisionBound found;
};

/// Not so integers, and numbers that attributes scale.
bool has_digits(const InputArray& input);
/// Throws CliError: integers, and numbers that attributes scale, have no digits of their own.
void require_digits(const PrecisionArgs& asked, const InputArray& input);
/// The same, and the bound.
FoundPrecision find_precision(const PrecisionArgs& asked, const InputArray& input, const ArrayView& array,
                              const Execution& execution);

/// "3 digits", "99 % of the information: 7 bits of the mantissa".
std::string precision_text(const FoundPrecision& precision);
Json precision_json(const FoundPrecision& precision);

}  // namespace quern::cli
