// Quality figures for machines and people.
#include "cli/messages/quality_text.h"

#include <fmt/format.h>

#include "cli/verbs/stream_check.h"

namespace quern::cli {

void add_quality(const Quality& quality, const Shape& shape, DType dtype, Json& out) {
  out["elems"] = quality.elems;
  out["valid"] = quality.valid;
  out["specials_lost"] = quality.specials_lost;
  out["min"] = number_or_null(quality.min);
  out["max"] = number_or_null(quality.max);
  out["max_error"] = number_or_null(quality.max_error);
  out["max_error_index"] = quality.max_error == 0 ? Json(nullptr) : Json(index_text(quality.max_error_index, shape));
  out["max_pointwise_rel"] = number_or_null(quality.max_pointwise_rel);
  out["mse"] = number_or_null(quality.mse);
  out["psnr_db"] = number_or_null(quality.psnr_db);
  out["nrmse"] = number_or_null(quality.nrmse);
  out["ssim"] = number_or_null(quality.ssim);
  out["max_ulp"] = is_float(dtype) ? Json(quality.max_ulp) : Json(nullptr);
  Json lags = Json::array();
  for (const double value : quality.error_autocorrelation) lags.push_back(number_or_null(value));
  out["error_autocorrelation"] = lags;
}

std::string quality_text(const Quality& quality, const Shape& shape, DType dtype) {
  std::string out = fmt::format("  values          {} of {}, {} valid, {:.9g} to {:.9g}\n", shape.text(),
                                dtype_name(dtype), quality.valid, quality.min, quality.max);
  out += quality.max_error == 0 ? std::string("  max error       0\n")
                                : fmt::format("  max error       {:.9g} at {}\n", quality.max_error,
                                              index_text(quality.max_error_index, shape));
  out += fmt::format("  max relative    {:.6g}\n", quality.max_pointwise_rel);
  out += quality.psnr_db ? fmt::format("  PSNR            {:.2f} dB\n", *quality.psnr_db)
                         : std::string("  PSNR            infinite (no error)\n");
  if (quality.nrmse) out += fmt::format("  NRMSE           {:.6g}\n", *quality.nrmse);
  if (quality.ssim) out += fmt::format("  SSIM            {:.8f}\n", *quality.ssim);
  if (is_float(dtype)) out += fmt::format("  max distance    {} ulps\n", quality.max_ulp);
  if (!quality.error_autocorrelation.empty())
    out += fmt::format("  autocorrelation {:.4f} at lag 1\n", quality.error_autocorrelation.front());
  out +=
      fmt::format("  special values  {}\n",
                  quality.specials_lost == 0 ? "all as they were" : fmt::format("{} changed", quality.specials_lost));
  return out;
}

}  // namespace quern::cli
