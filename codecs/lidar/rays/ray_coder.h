// Tool R: a scan as its sensor made it, ray after ray, in the order of the points. Each ray's direction follows from the
// one before it in its chain: the azimuth goes on by whole steps, the elevation stays. A point is then a site of a
// body-centred cubic lattice that is turned into the ray: its range, and small deviations to the side and up. The ranges
// of the ray before and of the rays beside it predict the range.
//
// Chains: a sensor that files its returns ring after ring has one; one that files all lasers of a firing together has as
// many as lasers. Everything is integer arithmetic.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <quern/memory.h>

#include "codecs/lidar/coding/bit_coder.h"
#include "codecs/lidar/rays/direction.h"
#include "codecs/lidar/rays/symbol_model.h"

namespace quern::codec::lidar {

/// Coordinates in units beyond this are no work for rays.
inline constexpr std::int64_t kMostRayUnits = INT64_C(1) << 23;

/// What a stream says of its sensor.
struct RaySensor {
  Direction step;            ///< of the azimuth, from a ray to the next of its chain; more than 0, a quarter at most
  bool clockwise = false;    ///< the other way round
  std::uint32_t chains = 1;  ///< 1..kMostChains
  std::int32_t height = 0;   ///< units by which the rays' common origin lies above that of the coordinates
};
inline constexpr std::uint32_t kMostChains = 256;

/// A site in the frame of its ray, in spacings: all three even or all three odd.
struct RaySite {
  std::int64_t range = 0;
  std::int64_t side = 0;
  std::int64_t up = 0;
};

/// The three axes of a ray's frame as rows of integers in units of 2^-30.
struct RayFrame {
  std::array<std::array<std::int64_t, 3>, 3> axes;

  RayFrame(const Direction& azimuth, const Direction& elevation) {
    const auto product = [](std::int64_t a, std::int64_t b) { return (a * b) >> kDirectionBits; };
    axes[0] = {product(azimuth.x, elevation.x), product(azimuth.y, elevation.x), elevation.y};
    axes[1] = {-azimuth.y, azimuth.x, 0};
    axes[2] = {-product(azimuth.x, elevation.y), -product(azimuth.y, elevation.y), elevation.x};
  }
};

using RayPoint = std::array<std::int64_t, 3>;  ///< in units, from the rays' origin

/// What is coded of a ray.
struct RaySymbol {
  std::int64_t steps = 0;
  RaySite site;
};

template <class Coder>
class RayCoder {
 public:
  /// `points`: about how many will come; sizes tables. May throw std::bad_alloc.
  RayCoder(Coder& coder, const RaySensor& sensor, std::int64_t spacing, std::uint64_t points)
      : coder_(coder),
        sensor_(sensor),
        spacing_(spacing),
        table_(sensor.step),
        chains_(sensor.chains),
        beside_(kBins),
        step_model_(table_bits_for(points / 4), 1),
        range_model_(table_bits_for(points), kRangeSets),
        side_model_(table_bits_for(points / 4), 2),
        up_model_(table_bits_for(points / 4), 2) {}

  /// Codes the next point and returns where it decodes. `choose(frame, predicted range)` gives an encoder's symbol; it
  /// is asked after `aim`, which gives the steps. A decoder's callables are not called.
  template <class Aim, class Choose>
  RayPoint next(const Aim& aim, const Choose& choose) {
    Chain& chain = chains_[at_chain_];
    std::int64_t steps = 0;
    if constexpr (!Coder::kDecodes) steps = aim(chain.azimuth, table_);
    steps = code_steps(chain, steps);
    const Direction azimuth = turned(chain.azimuth, table_.direction(steps));
    const RayFrame frame(azimuth, chain.elevation);
    const Expectation expected = expect(chain, azimuth);
    RaySite site;
    if constexpr (!Coder::kDecodes) site = choose(frame, expected.range);
    site = code_site(chain, expected, site);
    RayPoint point = place(frame, site, spacing_);
    learn(chain, azimuth, expected, steps, site);
    at_chain_ = at_chain_ + 1 == sensor_.chains ? 0 : at_chain_ + 1;
    return point;
  }

  /// Where a site lies, in units, rounded.
  static RayPoint place(const RayFrame& frame, const RaySite& site, std::int64_t spacing) {
    RayPoint point;
    for (unsigned axis = 0; axis < 3; ++axis) {
      const std::int64_t sum = bounded(site.range * spacing) * frame.axes[0][axis] +
                               bounded(site.side * spacing) * frame.axes[1][axis] +
                               bounded(site.up * spacing) * frame.axes[2][axis];
      point[axis] = (sum + kOne / 2) >> kDirectionBits;
    }
    return point;
  }

