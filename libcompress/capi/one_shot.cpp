// Arrays in memory to streams in memory and back.
#include "libcompress/capi/one_shot.h"

#include <algorithm>
#include <cmath>

#include <quern/device_arrays.h>

#include "libcompress/capi/array_desc.h"
#include "libcompress/capi/handles.h"
#include "libcompress/capi/versioned.h"

namespace quern::capi {
namespace {

static_assert(static_cast<int>(CodecReason::asked_for) == QUERN_REASON_ASKED_FOR &&
              static_cast<int>(CodecReason::only_one) == QUERN_REASON_ONLY_ONE &&
              static_cast<int>(CodecReason::exact) == QUERN_REASON_EXACT &&
              static_cast<int>(CodecReason::fastest) == QUERN_REASON_FASTEST &&
              static_cast<int>(CodecReason::smallest) == QUERN_REASON_SMALLEST &&
              static_cast<int>(CodecReason::least_bound) == QUERN_REASON_LEAST_BOUND &&
              static_cast<int>(CodecReason::best_quality) == QUERN_REASON_BEST_QUALITY &&
              static_cast<int>(CodecReason::expected_best) == QUERN_REASON_EXPECTED_BEST);

Status level_extents(const quern_context& context, const void* stream, std::uint64_t size, std::uint32_t level,
                     std::uint32_t* levels, std::uint64_t* extents) {
  if (stream == nullptr && size != 0) return null_argument("quern_level_extents: the stream is NULL");
  MemorySource source(stream_bytes(stream, size));
  QUERN_ASSIGN_OR_RETURN(const StreamInfo info, inspect(source, context.codecs()));
  if (level > info.levels.size())
    return Status(StatusCode::unsupported, "the stream has {0} coarse levels; level {1} was asked for",
                  static_cast<std::int64_t>(info.levels.size()), static_cast<std::int64_t>(level));
  const Shape& shape = level == 0 ? info.shape : info.levels[level - 1];
  if (levels != nullptr) *levels = static_cast<std::uint32_t>(info.levels.size());
  if (extents != nullptr) std::copy_n(shape.extents().data(), shape.rank(), extents);
  return {};
}

}  // namespace

quern_report make_report(const CompressReport& report) {
  quern_report out = QUERN_REPORT_INIT;
  out.enforced_kind = static_cast<quern_bound_kind>(report.enforced.kind);
  out.enforced_value = report.enforced.value;
  out.input_bytes = report.input_bytes;
  out.output_bytes = report.output_bytes;
  out.masked_elements = report.masked_elems;
  out.chunks = report.chunks;
  out.raw_chunks = report.raw_chunks;
  out.psnr_db = report.psnr_db.value_or(std::nan(""));
  out.ran_on = report.on_device ? QUERN_MEMORY_CUDA : QUERN_MEMORY_HOST;
  out.codec_id = report.codec_id;
  out.codec_reason = static_cast<std::uint16_t>(report.reason);
  return out;
}

Execution remaining(const Execution& execution, std::uint64_t taken) {
  Execution rest = execution;
  rest.memory_limit -= taken;
  return rest;
}

Status compress_array(quern_context& context, const CompressOptions& options, const quern_array* array, void* stream,
                      std::uint64_t capacity, std::uint64_t* size, quern_report* report) {
  if (size == nullptr || (stream == nullptr && capacity != 0))
    return null_argument("quern_compress: the stream or the place for its size is NULL");
  if (report != nullptr) QUERN_RETURN_IF_ERROR(check_struct(report));
  Layout layout;
  QUERN_RETURN_IF_ERROR(read_array(array, true, layout));
  if (layout.on_device) {
    const auto done = compress_device_array(layout.device, layout.data, layout.dtype, layout.shape, options,
                                            {static_cast<std::uint8_t*>(stream), static_cast<std::size_t>(capacity)});
    if (done.ok()) {
      *size = done->output_bytes;
      if (report != nullptr) write_struct(make_report(*done), report);
      return {};
    }
    if (!host_knows_more(done.status())) return done.status();
  }
  PackedInput input;
  QUERN_RETURN_IF_ERROR(input.open(layout, context.execution.memory_limit));
  SpanSink sink({static_cast<std::uint8_t*>(stream), static_cast<std::size_t>(capacity)});
  QUERN_ASSIGN_OR_RETURN(const CompressReport done, compress(input.view(), options, context.codecs(),
                                                             remaining(context.execution, input.copied_bytes()), sink));
  *size = sink.written().size();
  if (report != nullptr) write_struct(make_report(done), report);
  return {};
}

Status decompress_box(quern_context& context, const OpenDecoder& open, const std::uint64_t* begin,
                      const std::uint64_t* end, quern_array* array) {
  Layout layout;
  QUERN_RETURN_IF_ERROR(read_array(array, true, layout));
  Box box;
  box.rank = layout.shape.rank();
  if (box.rank != 0 && (begin == nullptr || end == nullptr)) return null_argument("the corners of the box are NULL");
  std::copy_n(begin, box.rank, box.begin.begin());
  std::copy_n(end, box.rank, box.end.begin());
  PackedOutput output;
  QUERN_RETURN_IF_ERROR(output.open(layout, context.execution.memory_limit));
  QUERN_ASSIGN_OR_RETURN(const auto decoder, open(remaining(context.execution, output.copied_bytes())));
  QUERN_RETURN_IF_ERROR(decoder->region(box, output.view()));
  return output.deliver();
}

Status decompress_box(quern_context& context, ByteSource& source, const std::uint64_t* begin, const std::uint64_t* end,
                      quern_array* array) {
  return decompress_box(
      context, [&](const Execution& execution) { return Decoder::open(source, context.codecs(), execution); }, begin,
      end, array);
}

Status decompress_whole(quern_context& context, ByteSource& source, quern_array* array,
                        const DecompressOptions& options) {
  Layout layout;
  QUERN_RETURN_IF_ERROR(read_array(array, true, layout));
  PackedOutput output;
  QUERN_RETURN_IF_ERROR(output.open(layout, context.execution.memory_limit));
  QUERN_ASSIGN_OR_RETURN(const DecompressReport done,
                         decompress(source, output.view(), context.codecs(),
                                    remaining(context.execution, output.copied_bytes()), options));
  if (done.input_bytes != source.size())
    return Status(StatusCode::trailing_data, "the stream ends at byte {0} of {1}",
                  static_cast<std::int64_t>(done.input_bytes), static_cast<std::int64_t>(source.size()));
  return output.deliver();
}

Status pull_whole(Decoder& decoder, std::uint64_t size, const MutableArrayView& out) {
  if (decoder.info().dtype != out.dtype || !(decoder.shape() == out.shape))
    return Status(StatusCode::invalid_shape, "the array has another type or shape than the stream");
  const std::span<std::uint8_t> bytes{static_cast<std::uint8_t*>(out.data), static_cast<std::size_t>(out.bytes())};
  QUERN_RETURN_IF_ERROR(decoder.pull(bytes).status());
  if (decoder.report().input_bytes != size)
    return Status(StatusCode::trailing_data, "the stream ends at byte {0} of {1}",
                  static_cast<std::int64_t>(decoder.report().input_bytes), static_cast<std::int64_t>(size));
  return {};
}

Status decompress_array(quern_context& context, const void* stream, std::uint64_t size, quern_array* array,
                        const DecompressOptions& options) {
  if (stream == nullptr && size != 0) return null_argument("quern_decompress: the stream is NULL");
  Layout layout;
  QUERN_RETURN_IF_ERROR(read_array(array, true, layout));
  if (layout.on_device && options.level == 0) {
    const Status done = decompress_device_array(layout.device, stream_bytes(stream, size), layout.data, layout.dtype,
                                                layout.shape, options.check_faults);
    if (!host_knows_more(done)) return done;
  }
  MemorySource source(stream_bytes(stream, size));
  return decompress_whole(context, source, array, options);
}

}  // namespace quern::capi

