// The codes of tiles, and which elements miss the bound, by the warps of a thread block. The points of a tile begin as
// what they are to become; class after class the values that decoders have take their place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/lanes.h"
#include "kernels/common/number_elements.h"
#include "kernels/common/unroll.h"
#include "kernels/interp/interp_encode_job.h"
#include "kernels/interp/warp/tile_walk.h"

namespace quern::kernels {

template <class X, class Word>
class InterpTileEncoder {
 public:
  /// A template, as constexpr functions else may not cast bytes.
  template <class Task>
  constexpr InterpTileEncoder(const Task& task, const InterpView& view, InterpTileMemory& memory)
      : view_(view),
        job_(*reinterpret_cast<const InterpEncodeJob*>(task.job)),
        elements_(task.elements),
        special_(job_.masked ? task.special : nullptr),
        missed_(reinterpret_cast<std::uint32_t*>(task.work + job_.missed)),
        walk_(view, memory) {}

  constexpr std::uint32_t tiles() const { return walk_.count(); }

  /// Tile `number` in C order.
  template <class Block>
  constexpr void encode(Block& block, std::uint32_t number) {
    walk_.go_to(number);
    first_ = 0;
    unroll<kInterpAxes>(
        [&](auto a) { first_ = first_ * walk_.job.extents[a] + (walk_.at[a] << walk_.job.tile_logs[a]); });
    block.all([&](std::uint32_t warp, std::uint32_t warps) {
      with_number_element(walk_.job.element, [&](auto element) {
        take_targets<decltype(element)>(warp, warps);
        return 0;
      });
    });
    block.all([&](std::uint32_t warp, std::uint32_t /*warps*/) {
      if (warp == 0) walk_.take_anchors(view_.table<Word>(walk_.job.anchors));
    });
    walk_.for_classes(block, [&](const InterpClassPlan& plan, const InterpLevelPlan& level, std::uint32_t warp,
                                 std::uint32_t warps) { code_class(plan, level, warp, warps); });
    block.all([&](std::uint32_t warp, std::uint32_t warps) {
      with_number_element(walk_.job.element, [&](auto element) {
        find_missed<decltype(element)>(number, warp, warps);
        return 0;
      });
    });
  }

 private:
  /// The number of an element in the chunk, by its place in the tile.
  [[gnu::always_inline]] constexpr std::uint32_t element_at(std::uint32_t z, std::uint32_t y, std::uint32_t x) const {
    return first_ + (z * walk_.job.extents[1] + y) * walk_.job.extents[2] + x;
  }

  template <class Element>
  constexpr void take_targets(std::uint32_t warp, std::uint32_t warps) const {
    const InterpBox box(walk_.reach[0], walk_.reach[1], walk_.reach[2]);
    const auto* const in = static_cast<const typename Element::Bits*>(elements_);
    const double base = walk_.job.base;
    const double inverse = job_.inverse;
    const double most = job_.most;
    X::lanes([&](std::size_t lane) {
      for (std::uint32_t n = warp * kLanes + static_cast<std::uint32_t>(lane); n < box.count(); n += warps * kLanes) {
        const auto [at] = box.place(n);
        const double number = Element::value(X::load(in + element_at(at[0], at[1], at[2]), lane));
        X::store(walk_.values + n, lane, interp_units<Word>(number, base, inverse, most));
      }
    });
  }

  constexpr void code_class(const InterpClassPlan& plan, const InterpLevelPlan& level, std::uint32_t warp,
                            std::uint32_t warps) const {
    std::int32_t* const codes = view_.codes + plan.first;
    const unsigned fraction_bits = walk_.job.fraction_bits;
    Word* const values = walk_.values;
    const std::uint8_t* const special = special_;
    const std::uint32_t sides[kInterpAxes] = {1u << walk_.job.tile_logs[0], 1u << walk_.job.tile_logs[1],
                                              1u << walk_.job.tile_logs[2]};
    walk_.for_points(
        plan, level, warp, warps,
        [&](const InterpTilePoint& point, std::size_t lane) {
          return special != nullptr &&
                 X::load(special + element_at(point.place[0], point.place[1], point.place[2]), lane) != 0;
        },
        [&](const InterpTilePoint& point, Word predicted, bool is_special, std::size_t lane) {
          const Word target = X::load(values + point.at, lane);
          const std::int32_t code = interp_kept_code(target, predicted, is_special, fraction_bits);
          X::store(values + point.at, lane, interp_value(predicted, code, fraction_bits));
          // The codes of its end are those of the tiles behind it.
          bool own = true;
          unroll<kInterpAxes>([&](auto a) { own = own && point.place[a] < sides[a]; });
          if (own) X::store(codes + point.code, lane, code);
        });
  }

  template <class Element>
  constexpr void find_missed(std::uint32_t number, std::uint32_t warp, std::uint32_t warps) const {
    const InterpBox box(walk_.own[0], walk_.own[1], walk_.own[2]);
    const auto* const in = static_cast<const typename Element::Bits*>(elements_);
    const double unit = walk_.job.unit;
    const double base = walk_.job.base;
    const double bound = job_.bound;
    const std::uint32_t words = job_.missed_words;
    std::uint32_t* const out = missed_ + number * words;
    for (std::uint32_t word = warp; word < words; word += warps) {
      typename X::template vec<bool> missed;
      X::lanes([&](std::size_t lane) {
        const std::uint32_t n = word * kLanes + static_cast<std::uint32_t>(lane);
        X::set(missed, lane, false);
        if (n >= box.count()) return;
        const auto [at] = box.place(n);
        const std::uint32_t element = element_at(at[0], at[1], at[2]);
        if (special_ != nullptr && X::load(special_ + element, lane) != 0) return;
        const Word value = X::load(walk_.values + walk_.position(at[0], at[1], at[2]), lane);
        const auto bits = X::load(in + element, lane);
        const auto back = Element::bits(interp_number(value, unit, base));
        X::set(missed, lane, !keeps_bound<Element>(bits, back, bound));
      });
      const std::uint32_t flags = X::ballot(missed);
      X::lanes([&](std::size_t lane) {
        if (lane == 0) X::store(out + word, lane, flags);
      });
    }
  }

  const InterpView& view_;
  const InterpEncodeJob& job_;
  const void* elements_;
  const std::uint8_t* special_;  ///< null: no element is
  std::uint32_t* missed_;
  InterpTileWalk<X, Word> walk_;
  std::uint32_t first_ = 0;  ///< number of the tile's first element in the chunk
};

/// Encodes every `slices`-th tile of a chunk from tile `slice` on.
template <class X, class Block>
constexpr void encode_interp_tiles(Block& block, const EncodeTask& task, std::uint32_t slice, std::uint32_t slices,
                                   InterpTileMemory& memory) {
  const JobTask chunk = interp_chunk_task(task);
  const InterpView view(chunk);
  block.all([&](std::uint32_t warp, std::uint32_t warps) { fill_interp_tables<X>(view, memory, warp, warps); });
  const auto run = [&](auto encoder) {
    for (std::uint32_t tile = slice; tile < encoder.tiles(); tile += slices) encoder.encode(block, tile);
  };
  if (view.job->wide)
    run(InterpTileEncoder<X, std::int64_t>(task, view, memory));
  else
    run(InterpTileEncoder<X, std::int32_t>(task, view, memory));
}

}  // namespace quern::kernels
