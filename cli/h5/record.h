// What was done to a dataset's values, kept in its attributes: lossy_compression and its companions.
#pragma once

#include <hdf5.h>

#include <optional>
#include <string>

#include <quern/bound.h>

namespace quern::cli {

/// A dataset's earlier lossy compression, in physical units.
struct LossyPast {
  ErrorBound bound;       ///< of all earlier times together; abs or pwrel
  std::string requested;  ///< "rel=0.0001", or empty when nobody noted it
};

/// From the attributes, or, for datasets packed by other programs, from the filter's words. Nothing for exact values.
std::optional<LossyPast> h5_lossy_past(hid_t dataset, double scale);

/// The two bounds one after the other. Throws CliError (usage) when they are of different kinds.
ErrorBound accumulated(const ErrorBound& first, const ErrorBound& second, const std::string& path);

struct LossyRecord {
  ErrorBound bound;  ///< physical units, abs or pwrel
  std::string requested;
  std::optional<double> accumulated;  ///< when the values were lossy before
};

/// Writes the attributes; ones of the same name are not there.
void h5_write_record(hid_t dataset, const LossyRecord& record);

/// True for the attributes that h5_write_record() writes.
bool h5_is_record(const std::string& attribute);

}  // namespace quern::cli
