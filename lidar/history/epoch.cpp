#include "lidar/history/epoch.h"

#include <algorithm>
#include <array>

#include "lidar/history/stored_numbers.h"
#include "storage/report.h"

namespace quern::lidar {
namespace {

constexpr std::array<std::uint8_t, 8> kMagic = {0x9B, 'Q', 'H', 'E', '\r', '\n', 0x1A, '\n'};
constexpr std::uint16_t kVersion = 1;
constexpr std::uint64_t kMostCells = UINT64_C(1) << 32;

Status corrupt(const char* what) { return Status(StatusCode::corrupt, what); }

Result<EpochTile> read_tile(Reader& reader, std::uint64_t number) {
  EpochTile tile;
  for (std::int64_t* const at : {&tile.key.x, &tile.key.y, &tile.key.z}) {
    QUERN_ASSIGN_OR_RETURN(*at, read_signed(reader, TileKey::kMost));
  }
  QUERN_ASSIGN_OR_RETURN(tile.last_seen, reader.varint(number));
  QUERN_ASSIGN_OR_RETURN(const auto parts, reader.varint(EpochTile::kMostParts));
  if (parts == 0) return corrupt("a tile of an epoch has no parts");
  for (std::uint64_t i = 0; i < parts; ++i) {
    TilePart part;
    QUERN_ASSIGN_OR_RETURN(part.hash, read_hash(reader));
    QUERN_ASSIGN_OR_RETURN(part.cells, reader.varint(kMostCells));
    QUERN_ASSIGN_OR_RETURN(part.bytes, reader.varint(UINT32_MAX));
    const auto same = [&](const TilePart& other) { return other.hash == part.hash; };
    if (std::any_of(tile.parts.begin(), tile.parts.end(), same)) return corrupt("a tile of an epoch has a part twice");
    tile.parts.push_back(part);
  }
  return tile;
}

std::int64_t distance(std::int64_t a, std::int64_t b) { return a < b ? b - a : a - b; }

}  // namespace

std::uint64_t EpochTile::cells() const {
  std::uint64_t sum = 0;
  for (const TilePart& part : parts) sum += part.cells;
  return sum;
}
std::uint64_t EpochTile::bytes() const {
  std::uint64_t sum = 0;
  for (const TilePart& part : parts) sum += part.bytes;
  return sum;
}
std::uint64_t Epoch::cells() const {
  std::uint64_t sum = 0;
  for (const EpochTile& tile : tiles) sum += tile.cells();
  return sum;
}
std::uint64_t Epoch::bytes() const {
  std::uint64_t sum = 0;
  for (const EpochTile& tile : tiles) sum += tile.bytes();
  return sum;
}

const EpochTile* Epoch::find(const TileKey& key) const {
  const auto at = std::lower_bound(tiles.begin(), tiles.end(), key,
                                   [](const EpochTile& tile, const TileKey& wanted) { return tile.key < wanted; });
  return at != tiles.end() && at->key == key ? &*at : nullptr;
}

Vector<std::uint8_t> write_epoch(const Epoch& epoch) {
  Vector<std::uint8_t> out;
  Writer writer(out);
  writer.bytes(kMagic);
  writer.u16(kVersion);
  writer.varint(epoch.number);
  write_hash(writer, epoch.parent);
  writer.varint(epoch.cell_units);
  writer.varint(epoch.frames);
  writer.varint(epoch.tiles.size());
  for (const EpochTile& tile : epoch.tiles) {
    for (const std::int64_t at : {tile.key.x, tile.key.y, tile.key.z}) write_signed(writer, at);
    writer.varint(tile.last_seen);
    writer.varint(tile.parts.size());
    for (const TilePart& part : tile.parts) {
      write_hash(writer, part.hash);
      writer.varint(part.cells);
      writer.varint(part.bytes);
    }
  }
  return out;
}

Result<Epoch> read_epoch(std::span<const std::uint8_t> bytes) {
  Reader reader(bytes);
  QUERN_ASSIGN_OR_RETURN(const auto magic, reader.bytes(kMagic.size()));
  if (!std::equal(magic.begin(), magic.end(), kMagic.begin())) return corrupt("this is no epoch of a history");
  QUERN_ASSIGN_OR_RETURN(const auto version, reader.u16());
  if (version != kVersion) return Status(StatusCode::unsupported_version, "the epoch has version {0}", version);
  Epoch epoch;
  QUERN_ASSIGN_OR_RETURN(epoch.number, reader.varint(Epoch::kMostNumber));
  QUERN_ASSIGN_OR_RETURN(epoch.parent, read_hash(reader));
  QUERN_ASSIGN_OR_RETURN(const auto cell_units, reader.varint(UINT32_MAX));
  if (epoch.number == 0 || !is_cell_size(cell_units)) return corrupt("an epoch has no number, or cells of no size");
  epoch.cell_units = static_cast<std::uint32_t>(cell_units);
  QUERN_ASSIGN_OR_RETURN(epoch.frames, reader.varint(UINT32_MAX));
  QUERN_ASSIGN_OR_RETURN(const auto tiles, reader.varint(bytes.size()));
  for (std::uint64_t i = 0; i < tiles; ++i) {
    QUERN_ASSIGN_OR_RETURN(auto tile, read_tile(reader, epoch.number));
    if (!epoch.tiles.empty() && tile.key <= epoch.tiles.back().key)
      return corrupt("tiles of an epoch are not in order");
    epoch.tiles.push_back(std::move(tile));
  }
  QUERN_RETURN_IF_ERROR(reader.expect_end());
  return epoch;
}

Vector<const EpochTile*> tiles_around(const Epoch& epoch, const Pose& pose, std::uint64_t reach) {
  const TileKey at = tile_of(pose);
  const auto most = static_cast<std::int64_t>(reach);
  Vector<const EpochTile*> out;
  for (const EpochTile& tile : epoch.tiles)
    if (distance(tile.key.x, at.x) <= most && distance(tile.key.y, at.y) <= most && distance(tile.key.z, at.z) <= most)
      out.push_back(&tile);
  return out;
}

String tile_text(const TileKey& key) {
  const auto number = [](std::int64_t value) {
    return value < 0 ? storage::join({"-", storage::decimal(static_cast<std::uint64_t>(-value))})
                     : storage::decimal(static_cast<std::uint64_t>(value));
  };
  return storage::join({"tile ", number(key.x), ",", number(key.y), ",", number(key.z)});
}

}  // namespace quern::lidar
