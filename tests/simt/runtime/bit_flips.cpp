#include "tests/simt/runtime/bit_flips.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

namespace simt {
namespace {

std::uint64_t passed = 0;
std::vector<std::uint64_t> launches;
std::vector<BitFlip> waiting;  ///< the next one last
std::span<unsigned char> uploaded;

void flip_bit_of(std::span<unsigned char> bytes, std::uint64_t choice) {
  unsigned char& byte = bytes[choice / 8 % bytes.size()];
  byte = static_cast<unsigned char>(byte ^ (1u << choice % 8));
}

/// Of a byte that the CTA has written; false when there is none yet.
bool flip_shared(const FlipReach& reach, std::uint64_t choice) {
  std::vector<std::size_t> written;
  for (std::size_t i = 0; i < reach.shared_bytes; ++i)
    if (reach.shared[i] != reach.shared_before[i]) written.push_back(i);
  if (written.empty()) return false;
  flip_bit_of({reach.shared + written[choice / 8 % written.size()], 1}, choice % 8);
  return true;
}

bool flip(const BitFlip& flip, const FlipReach& reach) {
  switch (flip.where) {
    case BitFlip::Where::memory: *flip.at = static_cast<unsigned char>(*flip.at ^ (1u << flip.choice % 8)); return true;
    case BitFlip::Where::uploaded:
      if (uploaded.empty()) return false;
      flip_bit_of(uploaded, flip.choice);
      return true;
    case BitFlip::Where::shared: return flip_shared(reach, flip.choice);
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
  uploaded = {};
  waiting = std::move(flips);
  std::sort(waiting.begin(), waiting.end(), [](const BitFlip& a, const BitFlip& b) {
    return std::tie(a.launch, a.moment) > std::tie(b.launch, b.moment);
  });
}

std::uint64_t moments() { return passed; }
const std::vector<std::uint64_t>& launch_moments() { return launches; }

bool flips_left() { return !waiting.empty(); }

void pass_moment() { ++passed; }

void note_upload(unsigned char* to, std::size_t bytes) { uploaded = {to, bytes}; }

void pass_launch() {
  launches.push_back(passed);
  pass_moment();
}

void flip_what_is_due(const FlipReach& reach) {
  const auto is_due = [](const BitFlip& flip) { return flip.moment < passed && flip.launch <= launches.size(); };
  while (!waiting.empty() && is_due(waiting.back()) && flip(waiting.back(), reach)) waiting.pop_back();
}

}  // namespace simt
