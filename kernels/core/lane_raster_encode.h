// A chunk in raster order, encoded by the warps of a CTA up to its symbols: all warps turn a plane's elements into
// targets and sum up what its points get from planes before, then the lanes of one warp walk its rows side by side,
// each four columns behind the one before, as decoders do; when all codes are known, all warps look for exceptions and
// count symbols. Every number is that of codecs/stencil/chunk_encode.cpp.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/core/bits.h"
#include "kernels/core/lane_level_rans.h"
#include "kernels/core/lane_raster_grid.h"
#include "kernels/core/lane_rows.h"
#include "kernels/core/raster_encode_program.h"
#include "kernels/core/residual_tokens.h"
#include "kernels/core/stencil_elements.h"

namespace quern::kernels {

/// What the warps of a chunk share.
struct RasterEncodeShared {
  std::uint32_t counts[kContextLevels][kResidualTokens];
  std::uint32_t exceptions[kMostTeamWarps];  ///< that each warp has found
  std::uint32_t wild[kMostTeamWarps];        ///< not 0: a sum or value was too large
};

/// A chunk under way. The same in all lanes.
struct RasterCodes {
  const EncodeTask* task = nullptr;
  const RasterEncodeProgram* program = nullptr;
  RasterGrid grid;
  std::int64_t* targets = nullptr;
  std::int32_t* codes = nullptr;
  std::uint16_t* symbols = nullptr;
  std::uint32_t* exception_list = nullptr;

  /// A template, as constexpr functions else may not cast bytes.
  template <class Task>
  constexpr explicit RasterCodes(const Task& of)
      : task(&of),
        program(reinterpret_cast<const RasterEncodeProgram*>(of.program)),
        grid(of),
        targets(reinterpret_cast<std::int64_t*>(of.work + program->targets)),
        codes(reinterpret_cast<std::int32_t*>(of.work + program->codes)),
        symbols(reinterpret_cast<std::uint16_t*>(of.work + program->symbols)),
        exception_list(reinterpret_cast<std::uint32_t*>(of.work + program->exception_list)) {}

  [[gnu::always_inline]] constexpr std::uint32_t plane_elems() const {
    return program->raster.rows * program->raster.columns;
  }
  [[gnu::always_inline]] constexpr std::uint32_t elems() const { return program->raster.planes * plane_elems(); }

  /// Bits of an element by its number in C order.
  template <class X>
  [[gnu::always_inline]] constexpr std::uint64_t element(std::uint32_t index, std::size_t lane) const {
    const RasterProgram& raster = program->raster;
    const std::uint32_t n = index / raster.columns;
    const std::uint64_t at =
        n / raster.rows * raster.plane_stride + n % raster.rows * raster.row_stride + index % raster.columns;
    switch (element_bytes(raster.element)) {
      case 1: return X::load(static_cast<const std::uint8_t*>(task->elements) + at, lane);
      case 2: return X::load(static_cast<const std::uint16_t*>(task->elements) + at, lane);
      case 4: return X::load(static_cast<const std::uint32_t*>(task->elements) + at, lane);
      default: return X::load(static_cast<const std::uint64_t*>(task->elements) + at, lane);
    }
  }
  template <class X>
  [[gnu::always_inline]] constexpr bool special(std::uint32_t index, std::size_t lane) const {
    const RasterProgram& raster = program->raster;
    if (!raster.masked) return false;
    const std::uint32_t n = index / raster.columns;
    return X::load(task->special + (n / raster.rows * raster.special_plane_stride +
                                    n % raster.rows * raster.special_row_stride + index % raster.columns),
                   lane) != 0;
  }
};

/// A plane's elements in units, as the nearest integers; 0 for what is not finite.
template <class X>
constexpr void set_raster_targets(const RasterCodes& codes, std::uint32_t plane, std::uint32_t warp,
                                  std::uint32_t warps) {
  const RasterProgram& raster = codes.program->raster;
  const std::uint32_t first = plane * codes.plane_elems();
  X::lanes([&](std::size_t lane) {
    for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < codes.plane_elems();
         i += warps * kLanes) {
      const std::uint64_t bits = codes.template element<X>(first + i, lane);
      const double original = with_stencil_element(raster.element, [&](auto type) -> double {
        using Type = decltype(type);
        return Type::value(static_cast<typename Type::Bits>(bits));
      });
      constexpr double kMost = 0x1p44;
      const double v = (original - raster.base) * codes.program->inverse;
      X::store(codes.targets + i, lane, whole_number(v > -kMost && v < kMost ? v : 0));
    }
  });
}

