// Elements as ordered unsigned keys: equal order, neighbouring values get neighbouring keys, every bit pattern (NaN
// payloads, -0, denormals) has its own key. Low bits that are zero in the whole chunk are shifted out first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <quern/codec.h>
#include <quern/dtype.h>

namespace quern::codec::lossless {

enum class Order { sign_magnitude, twos_complement, natural };

constexpr Order order_of(DType dtype) {
  if (is_float(dtype)) return Order::sign_magnitude;
  return is_signed_integer(dtype) ? Order::twos_complement : Order::natural;
}

/// The low `bits` bits set; bits in 1..width of U.
template <class U>
constexpr U low_mask(unsigned bits) {
  return static_cast<U>(~U{0}) >> (8 * sizeof(U) - bits);
}

/// Bit patterns of `bits` bits (at least 1) to keys, in place after shifting each down by `shift`; `bits` is what
/// remains.
template <class U>
void patterns_to_keys(U* values, std::size_t count, Order order, unsigned shift, unsigned bits) {
  const U sign = U{1} << (bits - 1);  // NOLINT(clang-analyzer-core.UndefinedBinaryOperatorResult): bits is at least 1
  const U mask = low_mask<U>(bits);
  if (order == Order::sign_magnitude) {
    for (std::size_t i = 0; i < count; ++i) {
      const U pattern = values[i] >> shift;
      const U negative = U{0} - (pattern >> (bits - 1));  // all ones or zero
      values[i] = (pattern ^ (negative | sign)) & mask;
    }
  } else {
    const U flip = order == Order::twos_complement ? sign : U{0};
    for (std::size_t i = 0; i < count; ++i) values[i] = (values[i] >> shift) ^ flip;
  }
}

/// The inverse, from `keys` to elements of unsigned type E at `out` (any alignment), a row at a time.
template <class E, class U>
void keys_to_row(const U* keys, std::size_t count, Order order, unsigned shift, unsigned bits, std::uint8_t* out) {
  const U sign = U{1} << (bits - 1);  // NOLINT(clang-analyzer-core.UndefinedBinaryOperatorResult): bits is at least 1
  const U mask = low_mask<U>(bits);
  if (order == Order::sign_magnitude) {
    for (std::size_t i = 0; i < count; ++i) {
      const U negative = (keys[i] >> (bits - 1)) - U{1};  // all ones when the key's top bit is clear
      const U pattern = (keys[i] ^ (negative | sign)) & mask;
      const U shifted = pattern << shift;
      const auto element = static_cast<E>(shifted);
      std::memcpy(out + i * sizeof(E), &element, sizeof(E));
    }
  } else {
    const U flip = order == Order::twos_complement ? sign : U{0};
    for (std::size_t i = 0; i < count; ++i) {
      const U shifted = (keys[i] ^ flip) << shift;
      const auto element = static_cast<E>(shifted);
      std::memcpy(out + i * sizeof(E), &element, sizeof(E));
    }
  }
}

/// Bit patterns of a row of elements of unsigned type E (any alignment).
template <class E, class U>
void row_to_patterns(const std::uint8_t* in, std::size_t count, U* patterns) {
  for (std::size_t i = 0; i < count; ++i) {
    E element;
    std::memcpy(&element, in + i * sizeof(E), sizeof(E));
    patterns[i] = static_cast<U>(element);
  }
}

/// Patterns of a whole box, one after the other.
template <class U>
void box_to_patterns(const ConstBox3& box, std::size_t elem_bytes, U* patterns) {
  const auto* base = static_cast<const std::uint8_t*>(box.data);
  const auto width = static_cast<std::size_t>(box.extents[2]);
  for (std::uint64_t z = 0; z < box.extents[0]; ++z) {
    for (std::uint64_t y = 0; y < box.extents[1]; ++y, patterns += width) {
      const std::uint8_t* row = base + (z * box.strides[0] + y * box.strides[1]) * elem_bytes;
      switch (elem_bytes) {
        case 1: row_to_patterns<std::uint8_t>(row, width, patterns); break;
        case 2: row_to_patterns<std::uint16_t>(row, width, patterns); break;
        case 4: row_to_patterns<std::uint32_t>(row, width, patterns); break;
        default: row_to_patterns<std::uint64_t>(row, width, patterns); break;
      }
    }
  }
}

/// Keys of one row to elements of `elem_bytes` at `out`.
template <class U>
void store_row(const U* keys, std::size_t count, Order order, unsigned shift, unsigned bits, std::size_t elem_bytes,
               std::uint8_t* out) {
  switch (elem_bytes) {
    case 1: keys_to_row<std::uint8_t>(keys, count, order, shift, bits, out); break;
    case 2: keys_to_row<std::uint16_t>(keys, count, order, shift, bits, out); break;
    case 4: keys_to_row<std::uint32_t>(keys, count, order, shift, bits, out); break;
    default: keys_to_row<std::uint64_t>(keys, count, order, shift, bits, out); break;
  }
}

}  // namespace quern::codec::lossless
