// The library's bounds, with messages that name the file.
#include "cli/bounds/precision.h"

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/messages/messages.h"

namespace quern::cli {

bool has_digits(const InputArray& input) { return is_float(input.meta.dtype) && !input.meta.packed; }

void require_digits(const PrecisionArgs& asked, const InputArray& input) {
  const char* const option = asked.information ? "--information" : "--digits";
  if (!has_digits(input))
    fail(Exit::usage,
         fmt::format("{}: holds {}, and {} is for floating-point numbers; give it --abs", input.label,
                     input.meta.packed ? "numbers that scale_factor and add_offset change" : "integers", option));
}

FoundPrecision find_precision(const PrecisionArgs& asked, const InputArray& input, const ArrayView& array,
                              const Execution& execution) {
  require_digits(asked, input);
  auto found = asked.information
                   ? bound_for_information(array, asked.value, input.fill_bits, execution)
                   : bound_for_digits(array, static_cast<unsigned>(asked.value), input.fill_bits, execution);
  return {asked, check(std::move(found), Phase::encode, input.label)};
}

std::string precision_text(const FoundPrecision& precision) {
  if (!precision.asked.information)
    return fmt::format("{:.0f} digit{}", precision.asked.value, precision.asked.value == 1 ? "" : "s");
  if (!precision.found.mantissa_bits) return "no value has a neighbour";
  return fmt::format("{:.6g} % of the information: {} bits of the mantissa", 100 * precision.asked.value,
                     *precision.found.mantissa_bits);
}

Json precision_json(const FoundPrecision& precision) {
  Json out;
  out[precision.asked.information ? "information" : "digits"] = precision.asked.value;
  out["mantissa_bits"] = precision.found.mantissa_bits ? Json(*precision.found.mantissa_bits) : Json(nullptr);
  out["axis"] = precision.found.mantissa_bits ? Json(precision.found.axis) : Json(nullptr);
  return out;
}

}  // namespace quern::cli
