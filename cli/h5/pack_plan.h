// quern h5 pack, first step: which datasets are packed, each under which bound, with which settings of the filter.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <quern/bound.h>

#include "cli/args/args.h"
#include "cli/h5/boxes.h"
#include "cli/h5/copy/tree.h"
#include "cli/h5/fields.h"
#include "cli/h5/file.h"
#include "cli/h5/record.h"
#include "cli/h5/values.h"
#include "cli/h5/verb.h"

namespace quern::cli {

struct PackJob {
  std::size_t object = 0;
  std::string name;
  ErrorBound asked;   ///< by the user, in physical units
  ErrorBound stored;  ///< lossless, abs or pwrel, in stored numbers
  double scale = 1;   ///< physical = stored * scale + offset
  DType dtype = DType::f32;
  Vector<std::uint64_t> fill_bits;
  FilterWords words;
  Extents chunk;
  bool was_chunked = false;
  std::optional<LossyRecord> record;  ///< nothing where every bit comes back
  std::optional<ErrorBound> past;     ///< of earlier lossy compression, which the bound adds to

  /// Another bound of the same kind, for a PSNR or a ratio that the first one misses.
  void change_bound(double in_stored_numbers);
  /// The bound on each value in physical units.
  ErrorBound physical() const;
};

struct LeftDataset {
  std::string name;
  LeftAlone why;
  bool named = false;  ///< the user asked for it
};

struct PackPlan {
  std::vector<PackJob> jobs;
  std::vector<LeftDataset> left;
};

/// Datasets that would get the bound for those without one of their own, by name. What cannot be packed for other
/// reasons is among them.
std::vector<std::string> fields_without_bound(hid_t file, const H5Tree& tree, const H5Args& args);

/// Throws CliError: a name that is none, a dataset that was packed before and is named again.
PackPlan plan_pack(hid_t file, const H5Tree& tree, const H5Args& args);

/// A dataset's creation list with quern's filter in place of those it had.
H5Id packed_list(hid_t dcpl, const PackJob& job);

}  // namespace quern::cli
