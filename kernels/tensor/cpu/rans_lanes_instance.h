// The rANS coder of byte planes, of one instruction set: loops over parts side by side, 32 lanes each. Where vectors
// have no code of their own, and at the ends of parts, lanes take turns.
#pragma once

#include <cstring>
#include <utility>

#include "kernels/tensor/cpu/planes.h"
#include "kernels/tensor/cpu/rans_vectors.h"

namespace quern::kernels {

template <class Isa>
struct RansLanes {
  using Vectors = RansVectors<Isa>;

  [[gnu::always_inline]] static std::uint16_t group_sum(const std::uint8_t* symbols) {
    unsigned sum = 0;
    for (std::size_t i = 0; i < kRansLanes; ++i) sum += symbols[i];
    return static_cast<std::uint16_t>(sum);
  }

  // ---- encoding

  template <LaneContext Source>
  static void encode_group(const LaneEncodeJob& job, LaneSink& sink, std::size_t group, std::size_t lanes) {
    const std::size_t first = group * kRansLanes;
    for (std::size_t lane = lanes; lane-- > 0;) {
      const std::size_t context = Source == LaneContext::none       ? 0
                                  : Source == LaneContext::previous ? job.contexts[group]
                                                                    : job.contexts[first + lane];
      const LaneEncodeTable& table = job.tables[context];
      const std::uint8_t symbol = job.symbols[first + lane];
      lane_encode(sink.states[lane], table.reciprocal[symbol], table.rest[symbol], sink.words);
    }
  }

  template <LaneContext Source, std::size_t Parts>
  static void encode_parts(const LaneEncodeJob& job) {
    const std::size_t groups = lane_part_groups(job.count);
    const std::size_t last = Parts - 1;
    const std::size_t all = job.count / kRansLanes;
    if (job.count % kRansLanes != 0) encode_group<Source>(job, job.parts[last], all, job.count % kRansLanes);
    for (std::size_t group = all; group-- > Parts * groups;)
      encode_group<Source>(job, job.parts[last], group, kRansLanes);
    if constexpr (Vectors::kAvailable) {
      Vectors::template encode<Source, Parts>(job, groups);
    } else {
      for (std::size_t part = 0; part < Parts; ++part)
        for (std::size_t group = groups; group-- > 0;)
          encode_group<Source>(job, job.parts[part], part * groups + group, kRansLanes);
    }
  }

  // ---- decoding

  static std::size_t context_of(const LaneDecodeJob& job, std::uint32_t sum) {
    std::size_t context = 0;
    for (std::size_t t = 0; t + 1 < kMostLaneContexts; ++t) context += sum >= job.thresholds[t];
    return context;
  }

  template <LaneContext Source>
  static bool decode_group(const LaneDecodeJob& job, LaneSource& source, std::uint32_t& sum, std::size_t group,
                           std::size_t lanes) {
    const std::size_t first = group * kRansLanes;
    const LaneDecodeTable* table = job.tables;
    if constexpr (Source == LaneContext::previous) table += context_of(job, sum);
    sum = 0;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      if constexpr (Source == LaneContext::given) table = job.tables + job.contexts[first + lane];
      std::uint32_t& state = source.states[lane];
      const std::uint8_t symbol = lane_decode(state, *table);
      job.symbols[first + lane] = symbol;
      sum += symbol;
      if (state < kLaneFloor) {
        if (source.end - source.at < 2) return false;
        state = state << 16 | static_cast<std::uint32_t>(source.at[0]) | static_cast<std::uint32_t>(source.at[1]) << 8;
        source.at += 2;
      }
    }
    return true;
  }

  template <LaneContext Source, std::size_t Parts>
  static bool decode_parts(const LaneDecodeJob& job) {
    const std::size_t groups = lane_part_groups(job.count);
    const std::size_t all = job.count / kRansLanes;
    std::uint32_t sums[Parts] = {};
    std::size_t begin = 0;
    if constexpr (Vectors::kAvailable) begin = Vectors::template decode<Source, Parts>(job, groups, sums);
    for (std::size_t part = 0; part < Parts; ++part) {
      LaneSource& source = job.parts[part];
      // Vectors read words of the next part when bytes are damaged.
      if (source.at > source.end) return false;
      for (std::size_t group = begin; group < groups; ++group)
        if (!decode_group<Source>(job, source, sums[part], part * groups + group, kRansLanes)) return false;
    }
    LaneSource& last = job.parts[Parts - 1];
    for (std::size_t group = Parts * groups; group < all; ++group)
      if (!decode_group<Source>(job, last, sums[Parts - 1], group, kRansLanes)) return false;
    if (job.count % kRansLanes != 0 && !decode_group<Source>(job, last, sums[Parts - 1], all, job.count % kRansLanes))
      return false;
    for (std::size_t part = 0; part < Parts; ++part) {
      const LaneSource& source = job.parts[part];
      if (source.at != source.end) return false;
      for (const std::uint32_t state : source.states)
        if (state != kLaneFloor) return false;
    }
    return true;
  }

  // ---- choice of the loop

  template <LaneContext Source>
  static void encode_with(const LaneEncodeJob& job) {
    switch (lane_parts(job.count)) {
      case 1: return encode_parts<Source, 1>(job);
      case 2: return encode_parts<Source, 2>(job);
      default: return encode_parts<Source, kMostLaneParts>(job);
    }
  }
  static void encode(const LaneEncodeJob& job) {
    switch (job.source) {
      case LaneContext::none: return encode_with<LaneContext::none>(job);
      case LaneContext::previous: return encode_with<LaneContext::previous>(job);
      case LaneContext::given: return encode_with<LaneContext::given>(job);
    }
  }
  template <LaneContext Source>
  static bool decode_with(const LaneDecodeJob& job) {
    switch (lane_parts(job.count)) {
      case 1: return decode_parts<Source, 1>(job);
      case 2: return decode_parts<Source, 2>(job);
      default: return decode_parts<Source, kMostLaneParts>(job);
    }
  }
  static bool decode(const LaneDecodeJob& job) {
    switch (job.source) {
      case LaneContext::none: return decode_with<LaneContext::none>(job);
      case LaneContext::previous: return decode_with<LaneContext::previous>(job);
      case LaneContext::given: return decode_with<LaneContext::given>(job);
    }
    return false;
  }
};

}  // namespace quern::kernels
