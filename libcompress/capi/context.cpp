// Contexts: who runs, how much memory, what went wrong last.
#include "libcompress/capi/handles.h"
#include "libcompress/capi/one_shot.h"
#include "libcompress/capi/versioned.h"

namespace quern::capi {

ErrorLine& thread_error() {
  thread_local ErrorLine error;
  return error;
}

namespace {

struct DestroyContext {
  void operator()(quern_context* context) const { destroy_handle(context); }
};

Status make_context(const quern_context_desc* given, quern_context** out) {
  if (out == nullptr) return null_argument("quern_context_create: the place for the context is NULL");
  *out = nullptr;
  quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
  if (given != nullptr) QUERN_RETURN_IF_ERROR(read_struct(given, desc));
  if (desc.runner.run != nullptr && desc.runner.width == 0)
    return Status(StatusCode::invalid_argument, "runner.width is 0: it is how many tasks may run at once, at least 1");
  QUERN_RETURN_IF_ERROR(check_allocator(desc.allocator));
  if (desc.runs_on != QUERN_MEMORY_HOST && desc.runs_on != QUERN_MEMORY_CUDA)
    return Status(StatusCode::invalid_argument, "runs_on must be QUERN_MEMORY_HOST or QUERN_MEMORY_CUDA");
  std::unique_ptr<quern_context, DestroyContext> context(make_handle<quern_context>(desc.allocator));
  if (desc.runs_on == QUERN_MEMORY_CUDA) {
    const MemoryScope scope(&context->memory);
    QUERN_ASSIGN_OR_RETURN(context->device, open_cuda_device(desc.device));
    context->execution.device = context->device.get();
  }
  context->execution.threads = desc.threads;
  if (desc.memory_limit != 0) context->execution.memory_limit = desc.memory_limit;
  if (desc.runner.run != nullptr) context->execution.runner = &context->runner.emplace(desc.runner);
  if (desc.progress != nullptr) {
    context->execution.progress = [call = desc.progress, user = desc.progress_user](
                                      std::uint64_t done, std::uint64_t total) { return call(user, done, total) != 0; };
  }
  *out = context.release();
  return {};
}

Status add_model(quern_context& context, const void* file, std::uint64_t bytes, char* id) {
  if (file == nullptr && bytes != 0) return null_argument("quern_context_add_model: the model is NULL");
  if (!context.models) context.models.reset(new GivenModels);
  QUERN_ASSIGN_OR_RETURN(const ModelId found, context.models->list.add(stream_bytes(file, bytes)));
  if (id == nullptr) return {};
  for (const std::uint8_t byte : found) {
    *id++ = "0123456789abcdef"[byte >> 4];
    *id++ = "0123456789abcdef"[byte & 15];
  }
  *id = '\0';
  return {};
}

}  // namespace
}  // namespace quern::capi

quern_status quern_context_create(const quern_context_desc* desc, quern_context** context) {
  using namespace quern::capi;
  return guarded(thread_error(), [&] { return make_context(desc, context); });
}

void quern_context_destroy(quern_context* context) { quern::capi::destroy_handle(context); }

quern_status quern_context_add_model(quern_context* context, const void* file, uint64_t bytes, char* id) {
  using namespace quern::capi;
  if (context == nullptr)
    return guarded(thread_error(), [] { return null_argument("quern_context_add_model: the context is NULL"); });
  return guarded(context->error, &context->memory, [&] { return add_model(*context, file, bytes, id); });
}

const char* quern_last_error(const quern_context* context) {
  return context != nullptr ? context->error.c_str() : quern::capi::thread_error().c_str();
}
