// A chunk that is encoded in steps, on the lanes of the emulator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tests/emulator/lane_encoding.h"
#include "tests/unit_stencil/encode_steps.h"

namespace quern::codec::stencil::test {

/// What encode_steps_with() runs, each step by `step_of` of the emulated lanes.
struct EmulatedSteps {
  using Lanes = quern::testing::EncodingOnLanes;
  using Step = kernels::RasterEncodeAnswer (Lanes::*)(std::span<const std::uint8_t>, void*, const std::uint8_t*);

  Step step_of;
  std::uint32_t warps = 1;
  bool watch = false;
  std::unique_ptr<Lanes> lanes;
  Bytes elements;
  Bytes special;
  std::size_t exception_count = 0;
  std::size_t lane_count = 0;

  /// With a number of warps that depends on the seed; arrays of few bytes are watched for races.
  EmulatedSteps(Step of, std::uint64_t seed, std::size_t bytes)
      : step_of(of), warps(1 + static_cast<std::uint32_t>(seed % 5)), watch(bytes < 200000) {}

  void open(std::uint32_t work_bytes, const Bytes& sent, const Bytes& classes) {
    lanes = std::make_unique<Lanes>(work_bytes, warps, watch);
    elements = sent;
    special = classes;
  }
  kernels::RasterEncodeAnswer step(std::span<const std::uint8_t> program) {
    const auto answer = (*lanes.*step_of)(program, elements.data(), special.empty() ? nullptr : special.data());
    exception_count = answer.exceptions;
    return answer;
  }
  Bytes work(std::uint32_t at, std::size_t bytes) const { return {lanes->work() + at, lanes->work() + at + bytes}; }
  std::vector<std::uint32_t> write_lanes(std::span<const std::uint8_t> program, std::vector<std::uint16_t>& words) {
    const auto lane_words = lanes->write_lanes(program, words);
    lane_count = static_cast<std::size_t>(
        std::count_if(lane_words.begin(), lane_words.end(), [](std::uint32_t n) { return n > 0; }));
    return lane_words;
  }
};

}  // namespace quern::codec::stencil::test
