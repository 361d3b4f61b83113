// A copied file against its original, read again from the start: what was not to change did not, and what was to change
// was handed to the caller's own check.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <functional>
#include <string>

#include "cli/h5/copy/tree.h"

namespace quern::cli {

struct H5Comparison {
  /// True for a dataset that was replaced: its values and its additional attributes are checked by `check_replaced`.
  std::function<bool(std::size_t object)> is_replaced;
  std::function<bool(std::size_t object, const std::string& attribute)> keeps_attribute;
  /// Throws CliError when the replaced dataset is not what it should be.
  std::function<void(std::size_t object, hid_t from, hid_t to)> check_replaced;
  /// Called with the bytes of values that a dataset has, when they were looked at.
  std::function<void(std::uint64_t bytes)> done;
};

/// Throws CliError (io) naming the first object or attribute that differs. `memory`: bytes values may take at a time.
void h5_compare(hid_t from, const H5Tree& tree, hid_t to, const H5Comparison& comparison, std::uint64_t memory);

}  // namespace quern::cli
