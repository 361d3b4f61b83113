// Makes kernels/mask/levels/constants.h: the counts that masks coded by levels begin with. usage: train_levels >
// constants.h
//
// It counts what each context is followed by in masks that it makes itself from integer hashes: coasts of several
// roughness, the same coast in many planes, sea floors, drifting ice, clouds, bands and noise. No field that the coder
// is judged by is among them. The output is the same on every machine.
#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "kernels/mask/walk.h"
#include "libcompress/pipeline/mask/level_plane.h"

namespace {

using namespace quern;
namespace contexts = kernels::level_contexts;

std::uint64_t hashed(std::uint64_t x) {
  x = (x ^ x >> 31) * UINT64_C(0x7FB5D329728EA185);
  x = (x ^ x >> 27) * UINT64_C(0x81DADEF4BC2DD44D);
  return x ^ x >> 33;
}

/// Values of a smooth random field, 16 bits of fraction: octaves of noise on lattices, each finer one weaker.
class Field {
 public:
  /// `fall`: what an octave has of the one before, in 64ths.
  Field(std::uint64_t seed, std::int64_t fall, std::int64_t first) : seed_(seed), fall_(fall), first_(first) {}

  std::int64_t operator()(std::int64_t t, std::int64_t y, std::int64_t x) const {
    std::int64_t sum = 0, weight = 1 << 12, octave = 0;
    for (std::int64_t step = first_; step >= 1; step /= 2, ++octave, weight = weight * fall_ / 64)
      sum += smooth(octave, t, y, x, step) * weight >> 12;
    return sum;
  }

 private:
  std::int64_t corner(std::int64_t octave, std::int64_t t, std::int64_t y, std::int64_t x) const {
    const auto place = static_cast<std::uint64_t>(((octave * 4099 + t) * 65537 + y) * 65537 + x);
    return static_cast<std::int64_t>(hashed(seed_ + hashed(place)) & 0xFFFF) - 0x8000;
  }
  /// Smooth between corners; `t` is on a lattice 16 times as fine.
  std::int64_t smooth(std::int64_t octave, std::int64_t t, std::int64_t y, std::int64_t x, std::int64_t step) const {
    const std::int64_t steps[3] = {std::max<std::int64_t>(step / 4, 1), step, step};
    const std::int64_t at[3] = {t, y, x};
    std::int64_t cell[3], part[3];
    for (int a = 0; a < 3; ++a) {
      cell[a] = at[a] / steps[a];
      const std::int64_t f = (at[a] % steps[a] << 8) / steps[a];
      part[a] = f * f * (3 * 256 - 2 * f) >> 16;
    }
    std::int64_t sum = 0;
    for (int k = 0; k < 8; ++k) {
      std::int64_t share = 1;
      for (int a = 0; a < 3; ++a) share *= (k >> a & 1) != 0 ? part[a] : 256 - part[a];
      if (share != 0) sum += corner(octave, cell[0] + (k & 1), cell[1] + (k >> 1 & 1), cell[2] + (k >> 2)) * share >> 8;
    }
    return sum >> 16;
  }

  std::uint64_t seed_;
  std::int64_t fall_, first_;
};

struct Mask {
  std::uint64_t planes, rows, cols;
  std::vector<std::uint8_t> bits;
};

/// Cells where the field is below that share of its values, which may move from plane to plane.
Mask cut(const Field& field, std::uint64_t planes, std::uint64_t rows, std::uint64_t cols, double share, double drift,
         bool moves) {
  Mask mask{planes, rows, cols, {}};
  std::vector<std::int64_t> values;
  for (std::uint64_t i = 0; i < planes; ++i) {
    for (std::uint64_t y = 0; y < rows; ++y) {
      for (std::uint64_t x = 0; x < cols; ++x)
        values.push_back(field(moves ? static_cast<std::int64_t>(i) : 0, static_cast<std::int64_t>(y),
                               static_cast<std::int64_t>(x)));
    }
  }
  std::vector<std::int64_t> sorted(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rows * cols));
  std::sort(sorted.begin(), sorted.end());
  for (std::uint64_t i = 0; i < planes; ++i) {
    const double wanted = std::clamp(share + drift * static_cast<double>(i), 0.01, 0.99);
    const std::int64_t level = sorted[static_cast<std::size_t>(wanted * static_cast<double>(sorted.size() - 1))];
    for (std::uint64_t cell = 0; cell < rows * cols; ++cell)
      mask.bits.push_back(values[i * rows * cols + cell] < level ? 1 : 0);
  }
  return mask;
}

