// Time steps that were predicted from others: what a stream names, its values beside its reference's, chains of sources.
#include <quern/steps.h>

#include "libcompress/capi/array_desc.h"
#include "libcompress/capi/barrier.h"
#include "libcompress/capi/caller_source.h"
#include "libcompress/capi/handles.h"
#include "libcompress/capi/one_shot.h"

namespace quern::capi {
namespace {

/// Sources of a chain: a step names its key step by one byte.
constexpr std::size_t kMostSources = 256;

Status decompress_beside(quern_context& context, const void* stream, std::uint64_t size, const quern_array* reference,
                         quern_array* array) {
  if (stream == nullptr && size != 0) return null_argument("quern_decompress_beside: the stream is NULL");
  if (reference == nullptr) return decompress_array(context, stream, size, array);
  Layout before;
  QUERN_RETURN_IF_ERROR(read_array(reference, true, before));
  PackedInput values;
  QUERN_RETURN_IF_ERROR(values.open(before, context.execution.memory_limit));
  const Execution rest = remaining(context.execution, values.copied_bytes());
  Layout layout;
  QUERN_RETURN_IF_ERROR(read_array(array, true, layout));
  PackedOutput output;
  QUERN_RETURN_IF_ERROR(output.open(layout, rest.memory_limit));
  MemorySource source(stream_bytes(stream, size));
  QUERN_ASSIGN_OR_RETURN(const auto decoder, open_step_beside(source, values.view(), context.codecs(),
                                                              remaining(rest, output.copied_bytes())));
  QUERN_RETURN_IF_ERROR(pull_whole(*decoder, size, output.view()));
  return output.deliver();
}

Status stream_reference(std::span<const std::uint8_t> stream, std::uint64_t* hash, std::uint32_t* steps_to_key) {
  MemorySource source(stream);
  QUERN_ASSIGN_OR_RETURN(const auto reference, inspect_reference(source, builtin_codecs()));
  if (hash != nullptr) *hash = reference ? reference->hash : 0;
  if (steps_to_key != nullptr) *steps_to_key = reference ? reference->depth : 0;
  return {};
}

Status source_streams(const quern_source* source, std::uint64_t* offsets, std::uint64_t* sizes, std::uint64_t capacity,
                      std::uint64_t* count) {
  if (count == nullptr || ((offsets == nullptr || sizes == nullptr) && capacity != 0))
    return null_argument("quern_source_streams: the places for offsets, sizes or their count are NULL");
  CallerSource opened;
  QUERN_RETURN_IF_ERROR(opened.open(source));
  QUERN_ASSIGN_OR_RETURN(const Vector<StreamSpan> streams, list_streams(opened));
  for (std::size_t i = 0; i < std::min<std::uint64_t>(streams.size(), capacity); ++i) {
    offsets[i] = streams[i].offset;
    sizes[i] = streams[i].bytes;
  }
  *count = streams.size();
  return {};
}

Status chain_region(quern_context& context, const quern_source* const* steps, std::size_t count,
                    const std::uint64_t* begin, const std::uint64_t* end, quern_array* array) {
  if (steps == nullptr || count == 0 || count > kMostSources)
    return Status(StatusCode::invalid_argument, "quern_chain_region: give 1 to {0} sources, not {1}",
                  static_cast<std::int64_t>(kMostSources), static_cast<std::int64_t>(count));
  Vector<CallerSource> sources(count);
  Vector<ByteSource*> chain;
  for (std::size_t i = 0; i < count; ++i) {
    QUERN_RETURN_IF_ERROR(sources[i].open(steps[i]));
    chain.push_back(&sources[i]);
  }
  return decompress_box(
      context, [&](const Execution& execution) { return open_step_chain(chain, context.codecs(), execution); }, begin,
      end, array);
}

}  // namespace
}  // namespace quern::capi

using quern::Status;
using quern::capi::guarded;
using quern::capi::null_argument;
using quern::capi::thread_error;

quern_status quern_hash_values(const quern_array* array, uint64_t* hash) {
  return guarded(thread_error(), [&]() -> Status {
    if (hash == nullptr) return null_argument("quern_hash_values: the place for the hash is NULL");
    quern::capi::Layout layout;
    QUERN_RETURN_IF_ERROR(quern::capi::read_array(array, true, layout));
    quern::capi::PackedInput input;
    QUERN_RETURN_IF_ERROR(input.open(layout, UINT64_MAX));
    *hash = quern::hash_values(input.view());
    return {};
  });
}

quern_status quern_stream_reference(const void* stream, uint64_t size, uint64_t* hash, uint32_t* steps_to_key) {
  return guarded(thread_error(), [&]() -> Status {
    if (stream == nullptr && size != 0) return null_argument("quern_stream_reference: the stream is NULL");
    return quern::capi::stream_reference(quern::capi::stream_bytes(stream, size), hash, steps_to_key);
  });
}

quern_status quern_decompress_beside(quern_context* context, const void* stream, uint64_t size,
                                     const quern_array* reference, quern_array* array) {
  if (context == nullptr) return guarded(thread_error(), [] { return null_argument("the context is NULL"); });
  return guarded(context->error, &context->memory,
                 [&] { return quern::capi::decompress_beside(*context, stream, size, reference, array); });
}

quern_status quern_source_streams(const quern_source* source, uint64_t* offsets, uint64_t* sizes, uint64_t capacity,
                                  uint64_t* count) {
  return guarded(thread_error(), [&] { return quern::capi::source_streams(source, offsets, sizes, capacity, count); });
}

quern_status quern_chain_region(quern_context* context, const quern_source* const* steps, size_t count,
                                const uint64_t* begin, const uint64_t* end, quern_array* array) {
  if (context == nullptr) return guarded(thread_error(), [] { return null_argument("the context is NULL"); });
  return guarded(context->error, &context->memory,
                 [&] { return quern::capi::chain_region(*context, steps, count, begin, end, array); });
}
