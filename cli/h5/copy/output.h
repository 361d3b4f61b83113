// The new file of quern h5 pack and unpack: beside its final name until it was compared with the input.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/args/args.h"
#include "cli/h5/copy/compare.h"
#include "cli/h5/copy/copy.h"

namespace quern::cli {

/// Says of a file's bytes whether the file is wanted.
using AcceptBytes = std::function<bool(std::uint64_t)>;

/// Copies the input file with changes, reads the copy again, compares, and gives it its name. `from` is the input,
/// open. Throws CliError; the output is not there then, nor when `accept` does not want it. Returns its bytes.
std::uint64_t write_h5_output(const H5Args& args, hid_t from, const H5Tree& tree, const H5Changes& changes,
                              const H5Comparison& comparison, const AcceptBytes& accept = nullptr);

std::uint64_t file_bytes(const std::string& path);

/// "1 dataset", "2 datasets"
std::string datasets_text(std::size_t count);

/// "3 packed already, 2 without floating-point numbers"
std::string count_text(const std::vector<std::string>& groups);

}  // namespace quern::cli