/// Noise in the place of one cell of so many.
Mask with_noise(Mask mask, std::uint64_t one_of, std::uint64_t seed) {
  for (std::size_t cell = 0; cell < mask.bits.size(); ++cell) {
    if (hashed(seed * 7919 + cell) % one_of == 0) mask.bits[cell] ^= 1;
  }
  return mask;
}

/// The year of so many planes again and again.
Mask repeated(Mask mask, std::uint64_t times) {
  const std::vector<std::uint8_t> once = mask.bits;
  for (std::uint64_t k = 1; k < times; ++k) mask.bits.insert(mask.bits.end(), once.begin(), once.end());
  mask.planes *= times;
  return mask;
}

/// What lies in either: land that stays, and what moves beside it.
Mask joined(Mask a, const Mask& land) {
  for (std::size_t cell = 0; cell < a.bits.size(); ++cell) a.bits[cell] |= land.bits[cell % land.bits.size()];
  return a;
}

struct Counts {
  double zeros = 0, ones = 0;
};

/// Takes the place of an encoder and counts.
class Counter {
 public:
  static constexpr bool kDecodes = false;
  void code(mask::LevelTables&, mask::LevelList& list) {
    for (std::size_t i = 0; i < list.count; ++i)
      ++(list.symbols[i] == 0 ? counts[list.contexts[i]].zeros : counts[list.contexts[i]].ones);
  }
  static constexpr bool good() { return true; }

  std::vector<Counts> counts = std::vector<Counts>(contexts::kCount);
};

void take(const std::uint8_t* cells, const Mask& mask, mask::LevelBits& plane) {
  plane.resize(mask.rows, mask.cols);
  plane.clear();
  for (std::uint64_t y = 0; y < mask.rows; ++y) {
    for (std::uint64_t x = 0; x < mask.cols; ++x) plane.set(y, x, *cells++);
    plane.pad(y);
  }
}

void count(const Mask& mask, Counter& counter) {
  const std::vector<std::uint8_t>& bits = mask.bits;
  const kernels::MaskPlanes planes(bits.size(), mask.rows, mask.cols);
  std::vector<std::uint64_t> packed(planes.cells / 64 + 2);
  kernels::pack_bits(bits.data(), planes.cells, packed.data());
  const std::uint64_t distance =
      kernels::nearest_distance(kernels::MaskBits([&](std::uint64_t k) { return packed[k]; }), planes);
  mask::LevelTables tables;
  mask::LevelPlaneWalk<Counter> walk(counter, tables);
  unsigned before = 0;
  mask::LevelBits plane, reference;
  for (std::uint64_t i = 0; i < mask.planes; ++i) {
    const std::uint8_t* const cells = bits.data() + i * planes.plane_cells();
    take(cells, mask, plane);
    if (i == 0) {
      walk.plane(plane, {});
      continue;
    }
    const std::uint8_t* const there = bits.data() + kernels::reference_plane(i, distance) * planes.plane_cells();
    take(there, mask, reference);
    mask::LevelList list;
    list.make_room(1, false);
    const unsigned differs = std::equal(cells, cells + planes.plane_cells(), there) ? 0 : 1;
    list.add(contexts::kDiffers + before, differs);
    counter.code(tables, list);
    before = differs;
    if (differs != 0) walk.plane(plane, {&reference, nullptr});
  }
}

