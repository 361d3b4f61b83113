// Checking quern_array, and moving elements between strided and contiguous memory.
#include "libcompress/capi/array_desc.h"

#include <algorithm>
#include <cstring>

#include <quern/device.h>

#include "libcompress/capi/barrier.h"
#include "libcompress/capi/versioned.h"

namespace quern::capi {
namespace {

/// True when walking the axes from the last gives the elements one after another.
bool is_contiguous(const Shape& shape, const std::array<std::int64_t, kMaxRank>& strides) {
  std::int64_t expected = 1;
  for (std::size_t a = shape.rank(); a-- > 0;) {
    if (shape[a] != 1 && strides[a] != expected) return false;
    expected *= static_cast<std::int64_t>(shape[a]);
  }
  return true;
}

/// The farthest element a stride reaches must be addressable.
Status check_strides(const Layout& layout) {
  std::uint64_t reach = 0;
  const std::uint64_t limit = (UINT64_C(1) << 62) / dtype_bytes(layout.dtype);
  for (std::size_t a = 0; a < layout.shape.rank(); ++a) {
    const std::uint64_t step = layout.strides[a] < 0 ? -static_cast<std::uint64_t>(layout.strides[a])
                                                     : static_cast<std::uint64_t>(layout.strides[a]);
    const auto distance = checked_multiply(step, layout.shape[a] - 1);
    if (!distance || *distance > limit || (reach += *distance) > limit)
      return Status(StatusCode::invalid_argument, "the stride of axis {0} leads out of the address space",
                    static_cast<std::int64_t>(a));
  }
  return {};
}

/// Calls row(packed, strided) for every run along the last axis, with pointers into both.
template <class Row>
void for_each_row(const Layout& layout, std::uint8_t* packed, const Row& row) {
  const std::size_t rank = layout.shape.rank();
  const auto size = static_cast<std::int64_t>(dtype_bytes(layout.dtype));
  const std::uint64_t columns = rank == 0 ? 1 : layout.shape[rank - 1];
  if (layout.shape.elems() == 0) return;
  std::array<std::uint64_t, kMaxRank> index{};
  std::int64_t at = 0;
  for (std::uint64_t rest = layout.shape.elems() / columns; rest > 0; --rest) {
    row(packed, layout.data + at * size);
    packed += columns * static_cast<std::uint64_t>(size);
    for (std::size_t a = rank < 2 ? 0 : rank - 1; a-- > 0;) {
      at += layout.strides[a];
      if (++index[a] < layout.shape[a]) break;
      at -= layout.strides[a] * static_cast<std::int64_t>(layout.shape[a]);
      index[a] = 0;
    }
  }
}

template <bool kPack, std::size_t kBytes>
void copy_rows(const Layout& layout, std::uint8_t* packed) {
  const std::size_t rank = layout.shape.rank();
  const std::uint64_t columns = rank == 0 ? 1 : layout.shape[rank - 1];
  const std::int64_t step = rank == 0 ? 0 : layout.strides[rank - 1] * static_cast<std::int64_t>(kBytes);
  for_each_row(layout, packed, [&](std::uint8_t* dense, std::uint8_t* strided) {
    for (std::uint64_t i = 0; i < columns; ++i, dense += kBytes, strided += step) {
      if constexpr (kPack) {
        std::memcpy(dense, strided, kBytes);
      } else {
        std::memcpy(strided, dense, kBytes);
      }
    }
  });
}

template <bool kPack>
void copy_elements(const Layout& layout, std::uint8_t* packed) {
  switch (dtype_bytes(layout.dtype)) {
    case 1: return copy_rows<kPack, 1>(layout, packed);
    case 2: return copy_rows<kPack, 2>(layout, packed);
    case 4: return copy_rows<kPack, 4>(layout, packed);
    default: return copy_rows<kPack, 8>(layout, packed);
  }
}

Status make_room(const Layout& layout, std::uint64_t memory_limit, AlignedBuffer& copy) {
  const std::uint64_t bytes = layout.shape.elems() * dtype_bytes(layout.dtype);
  if (bytes > memory_limit)
    return Status(StatusCode::memory_limit, "a copy of the array takes {0} bytes; the limit is {1}",
                  static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(memory_limit));
  return copy.resize(bytes);
}

}  // namespace

Status read_array(const quern_array* array, bool needs_data, Layout& layout) {
  quern_array given{};
  QUERN_RETURN_IF_ERROR(read_struct(array, given));
  if (given.dtype < 0 || given.dtype > 255 || !is_known_dtype(static_cast<std::uint8_t>(given.dtype)))
    return Status(StatusCode::invalid_argument, "{0} is no element type", given.dtype);
  if (given.memory != QUERN_MEMORY_HOST && given.memory != QUERN_MEMORY_CUDA)
    return Status(StatusCode::invalid_argument, "{0} is no memory space", given.memory);
  if (given.rank > kMaxRank)
    return Status(StatusCode::invalid_shape, "rank {0} is above {1}", given.rank, static_cast<std::int64_t>(kMaxRank));
  layout.dtype = static_cast<DType>(given.dtype);
  QUERN_ASSIGN_OR_RETURN(layout.shape, Shape::make({given.extents, given.rank}));
  layout.data = static_cast<std::uint8_t*>(given.data);
  std::copy_n(given.strides, kMaxRank, layout.strides.begin());
  const bool dense = std::all_of(given.strides, given.strides + given.rank, [](std::int64_t s) { return s == 0; });
  if (layout.shape.elems() != 0 && !dense) QUERN_RETURN_IF_ERROR(check_strides(layout));
  layout.contiguous = dense || layout.shape.elems() == 0 || is_contiguous(layout.shape, layout.strides);
  layout.on_device = given.memory == QUERN_MEMORY_CUDA;
  layout.device = given.device;
  if (layout.on_device && !layout.contiguous)
    return Status(StatusCode::unsupported, "an array on a device must be contiguous: pack it first");
  if (needs_data && layout.data == nullptr && layout.shape.elems() != 0)
    return Status(StatusCode::invalid_argument, "the array's data is NULL");
  return {};
}

Status PackedInput::open(const Layout& layout, std::uint64_t memory_limit) {
  view_ = {layout.data, layout.dtype, layout.shape};
  if (layout.contiguous && !layout.on_device) return {};
  QUERN_RETURN_IF_ERROR(make_room(layout, memory_limit, copy_));
  view_.data = copy_.data();
  if (layout.on_device) return copy_from_device(layout.device, layout.data, copy_.data(), copy_.size());
  copy_elements<true>(layout, copy_.data());
  return {};
}

Status PackedOutput::open(const Layout& layout, std::uint64_t memory_limit) {
  layout_ = layout;
  view_ = {layout.data, layout.dtype, layout.shape};
  if (layout.contiguous && !layout.on_device) return {};
  for (std::size_t a = 0; a < layout.shape.rank(); ++a) {
    if (!layout.contiguous && layout.strides[a] == 0 && layout.shape[a] > 1)
      return Status(StatusCode::invalid_argument, "stride 0 of axis {0}: decoded elements would overwrite each other",
                    static_cast<std::int64_t>(a));
  }
  QUERN_RETURN_IF_ERROR(make_room(layout, memory_limit, copy_));
  view_.data = copy_.data();
  return {};
}

Status PackedOutput::deliver() {
  if (layout_.on_device) return copy_to_device(layout_.device, copy_.data(), layout_.data, copy_.size());
  if (!layout_.contiguous) copy_elements<false>(layout_, copy_.data());
  return {};
}

}  // namespace quern::capi

quern_status quern_array_init(quern_array* array, quern_dtype dtype, uint32_t rank, const uint64_t* extents,
                              void* data) {
  using namespace quern;
  return capi::guarded(capi::thread_error(), [&]() -> Status {
    if (array == nullptr) return capi::null_argument("quern_array_init: the array is NULL");
    if (rank > kMaxRank)
      return Status(StatusCode::invalid_shape, "rank {0} is above {1}", rank, static_cast<std::int64_t>(kMaxRank));
    if (rank != 0 && extents == nullptr) return capi::null_argument("quern_array_init: the extents are NULL");
    quern_array made{};
    made.struct_size = sizeof(made);
    made.dtype = dtype;
    made.rank = rank;
    std::copy_n(extents, rank, made.extents);
    made.data = data;
    capi::Layout layout;
    QUERN_RETURN_IF_ERROR(capi::read_array(&made, false, layout));
    *array = made;
    return {};
  });
}
