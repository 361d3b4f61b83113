// What looks wrong about an input before it is coded: said in one line each, with the option to give.
#pragma once

#include <optional>
#include <string>

#include <quern/array.h>
#include <quern/compress.h>
#include <quern/suspicions.h>

#include "cli/files/input_array.h"
#include "cli/messages/file_report.h"

namespace quern::cli {

/// Looks at an array and says on stderr, unless quiet, what looks wrong. Under --strict-input the first suspicion is an
/// error (usage): throws CliError.
Vector<Suspicion> examine_input(const InputArray& input, const ArrayView& array, const DataArgs& data,
                                const RunArgs& run);

/// "30 % of the values are 9.96921e+36, far outside ...; give --fill 9.96921e+36 if they mark missing data"
std::string suspicion_text(const Suspicion& suspicion, const InputArray& input, const DataArgs& data);

/// A list of {"kind", "text", ...}.
Json suspicions_json(const Vector<Suspicion>& suspicions, const InputArray& input, const DataArgs& data);

/// The fill values among them, as element bits.
Vector<std::uint64_t> suspected_fills(const Vector<Suspicion>& suspicions);

/// " (range stretched by 9.96921e+36)" where suspected fill values are part of the range that the bound depends on;
/// else empty.
std::string stretched_text(const Vector<Suspicion>& suspicions, const std::optional<ValueRange>& range,
                           const InputArray& input);

}  // namespace quern::cli
