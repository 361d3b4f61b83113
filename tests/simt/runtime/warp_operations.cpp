// The collective operations of a warp: lanes wait in groups of one operation and one mask; the last one to come
// computes what every lane gets.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

#include "simt/warp_functions.h"
#include "tests/simt/runtime/grid_run.h"

namespace simt {
namespace {

constexpr const char* kNames[] = {"__syncwarp",        "__shfl_sync",       "__shfl_up_sync",    "__shfl_down_sync",
                                  "__shfl_xor_sync",   "__ballot_sync",     "__any_sync",        "__all_sync",
                                  "__match_any_sync",  "__reduce_add_sync", "__reduce_and_sync", "__reduce_or_sync",
                                  "__reduce_xor_sync", "__reduce_min_sync", "__reduce_max_sync", "__reduce_min_sync",
                                  "__reduce_max_sync"};

template <class F>
void for_each_lane(std::uint32_t mask, F&& f) {
  for (; mask != 0; mask &= mask - 1) f(static_cast<unsigned>(std::countr_zero(mask)));
}

/// The lane a shuffle reads from: its own where there is none.
unsigned source_lane(WarpOperation operation, unsigned lane, const WarpArgument& argument) {
  const unsigned width = argument.width;
  const unsigned first = lane / width * width;
  const unsigned operand = argument.operand % kWarpLanes;
  unsigned from = lane;
  switch (operation) {
    case WarpOperation::shuffle: return first + argument.operand % width;
    case WarpOperation::shuffle_up: return lane >= first + operand ? lane - operand : lane;
    case WarpOperation::shuffle_down: from = lane + operand; break;
    default: from = lane ^ operand; break;
  }
  return from < first + width ? from : lane;
}

template <class F>
std::uint64_t fold(const Warp& warp, std::uint32_t mask, F&& f) {
  const unsigned first = static_cast<unsigned>(std::countr_zero(mask));
  auto sum = static_cast<std::uint32_t>(warp.arguments[first].value);
  for_each_lane(mask & (mask - 1),
                [&](unsigned lane) { sum = f(sum, static_cast<std::uint32_t>(warp.arguments[lane].value)); });
  return sum;
}

/// Lanes of the mask whose value is not 0.
std::uint32_t ballot(const Warp& warp, std::uint32_t mask) {
  std::uint32_t out = 0;
  for_each_lane(mask,
                [&](unsigned lane) { out |= static_cast<std::uint32_t>(warp.arguments[lane].value != 0) << lane; });
  return out;
}

/// What every lane gets alike.
std::uint64_t same_result(const Warp& warp, WarpOperation operation, std::uint32_t mask) {
  const auto as_signed = [](std::uint32_t a) { return static_cast<std::int32_t>(a); };
  switch (operation) {
    case WarpOperation::ballot: return ballot(warp, mask);
    case WarpOperation::any: return ballot(warp, mask) != 0 ? 1 : 0;
    case WarpOperation::all: return ballot(warp, mask) == mask ? 1 : 0;
    case WarpOperation::add: return fold(warp, mask, [](auto a, auto b) { return a + b; });
    case WarpOperation::bit_and: return fold(warp, mask, [](auto a, auto b) { return a & b; });
    case WarpOperation::bit_or: return fold(warp, mask, [](auto a, auto b) { return a | b; });
    case WarpOperation::bit_xor: return fold(warp, mask, [](auto a, auto b) { return a ^ b; });
    case WarpOperation::min_unsigned: return fold(warp, mask, [](auto a, auto b) { return std::min(a, b); });
    case WarpOperation::max_unsigned: return fold(warp, mask, [](auto a, auto b) { return std::max(a, b); });
    case WarpOperation::min_signed:
      return fold(warp, mask, [&](auto a, auto b) { return as_signed(b) < as_signed(a) ? b : a; });
    case WarpOperation::max_signed:
      return fold(warp, mask, [&](auto a, auto b) { return as_signed(a) < as_signed(b) ? b : a; });
    default: return 0;
  }
}

void compute(GridRun& run, Warp& warp, const WarpGroup& group) {
  switch (group.operation) {
    case WarpOperation::sync: run.join_lanes(group.mask); return;
    case WarpOperation::shuffle:
    case WarpOperation::shuffle_up:
    case WarpOperation::shuffle_down:
    case WarpOperation::shuffle_xor:
      for_each_lane(group.mask, [&](unsigned lane) {
        const unsigned from = source_lane(group.operation, lane, warp.arguments[lane]);
        warp.results[lane] = (group.mask >> from & 1) != 0 ? warp.arguments[from].value : run.random().next();
      });
      return;
    case WarpOperation::match_any:
      for_each_lane(group.mask, [&](unsigned lane) {
        warp.results[lane] = 0;
        for_each_lane(group.mask, [&](unsigned other) {
          const bool same = warp.arguments[lane].value == warp.arguments[other].value;
          warp.results[lane] |= static_cast<std::uint32_t>(same) << other;
        });
      });
      return;
    default: break;
  }
  const std::uint64_t result = same_result(warp, group.operation, group.mask);
  for_each_lane(group.mask, [&](unsigned lane) { warp.results[lane] = result; });
}

/// Bits that flip before an operation is computed.
void flip_arguments(GridRun& run, Warp& warp, const WarpGroup& group) {
  pass_moment();
  if (!flips_left()) return;
  FlipReach reach = run.reach_of(*warp.cta);
  if (group.operation != WarpOperation::sync)
    for_each_lane(group.mask, [&](unsigned lane) { reach.exchanged.push_back(&warp.arguments[lane].value); });
  reach.exchanged_bits = 8u * group.bytes;
  flip_what_is_due(reach);
}

/// The group that waits at this very operation, or a new one.
unsigned join(GridRun& run, Warp& warp, const WarpGroup& call) {
  const std::uint32_t self = 1u << run.lane();
  unsigned found = warp.group_count;
  for (unsigned g = 0; g < warp.group_count; ++g) {
    const WarpGroup& group = warp.groups[g];
    if (group.operation == call.operation && group.bytes == call.bytes && group.mask == call.mask) {
      found = g;
    } else if ((group.mask & self) != 0 && (group.arrived & call.mask) != 0) {
      run.fail(std::string("diverges: it comes to ") + operation_name(call.operation) +
               " while lanes that the mask names wait for it at " + operation_name(group.operation) +
               (group.operation == call.operation ? " with another mask or type" : ""));
    }
  }
  if (found == warp.group_count) warp.groups[warp.group_count++] = call;
  return found;
}

}  // namespace

const char* operation_name(WarpOperation operation) { return kNames[static_cast<unsigned>(operation)]; }

std::uint64_t warp_operation(WarpOperation operation, unsigned mask, const WarpArgument& argument) {
  GridRun& run = *GridRun::current();
  Warp& warp = run.warp();
  const unsigned lane = run.lane();
  const std::uint32_t self = 1u << lane;
  if ((mask & self) == 0)
    run.fail(std::string(operation_name(operation)) + ": the mask does not name the calling lane");
  if ((mask & (warp.exited | ~warp.lanes)) != 0)
    run.fail(std::string(operation_name(operation)) + ": the mask names a lane that has ended");
  if ((mask & warp.at_barrier) != 0)
    run.fail(std::string("diverges: it comes to ") + operation_name(operation) +
             " while a lane that the mask names waits at the block's barrier");
  if (argument.width == 0 || argument.width > kWarpLanes || (argument.width & (argument.width - 1)) != 0)
    run.fail(std::string(operation_name(operation)) + ": the width is no power of two up to 32");
  WarpGroup& group = warp.groups[join(run, warp, {operation, argument.bytes, mask, 0})];
  warp.arguments[lane] = argument;
  group.arrived |= self;
  if (group.arrived == mask) {
    flip_arguments(run, warp, group);
    compute(run, warp, group);
    group = warp.groups[--warp.group_count];
    run.make_ready(warp, mask);
  }
  run.go_on();
  return warp.results[lane];
}

}  // namespace simt
