// Did the bound hold, and how good is what came back.
#include <cmath>
#include <limits>

#include <quern/device_metrics.h>
#include <quern/metrics.h>

#include "libcompress/capi/array_desc.h"
#include "libcompress/capi/handles.h"
#include "libcompress/capi/one_shot.h"
#include "libcompress/capi/versioned.h"

namespace quern::capi {
namespace {

Result<BoundCheck> check_on_host(const quern_context& context, const Layout& layout,
                                 std::span<const std::uint8_t> stream) {
  Execution execution = context.execution;
  PackedInput input;
  QUERN_RETURN_IF_ERROR(input.open(layout, execution.memory_limit));
  execution.memory_limit -= input.copied_bytes();
  if (input.view().bytes() > execution.memory_limit)
    return Status(StatusCode::memory_limit, "{0} bytes are needed for the decoded array; the limit is {1}",
                  static_cast<std::int64_t>(input.view().bytes()), static_cast<std::int64_t>(execution.memory_limit));
  AlignedBuffer decoded;
  QUERN_RETURN_IF_ERROR(decoded.resize(input.view().bytes()));
  execution.memory_limit -= input.view().bytes();
  MemorySource source(stream);
  QUERN_ASSIGN_OR_RETURN(const StreamInfo info, inspect(source, context.codecs()));
  QUERN_RETURN_IF_ERROR(source.seek(0));
  const MutableArrayView view{decoded.data(), layout.dtype, layout.shape};
  QUERN_ASSIGN_OR_RETURN(const DecompressReport done, decompress(source, view, context.codecs(), execution));
  (void)done;
  return check_bound(input.view(), view, info.enforced, {info.fill_bits}, execution);
}

Result<BoundCheck> check_stream(const quern_context& context, const Layout& layout,
                                std::span<const std::uint8_t> stream) {
  if (layout.on_device) {
    auto found = check_device_stream(layout.device, layout.data, layout.dtype, layout.shape, stream);
    if (!host_knows_more(found.status())) return found;
  }
  return check_on_host(context, layout, stream);
}

Status verify(const quern_context& context, const quern_array* original, const void* stream, std::uint64_t size,
              quern_verdict* verdict) {
  if (stream == nullptr && size != 0) return null_argument("quern_verify: the stream is NULL");
  if (verdict != nullptr) QUERN_RETURN_IF_ERROR(check_struct(verdict));
  Layout layout;
  QUERN_RETURN_IF_ERROR(read_array(original, true, layout));
  QUERN_ASSIGN_OR_RETURN(const BoundCheck check, check_stream(context, layout, stream_bytes(stream, size)));
  if (verdict != nullptr) {
    quern_verdict out = QUERN_VERDICT_INIT;
    out.violations = check.violations;
    out.specials_lost = check.specials_lost;
    if (!check.first.empty()) {
      out.first_index = check.first.front().index;
      out.first_error = check.first.front().error;
    }
    write_struct(out, verdict);
  }
  if (check.violations != 0)
    return Status(StatusCode::bound_not_met, "{0} elements miss the bound, the first at index {1}",
                  static_cast<std::int64_t>(check.violations),
                  check.first.empty() ? -1 : static_cast<std::int64_t>(check.first.front().index));
  return {};
}

quern_quality make_quality(const Quality& measured) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  quern_quality out = QUERN_QUALITY_INIT;
  out.elements = measured.elems;
  out.valid = measured.valid;
  out.specials_lost = measured.specials_lost;
  out.min = measured.min;
  out.max = measured.max;
  out.max_error = measured.max_error;
  out.max_pointwise_rel = measured.max_pointwise_rel;
  out.mse = measured.mse;
  out.psnr_db = measured.valid == 0 ? nan : measured.psnr_db.value_or(std::numeric_limits<double>::infinity());
  out.nrmse = measured.nrmse.value_or(nan);
  out.ssim = measured.ssim.value_or(nan);
  out.max_ulp = measured.max_ulp;
  return out;
}

Result<Quality> measure_on_host(const quern_context& context, const Layout (&layouts)[2],
                                const ValidityRule& validity) {
  Execution execution = context.execution;
  PackedInput inputs[2];
  for (std::size_t i = 0; i < 2; ++i) {
    QUERN_RETURN_IF_ERROR(inputs[i].open(layouts[i], execution.memory_limit));
    execution.memory_limit -= inputs[i].copied_bytes();
  }
  QualityOptions options;
  options.validity = validity;
  options.autocorrelation_lags = 0;
  return measure_quality(inputs[0].view(), inputs[1].view(), options, execution);
}

/// Whether both arrays lie in one device's memory, and are such as can be compared.
bool is_device_pair(const Layout& a, const Layout& b) {
  return a.on_device && b.on_device && a.device == b.device && a.dtype == b.dtype && a.shape == b.shape;
}

Result<Quality> measure(const quern_context& context, const Layout (&layouts)[2], const ValidityRule& validity) {
  if (is_device_pair(layouts[0], layouts[1])) {
    const Layout& like = layouts[0];
    auto found =
        measure_quality_on_device({like.device, like.dtype, like.shape, like.data, layouts[1].data}, validity, true);
    if (!host_knows_more(found.status())) return found;
  }
  return measure_on_host(context, layouts, validity);
}

Status compare(const quern_context& context, const quern_params* params, const quern_array* original,
               const quern_array* reconstructed, quern_quality* quality) {
  QUERN_RETURN_IF_ERROR(check_struct(quality));
  Layout layouts[2];
  QUERN_RETURN_IF_ERROR(read_array(original, true, layouts[0]));
  QUERN_RETURN_IF_ERROR(read_array(reconstructed, true, layouts[1]));
  ValidityRule validity;
  if (params != nullptr) validity.fill_bits = params->options.fill_bits;
  QUERN_ASSIGN_OR_RETURN(const Quality measured, measure(context, layouts, validity));
  write_struct(make_quality(measured), quality);
  return {};
}

}  // namespace
}  // namespace quern::capi

using quern::capi::guarded;
using quern::capi::null_argument;
using quern::capi::thread_error;

quern_status quern_verify(quern_context* context, const quern_array* original, const void* stream, uint64_t size,
                          quern_verdict* verdict) {
  if (context == nullptr)
    return guarded(thread_error(), [] { return null_argument("quern_verify: the context is NULL"); });
  return guarded(context->error, &context->memory,
                 [&] { return quern::capi::verify(*context, original, stream, size, verdict); });
}

quern_status quern_compare(quern_context* context, const quern_params* params, const quern_array* original,
                           const quern_array* reconstructed, quern_quality* quality) {
  if (context == nullptr)
    return guarded(thread_error(), [] { return null_argument("quern_compare: the context is NULL"); });
  return guarded(context->error, &context->memory,
                 [&] { return quern::capi::compare(*context, params, original, reconstructed, quality); });
}
