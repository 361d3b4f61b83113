// What the pipeline's tests share: arrays, registries, and calls that check a whole round trip.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <quern/compress.h>

#include "tests/support/pipe_source.h"
#include "tests/unit_pipeline/toy_codec.h"

namespace quern::testing {

inline Shape shape_of(Vector<std::uint64_t> extents) { return Shape::make(extents).value(); }

/// An array that owns its memory.
struct Array {
  DType dtype = DType::f32;
  Shape shape;
  Vector<std::uint8_t> bytes;

  Array(DType t, Shape s) : dtype(t), shape(s), bytes(static_cast<std::size_t>(s.elems() * dtype_bytes(t))) {}
  ArrayView view() const { return {bytes.data(), dtype, shape}; }
  MutableArrayView target() { return {bytes.data(), dtype, shape}; }
};

/// Smooth values, as floats or small integers.
inline Array smooth(DType dtype, const Shape& shape) {
  Array a(dtype, shape);
  const std::size_t w = dtype_bytes(dtype);
  for (std::uint64_t i = 0; i < shape.elems(); ++i) {
    const double v = 50 * std::sin(0.013 * static_cast<double>(i)) + 0.001 * static_cast<double>(i % 777);
    std::uint64_t bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(v) + 60);
    if (dtype == DType::f32) bits = std::bit_cast<std::uint32_t>(static_cast<float>(v));
    if (dtype == DType::f64) bits = std::bit_cast<std::uint64_t>(v);
    std::memcpy(a.bytes.data() + i * w, &bits, w);
  }
  return a;
}

inline Array random_bits(DType dtype, const Shape& shape, std::uint32_t seed) {
  Array a(dtype, shape);
  std::mt19937 rng(seed);
  for (auto& b : a.bytes) b = static_cast<std::uint8_t>(rng());
  return a;
}

/// Puts special values into an f32 array: a block of NaN, some infinities, a fill value.
inline void spoil(Array& a, float fill) {
  auto* bytes = a.bytes.data();
  const auto put = [&](std::uint64_t i, std::uint32_t bits) {
    if (i < a.shape.elems()) std::memcpy(bytes + 4 * i, &bits, 4);
  };
  for (std::uint64_t i = 100; i < 700; ++i) put(i, 0x7FC00000 + static_cast<std::uint32_t>(i % 2));
  for (std::uint64_t i = 0; i < a.shape.elems(); i += 211) put(i, std::bit_cast<std::uint32_t>(fill));
  for (std::uint64_t i = 5; i < a.shape.elems(); i += 997) put(i, 0xFF800000);
}

/// A lossless codec called "lossless" and a lossy one called "lorenzo", with the given chunks.
struct ToyRegistry {
  ToyCodec exact;
  ToyCodec lossy;
  std::array<const ArrayCodec*, 2> list{&exact, &lossy};
  Registry registry{list};
  explicit ToyRegistry(std::array<std::uint64_t, 3> chunk = {4, 16, 32}, std::size_t extra_params = 0)
      : exact("lossless", 200, chunk, false, extra_params), lossy("lorenzo", 201, chunk, true, extra_params) {}
};

inline Execution with_threads(std::size_t threads) {
  Execution execution;
  execution.threads = threads;
  return execution;
}

inline CompressOptions with_bound(BoundKind kind, double value = 0) {
  CompressOptions options;
  options.bound = {kind, value};
  return options;
}

inline Vector<std::uint8_t> compress_ok(const Array& a, const CompressOptions& options, const Registry& registry,
                                        const Execution& execution = {}, CompressReport* report = nullptr) {
  Vector<std::uint8_t> out;
  VectorSink sink(out);
  const auto result = compress(a.view(), options, registry, execution, sink);
  EXPECT_TRUE(result.ok()) << result.status().text();
  if (result.ok()) {
    EXPECT_EQ(result->output_bytes, out.size());
    if (report != nullptr) *report = *result;
  }
  return out;
}

inline Array decompress_ok(std::span<const std::uint8_t> stream, DType dtype, const Shape& shape,
                           const Registry& registry, const Execution& execution = {}) {
  Array back(dtype, shape);
  std::fill(back.bytes.begin(), back.bytes.end(), std::uint8_t{0xA5});
  MemorySource source(stream);
  const auto result = decompress(source, back.target(), registry, execution);
  EXPECT_TRUE(result.ok()) << result.status().text();
  EXPECT_TRUE(!result.ok() || result->input_bytes == stream.size());
  return back;
}

}  // namespace quern::testing
