// Arrays of every element type, layout and kind of data, cut into chunks and encoded, for tests of what decodes them by
// jobs.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "codecs/interp/device/chunk_job.h"
#include "codecs/interp/interp.h"
#include "libcompress/core/buffer.h"
#include "libcompress/core/task_runner.h"
#include "tests/support/array_cases.h"

namespace quern::codec::interp::test {

using quern::testing::Data;
using quern::testing::OwnedArray;

struct ChunkCase {
  const char* name;
  DType dtype;
  std::vector<std::uint64_t> extents;
  double bound;
  const char* layout = "auto";
  Data data = Data::smooth;
  bool masked = false;  ///< some elements are special
};

inline std::vector<ChunkCase> chunk_cases() {
  return {
      {"line", DType::f32, {3000}, 1e-3},
      {"line of one element", DType::f64, {1}, 1e-2},
      {"line of two elements", DType::f32, {2}, 1e-2},
      {"line of a tile and an element", DType::f32, {4097}, 1e-2, "1d:0,0,12"},
      {"line of short tiles", DType::f32, {500}, 1e-3, "1d:0,0,1"},
      {"plane", DType::f32, {70, 67}, 1e-3, "2d:1:0,6,6"},
      {"plane in strips", DType::f64, {9, 400}, 1e-4, "2d:1:0,2,9"},
      {"narrow plane", DType::i16, {300, 3}, 1},
      {"planes of their own", DType::f32, {5, 33, 40}, 1e-3, "3d:1,2:0,6,6"},
      {"planes along the first axes", DType::f32, {33, 40, 5}, 1e-3, "3d:1,2:6,6,0"},
      {"tiles along the first axis", DType::f32, {300, 3, 5}, 1e-3, "3d:1,2:12,0,0"},
      {"volume", DType::f32, {21, 34, 37}, 1e-3, "3d:1,2:4,4,4"},
      {"volume of whole tiles", DType::f32, {32, 16, 48}, 1e-3, "3d:1,2:4,4,4"},
      {"volume and a plane", DType::f32, {17, 33, 17}, 1e-3, "3d:1,2:4,4,4"},
      {"volume at a tight bound", DType::f64, {17, 20, 33}, 1e-7, "3d:1,2:4,4,4"},
      {"plane at a tight bound", DType::f64, {33, 40}, 1e-6, "2d:1:0,6,6"},
      {"line at a tight bound", DType::f64, {900}, 1e-5, "1d:0,0,12"},
      {"volume at a wide bound", DType::f64, {17, 20, 33}, 3e-1, "3d:1,2:4,4,4"},
      {"volume of long codes", DType::f32, {9, 10, 11}, 1e-5, "3d:1,2:4,4,4", Data::wide_range},
      {"odd tiles", DType::f32, {13, 17, 19}, 1e-3, "3d:1,2:1,2,3"},
      {"tiles longer than axes", DType::u16, {3, 70, 2}, 2, "3d:1,2:2,5,4"},
      {"four axes", DType::f32, {4, 9, 10, 17}, 1e-3},
      {"four axes, two merged", DType::f64, {3, 9, 11, 13}, 1e-3, "3d:0,2:0,4,4"},
      {"land", DType::f32, {25, 31, 33}, 1e-3, "auto", Data::land},
      {"a value out of range", DType::f32, {14, 20, 21}, 1e-3, "3d:1,2:4,4,4", Data::spike},
      {"minus zeros", DType::f32, {14, 20, 21}, 1e-3, "3d:1,2:4,4,4", Data::minus_zero},
      {"NaN here and there", DType::f64, {3000}, 1e-3, "1d:0,0,10", Data::nan_scattered},
      {"values that are not finite", DType::f32, {40, 50}, 1e-2, "auto", Data::inf_scattered},
      {"noise", DType::f32, {16, 17, 18}, 1e-3, "auto", Data::noise},
      {"32 streams", DType::f32, {30, 31, 33}, 1e-3, "auto", Data::noise},
      {"several chunks", DType::i8, {530001}, 1},
      {"f16", DType::f16, {20, 41}, 1e-2},
      {"bf16", DType::bf16, {20, 41}, 1e-1},
      {"i8", DType::i8, {12, 13, 14}, 1},
      {"i32", DType::i32, {12, 13, 14}, 5},
      {"u8", DType::u8, {12, 13, 14}, 1},
      {"u32", DType::u32, {12, 13, 14}, 5},
  };
}

/// An array that is to be decoded to memory of its own, and its coded chunks.
class CodedChunks {
 public:
  explicit CodedChunks(const ChunkCase& c) {
    const Shape shape = Shape::make(c.extents).value();
    array_ = quern::testing::make_array(c.dtype, shape, c.data);
    const PlainSample sample(array_.bytes.data(), c.dtype, shape.elems());
    SerialRunner runner;
    PlanRequest request;
    request.dtype = c.dtype;
    request.shape = shape;
    request.bound.kind = BoundKind::abs;
    request.bound.value = c.bound;
    request.sample = &sample;
    request.runner = &runner;
    request.settings = {{"layout", c.layout}};
    auto encoder = interp_codec().plan(request);
    EXPECT_TRUE(encoder.ok()) << encoder.status().text();
    encoder_ = std::move(encoder).value();
    grid_ = encoder_->plan().grid;
    if (c.masked) make_special();
    OpenRequest open;
    open.dtype = c.dtype;
    open.shape = shape;
    open.bound = request.bound;
    open.version = kCodecVersion;
    open.params = encoder_->plan().params;
    decoder_ = std::move(interp_codec().open(open)).value();
    AlignedBuffer scratch;
    EXPECT_TRUE(scratch.resize(encoder_->scratch_bytes()).ok());
    for (std::uint64_t n = 0; n < count(); ++n) {
      Vector<std::uint8_t> bytes(encoder_->max_chunk_bytes());
      const auto size = encoder_->encode(input(n), bytes, {scratch.data(), scratch.size()});
      EXPECT_TRUE(size.ok());
      bytes.resize(*size);
      stored.push_back(std::move(bytes));
    }
  }

