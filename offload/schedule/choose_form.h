// Which folders get entropy-coded files: those whose bytes take longer than coding them. A rule over measured rates.
#pragma once

#include <span>

#include "offload/schedule/machine.h"

namespace quern::offload {

/// Coding on one thread, in bytes as they lie in memory a second; 0: not known.
struct CodingRates {
  double pack = 0;
  double unpack = 0;
  double share = 0;  ///< bytes of files for each byte in memory
  bool known() const { return pack > 0 && unpack > 0 && share > 0; }
};

/// Rates of a folder, in bytes as they lie in memory, when its files are entropy coded.
PathRates packed_rates(const PathRates& path, const CodingRates& coding);

/// What updates subgroups.
struct UpdateRate {
  double bytes = 0;         ///< as in memory, a second, of all its threads together; 0: not known
  std::size_t threads = 1;  ///< of which each takes a processor
};

/// For each path (its rates in bytes of files): whether coding makes a step shorter. A step takes as long as its
/// slowest resource: reading or writing a path's part of the state, coding it (one thread for each direction), or all
/// the work of `cores` processors, the update and coding. A path changes its form only where that is worth a twentieth
/// of its time. `packed`: of each path, so far. Paths whose rates are not known keep their form, and the others have
/// the state. O(p log p).
Vector<bool> folders_to_pack(std::span<const PathRates> paths, const CodingRates& coding, const UpdateRate& update,
                             const Vector<bool>& packed, unsigned cores);

}  // namespace quern::offload
