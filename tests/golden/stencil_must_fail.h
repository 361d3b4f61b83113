// What makes broken streams of stencil from a chunk written by hand: everything is right but one thing.
#pragma once

#include "tests/golden/broken_streams.h"
#include "tests/golden/stencil_by_hand.h"
#include "tests/golden/values.h"

namespace quern::golden {

/// Chunk: what a chunk stores, which chunk_bytes writes.
template <class Chunk>
class Maker {
 public:
  Maker(std::vector<MustFailCase>& cases, const char* layout, std::initializer_list<std::uint64_t> extents,
        const Chunk& whole)
      : cases_(cases), whole_(whole) {
    CompressOptions options = with(BoundKind::abs, 0.25, "stencil", {{"layout", layout}});
    options.find_repeated = false;
    stream_ =
        encode_one(values_of(DType::f64, extents, [](std::uint64_t i) { return static_cast<double>(i); }), options);
    // What is broken below is broken in one thing alone.
    stream_ = with_chunk(stream_, chunk_bytes(whole));
    must(decode(stream_, {}, {}, 4096));
  }
  const Bytes& stream() const { return stream_; }
  void add(const char* name, const char* why, StatusCode status, const std::function<void(Chunk&)>& change) const {
    Chunk chunk = whole_;
    change(chunk);
    add_bytes(name, why, status, chunk_bytes(chunk));
  }
  void add_bytes(const char* name, const char* why, StatusCode status, const Bytes& chunk) const {
    cases_.push_back({name, status, why, with_chunk(stream_, chunk)});
  }

 private:
  std::vector<MustFailCase>& cases_;
  Chunk whole_;
  Bytes stream_;
};

/// Broken streams under the wavelet; `raster` is a whole one in raster order.
void add_wavelet_cases(std::vector<MustFailCase>& cases, const Bytes& raster);

}  // namespace quern::golden
