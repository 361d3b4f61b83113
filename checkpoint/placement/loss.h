// How likely it is that more nodes fail than parity can bring back.
#pragma once

#include <cstddef>
#include <span>

namespace quern::checkpoint {

/// Chance that a node fails within so many days, of failures that come at a constant rate: 1 - exp(-rate * days / 365.25).
double failure_chance(double yearly_rate, double days);

/// Chance that more than `most` of independent events happen, each with its own chance: the upper tail of the
/// Poisson-binomial distribution. Exact up to rounding, also where it is tiny: only terms that are not negative are
/// added. O(events * most).
double chance_of_more(std::span<const double> chances, std::size_t most);

}  // namespace quern::checkpoint
