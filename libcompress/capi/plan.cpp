// Plans, and the calls that queue work. On host memory the queue is the calling thread: the work is done when they
// return.
#include <algorithm>

#include "libcompress/capi/array_desc.h"
#include "libcompress/capi/handles.h"
#include "libcompress/capi/one_shot.h"

struct quern_plan {
  explicit quern_plan(const quern_allocator& allocator) noexcept : memory(allocator) {}

  quern::capi::CallerMemory memory;
  quern::DType dtype = quern::DType::f32;
  quern::Shape shape;
  quern::CompressOptions options;
  std::uint64_t bound = 0;
};

namespace quern::capi {
namespace {

struct DestroyPlan {
  void operator()(quern_plan* plan) const { destroy_handle(plan); }
};

Status make_plan(quern_context& context, const quern_params& params, const quern_array* array, quern_plan** out) {
  Layout layout;
  QUERN_RETURN_IF_ERROR(read_array(array, false, layout));
  const CompressOptions& options = params.options;
  QUERN_RETURN_IF_ERROR(options.bound.check(layout.dtype));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t bound,
                         max_stream_bytes(layout.dtype, layout.shape, options.metadata.size()));
  std::unique_ptr<quern_plan, DestroyPlan> plan(make_handle<quern_plan>(context.memory.allocator()));
  {
    const MemoryScope scope(&plan->memory);
    plan->options = CompressOptions(options);
  }
  plan->dtype = layout.dtype;
  plan->shape = layout.shape;
  plan->bound = bound;
  *out = plan.release();
  return {};
}

Status check_planned(const quern_plan& plan, const quern_array* array) {
  Layout layout;
  QUERN_RETURN_IF_ERROR(read_array(array, true, layout));
  if (layout.dtype != plan.dtype || layout.shape != plan.shape)
    return Status(StatusCode::invalid_argument, "the array's type or extents are not those the plan was made for");
  return {};
}

/// Queues belong to devices.
Status check_queue(const void* queue) {
  if (queue == nullptr) return {};
  return Status(StatusCode::invalid_argument, "the array is in host memory: give NULL as the queue");
}

}  // namespace
}  // namespace quern::capi

using quern::Status;
using quern::capi::guarded;
using quern::capi::null_argument;
using quern::capi::thread_error;

quern_status quern_plan_create(quern_context* context, const quern_params* params, const quern_array* array,
                               quern_plan** plan) {
  if (context == nullptr || params == nullptr || plan == nullptr)
    return guarded(thread_error(), [] { return null_argument("quern_plan_create: NULL argument"); });
  *plan = nullptr;
  return guarded(context->error, &context->memory,
                 [&] { return quern::capi::make_plan(*context, *params, array, plan); });
}

void quern_plan_destroy(quern_plan* plan) { quern::capi::destroy_handle(plan); }

quern_status quern_plan_bound(const quern_plan* plan, uint64_t* bytes) {
  return guarded(thread_error(), [&]() -> Status {
    if (plan == nullptr || bytes == nullptr) return null_argument("quern_plan_bound: NULL argument");
    *bytes = plan->bound;
    return {};
  });
}

quern_status quern_plan_workspace(const quern_plan* plan, uint64_t* bytes) {
  return guarded(thread_error(), [&]() -> Status {
    if (plan == nullptr || bytes == nullptr) return null_argument("quern_plan_workspace: NULL argument");
    *bytes = 0;
    return {};
  });
}

quern_status quern_compress_async(quern_context* context, const quern_plan* plan, const quern_array* array,
                                  void* workspace, uint64_t workspace_bytes, void* stream, uint64_t capacity,
                                  uint64_t* size, void* queue) {
  (void)workspace, (void)workspace_bytes;
  if (context == nullptr || plan == nullptr)
    return guarded(thread_error(), [] { return null_argument("quern_compress_async: context or plan are NULL"); });
  return guarded(context->error, &context->memory, [&]() -> Status {
    QUERN_RETURN_IF_ERROR(quern::capi::check_planned(*plan, array));
    QUERN_RETURN_IF_ERROR(quern::capi::check_queue(queue));
    return quern::capi::compress_array(*context, plan->options, array, stream, capacity, size, nullptr);
  });
}

quern_status quern_decompress_async(quern_context* context, const void* stream, uint64_t size, quern_array* array,
                                    void* workspace, uint64_t workspace_bytes, void* queue) {
  (void)workspace, (void)workspace_bytes;
  if (context == nullptr)
    return guarded(thread_error(), [] { return null_argument("quern_decompress_async: the context is NULL"); });
  return guarded(context->error, &context->memory, [&]() -> Status {
    QUERN_RETURN_IF_ERROR(quern::capi::check_queue(queue));
    return quern::capi::decompress_array(*context, stream, size, array);
  });
}