 private:
  static constexpr unsigned kBinBits = 12;
  static constexpr std::size_t kBins = std::size_t{1} << kBinBits;
  static constexpr std::uint32_t kRangeSets = 8 * 4;
  /// Spacings; what lies nearer says too little of a direction.
  static constexpr std::int64_t kNearest = 32;
  static constexpr std::int64_t kMostRange = INT64_C(1) << 40;

  struct Chain {
    Direction azimuth;
    Direction elevation;
    std::int64_t range = 0;  ///< of the last site, in spacings
    std::int64_t former_range = 0;
    std::int64_t steps = 1;
    std::int64_t side = 0;
    std::int64_t up = 0;
    std::uint64_t miss = 0;  ///< how far off the last range's prediction was
    std::uint64_t former_miss = 0;
  };
  /// The last ray of another ring at an azimuth.
  struct Beside {
    std::int64_t range = 0;
    std::uint64_t miss = 0;
    bool known = false;
  };
  struct Expectation {
    std::int64_t range = 0;
    std::int64_t slope = 0;  ///< how the range beside changed since the last ray
    std::int64_t gap = 0;    ///< from the last range to the one beside
    std::uint64_t miss = 0;  ///< of the prediction beside
    bool beside = false;
  };

  /// Keeps sums of products with directions inside 64 bits, whatever bytes say.
  static std::int64_t bounded(std::int64_t units) {
    return std::clamp<std::int64_t>(units, -(INT64_C(1) << 31), INT64_C(1) << 31);
  }
  static std::uint64_t bucket(std::uint64_t n) { return n < 4 ? n : kernels::bit_length(n) + 1; }
  static std::uint64_t signed_bucket(std::int64_t n) {
    return n < 0 ? 32 + bucket(static_cast<std::uint64_t>(-n)) : bucket(static_cast<std::uint64_t>(n));
  }

  /// Where an azimuth lies on the diamond |x| + |y| = 1, in kBins equal parts.
  static std::size_t bin_of(const Direction& azimuth) {
    const std::int64_t x = azimuth.x < 0 ? -azimuth.x : azimuth.x;
    const std::int64_t y = azimuth.y < 0 ? -azimuth.y : azimuth.y;
    constexpr std::int64_t kQuarter = kBins / 4;
    std::int64_t part = std::min(y * kQuarter / (x + y + 1), kQuarter - 1);
    const bool left = azimuth.x < 0;
    const bool below = azimuth.y < 0;
    if (left != below) part = kQuarter - 1 - part;
    return static_cast<std::size_t>(part + kQuarter * (below ? (left ? 2 : 3) : (left ? 1 : 0)));
  }

  std::int64_t code_steps(const Chain& chain, std::int64_t steps) {
    const std::int64_t sign = sensor_.clockwise ? -1 : 1;
    const std::array<std::uint64_t, 3> contexts = {signed_bucket(chain.steps), bucket(chain.miss) | 256,
                                                   at_chain_ | UINT64_C(1) << 20};
    const std::int64_t coded = step_model_.code(coder_, contexts, 0, sign * steps - 1);
    return std::clamp(sign * (coded + 1), -table_.most(), table_.most());
  }

  /// The ray beside: with one chain, the last at this azimuth; with many, the one before.
  Expectation expect(const Chain& chain, const Direction& azimuth) {
    Expectation expected;
    if (sensor_.chains == 1) {
      const Beside& beside = beside_[bin_of(azimuth)];
      expected.beside = beside.known && last_beside_known_;
      if (expected.beside) {
        expected.slope = beside.range - last_beside_;
        expected.gap = beside.range - chain.range;
        expected.miss = beside.miss;
      }
    } else if (at_chain_ > 0) {
      const Chain& before = chains_[at_chain_ - 1];
      expected.beside = true;
      expected.slope = before.range - before.former_range;
      expected.gap = before.range - chain.range;
      expected.miss = before.miss;
    }
    // The median of the last range, the one beside, and the last with the slope beside: as in LOCO-I.
    const std::int64_t last = chain.range;
    const std::int64_t beside = last + expected.gap;
    const std::int64_t along = last + expected.slope;
    expected.range = expected.beside ? std::max(std::min(last, beside), std::min(std::max(last, beside), along)) : last;
    return expected;
  }

