// An epoch: all tiles of a history at one moment, by the hashes of their parts. The hash of its bytes is its name, so a
// name stands for every cell. Stored form: docs/format-history.md.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "lidar/history/tile.h"
#include "storage/content_hash.h"

namespace quern::lidar {

using storage::ContentHash;

/// Cells that one addition brought to a tile. The cells of a tile are those of its parts, which have none in common.
struct TilePart {
  ContentHash hash;  ///< of the bytes of write_cells()
  std::uint64_t cells = 0;
  std::uint64_t bytes = 0;
};

struct EpochTile {
  static constexpr std::size_t kMostParts = 8;

  TileKey key;
  std::uint64_t last_seen = 0;  ///< number of the last epoch whose scans met the tile
  Vector<TilePart> parts;

  std::uint64_t cells() const;
  std::uint64_t bytes() const;
};

struct Epoch {
  static constexpr std::uint64_t kMostNumber = 999'999'999'999;

  std::uint64_t number = 0;  ///< from 1; each is that of its parent and one
  ContentHash parent;        ///< zeros: none
  std::uint32_t cell_units = 0;
  std::uint64_t frames = 0;  ///< scans that were added since the parent
  Vector<EpochTile> tiles;   ///< keys rise

  const EpochTile* find(const TileKey& key) const;
  std::uint64_t cells() const;
  std::uint64_t bytes() const;
};

/// May throw std::bad_alloc.
Vector<std::uint8_t> write_epoch(const Epoch& epoch);
/// Any bytes are safe. Fails with `corrupt` or `unsupported_version`; allocates in proportion to `bytes`.
Result<Epoch> read_epoch(std::span<const std::uint8_t> bytes);

/// Tiles at most `reach` tiles away from where a pose stands, on every axis, that the epoch has.
Vector<const EpochTile*> tiles_around(const Epoch& epoch, const Pose& pose, std::uint64_t reach);

/// "tile 3,-12,0".
String tile_text(const TileKey& key);

}  // namespace quern::lidar
