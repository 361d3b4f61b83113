// Plans, and the calls that queue work. On host memory the queue is the calling thread: the work is done when they
// return.
#include <algorithm>
#include <memory>

#include <quern/device_arrays.h>

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
  int device = 0;
  std::unique_ptr<quern::DeviceArrayCoder> coder;  ///< null: arrays in host memory
};

namespace quern::capi {
namespace {

struct DestroyPlan {
  void operator()(quern_plan* plan) const { destroy_handle(plan); }
};

static_assert(sizeof(quern_outcome) == sizeof(DeviceOutcome));

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
    if (layout.on_device) {
      QUERN_ASSIGN_OR_RETURN(plan->coder, device_compressor(layout.device, layout.dtype, layout.shape, options));
    }
  }
  plan->dtype = layout.dtype;
  plan->shape = layout.shape;
  plan->bound = bound;
  plan->device = layout.device;
  *out = plan.release();
  return {};
}

/// An array that the plan was made for.
Status read_planned(const quern_plan& plan, const quern_array* array, Layout& layout) {
  QUERN_RETURN_IF_ERROR(read_array(array, true, layout));
  if (layout.dtype != plan.dtype || layout.shape != plan.shape)
    return Status(StatusCode::invalid_argument, "the array's type or extents are not those the plan was made for");
  if (layout.on_device != (plan.coder != nullptr) || layout.device != plan.device)
    return Status(StatusCode::invalid_argument, "the array lies in another memory than the plan was made for");
  return {};
}

/// Queues belong to devices.
Status check_queue(const void* queue) {
  if (queue == nullptr) return {};
  return Status(StatusCode::invalid_argument, "the array is in host memory: give NULL as the queue");
}

Status compress_planned(quern_context& context, const quern_plan& plan, const quern_array* array, void* workspace,
                        std::uint64_t workspace_bytes, void* stream, std::uint64_t capacity, std::uint64_t* size,
                        void* queue) {
  Layout layout;
  QUERN_RETURN_IF_ERROR(read_planned(plan, array, layout));
  if (plan.coder == nullptr) {
    QUERN_RETURN_IF_ERROR(check_queue(queue));
    return compress_array(context, plan.options, array, stream, capacity, size, nullptr);
  }
  if (stream == nullptr) return null_argument("quern_compress_async: the stream is NULL");
  DeviceArrays call;
  call.array = layout.data;
  call.stream = stream;
  call.stream_bytes = capacity;
  call.sizes = size;
  return plan.coder->compress(call, workspace, workspace_bytes, queue);
}

Status decompress_queued(quern_context& context, const void* stream, std::uint64_t size, quern_array* array,
                         void* workspace, std::uint64_t workspace_bytes, void* queue) {
  Layout layout;
  QUERN_RETURN_IF_ERROR(read_array(array, true, layout));
  if (!layout.on_device) {
    QUERN_RETURN_IF_ERROR(check_queue(queue));
    return decompress_array(context, stream, size, array);
  }
  if (stream == nullptr) return null_argument("quern_decompress_async: the stream is NULL");
  QUERN_ASSIGN_OR_RETURN(const auto coder, device_decompressor(layout.device, layout.dtype, layout.shape));
  DeviceArrays call;
  call.array = layout.data;
  call.stream = const_cast<void*>(stream);
  call.stream_bytes = size;
  return coder->decompress(call, workspace, workspace_bytes, queue);
}

/// Arrays of a batch are those of a plan for a device.
Status check_batch(const quern_plan& plan) {
  if (plan.coder != nullptr) return {};
  return Status(StatusCode::unsupported,
                "batches are of arrays in device memory; arrays in host memory are compressed one by one");
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
    *bytes = plan->coder == nullptr ? 0 : plan->coder->workspace_bytes(1);
    return {};
  });
}

