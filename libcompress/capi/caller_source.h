// A stream, or a file of several, that the caller reads for us.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <quern/quern.h>
#include <quern/stream_io.h>

#include "libcompress/capi/barrier.h"
#include "libcompress/capi/versioned.h"

namespace quern::capi {

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

}  // namespace quern::capi
