// A store on a simulated disk that is spread over nodes, which are folders of that disk, and the loss of nodes.
#pragma once

#include <string>

#include "checkpoint/store/store.h"
#include "tests/faults/simulated_disk.h"

namespace quern::testing {

/// "node0" and so on.
std::string node_folder(std::size_t node);

/// Spreads "store" over the first data + parity of `nodes` nodes, all of which are made.
Status place_small(SimulatedDisk& disk, std::uint32_t data, std::uint32_t parity, std::size_t nodes,
                   checkpoint::Report& report);

/// Removes a folder with all that is in it.
void lose(SimulatedDisk& disk, const std::string& folder);

/// Loses the nodes whose bits are set.
void lose_nodes(SimulatedDisk& disk, std::uint32_t nodes);

}  // namespace quern::testing