using quern::Status;
using quern::capi::guarded;
using quern::capi::null_argument;
using quern::capi::thread_error;

quern_status quern_compress_bound(const quern_array* array, const quern_params* params, uint64_t* bytes) {
  return guarded(thread_error(), [&]() -> Status {
    if (bytes == nullptr) return null_argument("quern_compress_bound: the place for the size is NULL");
    quern::capi::Layout layout;
    QUERN_RETURN_IF_ERROR(quern::capi::read_array(array, false, layout));
    QUERN_ASSIGN_OR_RETURN(*bytes, quern::max_stream_bytes(layout.dtype, layout.shape,
                                                           params == nullptr ? 0 : params->options.metadata.size()));
    return {};
  });
}

quern_status quern_compress(quern_context* context, const quern_params* params, const quern_array* array, void* stream,
                            uint64_t capacity, uint64_t* size, quern_report* report) {
  if (context == nullptr || params == nullptr)
    return guarded(thread_error(), [] { return null_argument("quern_compress: context or parameters are NULL"); });
  return guarded(context->error, &context->memory, [&] {
    return quern::capi::compress_array(*context, params->options, array, stream, capacity, size, report);
  });
}

quern_status quern_decompress(quern_context* context, const void* stream, uint64_t size, quern_array* array) {
  if (context == nullptr) return guarded(thread_error(), [] { return null_argument("the context is NULL"); });
  return guarded(context->error, &context->memory,
                 [&] { return quern::capi::decompress_array(*context, stream, size, array); });
}

quern_status quern_decompress_checked(quern_context* context, const void* stream, uint64_t size, quern_array* array) {
  if (context == nullptr) return guarded(thread_error(), [] { return null_argument("the context is NULL"); });
  return guarded(context->error, &context->memory, [&] {
    quern::DecompressOptions options;
    options.check_faults = true;
    return quern::capi::decompress_array(*context, stream, size, array, options);
  });
}

quern_status quern_decompress_region(quern_context* context, const void* stream, uint64_t size, const uint64_t* begin,
                                     const uint64_t* end, quern_array* array) {
  if (context == nullptr) return guarded(thread_error(), [] { return null_argument("the context is NULL"); });
  return guarded(context->error, &context->memory, [&]() -> Status {
    if (stream == nullptr && size != 0) return null_argument("quern_decompress_region: the stream is NULL");
    quern::MemorySource source(quern::capi::stream_bytes(stream, size));
    return quern::capi::decompress_box(*context, source, begin, end, array);
  });
}

quern_status quern_level_extents(quern_context* context, const void* stream, uint64_t size, uint32_t level,
                                 uint32_t* levels, uint64_t* extents) {
  if (context == nullptr) return guarded(thread_error(), [] { return null_argument("the context is NULL"); });
  return guarded(context->error, &context->memory,
                 [&] { return quern::capi::level_extents(*context, stream, size, level, levels, extents); });
}

quern_status quern_decompress_level(quern_context* context, const void* stream, uint64_t size, uint32_t level,
                                    quern_array* array) {
  if (context == nullptr) return guarded(thread_error(), [] { return null_argument("the context is NULL"); });
  return guarded(context->error, &context->memory, [&] {
    quern::DecompressOptions options;
    options.level = level;
    return quern::capi::decompress_array(*context, stream, size, array, options);
  });
}
