// Where a store's parts lie when it is spread over nodes: the file placement.json in its folder, with a copy on each
// node. Written by people's choice (quern checkpoint place), read by everything that opens the store.
//
//   NODE/quern-<id>/{data,tmp,placement.json,owner}      <id>: the store's, so that stores on one node stay apart
//
// `owner` says which folder the store is: a copy of that folder has the same placement, and both would remove what the
// other one saved.
#pragma once

#include <optional>

#include "checkpoint/storage.h"

namespace quern::checkpoint {

struct PlacedNode {
  String name;
  String folder;
};

struct Placement {
  String id;                 ///< 32 hexadecimal digits
  std::uint32_t data = 0;    ///< parts of a checkpoint, at least 1
  std::uint32_t parity = 0;  ///< parity files of it, at least 1; both together at most 64
  /// Of part 0, 1, ..., then of parity file 0, 1, ...; then those that may have files of earlier placements, or may take
  /// what is mended. Names and folders differ.
  Vector<PlacedNode> nodes;

  std::uint32_t pieces() const { return data + parity; }
  /// What the store has of a node; `rest`: a path in it, "data" and so on.
  String local(std::size_t node, std::string_view rest) const {
    return join({nodes[node].folder, "/quern-", id, "/", rest});
  }
};

/// Nothing where the folder has no such file. A file that is no placement is `corrupt`.
Result<std::optional<Placement>> read_placement(FileSystem& files, const String& root, Report& report);

/// Chooses the nodes of a store that is there, for what is saved from now on; of an earlier placement the id is kept, and
/// its nodes behind the new ones. Fails where a folder is missing, is there twice or is the store's own, and while
/// somebody saves, also while a group of writers has saved in part, and where check_owner() does. Each node is written
/// before the store is.
Status write_placement(FileSystem& files, const String& root, Placement placement, Report& report);

/// Fails when a node that is there belongs to another folder of the store, and says how to take it over. Nodes without an
/// owner belong to whoever has the placement. For whatever saves, removes or mends.
Status check_owner(FileSystem& files, const String& root, const Placement& placement, Report& report);

/// Makes the folder the owner of all nodes of its placement that are there: of a store whose folder was lost, moved or
/// copied. Whoever was the owner can no longer save.
Status adopt_placement(FileSystem& files, const String& root, Report& report);

}  // namespace quern::checkpoint