  RaySite code_site(const Chain& chain, const Expectation& expected, const RaySite& site) {
    RaySite result;
    const std::uint64_t misses = bucket(chain.miss) | bucket(chain.former_miss) << 6;
    const std::uint64_t beside = expected.beside ? bucket(expected.miss) + 1 : 0;
    const std::uint64_t parity = static_cast<std::uint64_t>(expected.range & 1);
    const std::uint64_t slope = signed_bucket(expected.slope);
    const std::array<std::uint64_t, 6> contexts = {
        misses | parity << 16,
        slope | beside << 8 | UINT64_C(1) << 32,
        signed_bucket(expected.gap) | bucket(chain.miss) << 8 | parity << 16 | UINT64_C(2) << 32,
        bucket(chain.miss + expected.miss) | slope << 8 | parity << 16 | UINT64_C(3) << 32,
        bucket(static_cast<std::uint64_t>(chain.range < 0 ? 0 : chain.range)) | beside << 8 | bucket(chain.miss) << 16 |
            UINT64_C(4) << 32,
        signed_bucket(chain.side) | signed_bucket(chain.up) << 8 | signed_bucket(chain.steps) << 16 | parity << 24 |
            UINT64_C(5) << 32};
    const auto set = static_cast<std::uint32_t>(std::min<std::uint64_t>(bucket(chain.miss), 7) * 4 +
                                                std::min<std::uint64_t>(beside, 3));
    result.range = std::clamp(expected.range + range_model_.code(coder_, contexts, set, site.range - expected.range),
                              -kMostRange, kMostRange);
    const std::int64_t odd = result.range & 1;
    result.side = odd + 2 * code_deviation(side_model_, odd, chain.side, chain.up, chain.steps, (site.side - odd) / 2);
    result.up = odd + 2 * code_deviation(up_model_, odd, chain.up, result.side, chain.steps, (site.up - odd) / 2);
    return result;
  }

  std::int64_t code_deviation(SymbolModel<4>& model, std::int64_t odd, std::int64_t last, std::int64_t other,
                              std::int64_t steps, std::int64_t value) {
    const auto parity = static_cast<std::uint64_t>(odd);
    const std::array<std::uint64_t, 4> contexts = {
        parity | signed_bucket(last) << 1,
        parity | signed_bucket(other) << 1 | signed_bucket(last) << 9 | UINT64_C(1) << 32,
        parity | signed_bucket(steps) << 1 | UINT64_C(2) << 32, parity | at_chain_ << 1 | UINT64_C(3) << 32};
    return model.code(coder_, contexts, static_cast<std::uint32_t>(odd), value);
  }

  /// Directions follow deviations of more than the lattice's own, and lean towards the others.
  static void follow(Direction& direction, std::int64_t deviation, std::int64_t range) {
    if (deviation == 0 || range < kNearest) return;
    std::int64_t moved = std::clamp(bounded(deviation) * kOne / range, -kOne, kOne);
    if (deviation >= -1 && deviation <= 1) moved /= 8;
    direction = direction_of(direction.x - (direction.y * moved >> kDirectionBits),
                             direction.y + (direction.x * moved >> kDirectionBits));
  }

  void learn(Chain& chain, const Direction& azimuth, const Expectation& expected, std::int64_t steps,
             const RaySite& site) {
    chain.steps = steps;
    const std::size_t bin = bin_of(azimuth);
    const std::int64_t miss = site.range - expected.range;
    chain.former_miss = chain.miss;
    chain.miss = static_cast<std::uint64_t>(miss < 0 ? -miss : miss);
    last_beside_ = beside_[bin].range;
    last_beside_known_ = beside_[bin].known;
    beside_[bin] = {site.range, chain.miss, true};
    chain.azimuth = azimuth;
    follow(chain.azimuth, site.side, site.range);
    follow(chain.elevation, site.up, site.range);
    chain.former_range = chain.range;
    chain.range = site.range;
    chain.side = site.side;
    chain.up = site.up;
  }

  Coder& coder_;
  const RaySensor& sensor_;
  std::int64_t spacing_;
  StepTable table_;
  Vector<Chain> chains_;
  Vector<Beside> beside_;
  std::uint64_t at_chain_ = 0;
  std::int64_t last_beside_ = 0;
  bool last_beside_known_ = false;
  SymbolModel<3> step_model_;
  SymbolModel<6> range_model_;
  SymbolModel<4> side_model_;
  SymbolModel<4> up_model_;
};

}  // namespace quern::codec::lidar
