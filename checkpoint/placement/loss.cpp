#include "checkpoint/placement/loss.h"

#include <cmath>

#include <quern/memory.h>

namespace quern::checkpoint {

double failure_chance(double yearly_rate, double days) { return -std::expm1(-yearly_rate * (days / 365.25)); }

double chance_of_more(std::span<const double> chances, std::size_t most) {
  if (most >= chances.size()) return 0;
  // exactly[j]: chance that j of the events so far happened; more: that more than `most` did.
  Vector<double> exactly(most + 1, 0.0);
  exactly[0] = 1;
  double more = 0;
  for (const double chance : chances) {
    more += exactly[most] * chance;
    for (std::size_t j = most; j > 0; --j) exactly[j] = exactly[j] * (1 - chance) + exactly[j - 1] * chance;
    exactly[0] *= 1 - chance;
  }
  return more;
}

}  // namespace quern::checkpoint
