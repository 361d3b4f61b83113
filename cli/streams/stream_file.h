// A file of one or more complete streams, one after the other (time steps of one array).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <quern/compress.h>

#include "cli/files/byte_streams.h"

namespace quern::cli {

/// The streams of a file, in order; at least one. Throws CliError (stream) when the file is not whole, unless `salvage`
/// is set: then whole streams are found by decoding, and the damaged rest is the last part. A first stream of records
/// is refused unless `take_records` is set.
std::vector<std::span<const std::uint8_t>> split_streams(std::span<const std::uint8_t> file, const std::string& name,
                                                         bool salvage = false, bool take_records = false);

/// Whether a file that can be read begins as a stream does. "-" does not. Never throws CliError.
bool is_stream_file(const std::string& path);

/// Headers of all streams of a file; at least one. Throws CliError.
std::vector<StreamInfo> inspect_all(const std::string& path);

/// Throws (stream) unless all have one element type and shape. The shape of the whole: the stream's own, or with a new
/// slowest axis when there are several.
Shape combined_shape(const std::vector<StreamInfo>& infos, const std::string& name);

}  // namespace quern::cli
