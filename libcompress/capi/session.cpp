// Sessions: time steps of one array, each predicted from the one before where that pays.
#include <cstring>
#include <memory>

#include <quern/steps.h>

#include "libcompress/capi/array_desc.h"
#include "libcompress/capi/handles.h"
#include "libcompress/capi/one_shot.h"
#include "libcompress/capi/versioned.h"

struct quern_session {
  explicit quern_session(const quern_allocator& allocator) noexcept : memory(allocator) {}

  quern::capi::CallerMemory memory;
  std::unique_ptr<quern::StepEncoder> encoder;
  quern::AlignedBuffer values;  ///< of the last step that was decoded
  quern::ArrayView last;        ///< the same; without data: none
};

namespace quern::capi {
namespace {

struct DestroySession {
  void operator()(quern_session* session) const { destroy_handle(session); }
};

Status make_session(const quern_allocator* given, std::uint32_t key_every, quern_session** out) {
  if (out == nullptr) return null_argument("quern_session_create: the place for the session is NULL");
  *out = nullptr;
  quern_allocator allocator{};
  if (given != nullptr) allocator = *given;
  QUERN_RETURN_IF_ERROR(check_allocator(allocator));
  std::unique_ptr<quern_session, DestroySession> session(make_handle<quern_session>(allocator));
  const MemoryScope scope(&session->memory);
  QUERN_ASSIGN_OR_RETURN(session->encoder,
                         StepEncoder::create(builtin_codecs(), key_every == 0 ? kDefaultKeyEvery : key_every));
  session->values = AlignedBuffer();
  *out = session.release();
  return {};
}

Status compress_step(quern_context& context, quern_session& session, const CompressOptions& options,
                     const quern_array* array, void* stream, std::uint64_t capacity, std::uint64_t* size,
                     quern_report* report) {
  if (size == nullptr || (stream == nullptr && capacity != 0))
    return null_argument("quern_session_compress: the stream or the place for its size is NULL");
  if (report != nullptr) QUERN_RETURN_IF_ERROR(check_struct(report));
  Layout layout;
  QUERN_RETURN_IF_ERROR(read_array(array, true, layout));
  PackedInput input;
  QUERN_RETURN_IF_ERROR(input.open(layout, context.execution.memory_limit));
  SpanSink sink({static_cast<std::uint8_t*>(stream), static_cast<std::size_t>(capacity)});
  session.encoder->use(context.codecs());
  QUERN_ASSIGN_OR_RETURN(
      const StepReport made,
      session.encoder->encode(input.view(), options, remaining(context.execution, input.copied_bytes()), sink));
  *size = sink.written().size();
  if (report != nullptr) write_struct(make_report(made.compressed), report);
  return {};
}

Status decompress_step(quern_context& context, quern_session& session, const void* stream, std::uint64_t size,
                       quern_array* array) {
  if (stream == nullptr && size != 0) return null_argument("quern_session_decompress: the stream is NULL");
  Layout layout;
  QUERN_RETURN_IF_ERROR(read_array(array, true, layout));
  PackedOutput output;
  QUERN_RETURN_IF_ERROR(output.open(layout, context.execution.memory_limit));
  MemorySource source(stream_bytes(stream, size));
  QUERN_ASSIGN_OR_RETURN(const auto decoder, open_step_beside(source, session.last, context.codecs(),
                                                              remaining(context.execution, output.copied_bytes())));
  const MutableArrayView& out = output.view();
  QUERN_RETURN_IF_ERROR(pull_whole(*decoder, size, out));
  session.last = {};
  QUERN_RETURN_IF_ERROR(session.values.resize(out.bytes()));
  if (out.bytes() != 0) std::memcpy(session.values.data(), out.data, out.bytes());
  session.last = {session.values.data(), out.dtype, out.shape};
  return output.deliver();
}

Status resume(quern_context& context, quern_session& session, const void* stream, std::uint64_t size,
              const quern_array* values) {
  if (stream == nullptr && size != 0) return null_argument("quern_session_resume: the stream is NULL");
  Layout layout;
  QUERN_RETURN_IF_ERROR(read_array(values, true, layout));
  PackedInput input;
  QUERN_RETURN_IF_ERROR(input.open(layout, context.execution.memory_limit));
  session.encoder->use(context.codecs());
  return session.encoder->resume(stream_bytes(stream, size), input.view());
}

}  // namespace
}  // namespace quern::capi

using quern::capi::guarded;
using quern::capi::null_argument;
using quern::capi::thread_error;

quern_status quern_session_create(const quern_allocator* allocator, uint32_t key_every, quern_session** session) {
  return guarded(thread_error(), [&] { return quern::capi::make_session(allocator, key_every, session); });
}

void quern_session_destroy(quern_session* session) { quern::capi::destroy_handle(session); }

quern_status quern_session_compress(quern_context* context, quern_session* session, const quern_params* params,
                                    const quern_array* array, void* stream, uint64_t capacity, uint64_t* size,
                                    quern_report* report) {
  if (context == nullptr || session == nullptr || params == nullptr)
    return guarded(thread_error(), [] { return null_argument("context, session or parameters are NULL"); });
  return guarded(context->error, &session->memory, [&] {
    return quern::capi::compress_step(*context, *session, params->options, array, stream, capacity, size, report);
  });
}

quern_status quern_session_decompress(quern_context* context, quern_session* session, const void* stream, uint64_t size,
                                      quern_array* array) {
  if (context == nullptr || session == nullptr)
    return guarded(thread_error(), [] { return null_argument("the context or the session is NULL"); });
  return guarded(context->error, &session->memory,
                 [&] { return quern::capi::decompress_step(*context, *session, stream, size, array); });
}

quern_status quern_session_resume(quern_context* context, quern_session* session, const void* stream, uint64_t size,
                                  const quern_array* values) {
  if (context == nullptr || session == nullptr)
    return guarded(thread_error(), [] { return null_argument("the context or the session is NULL"); });
  return guarded(context->error, &session->memory,
                 [&] { return quern::capi::resume(*context, *session, stream, size, values); });
}
