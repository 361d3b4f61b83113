// quern_array as the library's views: checked, and packed when it is not contiguous.
#pragma once

#include <cstdint>

#include <quern/array.h>
#include <quern/quern.h>
#include <quern/status.h>

#include "libcompress/core/buffer.h"

namespace quern::capi {

/// A checked descriptor.
struct Layout {
  DType dtype = DType::f32;
  Shape shape;
  std::array<std::int64_t, kMaxRank> strides{};  ///< elements
  bool contiguous = true;
  std::uint8_t* data = nullptr;
  bool on_device = false;  ///< in the memory of CUDA device `device`
  int device = 0;
};

/// Checks type, rank, extents, strides and memory space. `needs_data`: data may be NULL only when there are no
/// elements. Arrays on a device are contiguous.
Status read_array(const quern_array* array, bool needs_data, Layout& layout);

/// An array to be read: the caller's memory, or a packed copy of it.
class PackedInput {
 public:
  /// Memory: a copy when the array is not contiguous or lies on a device, within `memory_limit`. Waits for the device.
  Status open(const Layout& layout, std::uint64_t memory_limit);
  const ArrayView& view() const { return view_; }
  std::uint64_t copied_bytes() const { return copy_.size(); }

 private:
  AlignedBuffer copy_;
  ArrayView view_;
};

/// An array to be written: the caller's memory, or a packed copy that `deliver` spreads or sends to its device.
class PackedOutput {
 public:
  Status open(const Layout& layout, std::uint64_t memory_limit);
  const MutableArrayView& view() const { return view_; }
  std::uint64_t copied_bytes() const { return copy_.size(); }
  Status deliver();

 private:
  Layout layout_;
  AlignedBuffer copy_;
  MutableArrayView view_;
};

}  // namespace quern::capi
