// One array through a codec, without a stream around it: plan, encode, open and decode, chunk by chunk.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <gtest/gtest.h>

#include <quern/codec.h>
#include <quern/parts.h>

namespace quern::testing {

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

/// What a codec is asked for.
struct CodedRequest {
  EnforcedBound bound{};
  Settings settings;
  const char* goal = "ratio";
  unsigned effort = 6;
};

/// An array with its encoder, its decoder and the boxes of its chunks. `special` may be empty.
class CodedArray {
 public:
  using Bytes = Vector<std::uint8_t>;

  CodedArray(const ArrayCodec& codec, DType dtype, const Shape& shape, Bytes data, Bytes special,
             const CodedRequest& asked)
      : dtype_(dtype), data_(std::move(data)), special_(std::move(special)) {
    PlanRequest request;
    request.dtype = dtype;
    request.shape = shape;
    request.bound = asked.bound;
    const PlainSample sample(data_.data(), dtype, shape.elems());
    SerialRunner serial;
    request.sample = &sample;
    request.runner = &serial;
    request.settings = asked.settings;
    request.goal = asked.goal;
    request.effort = asked.effort;
    auto encoder = codec.plan(request);
    EXPECT_TRUE(encoder.ok()) << encoder.status().text();
    encoder_ = std::move(encoder).value();
    OpenRequest open;
    open.dtype = dtype;
    open.shape = shape;
    open.bound = request.bound;
    open.version = codec.info().version;
    open.params = encoder_->plan().params;
    auto decoder = codec.open(open);
    EXPECT_TRUE(decoder.ok()) << decoder.status().text();
    decoder_ = std::move(decoder).value();
  }

  const ChunkEncoder& encoder() const { return *encoder_; }
  const ChunkDecoder& decoder() const { return *decoder_; }
  const Bytes& data() const { return data_; }
  const Bytes& special() const { return special_; }
  std::uint64_t chunks() const {
    const auto n = encoder_->plan().grid.counts();
    return n[0] * n[1] * n[2];
  }

  /// Extents, strides and first element of a chunk of an array that begins at `base`.
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
  /// Bytes of a chunk, in memory of exactly their size; none when encoding failed. A chunk takes no more than its
  /// values and a byte.
  Bytes encode(std::uint64_t chunk) const {
    Bytes out(encoder_->max_chunk_bytes());
    const Scratch scratch(encoder_->scratch_bytes());
    const MutableBox3 from = box(chunk, const_cast<std::uint8_t*>(data_.data()));
    const ConstBox3 in{from.data, from.extents, from.strides, from.special, from.special_strides};
    const auto* const parted = dynamic_cast<const PartedChunkEncoder*>(encoder_.get());
    const auto written = parted != nullptr ? parted->encode_numbered(chunk, in, nullptr, out, scratch.span())
                                           : encoder_->encode(in, out, scratch.span());
    EXPECT_TRUE(written.ok()) << written.status().text();
    out.resize(written.ok() ? *written : 0);
    EXPECT_LE(out.size(), encoder_->max_chunk_bytes());
    if (parted == nullptr) {
      EXPECT_LE(out.size(), 1 + from.elems() * dtype_bytes(dtype_));
    }
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

}  // namespace quern::testing
