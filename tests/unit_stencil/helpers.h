// What the stencil tests share: fields with structure, and one array through plan, encode, open and decode.
#pragma once

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <quern/codec.h>

#include "codecs/stencil/stencil.h"

namespace quern::codec::stencil::test {

using Bytes = Vector<std::uint8_t>;

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

/// Waves along every axis with a little noise, between -3 and 3; the same for the same seed.
inline std::vector<double> waves(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> values(shape.elems());
  for (std::size_t i = 0; i < values.size(); ++i) {
    double v = 0;
    std::uint64_t rest = i;
    for (std::size_t axis = shape.rank(); axis-- > 0;) {
      v += std::sin(0.11 * static_cast<double>(rest % shape[axis]) * static_cast<double>(axis + 1));
      rest /= shape[axis];
    }
    values[i] = v + 0.01 * (static_cast<double>(random() % 1000) / 1000 - 0.5);
  }
  return values;
}

template <class T>
Bytes as_bytes(const std::vector<double>& values) {
  Bytes bytes(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T v = static_cast<T>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &v, sizeof(T));
  }
  return bytes;
}

/// One planned array: its encoder, decoder and the boxes of its chunks. `special` may be empty.
class Coding {
 public:
  Coding(DType dtype, const Shape& shape, Bytes data, double bound, const Settings& settings = {}, Bytes special = {})
      : dtype_(dtype), data_(std::move(data)), special_(std::move(special)) {
    PlanRequest request;
    request.dtype = dtype;
    request.shape = shape;
    request.bound = {BoundKind::abs, bound};
    const PlainSample sample(data_.data(), dtype, shape.elems());
    SerialRunner serial;
    request.sample = &sample;
    request.runner = &serial;
    request.settings = settings;
    auto encoder = stencil_codec().plan(request);
    EXPECT_TRUE(encoder.ok()) << encoder.status().text();
    encoder_ = std::move(encoder).value();
    OpenRequest open;
    open.dtype = dtype;
    open.shape = shape;
    open.bound = request.bound;
    open.version = stencil_codec().info().version;
    open.params = encoder_->plan().params;
    auto decoder = stencil_codec().open(open);
    EXPECT_TRUE(decoder.ok()) << decoder.status().text();
    decoder_ = std::move(decoder).value();
  }

  std::uint64_t chunks() const {
    const auto n = encoder_->plan().grid.counts();
    return n[0] * n[1] * n[2];
  }
  const ChunkEncoder& encoder() const { return *encoder_; }
  const ChunkDecoder& decoder() const { return *decoder_; }
  const Bytes& data() const { return data_; }
  const Bytes& special() const { return special_; }
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
    if (!special_.empty()) {
      result.special = special_.data() + first;
      result.special_strides = result.strides;
    }
    return result;
  }
  Bytes encode(std::uint64_t chunk) const {
    Bytes out(encoder_->max_chunk_bytes());
    const Scratch scratch(encoder_->scratch_bytes());
    const MutableBox3 from = box(chunk, const_cast<std::uint8_t*>(data_.data()));
    const auto written = encoder_->encode({from.data, from.extents, from.strides, from.special, from.special_strides},
                                          out, scratch.span());
    EXPECT_TRUE(written.ok()) << written.status().text();
    out.resize(written.ok() ? *written : 0);
    out.shrink_to_fit();
    return out;
  }
  /// Encodes and decodes everything; the bytes it took.
  std::size_t round_trip(Bytes& back) const {
    back.assign(data_.size(), 0xA5);
    std::size_t total = 0;
    for (std::uint64_t c = 0; c < chunks(); ++c) {
      const Bytes stored = encode(c);
      total += stored.size();
      const Scratch scratch(decoder_->scratch_bytes());
      const Status status = decoder_->decode(stored, box(c, back.data()), scratch.span());
      EXPECT_TRUE(status.ok()) << status.text();
    }
    return total;
  }

 private:
  DType dtype_;
  Bytes data_;
  Bytes special_;
  std::unique_ptr<ChunkEncoder> encoder_;
  std::unique_ptr<ChunkDecoder> decoder_;
};

/// Elements of `back` further than `bound` from `data`, special ones left out.
template <class T>
std::size_t count_missed(const Coding& coding, const Bytes& back, double bound) {
  std::size_t missed = 0;
  for (std::size_t i = 0; i < back.size() / sizeof(T); ++i) {
    if (!coding.special().empty() && coding.special()[i] != 0) continue;
    T x;
    T r;
    std::memcpy(&x, coding.data().data() + i * sizeof(T), sizeof(T));
    std::memcpy(&r, back.data() + i * sizeof(T), sizeof(T));
    const bool same = std::memcmp(&x, &r, sizeof(T)) == 0;
    if (!same && !(std::fabs(static_cast<double>(x) - static_cast<double>(r)) <= bound)) ++missed;
  }
  return missed;
}

}  // namespace quern::codec::stencil::test
