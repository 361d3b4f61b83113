// Typed, shaped views of memory the caller owns. Contiguous, last axis fastest (C order).
#pragma once

#include <cstddef>
#include <cstdint>

#include <quern/dtype.h>
#include <quern/shape.h>

namespace quern {

/// Read-only view; `data` is host memory, need not be aligned to more than the element, and is owned by the caller.
struct ArrayView {
  const void* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;

  std::uint64_t elems() const { return shape.elems(); }
  std::uint64_t bytes() const { return elems() * dtype_bytes(dtype); }
};

/// Writable view with the same rules.
struct MutableArrayView {
  void* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;

  std::uint64_t elems() const { return shape.elems(); }
  std::uint64_t bytes() const { return elems() * dtype_bytes(dtype); }
  operator ArrayView() const { return {data, dtype, shape}; }
};

}  // namespace quern
