// Predictions of the library's estimator as structs of the caller.
#include <limits>

#include <quern/codec.h>
#include <quern/estimate.h>

#include "libcompress/capi/array_desc.h"
#include "libcompress/capi/handles.h"
#include "libcompress/capi/versioned.h"

namespace quern::capi {
namespace {

quern_interval interval(const Interval& i) { return {i.low, i.value, i.high}; }

quern_interval interval_or_nan(const std::optional<Interval>& i) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return i ? interval(*i) : quern_interval{nan, nan, nan};
}

Result<std::uint16_t> codec_id(const std::string& name) {
  const ArrayCodec* codec = builtin_codecs().by_name(name);
  if (codec == nullptr) return Status(StatusCode::internal, "the model has a codec that the library has not");
  return codec->info().id;
}

Result<quern_prediction> prediction_of(const Estimate& e) {
  quern_prediction out = QUERN_PREDICTION_INIT;
  QUERN_ASSIGN_OR_RETURN(out.codec_id, codec_id(e.codec));
  out.wide = e.wide ? 1 : 0;
  out.kind = static_cast<quern_bound_kind>(e.bound.kind);
  out.bound = e.bound.value;
  out.absolute = e.absolute;
  out.ratio = interval(e.ratio);
  out.psnr_db = interval_or_nan(e.psnr_db);
  out.ssim = interval_or_nan(e.ssim);
  out.max_error = interval(e.max_error_share);
  out.autocorrelation = interval(e.error_autocorrelation);
  out.compress_mb_per_s = interval(e.compress_mb_per_s);
  out.decompress_mb_per_s = interval(e.decompress_mb_per_s);
  return out;
}

Status read_options(const quern_params* params, quern_bound_kind kind, const double* bounds, std::uint32_t count,
                    EstimateOptions& options) {
  if (bounds == nullptr || count == 0)
    return Status(StatusCode::invalid_argument, "quern_estimate: give at least one bound");
  if (kind != QUERN_BOUND_REL && kind != QUERN_BOUND_ABS)
    return Status(StatusCode::invalid_bound, "quern_estimate: bounds are of kind QUERN_BOUND_REL or QUERN_BOUND_ABS");
  const BoundKind wanted = kind == QUERN_BOUND_REL ? BoundKind::rel : BoundKind::abs;
  for (std::uint32_t i = 0; i < count; ++i) options.bounds.push_back({wanted, bounds[i]});
  if (params == nullptr) return {};
  if (params->options.codec != "auto") options.codecs.push_back(params->options.codec);
  options.fill_bits = params->options.fill_bits;
  options.range = params->options.range;
  return {};
}

/// The caller's structs lie struct_size of the first apart.
Status write_predictions(const EstimateReport& report, quern_prediction* predictions, std::uint32_t capacity,
                         std::uint32_t* found) {
  const std::uint32_t apart = predictions->struct_size;
  *found = static_cast<std::uint32_t>(report.estimates.size());
  if (*found > capacity)
    return Status(StatusCode::destination_too_small, "there are {0} predictions, and room for {1}",
                  static_cast<std::int64_t>(*found), static_cast<std::int64_t>(capacity));
  auto* at = reinterpret_cast<unsigned char*>(predictions);
  for (const Estimate& e : report.estimates) {
    auto* const out = reinterpret_cast<quern_prediction*>(at);
    QUERN_ASSIGN_OR_RETURN(const quern_prediction made, prediction_of(e));
    out->struct_size = apart;
    write_struct(made, out);
    at += apart;
  }
  return {};
}

Status estimate(const quern_context& context, const quern_params* params, const quern_array* array,
                quern_bound_kind kind, const double* bounds, std::uint32_t count, quern_prediction* predictions,
                std::uint32_t capacity, std::uint32_t* found) {
  QUERN_RETURN_IF_ERROR(check_struct(predictions));
  if (found == nullptr) return null_argument("quern_estimate: found is NULL");
  if (predictions->struct_size % alignof(quern_prediction) != 0)
    return Status(StatusCode::invalid_argument, "struct_size is {0}: start from the struct's INIT value",
                  predictions->struct_size);
  Layout layout;
  QUERN_RETURN_IF_ERROR(read_array(array, true, layout));
  EstimateOptions options;
  QUERN_RETURN_IF_ERROR(read_options(params, kind, bounds, count, options));
  Execution execution = context.execution;
  PackedInput input;
  QUERN_RETURN_IF_ERROR(input.open(layout, execution.memory_limit));
  execution.memory_limit -= input.copied_bytes();
  QUERN_ASSIGN_OR_RETURN(const EstimateReport report, builtin_estimator().estimate(input.view(), options, execution));
  return write_predictions(report, predictions, capacity, found);
}

}  // namespace
}  // namespace quern::capi

using quern::capi::guarded;
using quern::capi::null_argument;
using quern::capi::thread_error;

quern_status quern_estimate(quern_context* context, const quern_params* params, const quern_array* array,
                            quern_bound_kind kind, const double* bounds, uint32_t count, quern_prediction* predictions,
                            uint32_t capacity, uint32_t* found) {
  if (context == nullptr)
    return guarded(thread_error(), [] { return null_argument("quern_estimate: the context is NULL"); });
  return guarded(context->error, &context->memory, [&] {
    return quern::capi::estimate(*context, params, array, kind, bounds, count, predictions, capacity, found);
  });
}
