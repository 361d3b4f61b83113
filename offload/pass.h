// A walk over subgroups: what optimizer.cpp asks for and pass.cpp carries out.
#pragma once

#include <functional>
#include <optional>

#include "offload/optimizer.h"

namespace quern::offload {

struct Optimizer::Pass {
  Vector<std::size_t> order;     ///< subgroups
  Vector<std::size_t> position;  ///< of each subgroup in `order`, or kNone
  bool reads = true;             ///< the body wants what is there
  bool writes = true;            ///< the body changes it
  std::function<Status(SubgroupData&, const Subgroup&)> body;
  Manifest next;  ///< what is there after the pass
  std::optional<Spread> spread;
};

}  // namespace quern::offload
