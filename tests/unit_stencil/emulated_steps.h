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
  using Step = kernels::RasterEncodeResult (Lanes::*)(std::span<const std::uint8_t>, void*, const std::uint8_t*);

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
  kernels::RasterEncodeResult step(std::span<const std::uint8_t> job) {
    const auto result = (*lanes.*step_of)(job, elements.data(), special.empty() ? nullptr : special.data());
    exception_count = result.exceptions;
    return result;
  }
  Bytes work(std::uint32_t at, std::size_t bytes) const { return {lanes->work() + at, lanes->work() + at + bytes}; }
  std::vector<std::uint32_t> write_lanes(std::span<const std::uint8_t> job, std::vector<std::uint16_t>& words) {
    const auto lane_words = lanes->write_lanes(job, words);
    lane_count = static_cast<std::size_t>(
        std::count_if(lane_words.begin(), lane_words.end(), [](std::uint32_t n) { return n > 0; }));
    return lane_words;
  }
};

/// What became of chunks that were encoded on lanes and by the host.
struct StepsOutcomes {
  std::size_t coded = 0;
  std::size_t raw = 0;
  std::size_t left = 0;
  std::size_t lattices = 0;
  std::size_t many_lanes = 0;
  std::size_t exceptions = 0;

  /// Encodes a chunk in both ways: the same bytes, without races. True when lanes have coded it.
  template <class Encoding>
  bool compare_chunk(EmulatedSteps::Step step, const Coding& coding, std::uint64_t chunk, std::uint64_t seed,
                     StepsTrace& trace) {
    using quern::testing::EmulatorState;
    EmulatorState::instance().reset(seed);
    EmulatedSteps run(step, seed, coding.data().size());
    Bytes out;
    const Encoded encoded = encode_steps_with<Encoding>(run, coding, chunk, out, trace);
    EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u);
    EXPECT_EQ(EmulatorState::instance().races(), 0u);
    if (encoded == Encoded::host) {
      ++left;
      return false;
    }
    const Bytes expected = coding.encode(chunk);
    if (encoded == Encoded::raw) {
      ++raw;
      EXPECT_EQ(expected[0], static_cast<std::uint8_t>(Mode::raw));
      return false;
    }
    ++coded;
    lattices += expected[0] == static_cast<std::uint8_t>(Mode::lattice) ? 1 : 0;
    many_lanes += run.lane_count > 1 ? 1 : 0;
    exceptions += run.exception_count;
    EXPECT_EQ(out, expected);
    return true;
  }
};

/// outcomes.compare(case, seed) for cases by their numbers, until one fails.
template <class Outcomes, class CaseOf>
void compare_cases(std::size_t count, std::uint64_t first_seed, const CaseOf& case_of, Outcomes& outcomes) {
  for (std::size_t i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
    const EncodeCase& c = case_of(i);
    SCOPED_TRACE(c.name);
    outcomes.compare(c, first_seed + i);
  }
}
template <class Outcomes>
void compare_cases(const std::vector<EncodeCase>& cases, Outcomes& outcomes) {
  compare_cases(
      cases.size(), 2, [&](std::size_t i) -> const EncodeCase& { return cases[i]; }, outcomes);
}

}  // namespace quern::codec::stencil::test
