// Memory of the machine and large buffers: page-aligned, not zeroed by hand, refused with a message instead of
// bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "cli/args/args.h"

namespace quern::cli {

/// Bytes of memory this process may hope for: the machine's, or its control group's limit when that is smaller.
std::uint64_t machine_memory();

/// What --memory says, or three quarters of machine_memory().
std::uint64_t memory_limit(const RunArgs& run);

/// Anonymous pages. Move-only.
class Buffer {
 public:
  Buffer() = default;
  /// Throws CliError (resource); `what` says what did not fit. Zero bytes are allowed.
  Buffer(std::uint64_t bytes, const std::string& what);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::uint8_t* data() { return data_; }
  const std::uint8_t* data() const { return data_; }
  std::uint64_t size() const { return size_; }
  std::span<std::uint8_t> span() { return {data_, static_cast<std::size_t>(size_)}; }
  /// Writes to every page once, so that later timings do not count page faults.
  void touch();

 private:
  std::uint8_t* data_ = nullptr;
  std::uint64_t size_ = 0;
};

/// Reads one byte of every page, so that a mapped file is in memory before a clock starts.
void touch_pages(const void* data, std::uint64_t bytes);

}  // namespace quern::cli
