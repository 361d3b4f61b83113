#include "tests/simt/runtime/bit_flips.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace simt {
namespace {

std::uint64_t passed = 0;
std::vector<std::uint64_t> launches;
std::vector<BitFlip> waiting;  ///< the next one last

bool flip(const BitFlip& flip, const FlipReach& reach) {
  switch (flip.where) {
    case BitFlip::Where::memory: *flip.at = static_cast<unsigned char>(*flip.at ^ (1u << flip.choice % 8)); return true;
    case BitFlip::Where::shared: {
      if (reach.shared_bytes == 0) return false;
      unsigned char& byte = reach.shared[flip.choice / 8 % reach.shared_bytes];
      byte = static_cast<unsigned char>(byte ^ (1u << flip.choice % 8));
      return true;
    }
    case BitFlip::Where::exchanged:
      if (reach.exchanged.empty()) return false;
      *reach.exchanged[flip.choice / 64 % reach.exchanged.size()] ^= UINT64_C(1) << flip.choice % reach.exchanged_bits;
      return true;
  }
  return true;
}

}  // namespace

void plan_flips(std::vector<BitFlip> flips) {
  passed = 0;
  launches.clear();
  waiting = std::move(flips);
  std::sort(waiting.begin(), waiting.end(), [](const BitFlip& a, const BitFlip& b) {
    return std::tie(a.launch, a.moment) > std::tie(b.launch, b.moment);
  });
}

std::uint64_t moments() { return passed; }
const std::vector<std::uint64_t>& launch_moments() { return launches; }

bool flips_left() { return !waiting.empty(); }

void pass_moment() { ++passed; }

void pass_launch() {
  launches.push_back(passed);
  pass_moment();
}

void flip_what_is_due(const FlipReach& reach) {
  const auto is_due = [](const BitFlip& flip) { return flip.moment < passed && flip.launch <= launches.size(); };
  while (!waiting.empty() && is_due(waiting.back()) && flip(waiting.back(), reach)) waiting.pop_back();
}

}  // namespace simt