/// The rows of a plane through the closed loop, by one warp.
template <class X>
class RasterCodeWalk {
 public:
  constexpr RasterCodeWalk(const RasterCodes& codes, std::uint32_t plane) : codes_(codes), plane_(plane) {}

  /// Returns whether a sum or a value was too large.
  constexpr bool run() {
    const RasterProgram& raster = codes_.program->raster;
    X::lanes([&](std::size_t lane) { X::set(wild_, lane, false); });
    walk_rows<X>({raster.rows, raster.columns, 0, kLanes - 1},
                 [&](std::uint32_t row, std::uint32_t x, std::size_t lane) { code(row, x, lane); });
    return X::any(wild_);
  }

 private:
  [[gnu::always_inline]] constexpr void code(std::uint32_t row, std::uint32_t x, std::size_t lane) {
    const RasterGrid& grid = codes_.grid;
    const RasterProgram& raster = codes_.program->raster;
    if (x == 0) near_.start_row(grid, plane_, row, lane);
    const std::uint32_t in_plane = row * raster.columns + x;
    const std::uint32_t index = plane_ * codes_.plane_elems() + in_plane;
    const std::int64_t predicted = near_.predict(grid, plane_, row, x, wild_, lane);
    std::int64_t value = near_.last(lane);
    std::int64_t code = 0;
    if (!codes_.template special<X>(index, lane)) {
      const std::int64_t half = (std::int64_t{1} << raster.fraction_bits) >> 1;
      const auto left =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(X::load(codes_.targets + in_plane, lane) + half) -
                                    static_cast<std::uint64_t>(predicted));
      constexpr std::int64_t kMost = kMaxMagnitude;
      code = left >> raster.fraction_bits;
      code = code > kMost ? kMost : code < -kMost ? -kMost : code;
      value = static_cast<std::int64_t>(static_cast<std::uint64_t>(predicted) +
                                        (static_cast<std::uint64_t>(code) << raster.fraction_bits));
    }
    near_.push(value, lane);
    if (value >= codes_.program->most || value <= -codes_.program->most) X::set(wild_, lane, true);
    // As decoders keep them, though such a chunk is left to the host.
    const auto kept = static_cast<double>(static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << 11) >> 11);
    X::store(grid.values + index, lane, kept);
    X::store(codes_.codes + index, lane, static_cast<std::int32_t>(code));
    if (raster.mean && raster.planes == 1) next_row_mean<X>(grid, row, x, kept, lane);
  }

  const RasterCodes& codes_;
  std::uint32_t plane_;
  typename X::template vec<bool> wild_;
  RasterNear<X> near_;
};

/// Elements of a warp: a run of blocks of kLanes each, so that what warps find is in order.
struct WarpRun {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  constexpr WarpRun(std::uint32_t elems, std::uint32_t warp, std::uint32_t warps) {
    const std::uint32_t blocks = (elems + kLanes - 1) / kLanes;
    const std::uint32_t share = (blocks + warps - 1) / warps * kLanes;
    begin = warp * share < elems ? warp * share : elems;
    end = begin + share < elems ? begin + share : elems;
  }
};

