// Weights of neighbours by least squares, with the noise that a bound puts on them.
#pragma once

#include <vector>

#include "surrogate/predictors.h"

namespace quern::surrogate {

/// Sums of products of the neighbours and the element, each weighted by what surrounds it: an error counts relative to
/// the activity around.
struct Moments {
  std::vector<double> products;  ///< (n + 1)^2, the element last
  double weight = 0;

  void add(const Moments& other);
};

/// Adds the elements of a block. `activity` is its residual of Lorenzo within `known`; every third element of a row is
/// taken.
void add_moments(const SampleBlock& block, const Taps& taps, const std::vector<double>& activity, const Inner& known,
                 Moments& moments);

/// The weights that minimise the weighted squared error when each neighbour has an error of variance bound^2 / 3. In a
/// fixed order of operations; O(taps^3).
Taps fitted(const Taps& taps, const Moments& moments, double bound);

}  // namespace quern::surrogate
