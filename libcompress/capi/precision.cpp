// Bounds from digits and from information, as structs of the caller.
#include <quern/precision.h>

#include "libcompress/capi/array_desc.h"
#include "libcompress/capi/handles.h"
#include "libcompress/capi/versioned.h"

namespace quern::capi {
namespace {

quern_precision precision_of(const PrecisionBound& found) {
  quern_precision out = QUERN_PRECISION_INIT;
  out.kind = static_cast<quern_bound_kind>(found.bound.kind);
  out.value = found.bound.value;
  out.mantissa_bits = found.mantissa_bits ? static_cast<std::int32_t>(*found.mantissa_bits) : -1;
  out.axis = found.mantissa_bits ? static_cast<std::uint32_t>(found.axis) : 0;
  return out;
}

/// `find` takes the array, its fill values and the execution.
template <class Find>
quern_status find_precision(quern_context* context, const quern_params* params, const quern_array* array,
                            quern_precision* precision, const Find& find) {
  if (context == nullptr)
    return guarded(thread_error(), [] { return null_argument("quern_precision: the context is NULL"); });
  return guarded(context->error, &context->memory, [&]() -> Status {
    QUERN_RETURN_IF_ERROR(check_struct(precision));
    Layout layout;
    QUERN_RETURN_IF_ERROR(read_array(array, true, layout));
    Execution execution = context->execution;
    PackedInput input;
    QUERN_RETURN_IF_ERROR(input.open(layout, execution.memory_limit));
    execution.memory_limit -= input.copied_bytes();
    std::span<const std::uint64_t> fills;
    if (params != nullptr) fills = params->options.fill_bits;
    QUERN_ASSIGN_OR_RETURN(const PrecisionBound found, find(input.view(), fills, execution));
    write_struct(precision_of(found), precision);
    return {};
  });
}

}  // namespace
}  // namespace quern::capi

quern_status quern_precision_of_digits(quern_context* context, const quern_params* params, const quern_array* array,
                                       uint32_t digits, quern_precision* precision) {
  return quern::capi::find_precision(context, params, array, precision,
                                     [&](const auto& view, const auto& fills, const auto& e) {
                                       return quern::bound_for_digits(view, digits, fills, e);
                                     });
}

quern_status quern_precision_of_information(quern_context* context, const quern_params* params,
                                            const quern_array* array, double share, quern_precision* precision) {
  return quern::capi::find_precision(context, params, array, precision,
                                     [&](const auto& view, const auto& fills, const auto& e) {
                                       return quern::bound_for_information(view, share, fills, e);
                                     });
}
