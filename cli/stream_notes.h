// What the command keeps in a stream's metadata so that a file of the input's kind can be written again: a small JSON
// object, absent when there is nothing to keep.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <quern/bound.h>
#include <quern/compress.h>
#include <quern/io.h>

#include "cli/input_array.h"

namespace quern::cli {

Vector<std::uint8_t> notes_for(const InputArray& input);

/// A stream's array as a file writer takes it. Metadata that this command did not write is ignored.
struct RestoredMeta {
  io::ArrayMeta meta;
  std::string dataset;
};
RestoredMeta restore_meta(const StreamInfo& info);

/// The bound in units of the stored elements. Packed arrays are bounded in physical units: `abs` is divided by the
/// scale and rounded down, `rel`, `psnr` and `ratio` do not depend on it, `pwrel` cannot be kept and throws CliError,
/// as does a range given in physical units.
ErrorBound stored_bound(const ErrorBound& bound, const InputArray& input, bool has_range);

}  // namespace quern::cli
