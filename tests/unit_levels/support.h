// What the tests of coarse levels share: streams of codec stencil, and the points a level has of a decoded array.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include <quern/compress.h>

#include "tests/support/pipe_source.h"

namespace quern::testing {

using Bytes = Vector<std::uint8_t>;

inline Shape shape_of(Vector<std::uint64_t> extents) { return Shape::make(extents).value(); }

/// Waves along all axes with some noise, as elements of any type that the codec takes.
inline Bytes field(DType dtype, const Shape& shape, std::uint32_t seed) {
  const std::size_t width = dtype_bytes(dtype);
  Bytes out(static_cast<std::size_t>(shape.elems()) * width);
  std::mt19937 random(seed);
  for (std::uint64_t i = 0; i < shape.elems(); ++i) {
    double v = 40;
    std::uint64_t rest = i;
    for (std::size_t a = shape.rank(); a-- > 0; rest /= shape[a])
      v += 8 * std::sin(0.07 * static_cast<double>(rest % shape[a]) * static_cast<double>(a + 1));
    v += static_cast<double>(random() % 1000) * 1e-3;
    std::uint64_t bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(v));
    if (dtype == DType::f64) bits = std::bit_cast<std::uint64_t>(v);
    if (dtype == DType::f32) bits = std::bit_cast<std::uint32_t>(static_cast<float>(v));
    if (dtype == DType::bf16) bits = std::bit_cast<std::uint32_t>(static_cast<float>(v)) >> 16;
    if (dtype == DType::f16) bits = 0x4C00 + static_cast<std::uint64_t>(v * 16) % 1024;  // 16 to 32, exactly
    std::memcpy(out.data() + i * width, &bits, width);
  }
  return out;
}

/// NaN of two kinds, infinities and a fill value, in blocks and alone, for f32.
inline void spoil(Bytes& values, float fill) {
  const auto put = [&](std::size_t i, std::uint32_t bits) {
    if (4 * i + 4 <= values.size()) std::memcpy(values.data() + 4 * i, &bits, 4);
  };
  for (std::size_t i = 64; i < 900; ++i) put(i, 0x7FC00000);
  for (std::size_t i = 0; i < values.size() / 4; i += 96) put(i, std::bit_cast<std::uint32_t>(fill));
  for (std::size_t i = 32; i < values.size() / 4; i += 1000) put(i, 0x7FC00000 + static_cast<std::uint32_t>(i));
  for (std::size_t i = 8; i < values.size() / 4; i += 4096) put(i, 0xFF800000);
}

inline Bytes compress_in(const char* layout, DType dtype, const Shape& shape, const Bytes& values, double bound,
                         const Execution& execution = {}, const Vector<std::uint64_t>& fills = {}) {
  CompressOptions options;
  options.bound = {BoundKind::abs, bound};
  options.codec = "stencil";
  options.settings = {{"layout", layout}};
  options.fill_bits = fills;
  Bytes out;
  VectorSink sink(out);
  const auto done = compress({values.data(), dtype, shape}, options, builtin_codecs(), execution, sink);
  EXPECT_TRUE(done.ok()) << done.status().text();
  EXPECT_TRUE(!done.ok() || done->codec == "stencil");
  return out;
}

inline StreamInfo info_of(const Bytes& stream) {
  MemorySource source(stream);
  const auto info = inspect(source, builtin_codecs());
  EXPECT_TRUE(info.ok()) << info.status().text();
  return info.ok() ? *info : StreamInfo{};
}

/// Decodes a source at a level into `out`, which is made to fit.
inline Result<DecompressReport> decode_at(ByteSource& source, unsigned level, Bytes& out, std::size_t threads = 1,
                                          bool keep_going = false, std::uint64_t memory_limit = UINT64_MAX) {
  DecompressOptions options;
  options.level = level;
  options.keep_going = keep_going;
  Execution execution;
  execution.threads = threads;
  execution.memory_limit = memory_limit;
  QUERN_ASSIGN_OR_RETURN(const auto decoder, Decoder::open(source, builtin_codecs(), execution, options));
  out.assign(static_cast<std::size_t>(decoder->shape().elems()) * dtype_bytes(decoder->info().dtype), 0xA5);
  QUERN_ASSIGN_OR_RETURN(const std::size_t count, decoder->pull(out));
  EXPECT_EQ(count, out.size());
  return decoder->report();
}

inline Bytes decode_ok(const Bytes& stream, unsigned level, std::size_t threads = 1,
                       DecompressReport* report = nullptr) {
  MemorySource source(stream);
  Bytes out;
  const auto done = decode_at(source, level, out, threads);
  EXPECT_TRUE(done.ok()) << done.status().text();
  if (done.ok() && report != nullptr) *report = *done;
  return out;
}

/// The points that a level keeps: along an axis all, where its extent there is that of the array, else every
/// 2^level-th.
inline Bytes points_of(const Bytes& whole, const Shape& shape, const Shape& coarse, unsigned level, std::size_t width) {
  Bytes out(static_cast<std::size_t>(coarse.elems()) * width);
  for (std::uint64_t i = 0; i < coarse.elems(); ++i) {
    std::uint64_t from = 0;
    std::uint64_t stride = 1;
    std::uint64_t rest = i;
    for (std::size_t a = shape.rank(); a-- > 0; rest /= coarse[a], stride *= shape[a]) {
      const bool all = coarse[a] == shape[a];
      EXPECT_TRUE(all || coarse[a] == ((shape[a] - 1) >> level) + 1);
      from += (all ? rest % coarse[a] : rest % coarse[a] << level) * stride;
    }
    std::memcpy(out.data() + i * width, whole.data() + from * width, width);
  }
  return out;
}

/// Remembers which bytes were read.
class WatchedSource final : public ByteSource {
 public:
  explicit WatchedSource(std::span<const std::uint8_t> bytes) : inner_(bytes), read_(bytes.size(), false) {}
  Result<std::size_t> read(std::span<std::uint8_t> out) override {
    const std::uint64_t at = inner_.position();
    QUERN_ASSIGN_OR_RETURN(const std::size_t count, inner_.read(out));
    std::fill_n(read_.begin() + static_cast<std::ptrdiff_t>(at), count, true);
    return count;
  }
  bool can_seek() const override { return true; }
  Status seek(std::uint64_t offset) override { return inner_.seek(offset); }
  std::uint64_t size() const override { return inner_.size(); }
  std::uint64_t position() const override { return inner_.position(); }
  bool was_read(std::size_t byte) const { return read_[byte]; }
  std::size_t bytes_read() const { return static_cast<std::size_t>(std::count(read_.begin(), read_.end(), true)); }

 private:
  MemorySource inner_;
  std::vector<bool> read_;
};

}  // namespace quern::testing
