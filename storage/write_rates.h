// How fast a folder is written, and with how many blocks under way at once: learnt from a probe, then from use.
#pragma once

#include <array>
#include <functional>

#include "storage/file_system.h"
#include "storage/moving_rate.h"
#include "storage/report.h"

namespace quern::storage {

/// Rates of writing, one for each depth of a queue: 1, 2, 4, 8. One thread.
class WriteRates {
 public:
  static constexpr std::array<unsigned, 4> kDepths = {1, 2, 4, 8};

  void add(unsigned depth, std::uint64_t bytes, double seconds);
  /// The smallest depth within a tenth of the best rate. Each 16th call gives one of its neighbours, which might have
  /// become better.
  unsigned next_depth();
  /// The same without a trial.
  unsigned best_depth() const { return kDepths[best()]; }
  bool known() const { return rates_[best()].known(); }
  /// Bytes a second at the best depth; 0: not measured.
  double per_second() const { return rates_[best()].per_second(); }

 private:
  std::size_t best() const;
  std::array<MovingRate, 4> rates_;
  unsigned calls_ = 0;
};

/// What the clock says, in seconds.
using Seconds = std::function<double()>;

/// Writes 8 MiB at each depth to the new file `path`, which is removed again; no further depth once a quarter of a
/// second is over. `turn` is called before each block; false ends the probe with `cancelled`.
Status probe_writes(FileSystem& files, const String& path, const Seconds& now,
                    const std::function<bool(std::size_t)>& turn, WriteRates& rates, Report& report);

}  // namespace quern::storage
