// Byte sources and sinks: what the pipeline reads streams from and writes them to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

namespace quern {

/// Takes bytes in order. Implementations report a full disk as io_error.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Status write(std::span<const std::uint8_t> bytes) = 0;
};

/// Gives bytes in order; may be able to jump.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills as much of `out` as there is and returns the count; less than asked only at the end.
  virtual Result<std::size_t> read(std::span<std::uint8_t> out) = 0;
  /// True when `seek` works and `size` is known.
  virtual bool can_seek() const = 0;
  virtual Status seek(std::uint64_t offset) = 0;
  virtual std::uint64_t size() const = 0;
  /// Bytes before the one that is read next; what a source that cannot seek has given so far.
  virtual std::uint64_t position() const = 0;
};

/// Fills `out` from the source, asking again where it gave less; the count is less than asked only at its end.
Result<std::size_t> read_up_to(ByteSource& source, std::span<std::uint8_t> out);

/// Appends to a vector of bytes the caller owns.
template <class Bytes>
class VectorSink final : public ByteSink {
 public:
  explicit VectorSink(Bytes& out) : out_(out) {}
  Status write(std::span<const std::uint8_t> bytes) override {
    try {
      out_.insert(out_.end(), bytes.begin(), bytes.end());
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "out of memory after {0} bytes of output",
                    static_cast<std::int64_t>(out_.size()));
    }
    return {};
  }

 private:
  Bytes& out_;
};

/// Fills memory the caller owns; what does not fit fails with destination_too_small and leaves it as it was.
class SpanSink final : public ByteSink {
 public:
  explicit SpanSink(std::span<std::uint8_t> out) : out_(out) {}
  Status write(std::span<const std::uint8_t> bytes) override;
  std::span<const std::uint8_t> written() const { return out_.first(used_); }

 private:
  std::span<std::uint8_t> out_;
  std::size_t used_ = 0;
};

/// Reads memory the caller owns.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  Result<std::size_t> read(std::span<std::uint8_t> out) override;
  bool can_seek() const override { return true; }
  Status seek(std::uint64_t offset) override;
  std::uint64_t size() const override { return bytes_.size(); }
  std::uint64_t position() const override { return at_; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

}  // namespace quern
