// The report's sections of pictures; each returns HTML, or nothing when there is nothing to show.
#pragma once

#include <string>

#include "cli/report/compare_report.h"
#include "cli/report/error_survey.h"
#include "cli/report/pair_reader.h"

namespace quern::report {

/// "name [units]", or what there is of it.
std::string value_label(const ReportOptions& options);

std::string slices_section(const PairReader& reader, const ReportOptions& options);
std::string curve_section(const PairReader& reader, const ReportOptions& options);
std::string histogram_section(const ErrorSurvey& survey, const ReportOptions& options);
std::string slice_psnr_section(const ErrorSurvey& survey, const Shape& shape);
std::string spectrum_section(const PairReader& reader, const ReportOptions& options);
std::string autocorrelation_section(const Quality& quality);

}  // namespace quern::report
