// Reading from byte sources; sources and sinks in memory.
#include <quern/stream_io.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace quern {

Result<std::size_t> read_up_to(ByteSource& source, std::span<std::uint8_t> out) {
  std::size_t have = 0;
  while (have < out.size()) {
    QUERN_ASSIGN_OR_RETURN(const std::size_t n, source.read(out.subspan(have)));
    if (n == 0) break;
    have += n;
  }
  return have;
}

Status SpanSink::write(std::span<const std::uint8_t> bytes) {
  if (bytes.size() > out_.size() - used_)
    return Status(StatusCode::destination_too_small, "the output does not fit into {0} bytes",
                  static_cast<std::int64_t>(out_.size()));
  if (!bytes.empty()) std::memcpy(out_.data() + used_, bytes.data(), bytes.size());
  used_ += bytes.size();
  return {};
}

Result<std::size_t> MemorySource::read(std::span<std::uint8_t> out) {
  const std::size_t n = std::min(out.size(), bytes_.size() - at_);
  if (n != 0) std::memcpy(out.data(), bytes_.data() + at_, n);
  at_ += n;
  return n;
}

Status MemorySource::seek(std::uint64_t offset) {
  if (offset > bytes_.size())
    return Status(StatusCode::truncated, "the stream ends at byte {0}, before byte {1}",
                  static_cast<std::int64_t>(bytes_.size()), static_cast<std::int64_t>(offset));
  at_ = static_cast<std::size_t>(offset);
  return {};
}

}  // namespace quern
