// Streams that the caller reads for us, in parts, at any place.
#include "libcompress/capi/barrier.h"
#include "libcompress/capi/caller_source.h"
#include "libcompress/capi/handles.h"
#include "libcompress/capi/one_shot.h"

namespace quern::capi {
namespace {

/// Runs `body` on the opened source.
template <class Body>
quern_status with_source(quern_context* context, const quern_source* source, const Body& body) {
  if (context == nullptr) return guarded(thread_error(), [] { return null_argument("the context is NULL"); });
  return guarded(context->error, &context->memory, [&]() -> Status {
    CallerSource opened;
    QUERN_RETURN_IF_ERROR(opened.open(source));
    return body(opened);
  });
}

}  // namespace
}  // namespace quern::capi

quern_status quern_source_region(quern_context* context, const quern_source* source, const uint64_t* begin,
                                 const uint64_t* end, quern_array* array) {
  return quern::capi::with_source(context, source, [&](quern::ByteSource& opened) {
    return quern::capi::decompress_box(*context, opened, begin, end, array);
  });
}

quern_status quern_source_level(quern_context* context, const quern_source* source, uint32_t level,
                                quern_array* array) {
  return quern::capi::with_source(context, source, [&](quern::ByteSource& opened) {
    quern::DecompressOptions options;
    options.level = level;
    return quern::capi::decompress_whole(*context, opened, array, options);
  });
}
