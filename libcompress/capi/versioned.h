// Structs that begin with struct_size: reading those of older and newer programs, and filling them in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <quern/status.h>

namespace quern::capi {

inline constexpr std::uint32_t kMaxStructBytes = 4096;

/// Copies a caller's struct. Members it does not have keep the values of `out`; members this library does not know must
/// be 0.
template <class T>
Status read_struct(const T* in, T& out) {
  if (in == nullptr) return Status(StatusCode::invalid_argument, "a struct is NULL");
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, in, sizeof(bytes));
  if (bytes < sizeof(bytes) || bytes > kMaxStructBytes)
    return Status(StatusCode::invalid_argument, "struct_size is {0}: start from the struct's INIT value", bytes);
  const auto* raw = reinterpret_cast<const unsigned char*>(in);
  if (bytes > sizeof(T) && std::any_of(raw + sizeof(T), raw + bytes, [](unsigned char b) { return b != 0; }))
    return Status(StatusCode::unsupported, "the program uses struct members of a newer quern than this library");
  std::memcpy(&out, in, std::min<std::size_t>(bytes, sizeof(T)));
  out.struct_size = sizeof(T);
  return {};
}

/// Checks a struct that is to be filled in, before the work begins.
template <class T>
Status check_struct(const T* out) {
  if (out == nullptr) return Status(StatusCode::invalid_argument, "a struct is NULL");
  if (out->struct_size < sizeof(out->struct_size) || out->struct_size > kMaxStructBytes)
    return Status(StatusCode::invalid_argument, "struct_size is {0}: start from the struct's INIT value",
                  out->struct_size);
  return {};
}

/// Fills in as much as the caller has room for; members of a newer program become 0. `out` was checked.
template <class T>
void write_struct(T value, T* out) {
  const std::uint32_t bytes = out->struct_size;
  value.struct_size = bytes;
  std::memcpy(out, &value, std::min<std::size_t>(bytes, sizeof(T)));
  if (bytes > sizeof(T)) std::memset(reinterpret_cast<unsigned char*>(out) + sizeof(T), 0, bytes - sizeof(T));
}

}  // namespace quern::capi
