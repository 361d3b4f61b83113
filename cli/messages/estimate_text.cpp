// What does not apply is null.
#include "cli/messages/estimate_text.h"

#include <fmt/format.h>

namespace quern::cli {

std::string interval_text(const Interval& i, const char* format) {
  return fmt::format("{} ({}..{})", fmt::format(fmt::runtime(format), i.value),
                     fmt::format(fmt::runtime(format), i.low), fmt::format(fmt::runtime(format), i.high));
}

namespace {

Json estimate_json(const Estimate& e) {
  Json out;
  const auto interval = [&](const std::string& name, const std::string& stem, const std::optional<Interval>& i) {
    out[name] = i ? number_or_null(i->value) : Json(nullptr);
    out[stem + "_low"] = i ? number_or_null(i->low) : Json(nullptr);
    out[stem + "_high"] = i ? number_or_null(i->high) : Json(nullptr);
  };
  out["codec"] = e.codec;
  out["bound"] = bound_json(e.bound.kind, e.bound.value);
  out["absolute"] = e.absolute;
  interval("ratio", "ratio", e.ratio);
  interval("psnr_db", "psnr", e.psnr_db);
  interval("ssim", "ssim", e.ssim);
  const bool exact = !e.psnr_db;
  interval("max_error_over_bound", "max_error_over_bound",
           exact ? std::nullopt : std::optional<Interval>(e.max_error_share));
  interval("error_autocorrelation", "error_autocorrelation",
           exact ? std::nullopt : std::optional<Interval>(e.error_autocorrelation));
  interval("compress_mb_per_s", "compress_mb_per_s", e.compress_mb_per_s);
  interval("decompress_mb_per_s", "decompress_mb_per_s", e.decompress_mb_per_s);
  out["wide"] = e.wide;
  return out;
}

}  // namespace

Json estimates_json(const std::vector<Estimate>& estimates) {
  Json out = Json::array();
  for (const Estimate& e : estimates) out.push_back(estimate_json(e));
  return out;
}

}  // namespace quern::cli
