// In which order the planes of a level with a sequential axis are fitted and coded: the schedule of the host's encoder,
// which calls it in a loop, and of the device's, which asks it after each job.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <quern/memory.h>

#include "codecs/stencil/levels/model.h"

namespace quern::codec::stencil {

/// A round fits the predictors of all classes to the values as they are, then codes all planes. Rounds go on from each
/// other's values. One that costs no less than the best before it is undone: planes are coded once more with the best
/// predictors.
class PlaneRounds {
 public:
  enum class Next : std::uint8_t {
    fit,         ///< the predictors, then code
    code_again,  ///< with the predictors that coded() put back
    end,         ///< values and predictors are final
  };

  /// `rounds` is at least 1.
  explicit PlaneRounds(std::size_t rounds = 1) : rounds_(rounds) {}

  /// Whether the coding under way ends the last round, unless that round is undone.
  bool last() const { return done_ + (again_ ? 0 : 1) == rounds_; }

  /// After all planes were coded with the 2 * kParityClasses predictors of `own`, of the level. `cost()` is asked for
  /// at most once. May throw std::bad_alloc.
  template <class Cost>
  Next coded(const Cost& cost, Predictor* own) {
    if (!again_) {
      ++done_;
      const std::uint64_t bits = cost();
      if (bits >= least_) {
        std::copy(best_.begin(), best_.end(), own);
        again_ = true;
        return Next::code_again;
      }
      least_ = bits;
      best_.assign(own, own + 2 * kParityClasses);
    }
    again_ = false;
    return done_ < rounds_ ? Next::fit : Next::end;
  }

 private:
  std::size_t rounds_;
  std::size_t done_ = 0;
  bool again_ = false;  ///< a round is being undone
  std::uint64_t least_ = UINT64_MAX;
  Vector<Predictor> best_;
};

}  // namespace quern::codec::stencil