/// How many of a warp's elements miss the bound. Which they are is left, a bit for each lane, where the first value of
/// each block was: values are not needed any more.
template <class X>
constexpr void count_raster_exceptions(const RasterCodes& codes, std::uint32_t warp, std::uint32_t warps,
                                       RasterEncodeShared& shared) {
  const RasterEncodeProgram& program = *codes.program;
  const WarpRun run(codes.elems(), warp, warps);
  std::uint32_t found = 0;
  for (std::uint32_t base = run.begin; base < run.end; base += kLanes) {
    typename X::template vec<bool> missed;
    X::lanes([&](std::size_t lane) {
      const std::uint32_t i = base + static_cast<std::uint32_t>(lane);
      X::set(missed, lane, false);
      if (i >= run.end || codes.template special<X>(i, lane)) return;
      const std::uint64_t bits = codes.template element<X>(i, lane);
      const double number = X::load(codes.grid.values + i, lane) * program.raster.unit + program.raster.base;
      X::set(missed, lane, with_stencil_element(program.raster.element, [&](auto type) -> bool {
               using Type = decltype(type);
               return !keeps_bound<Type>(static_cast<typename Type::Bits>(bits), Type::bits(number), program.bound);
             }));
    });
    const std::uint32_t flags = X::ballot(missed);
    X::sync();
    X::lanes([&](std::size_t lane) {
      if (lane == 0) X::store(codes.grid.values + base, lane, std::bit_cast<double>(std::uint64_t{flags}));
    });
    found += popcount(flags);
  }
  X::lanes([&](std::size_t lane) {
    if (lane == 0) X::store(shared.exceptions + warp, lane, found);
  });
}

/// Their indices in C order, as far as there is room.
template <class X>
constexpr void list_raster_exceptions(const RasterCodes& codes, std::uint32_t warp, std::uint32_t warps,
                                      const RasterEncodeShared& shared) {
  if (X::load_same(shared.exceptions + warp) == 0) return;
  const WarpRun run(codes.elems(), warp, warps);
  std::uint32_t at = 0;
  for (std::uint32_t w = 0; w < warp; ++w) at += X::load_same(shared.exceptions + w);
  for (std::uint32_t base = run.begin; base < run.end; base += kLanes) {
    const auto flags = static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(X::load_same(codes.grid.values + base)));
    X::lanes([&](std::size_t lane) {
      if ((flags >> lane & 1) == 0) return;
      const std::uint32_t to = at + popcount(flags & ((1u << lane) - 1));
      if (to < codes.program->exceptions)
        X::store(codes.exception_list + to, lane, base + static_cast<std::uint32_t>(lane));
    });
    at += popcount(flags);
  }
}

/// Magnitude, as contexts count it, of the code at a tap; 0 beyond the chunk.
template <class X>
[[gnu::always_inline]] constexpr std::uint32_t raster_code_magnitude(const RasterCodes& codes, std::int32_t plane,
                                                                     std::int32_t row, std::int32_t column,
                                                                     std::size_t lane) {
  const RasterProgram& raster = codes.program->raster;
  if (plane < 0 || row < 0 || row >= static_cast<std::int32_t>(raster.rows) || column < 0 ||
      column >= static_cast<std::int32_t>(raster.columns))
    return 0;
  const std::size_t place =
      (static_cast<std::size_t>(plane) * raster.rows + static_cast<std::size_t>(row)) * raster.columns +
      static_cast<std::size_t>(column);
  const std::int32_t code = X::load(codes.codes + place, lane);
  const auto size = static_cast<std::uint32_t>(code < 0 ? -code : code);
  return size < kMostContextMagnitude ? size : std::uint32_t{kMostContextMagnitude};
}

/// Symbols of all elements, and how often each occurs.
template <class X>
constexpr void set_raster_symbols(const RasterCodes& codes, std::uint32_t warp, std::uint32_t warps,
                                  RasterEncodeShared& shared) {
  const RasterProgram& raster = codes.program->raster;
  X::lanes([&](std::size_t lane) {
    for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < codes.elems(); i += warps * kLanes) {
      if (codes.template special<X>(i, lane)) {
        X::store(codes.symbols + i, lane, std::uint16_t{kNoSymbol});
        continue;
      }
      const auto plane = static_cast<std::int32_t>(i / codes.plane_elems());
      const auto row = static_cast<std::int32_t>(i / raster.columns % raster.rows);
      const auto x = static_cast<std::int32_t>(i % raster.columns);
      std::uint32_t context = raster.context_constant;
      const auto add_list = [&](const RasterList& list) {
        rolled(list.first, list.first + list.count, [&](unsigned t) {
          const RasterTap<std::uint32_t>& tap = codes.grid.context_taps[t];
          context +=
              tap.weight * raster_code_magnitude<X>(codes, plane + tap.plane, row + tap.row, x + tap.column, lane);
        });
      };
      add_list(raster.context_before);
      add_list(raster.context_rows);
      unroll<2>([&](auto t) {
        constexpr auto kBack = static_cast<std::int32_t>(decltype(t)::value) + 1;
        context += raster.near_context[t] * raster_code_magnitude<X>(codes, plane, row, x - kBack, lane);
      });
      const std::int32_t code = X::load(codes.codes + i, lane);
      const std::uint32_t level = context_level(context);
      const unsigned token = token_of(static_cast<std::uint32_t>(code < 0 ? -code : code));
      X::store(codes.symbols + i, lane, static_cast<std::uint16_t>(level * kTokenPlaces + token));
      X::add_to(&shared.counts[level][token], lane, std::uint32_t{1});
    }
  });
}

