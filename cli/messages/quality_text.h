// Quality figures as JSON members and as lines for people; shared by verify and compare.
#pragma once

#include <string>

#include <quern/metrics.h>

#include "cli/messages/file_report.h"

namespace quern::cli {

/// Adds elems, valid, specials_lost, min, max, max_error, max_error_index, max_pointwise_rel, mse, psnr_db, nrmse,
/// ssim, max_ulp and error_autocorrelation. Figures that do not exist are null.
void add_quality(const Quality& quality, const Shape& shape, DType dtype, Json& out);

std::string quality_text(const Quality& quality, const Shape& shape, DType dtype);

}  // namespace quern::cli
