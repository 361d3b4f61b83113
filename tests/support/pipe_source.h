// Bytes in memory as a pipe gives them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <quern/stream_io.h>

namespace quern::testing {

/// Hides that memory can seek, as a pipe would, and gives bytes in small pieces.
class PipeSource final : public ByteSource {
 public:
  explicit PipeSource(std::span<const std::uint8_t> bytes) : inner_(bytes) {}
  Result<std::size_t> read(std::span<std::uint8_t> out) override {
    return inner_.read(out.first(std::min<std::size_t>(out.size(), 1000)));
  }
  bool can_seek() const override { return false; }
  Status seek(std::uint64_t) override { return Status(StatusCode::unsupported, "a pipe"); }
  std::uint64_t size() const override { return 0; }
  std::uint64_t position() const override { return inner_.position(); }

 private:
  MemorySource inner_;
};

}  // namespace quern::testing
