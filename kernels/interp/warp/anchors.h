// The anchors of a chunk, by the warps of a thread block: sums of codes along three axes in turn.
#pragma once

#include <cstdint>

#include "kernels/common/lanes.h"
#include "kernels/interp/interp_job.h"

namespace quern::kernels {

/// The values of the anchors from their codes: each is predicted by the one before it along the last axis, the first of
/// a row along the axis before, the first of a plane along the first axis.
template <class X, class Word>
class InterpAnchors {
 public:
  explicit constexpr InterpAnchors(const InterpView& view)
      : codes_(view.codes),
        values_(view.work<Word>(view.job->anchors)),
        fraction_bits_(view.job->fraction_bits),
        points_(view.levels[0].points) {}

  template <class Block>
  constexpr void run(Block& block) const {
    block.first([&] {
      X::lanes([&](std::size_t lane) {
        if (lane == 0) X::store(values_, lane, interp_value(Word{0}, X::load(codes_, lane), fraction_bits_));
      });
      line(0, points_[1] * points_[2], points_[0]);
    });
    block.all([&](std::uint32_t warp, std::uint32_t warps) {
      for (std::uint32_t z = warp; z < points_[0]; z += warps)
        line(z * points_[1] * points_[2], points_[2], points_[1]);
    });
    block.all([&](std::uint32_t warp, std::uint32_t warps) {
      for (std::uint32_t row = warp; row < points_[0] * points_[1]; row += warps) line(row * points_[2], 1, points_[2]);
    });
  }

 private:
  using Unsigned = InterpUnsigned<Word>;

  /// Of `count` anchors the first has its value; sums the codes of the others to it.
  constexpr void line(std::uint32_t first, std::uint32_t stride, std::uint32_t count) const {
    X::sync();
    auto last = static_cast<Unsigned>(X::load_same(values_ + first));
    for (std::uint32_t begin = 1; begin < count; begin += kLanes) {
      typename X::template vec<Unsigned> sums;
      X::lanes([&](std::size_t lane) {
        const std::uint32_t i = begin + static_cast<std::uint32_t>(lane);
        const std::int32_t code = i < count ? X::load(codes_ + first + i * stride, lane) : 0;
        X::set(sums, lane, static_cast<Unsigned>(interp_value(Word{0}, code, fraction_bits_)));
      });
      X::inclusive_scan(sums);
      X::lanes([&](std::size_t lane) {
        const std::uint32_t i = begin + static_cast<std::uint32_t>(lane);
        if (i < count) X::store(values_ + first + i * stride, lane, static_cast<Word>(last + X::get(sums, lane)));
      });
      last += X::broadcast(sums, kLanes - 1);
    }
  }

  const std::int32_t* codes_;
  Word* values_;
  unsigned fraction_bits_;
  const std::uint32_t* points_;
};

}  // namespace quern::kernels
