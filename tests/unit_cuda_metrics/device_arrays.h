// Arrays for the tests: bytes with anything in them, copies of them in device memory at any address, and results back.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <quern/array.h>

#include "kernels/common/cuda/fill_values.h"
#include "kernels/common/element_keys.h"
#include "libcompress/core/element_of.h"

namespace quern::test {

inline constexpr DType kAllTypes[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,  DType::i16,
                                      DType::i32, DType::i64,  DType::u8,  DType::u16, DType::u32, DType::u64};

/// Device memory with the bytes in it, which begin `offset` bytes behind an address that 256 divides.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t bytes, std::size_t offset = 0) : offset_(offset) {
    EXPECT_EQ(cudaMalloc(&base_, bytes + offset), cudaSuccess);
  }
  explicit DeviceBytes(const std::vector<std::uint8_t>& bytes, std::size_t offset = 0)
      : DeviceBytes(bytes.size(), offset) {
    if (bytes.empty()) return;
    EXPECT_EQ(cudaMemcpy(get(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice), cudaSuccess);
  }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  ~DeviceBytes() { EXPECT_EQ(cudaFree(base_), cudaSuccess); }

  void* get() const { return static_cast<std::uint8_t*>(base_) + offset_; }

 private:
  void* base_ = nullptr;
  std::size_t offset_;
};

/// A result that lies in device memory.
template <class T>
class DeviceResult {
 public:
  DeviceResult() : memory_(std::vector<std::uint8_t>(sizeof(T), 0xa5)) {}
  T* get() const { return static_cast<T*>(memory_.get()); }
  /// Waits for the stream.
  T read(cudaStream_t stream = nullptr) const {
    T value;
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(&value, memory_.get(), sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    return value;
  }

 private:
  DeviceBytes memory_;
};

inline kernels::FillValues fills_of(const std::vector<std::uint64_t>& bits) {
  kernels::FillValues fills;
  EXPECT_TRUE(kernels::copy_fills(bits, fills));
  return fills;
}

/// The bits of a number near `value`: rounded for integers, cut off for narrow floats.
inline std::uint64_t bits_near(DType dtype, double value) {
  switch (dtype) {
    case DType::f64: return std::bit_cast<std::uint64_t>(value);
    case DType::f32: return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case DType::bf16: return std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16;
    case DType::f16: {
      // Numbers between 2^-14 and 2^15 only, cut off; smaller ones become 0.
      const double size = std::fabs(value);
      if (size < 0x1p-14) return value < 0 ? 0x8000 : 0;
      const auto wide = std::bit_cast<std::uint64_t>(size);
      return (value < 0 ? 0x8000u : 0u) | ((wide >> 42) - (UINT64_C(1008) << 10));
    }
    case DType::u64: return value < 0 ? 0 : static_cast<std::uint64_t>(value);
    default: return static_cast<std::uint64_t>(static_cast<std::int64_t>(std::nearbyint(value)));
  }
}

struct Array {
  DType dtype;
  Shape shape;
  std::vector<std::uint8_t> bytes;

  Array(DType type, const Shape& extents) : dtype(type), shape(extents), bytes(extents.elems() * dtype_bytes(type)) {}
  ArrayView view() const { return {bytes.data(), dtype, shape}; }
  std::uint64_t elems() const { return shape.elems(); }

  void set(std::uint64_t i, std::uint64_t bits) {
    std::memcpy(bytes.data() + i * dtype_bytes(dtype), &bits, dtype_bytes(dtype));
  }
  std::uint64_t at(std::uint64_t i) const {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * dtype_bytes(dtype), dtype_bytes(dtype));
    return bits;
  }
};

inline Shape shape_of(std::initializer_list<std::uint64_t> extents) {
  return Shape::make({extents.begin(), extents.size()}).value();
}

inline std::string type_name(const testing::TestParamInfo<DType>& type) { return dtype_name(type.param); }

/// The bits of NaN, infinities and -0 of a floating-point type.
inline std::vector<std::uint64_t> specials_of(DType dtype) {
  return kernels::with_element(element_of(dtype), [](auto traits) {
    using Traits = decltype(traits);
    std::vector<std::uint64_t> bits;
    if constexpr (requires { Traits::kInfinity; })
      for (const std::uint64_t sign : {std::uint64_t{0}, std::uint64_t{Traits::kSign}})
        for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{Traits::kInfinity},
                                         std::uint64_t{Traits::kInfinity} + 1, std::uint64_t{Traits::kSign} - 1})
          bits.push_back(sign | size);
    return bits;
  });
}

}  // namespace quern::test