std::vector<Mask> training_masks() {
  std::vector<Mask> masks;
  std::uint64_t seed = 1;
  for (const std::int64_t fall : {26, 30, 34, 38, 44}) {
    for (const double share : {0.3, 0.45, 0.65}) {
      masks.push_back(cut(Field(seed++, fall, 128), 1, 300, 420, share, 0, false));
      masks.push_back(cut(Field(seed++, fall, 64), 1, 180, 250, share, 0, false));
    }
    masks.push_back(cut(Field(seed++, fall, 64), 24, 120, 150, 0.3, 0.025, false));  // a sea floor
    masks.push_back(cut(Field(seed++, fall, 64), 30, 70, 90, 0.8, -0.02, false));    // the same upside down
    masks.push_back(repeated(cut(Field(seed++, fall, 64), 14, 40, 90, 0.4, 0.03, false), 6));
    masks.push_back(cut(Field(seed++, fall, 32), 60, 50, 100, 0.5, 0, true));  // ice, from day to day
    masks.push_back(cut(Field(seed++, fall, 64), 12, 120, 160, 0.45, 0.004, true));
    for (const double drift : {0.006, -0.006}) {  // ice that grows and melts along a coast
      const Mask land = cut(Field(seed++, 34, 64), 1, 60, 100, 0.35, 0, false);
      masks.push_back(joined(cut(Field(seed++, fall, 64), 60, 60, 100, drift < 0 ? 0.5 : 0.15, drift, true), land));
    }
    masks.push_back(with_noise(repeated(cut(Field(seed++, fall, 64), 1, 150, 200, 0.4, 0, false), 10), 9000, 77));
  }
  masks.push_back(cut(Field(seed++, 46, 64), 12, 160, 200, 0.5, 0, true));  // clouds
  masks.push_back(cut(Field(seed++, 50, 32), 10, 160, 200, 0.3, 0, true));
  masks.push_back(with_noise(cut(Field(seed++, 34, 64), 1, 200, 200, 0.02, 0, false), 300, 78));
  masks.push_back(with_noise(cut(Field(seed++, 34, 64), 1, 200, 200, 0.02, 0, false), 20, 79));
  return masks;
}

}  // namespace

int main() {
  std::vector<Counts> sums(contexts::kCount);
  for (const Mask& mask : training_masks()) {
    Counter counter;
    count(mask, counter);
    for (unsigned c = 0; c < contexts::kCount; ++c) {  // no mask counts for more than some of its symbols
      constexpr double kMost = 400;
      const Counts& n = counter.counts[c];
      const double weight = n.zeros + n.ones > kMost ? kMost / (n.zeros + n.ones) : 1;
      sums[c].zeros += n.zeros * weight;
      sums[c].ones += n.ones * weight;
    }
  }
  std::puts(
      "// Counts that contexts of masks coded by levels begin with, in sixteenths of a symbol: zeros, ones. Made by");
  std::puts("// tests/unit_mask/train_levels.cpp; part of the format.\n#pragma once\n");
  std::puts("#include \"kernels/mask/levels/models.h\"\n\nnamespace quern::kernels {\n\n// clang-format off");
  std::puts("inline constexpr LevelConstants kLevelConstants = {{");
  for (unsigned c = 0; c < contexts::kCount; ++c) {
    const double n = sums[c].zeros + sums[c].ones, p = (sums[c].ones + 0.4) / (n + 0.8);
    const double weight = std::min(10.0, n / 2 + 0.8) * kernels::LevelCounts::kSymbol;
    const auto ones = static_cast<unsigned>(std::max(1.0, p * weight + 0.5));
    const auto zeros = static_cast<unsigned>(std::max(1.0, (1 - p) * weight + 0.5));
    std::printf("%s{%u, %u},%s", c % 12 == 0 ? "    " : " ", zeros, ones, c % 12 == 11 ? "\n" : "");
  }
  std::puts("\n}};\n// clang-format on\n\n}  // namespace quern::kernels");
}
