// The collective operations of a warp. All lanes that the mask names must come to the same operation with the same
// mask; what is read from a lane that the mask does not name is noise.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "simt/running_thread.h"

namespace simt {

enum class WarpOperation : std::uint8_t {
  sync,
  shuffle,
  shuffle_up,
  shuffle_down,
  shuffle_xor,
  ballot,
  any,
  all,
  match_any,
  add,
  bit_and,
  bit_or,
  bit_xor,
  min_signed,
  max_signed,
  min_unsigned,
  max_unsigned
};

/// What a lane brings to an operation: a value of 4 or 8 bytes, and for shuffles the lane or distance and the width.
struct WarpArgument {
  std::uint64_t value = 0;
  std::uint32_t operand = 0;
  std::uint8_t bytes = 4;
  std::uint8_t width = 32;
};

/// Waits for all lanes of the mask.
std::uint64_t warp_operation(WarpOperation operation, unsigned mask, const WarpArgument& argument);

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <class T>
T shuffle(WarpOperation operation, unsigned mask, T value, unsigned operand, int width) {
  const WarpArgument argument{std::bit_cast<BitsOf<T>>(value), operand, sizeof(T), static_cast<std::uint8_t>(width)};
  return std::bit_cast<T>(static_cast<BitsOf<T>>(warp_operation(operation, mask, argument)));
}
template <class T>
unsigned match_any(unsigned mask, T value) {
  return static_cast<unsigned>(
      warp_operation(WarpOperation::match_any, mask, {std::bit_cast<BitsOf<T>>(value), 0, sizeof(T)}));
}
inline unsigned reduce(WarpOperation operation, unsigned mask, unsigned value) {
  return static_cast<unsigned>(warp_operation(operation, mask, {value}));
}

}  // namespace simt

// Overloads rather than templates, so that narrow types are promoted as they are for CUDA.
#define SIMT_WARP_FUNCTIONS(T)                                                                               \
  inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {                                   \
    return ::simt::shuffle(::simt::WarpOperation::shuffle, mask, value, static_cast<unsigned>(lane), width); \
  }                                                                                                          \
  inline T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32) {                       \
    return ::simt::shuffle(::simt::WarpOperation::shuffle_up, mask, value, distance, width);                 \
  }                                                                                                          \
  inline T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32) {                     \
    return ::simt::shuffle(::simt::WarpOperation::shuffle_down, mask, value, distance, width);               \
  }                                                                                                          \
  inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {                               \
    const auto operand = static_cast<unsigned>(bits);                                                        \
    return ::simt::shuffle(::simt::WarpOperation::shuffle_xor, mask, value, operand, width);                 \
  }                                                                                                          \
  inline unsigned __match_any_sync(unsigned mask, T value) { return ::simt::match_any(mask, value); }
SIMT_WARP_FUNCTIONS(int)
SIMT_WARP_FUNCTIONS(unsigned)
SIMT_WARP_FUNCTIONS(long)
SIMT_WARP_FUNCTIONS(unsigned long)
SIMT_WARP_FUNCTIONS(long long)
SIMT_WARP_FUNCTIONS(unsigned long long)
SIMT_WARP_FUNCTIONS(float)
SIMT_WARP_FUNCTIONS(double)
#undef SIMT_WARP_FUNCTIONS

inline void __syncwarp(unsigned mask = 0xffffffffu) { ::simt::warp_operation(::simt::WarpOperation::sync, mask, {}); }
/// Threads of a warp need not run together: the caller alone is an answer that CUDA may give too.
inline unsigned __activemask() { return 1u << ::simt::lane_id(); }
inline unsigned __ballot_sync(unsigned mask, int flag) {
  return ::simt::reduce(::simt::WarpOperation::ballot, mask, flag != 0);
}
inline int __any_sync(unsigned mask, int flag) {
  return static_cast<int>(::simt::reduce(::simt::WarpOperation::any, mask, flag != 0));
}
inline int __all_sync(unsigned mask, int flag) {
  return static_cast<int>(::simt::reduce(::simt::WarpOperation::all, mask, flag != 0));
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value) {
  return ::simt::reduce(::simt::WarpOperation::add, mask, value);
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value) {
  return ::simt::reduce(::simt::WarpOperation::bit_and, mask, value);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value) {
  return ::simt::reduce(::simt::WarpOperation::bit_or, mask, value);
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value) {
  return ::simt::reduce(::simt::WarpOperation::bit_xor, mask, value);
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value) {
  return ::simt::reduce(::simt::WarpOperation::min_unsigned, mask, value);
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value) {
  return ::simt::reduce(::simt::WarpOperation::max_unsigned, mask, value);
}
inline int __reduce_add_sync(unsigned mask, int value) {
  return static_cast<int>(::simt::reduce(::simt::WarpOperation::add, mask, static_cast<unsigned>(value)));
}
inline int __reduce_min_sync(unsigned mask, int value) {
  return static_cast<int>(::simt::reduce(::simt::WarpOperation::min_signed, mask, static_cast<unsigned>(value)));
}
inline int __reduce_max_sync(unsigned mask, int value) {
  return static_cast<int>(::simt::reduce(::simt::WarpOperation::max_signed, mask, static_cast<unsigned>(value)));
}