template <class X>
constexpr void clear_raster_shared(std::uint32_t warp, std::uint32_t warps, RasterEncodeShared& shared) {
  X::lanes([&](std::size_t lane) {
    for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < kContextLevels * kResidualTokens;
         i += warps * kLanes)
      X::store(&shared.counts[i / kResidualTokens][i % kResidualTokens], lane, std::uint32_t{0});
    if (lane == 0) X::store(shared.wild + warp, lane, std::uint32_t{0});
  });
}

template <class X>
constexpr void store_raster_answer(const RasterCodes& codes, std::uint32_t warp, std::uint32_t warps, bool wild,
                                   const RasterEncodeShared& shared) {
  auto& answer = *static_cast<RasterEncodeAnswer*>(codes.task->answer);
  X::lanes([&](std::size_t lane) {
    for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < kContextLevels * kResidualTokens;
         i += warps * kLanes)
      X::store(&answer.counts[i / kResidualTokens][i % kResidualTokens], lane,
               X::load(&shared.counts[i / kResidualTokens][i % kResidualTokens], lane));
    if (warp != 0 || lane != 0) return;
    std::uint32_t exceptions = 0;
    bool left = wild;
    for (std::uint32_t w = 0; w < warps; ++w) {
      exceptions += X::load(shared.exceptions + w, lane);
      left = left || X::load(shared.wild + w, lane) != 0;
    }
    X::store(&answer.exceptions, lane, exceptions);
    X::store(&answer.left, lane, left || exceptions > codes.program->exceptions ? 1u : 0u);
  });
}

/// Encodes a chunk up to its symbols.
template <class X, class Team>
constexpr void encode_raster_chunk(Team& team, const EncodeTask& task, RasterEncodeShared& shared) {
  const RasterCodes codes(task);
  const RasterProgram& raster = codes.program->raster;
  team.all([&](std::uint32_t warp, std::uint32_t warps) { clear_raster_shared<X>(warp, warps, shared); });
  bool wild = false;  // of the first warp, which writes it
  for (std::uint32_t plane = 0; plane < raster.planes; ++plane) {
    if (raster.planes > 1) {
      if (raster.mean && plane > 0)
        team.all(
            [&](std::uint32_t warp, std::uint32_t warps) { update_raster_mean<X>(codes.grid, plane, warp, warps); });
      team.all([&](std::uint32_t warp, std::uint32_t warps) {
        set_raster_targets<X>(codes, plane, warp, warps);
        sum_planes_before<X, false>(codes.grid, plane, warp, warps, shared.wild);
      });
    } else {
      team.all([&](std::uint32_t warp, std::uint32_t warps) { set_raster_targets<X>(codes, plane, warp, warps); });
    }
    team.first([&] { wild = RasterCodeWalk<X>(codes, plane).run() || wild; });
  }
  team.all([&](std::uint32_t warp, std::uint32_t warps) {
    count_raster_exceptions<X>(codes, warp, warps, shared);
    set_raster_symbols<X>(codes, warp, warps, shared);
  });
  team.all([&](std::uint32_t warp, std::uint32_t warps) {
    list_raster_exceptions<X>(codes, warp, warps, shared);
    store_raster_answer<X>(codes, warp, warps, wild, shared);
  });
}

}  // namespace quern::kernels