  std::uint64_t count() const {
    const auto counts = grid_.counts();
    return counts[0] * counts[1] * counts[2];
  }
  /// Chunk `number` of an array that begins there.
  MutableBox3 box(std::uint64_t number, std::uint8_t* begin) const {
    const auto counts = grid_.counts();
    const std::array<std::uint64_t, 3> at{number / counts[2] / counts[1], number / counts[2] % counts[1],
                                          number % counts[2]};
    MutableBox3 box;
    box.strides = {grid_.extents[1] * grid_.extents[2], grid_.extents[2]};
    std::uint64_t first = 0;
    for (std::size_t a = 0; a < 3; ++a) {
      const std::uint64_t place = at[a] * grid_.chunk[a];
      box.extents[a] = std::min(grid_.chunk[a], grid_.extents[a] - place);
      first += place * (a == 2 ? 1 : box.strides[a]);
    }
    box.data = begin + first * dtype_bytes(array_.dtype);
    return box;
  }
  const ChunkEncoder& encoder() const { return *encoder_; }
  DType dtype() const { return array_.dtype; }
  /// Chunk `number` of the array, as it is encoded.
  ConstBox3 input(std::uint64_t number) const {
    const auto* const begin = array_.bytes.data();
    const MutableBox3 place = box(number, const_cast<std::uint8_t*>(begin));
    ConstBox3 in{place.data, place.extents, place.strides};
    if (!special_.empty()) {
      const auto first = static_cast<std::size_t>(static_cast<const std::uint8_t*>(place.data) - begin);
      in.special = special_.data() + first / dtype_bytes(array_.dtype);
      in.special_strides = in.strides;
    }
    return in;
  }
  bool append_job(std::span<const std::uint8_t> chunk, const MutableBox3& box, Vector<std::uint8_t>& job) const {
    return append_chunk_job(device_state_of(decoder_->device_state()), chunk, box, job);
  }
  Status decode_on_host(std::span<const std::uint8_t> chunk, const MutableBox3& box) const {
    AlignedBuffer scratch;
    EXPECT_TRUE(scratch.resize(decoder_->scratch_bytes()).ok());
    return decoder_->decode(chunk, box, {scratch.data(), scratch.size()});
  }
  std::size_t bytes() const { return array_.bytes.size(); }

  std::vector<Vector<std::uint8_t>> stored;

 private:
  /// The first elements and every fifth; what stands there is beyond all others.
  void make_special() {
    special_.resize(array_.shape.elems());
    for (std::size_t i = 0; i < special_.size(); ++i) {
      special_[i] = i < special_.size() / 9 || i % 5 == 2 ? 1 : 0;
      if (special_[i] != 0) quern::testing::store_element(array_, i, i % 2 == 0 ? 1e30 : -1e30);
    }
  }

  OwnedArray array_;
  Vector<std::uint8_t> special_;
  ChunkGrid grid_;
  std::unique_ptr<ChunkEncoder> encoder_;
  std::unique_ptr<ChunkDecoder> decoder_;
};

}  // namespace quern::codec::interp::test
