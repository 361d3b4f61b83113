// What the command keeps in a stream's metadata so that a file of the input's kind can be written again: a small JSON
// object, absent when there is nothing to keep.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <quern/bound.h>
#include <quern/compress.h>
#include <quern/io.h>

#include "cli/files/input_array.h"

namespace quern::cli {

Vector<std::uint8_t> notes_for(const InputArray& input);

/// A stream's array as a file writer takes it. Metadata that this command did not write is ignored.
struct RestoredMeta {
  io::ArrayMeta meta;
  std::string dataset;
};
RestoredMeta restore_meta(const StreamInfo& info);

/// io::stored_bound of the array; throws CliError where the bound cannot hold for physical values.
ErrorBound stored_bound(const ErrorBound& bound, const InputArray& input);
/// The range a user gave in physical units in those of the stored numbers.
std::optional<ValueRange> stored_range(const std::optional<ValueRange>& range, const InputArray& input);
/// Sets the range of a bound that depends on one, where the file says which values are valid (valid_range) and the user
/// gave no range.
void use_valid_range(const InputArray& input, const ArrayView& array, const Execution& execution,
                     CompressOptions& options);

}  // namespace quern::cli
