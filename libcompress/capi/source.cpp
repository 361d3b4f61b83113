// Streams that the caller reads for us, in parts, at any place.
#include <algorithm>

#include "libcompress/capi/barrier.h"
#include "libcompress/capi/handles.h"
#include "libcompress/capi/one_shot.h"
#include "libcompress/capi/versioned.h"

namespace quern::capi {
namespace {

class CallerSource final : public ByteSource {
 public:
  Status open(const quern_source* source) {
    QUERN_RETURN_IF_ERROR(read_struct(source, source_));
    if (source_.read == nullptr) return null_argument("quern_source: read is NULL");
    return {};
  }

  Result<std::size_t> read(std::span<std::uint8_t> out) override {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), source_.size - at_));
    if (n != 0 && source_.read(source_.user, at_, out.data(), n) != 0)
      return Status(StatusCode::io_error, "the source could not read {0} bytes at byte {1}",
                    static_cast<std::int64_t>(n), static_cast<std::int64_t>(at_));
    at_ += n;
    return n;
  }
  bool can_seek() const override { return true; }
  Status seek(std::uint64_t offset) override {
    if (offset > source_.size)
      return Status(StatusCode::truncated, "the stream ends at byte {0}, before byte {1}",
                    static_cast<std::int64_t>(source_.size), static_cast<std::int64_t>(offset));
    at_ = offset;
    return {};
  }
  std::uint64_t size() const override { return source_.size; }
  std::uint64_t position() const override { return at_; }

 private:
  quern_source source_ = QUERN_SOURCE_INIT;
  std::uint64_t at_ = 0;
};

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
