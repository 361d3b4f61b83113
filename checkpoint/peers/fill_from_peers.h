// A keeper whose memory is empty gets its newest checkpoint back from the memories of its peers.
#pragma once

#include <chrono>

#include "checkpoint/peers/peer_group.h"

namespace quern::checkpoint {

/// Before fill_memory(): where the store in memory has no checkpoint, the newest that the peers can give back, proven
/// by the hashes of all its values, comes there with what it needs; none where one of `stores`, the disks, has a newer
/// one that is whole. What is not given back, members that do not answer and failures of copying become notes: the disk
/// is still there. While members are silent and nothing newer than on the disk was found, they are asked again for
/// `wait`. Fails where the folders of memory cannot be used, and with `cancelled`. Memory for a moment: what the peers
/// give back twice.
Status fill_from_peers(const Store& memory, std::span<const Store> stores, PeerMember& member, TaskRunner& runner,
                       const CopyControl& control, std::chrono::milliseconds wait, Report& report);

}  // namespace quern::checkpoint