quern_status quern_decompress_workspace(const quern_array* array, uint64_t* bytes) {
  return guarded(thread_error(), [&]() -> Status {
    if (bytes == nullptr) return null_argument("quern_decompress_workspace: the place for the size is NULL");
    quern::capi::Layout layout;
    QUERN_RETURN_IF_ERROR(quern::capi::read_array(array, false, layout));
    *bytes = 0;
    if (!layout.on_device) return {};
    QUERN_ASSIGN_OR_RETURN(const auto coder, quern::device_decompressor(layout.device, layout.dtype, layout.shape));
    *bytes = coder->workspace_bytes(1);
    return {};
  });
}

quern_status quern_compress_async(quern_context* context, const quern_plan* plan, const quern_array* array,
                                  void* workspace, uint64_t workspace_bytes, void* stream, uint64_t capacity,
                                  uint64_t* size, void* queue) {
  if (context == nullptr || plan == nullptr)
    return guarded(thread_error(), [] { return null_argument("quern_compress_async: context or plan are NULL"); });
  return guarded(context->error, &context->memory, [&] {
    return quern::capi::compress_planned(*context, *plan, array, workspace, workspace_bytes, stream, capacity, size,
                                         queue);
  });
}

quern_status quern_decompress_async(quern_context* context, const void* stream, uint64_t size, quern_array* array,
                                    void* workspace, uint64_t workspace_bytes, void* queue) {
  if (context == nullptr)
    return guarded(thread_error(), [] { return null_argument("quern_decompress_async: the context is NULL"); });
  return guarded(context->error, &context->memory, [&] {
    return quern::capi::decompress_queued(*context, stream, size, array, workspace, workspace_bytes, queue);
  });
}

quern_status quern_batch_workspace(const quern_plan* plan, uint32_t count, uint64_t* bytes) {
  return guarded(thread_error(), [&]() -> Status {
    if (plan == nullptr || bytes == nullptr) return null_argument("quern_batch_workspace: NULL argument");
    QUERN_RETURN_IF_ERROR(quern::capi::check_batch(*plan));
    *bytes = plan->coder->workspace_bytes(count);
    return {};
  });
}

quern_status quern_batch_compress_async(quern_context* context, const quern_plan* plan, const void* const* arrays,
                                        uint32_t count, void* workspace, uint64_t workspace_bytes, void* const* streams,
                                        const uint64_t* capacities, uint64_t* sizes, quern_status* statuses,
                                        void* queue) {
  if (context == nullptr || plan == nullptr)
    return guarded(thread_error(),
                   [] { return null_argument("quern_batch_compress_async: context or plan are NULL"); });
  return guarded(context->error, &context->memory, [&]() -> Status {
    QUERN_RETURN_IF_ERROR(quern::capi::check_batch(*plan));
    if (arrays == nullptr || streams == nullptr || capacities == nullptr)
      return null_argument("quern_batch_compress_async: a table is NULL");
    quern::DeviceArrays call;
    call.count = count;
    call.arrays = const_cast<void* const*>(arrays);
    call.streams = streams;
    call.stream_sizes = capacities;
    call.sizes = sizes;
    call.statuses = statuses;
    return plan->coder->compress(call, workspace, workspace_bytes, queue);
  });
}

quern_status quern_batch_decompress_async(quern_context* context, const quern_plan* plan, const void* const* streams,
                                          const uint64_t* sizes, uint32_t count, void* workspace,
                                          uint64_t workspace_bytes, void* const* arrays, quern_status* statuses,
                                          void* queue) {
  if (context == nullptr || plan == nullptr)
    return guarded(thread_error(),
                   [] { return null_argument("quern_batch_decompress_async: context or plan are NULL"); });
  return guarded(context->error, &context->memory, [&]() -> Status {
    QUERN_RETURN_IF_ERROR(quern::capi::check_batch(*plan));
    if (arrays == nullptr || streams == nullptr || sizes == nullptr)
      return null_argument("quern_batch_decompress_async: a table is NULL");
    quern::DeviceArrays call;
    call.count = count;
    call.arrays = arrays;
    call.streams = const_cast<void* const*>(streams);
    call.stream_sizes = sizes;
    call.statuses = statuses;
    return plan->coder->decompress(call, workspace, workspace_bytes, queue);
  });
}
