// A walk over subgroups: what optimizer.cpp asks for and pass.cpp carries out.
#pragma once

#include <functional>

#include "offload/optimizer.h"

namespace quern::offload {

struct Optimizer::Pass {
  Vector<std::size_t> order;     ///< subgroups; what is in memory early is moved forward
  Vector<std::size_t> position;  ///< of each subgroup in `order`, or kNone
  bool reads = true;             ///< the body wants what is there
  bool writes = true;            ///< the body changes it
  std::function<Status(SubgroupData&, const Subgroup&)> body;
  Manifest next;                 ///< what is there after the pass
  Vector<std::uint32_t> folder;  ///< of each subgroup: where it will be written
  std::size_t tried = kNone;     ///< a subgroup that is entropy coded wherever it goes, to see how fast that is
};

}  // namespace quern::offload
