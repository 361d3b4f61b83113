// What the fuzz targets share: a check that stops the process, a feed that turns input bytes into structure, and a
// watch over what the library allocates.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <quern/status.h>

namespace quern::fuzz {

/// A broken property: says which and stops, so that the engine keeps the input.
[[noreturn]] inline void fail(const char* file, int line, const char* what, const std::string& detail = {}) {
  std::fprintf(stderr, "%s:%d: property broken: %s %s\n", file, line, what, detail.c_str());
  std::abort();
}

/// Takes numbers from the front of the input; gives zeros once it is used up.
class Feed {
 public:
  explicit Feed(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t value = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return value;
  }
  /// A number in [0, limit).
  std::uint64_t below(std::uint64_t limit) {
    std::uint64_t value = 0;
    for (std::uint64_t span = 1; span < limit && span != 0; span <<= 8) value = value << 8 | byte();
    return limit == 0 ? 0 : value % limit;
  }
  template <class T>
  T raw() {
    T value{};
    std::uint8_t bytes[sizeof(T)];
    for (std::uint8_t& b : bytes) b = byte();
    std::memcpy(&value, bytes, sizeof(T));
    return value;
  }
  std::span<const std::uint8_t> take(std::size_t count) {
    const auto piece = bytes_.first(std::min(count, bytes_.size()));
    bytes_ = bytes_.subspan(piece.size());
    return piece;
  }
  std::span<const std::uint8_t> rest() const { return bytes_; }

 private:
  std::span<const std::uint8_t> bytes_;
};

/// Highest number of bytes held through operator new since construction, above what was held then.
class AllocationWatch {
 public:
  AllocationWatch();
  std::uint64_t peak() const;

 private:
  std::uint64_t held_before_ = 0;
};

}  // namespace quern::fuzz

#define QUERN_FUZZ_CHECK(condition, ...)                                                              \
  do {                                                                                                \
    if (!(condition)) ::quern::fuzz::fail(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
