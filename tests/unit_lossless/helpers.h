// What the lossless tests share: seeded data of every kind, and a whole array through plan, encode, open and decode.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <quern/codec.h>

#include "codecs/lossless/lossless.h"

namespace quern::codec::lossless::test {

using Bytes = Vector<std::uint8_t>;

inline constexpr DType kAllTypes[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,  DType::i16,
                                      DType::i32, DType::i64,  DType::u8,  DType::u16, DType::u32, DType::u64};

/// 64-byte aligned memory that AddressSanitizer guards at its end.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes)
      : bytes_(bytes), data_(static_cast<std::uint8_t*>(::operator new (bytes + 1, std::align_val_t{64}))) {}
  ~Scratch() { ::operator delete (data_, std::align_val_t{64}); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::span<std::uint8_t> span() const { return {data_, bytes_}; }

 private:
  std::size_t bytes_;
  std::uint8_t* data_;
};

inline Shape shape_of(std::initializer_list<std::uint64_t> extents) {
  const Vector<std::uint64_t> list(extents);
  return Shape::make(list).value();
}

/// Elements from 64-bit patterns: the low bytes of each.
inline Bytes elements(DType dtype, std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& pattern) {
  const std::size_t width = dtype_bytes(dtype);
  Bytes data(count * width);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t bits = pattern(i);
    for (std::size_t b = 0; b < width; ++b) data[i * width + b] = static_cast<std::uint8_t>(bits >> (8 * b));
  }
  return data;
}

/// One planned array: its encoder, decoder and the boxes of its chunks.
class Coding {
 public:
  Coding(DType dtype, const Shape& shape, const Bytes& data, const Settings& settings = {})
      : dtype_(dtype), shape_(shape), data_(data) {
    PlanRequest request;
    request.dtype = dtype;
    request.shape = shape;
    const PlainSample sample(data.data(), dtype, shape.elems());
    SerialRunner serial;
    request.sample = &sample;
    request.runner = &serial;
    request.settings = settings;
    auto encoder = lossless_codec().plan(request);
    EXPECT_TRUE(encoder.ok()) << encoder.status().text();
    encoder_ = std::move(encoder).value();
    OpenRequest open;
    open.dtype = dtype;
    open.shape = shape;
    open.version = lossless_codec().info().version;
    open.params = encoder_->plan().params;
    auto decoder = lossless_codec().open(open);
    EXPECT_TRUE(decoder.ok()) << decoder.status().text();
    decoder_ = std::move(decoder).value();
  }

  const ChunkEncoder& encoder() const { return *encoder_; }
  const ChunkDecoder& decoder() const { return *decoder_; }
  std::uint64_t chunks() const {
    const auto n = encoder_->plan().grid.counts();
    return n[0] * n[1] * n[2];
  }
  /// Extents, strides and first element of a chunk.
  MutableBox3 box(std::uint64_t chunk, void* base) const {
    const ChunkGrid& grid = encoder_->plan().grid;
    const auto n = grid.counts();
    const std::uint64_t at[3] = {chunk / (n[1] * n[2]), chunk / n[2] % n[1], chunk % n[2]};
    MutableBox3 result;
    result.strides = {grid.extents[1] * grid.extents[2], grid.extents[2]};
    std::uint64_t first = 0;
    for (std::size_t a = 0; a < 3; ++a) {
      const std::uint64_t begin = at[a] * grid.chunk[a];
      result.extents[a] = std::min(grid.chunk[a], grid.extents[a] - begin);
      first += begin * (a == 2 ? 1 : result.strides[a]);
    }
    result.data = static_cast<std::uint8_t*>(base) + first * dtype_bytes(dtype_);
    return result;
  }
  Bytes encode(std::uint64_t chunk) const {
    Bytes out(encoder_->max_chunk_bytes());
    const Scratch scratch(encoder_->scratch_bytes());
    const MutableBox3 from = box(chunk, const_cast<std::uint8_t*>(data_.data()));
    const auto written = encoder_->encode({from.data, from.extents, from.strides}, out, scratch.span());
    EXPECT_TRUE(written.ok()) << written.status().text();
    EXPECT_LE(*written, encoder_->max_chunk_bytes());
    EXPECT_LE(*written, 1 + from.elems() * dtype_bytes(dtype_));
    out.resize(*written);
    out.shrink_to_fit();
    return out;
  }
  /// Encodes and decodes everything; returns the bytes it took, and fails the test on any difference.
  std::size_t round_trip() const {
    Bytes back(data_.size(), 0xA5);
    std::size_t total = 0;
    for (std::uint64_t c = 0; c < chunks(); ++c) {
      const Bytes stored = encode(c);
      total += stored.size();
      const Scratch scratch(decoder_->scratch_bytes());
      const Status status = decoder_->decode(stored, box(c, back.data()), scratch.span());
      EXPECT_TRUE(status.ok()) << status.text();
    }
    EXPECT_TRUE(std::memcmp(back.data(), data_.data(), data_.size()) == 0)
        << dtype_name(dtype_) << ' ' << shape_.text() << " does not come back";
    return total;
  }

 private:
  DType dtype_;
  Shape shape_;
  const Bytes& data_;
  std::unique_ptr<ChunkEncoder> encoder_;
  std::unique_ptr<ChunkDecoder> decoder_;
};

}  // namespace quern::codec::lossless::test
