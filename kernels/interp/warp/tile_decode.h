// The values of tiles from codes and anchors, and the elements they become, by the warps of a thread block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/lanes.h"
#include "kernels/common/number_elements.h"
#include "kernels/common/unroll.h"
#include "kernels/common/warp/put_element.h"
#include "kernels/interp/interp_job.h"
#include "kernels/interp/warp/tile_walk.h"

namespace quern::kernels {

template <class X, class Word>
class InterpTileDecoder {
 public:
  constexpr InterpTileDecoder(const InterpView& view, InterpTileMemory& memory) : view_(view), walk_(view, memory) {}

  constexpr std::uint32_t tiles() const { return walk_.count(); }

  /// Tile `number` in C order.
  template <class Block>
  constexpr void decode(Block& block, std::uint32_t number) {
    walk_.go_to(number);
    block.all([&](std::uint32_t warp, std::uint32_t /*warps*/) {
      if (warp == 0) walk_.take_anchors(view_.work<Word>(walk_.job.anchors));
    });
    walk_.for_classes(
        block, [&](const InterpClassPlan& plan, const InterpLevelPlan& level, std::uint32_t warp, std::uint32_t warps) {
          const std::int32_t* const codes = view_.codes + plan.first;
          const unsigned fraction_bits = walk_.job.fraction_bits;
          Word* const values = walk_.values;
          walk_.for_points(
              plan, level, warp, warps,
              [&](const InterpTilePoint& point, std::size_t lane) { return X::load(codes + point.code, lane); },
              [&](const InterpTilePoint& point, Word predicted, std::int32_t code, std::size_t lane) {
                X::store(values + point.at, lane, interp_value(predicted, code, fraction_bits));
              });
        });
    block.all([&](std::uint32_t warp, std::uint32_t warps) {
      with_number_element(walk_.job.element, [&](auto element) {
        store<decltype(element)>(warp, warps);
        return 0;
      });
    });
  }

  /// Writes the exceptions of the tiles number % slices == slice, which are decoded.
  constexpr void store_exceptions(std::uint32_t slice, std::uint32_t slices, std::uint32_t warp,
                                  std::uint32_t warps) const {
    const auto* const exceptions = view_.table<JobException>(walk_.job.exceptions);
    const std::size_t width = element_bytes(walk_.job.element);
    X::lanes([&](std::size_t lane) {
      for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < walk_.job.exception_count;
           i += warps * kLanes) {
        const std::uint32_t row = exceptions[i].index / walk_.job.extents[2];
        const std::uint32_t place[kInterpAxes] = {row / walk_.job.extents[1], row % walk_.job.extents[1],
                                                  exceptions[i].index - row * walk_.job.extents[2]};
        std::uint32_t tile = 0;
        unroll<kInterpAxes>([&](auto a) { tile = tile * walk_.tiles[a] + (place[a] >> walk_.job.tile_logs[a]); });
        if (tile % slices != slice) continue;
        put_element<X>(view_.task->out, width,
                       place[0] * walk_.job.strides[0] + place[1] * walk_.job.strides[1] + place[2], exceptions[i].bits,
                       lane);
      }
    });
  }

 private:
  template <class Element>
  constexpr void store(std::uint32_t warp, std::uint32_t warps) const {
    const InterpBox box(walk_.own[0], walk_.own[1], walk_.own[2]);
    auto* const out = static_cast<typename Element::Bits*>(view_.task->out) +
                      (std::uint64_t{walk_.at[0]} << walk_.job.tile_logs[0]) * walk_.job.strides[0] +
                      (std::uint64_t{walk_.at[1]} << walk_.job.tile_logs[1]) * walk_.job.strides[1] +
                      (std::uint64_t{walk_.at[2]} << walk_.job.tile_logs[2]);
    const std::uint64_t strides[2] = {walk_.job.strides[0], walk_.job.strides[1]};
    const double unit = walk_.job.unit;
    const double base = walk_.job.base;
    X::lanes([&](std::size_t lane) {
      for (std::uint32_t n = warp * kLanes + static_cast<std::uint32_t>(lane); n < box.count(); n += warps * kLanes) {
        const auto [at] = box.place(n);
        const Word value = X::load(walk_.values + walk_.position(at[0], at[1], at[2]), lane);
        X::store(out + at[0] * strides[0] + at[1] * strides[1] + at[2], lane,
                 Element::bits(interp_number(value, unit, base)));
      }
    });
  }

  const InterpView& view_;
  InterpTileWalk<X, Word> walk_;
};

/// Decodes every `slices`-th tile of a chunk from tile `slice` on, and their exceptions. Codes and anchors are decoded.
template <class X, class Block>
constexpr void decode_interp_tiles(Block& block, const JobTask& task, std::uint32_t slice, std::uint32_t slices,
                                   InterpTileMemory& memory) {
  const InterpView view(task);
  block.all([&](std::uint32_t warp, std::uint32_t warps) { fill_interp_tables<X>(view, memory, warp, warps); });
  const auto run = [&](auto decoder) {
    for (std::uint32_t tile = slice; tile < decoder.tiles(); tile += slices) decoder.decode(block, tile);
    if (view.job->exception_count == 0) return;
    block.all([&](std::uint32_t warp, std::uint32_t warps) { decoder.store_exceptions(slice, slices, warp, warps); });
  };
  if (view.job->wide)
    run(InterpTileDecoder<X, std::int64_t>(view, memory));
  else
    run(InterpTileDecoder<X, std::int32_t>(view, memory));
}

}  // namespace quern::kernels
