// How fast copying and coding go, measured; and which of them lets the trainer write again sooner.
#pragma once

#include "storage/moving_rate.h"

namespace quern::checkpoint {

using storage::MovingRate;

/// A tensor for which there are two ways.
struct CaptureChoice {
  double bytes = 0;
  double free_bytes = 0;   ///< of the ring
  double ahead_bytes = 0;  ///< that are coded before it
  double copy_rate = 0;    ///< bytes a second
  double code_rate = 0;    ///< of what is coded before it
  double own_rate = 0;     ///< of coding this tensor

  /// Seconds until a copy of it is in the ring: what the ring lacks must be coded first.
  double copied() const {
    const double lacking = bytes > free_bytes ? bytes - free_bytes : 0;
    return lacking / code_rate + bytes / copy_rate;
  }
  /// Seconds until it is coded where it lies.
  double coded() const { return ahead_bytes / code_rate + bytes / own_rate; }
  bool code_first() const { return copy_rate > 0 && code_rate > 0 && own_rate > 0 && coded() < copied(); }
};

}  // namespace quern::checkpoint
