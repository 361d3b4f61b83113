// The rANS coder of short planes: two states that take turns, so that what a state takes at the end weighs little.
// Otherwise as the coder of 32 lanes (kernels/entropy/rans_lanes.h).
#pragma once

#include "kernels/tensor/cpu/planes.h"

namespace quern::codec::tensor {

inline constexpr std::size_t kFewStates = 2;
/// Planes of at most so many symbols are coded with few states.
inline constexpr std::size_t kMostFewSymbols = std::size_t{1} << 13;

/// Codes symbols last to first into the job's first part, of whose states kFewStates are used.
inline void encode_few(const kernels::LaneEncodeJob& job) {
  using kernels::LaneContext;
  kernels::LaneSink& sink = job.parts[0];
  for (std::size_t i = job.count; i-- > 0;) {
    const std::size_t context = job.source == LaneContext::none       ? 0
                                : job.source == LaneContext::previous ? job.contexts[i / kernels::kRansLanes]
                                                                      : job.contexts[i];
    const kernels::LaneEncodeTable& table = job.tables[context];
    const std::uint8_t symbol = job.symbols[i];
    kernels::lane_encode(sink.states[i % kFewStates], table.reciprocal[symbol], table.rest[symbol], sink.words);
  }
}

/// False on bytes that no encoder writes, `symbols` being partly written then.
inline bool decode_few(const kernels::LaneDecodeJob& job) {
  using kernels::LaneContext;
  kernels::LaneSource& source = job.parts[0];
  const kernels::LaneDecodeTable* table = job.tables;
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < job.count; ++i) {
    if (job.source == LaneContext::given) table = job.tables + job.contexts[i];
    if (job.source == LaneContext::previous && i % kernels::kRansLanes == 0) {
      table = job.tables;
      for (std::size_t t = 0; t + 1 < kernels::kMostLaneContexts; ++t) table += sum >= job.thresholds[t];
      sum = 0;
    }
    std::uint32_t& state = source.states[i % kFewStates];
    job.symbols[i] = kernels::lane_decode(state, *table);
    sum += job.symbols[i];
    if (state >= kernels::kLaneFloor) continue;
    if (source.end - source.at < 2) return false;
    state = state << 16 | static_cast<std::uint32_t>(source.at[0]) | static_cast<std::uint32_t>(source.at[1]) << 8;
    source.at += 2;
  }
  for (std::size_t s = 0; s < kFewStates; ++s)
    if (source.states[s] != kernels::kLaneFloor) return false;
  return source.at == source.end;
}

}  // namespace quern::codec::tensor
