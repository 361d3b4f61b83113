#include "lidar/history/history.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "libcompress/format/frame/checksum.h"
#include "lidar/history/stored_numbers.h"

namespace quern::lidar {
namespace {

using storage::FileSystem;
using storage::join;

constexpr std::array<std::uint8_t, 8> kMagic = {0x9B, 'Q', 'H', 'C', '\r', '\n', 0x1A, '\n'};
constexpr std::uint16_t kVersion = 1;
constexpr std::uint64_t kMostOptionsBytes = 64;
constexpr std::uint64_t kMostEpochBytes = UINT64_C(1) << 30;
constexpr std::size_t kNumberDigits = 12;

Vector<std::uint8_t> write_options(const HistoryOptions& options, bool is_bundle) {
  Vector<std::uint8_t> out;
  Writer writer(out);
  writer.bytes(kMagic);
  writer.u16(kVersion);
  writer.u8(is_bundle ? 1 : 0);
  writer.u32(options.cell_units);
  writer.u64(options.most_bytes);
  writer.u64(checksum64(out));
  return out;
}

Status read_options(std::span<const std::uint8_t> bytes, HistoryOptions& options, bool& is_bundle) {
  Reader reader(bytes);
  QUERN_ASSIGN_OR_RETURN(const auto magic, reader.bytes(kMagic.size()));
  if (!std::equal(magic.begin(), magic.end(), kMagic.begin()))
    return Status(StatusCode::bad_magic, "this is no history");
  QUERN_ASSIGN_OR_RETURN(const auto version, reader.u16());
  if (version != kVersion) return Status(StatusCode::unsupported_version, "the history has version {0}", version);
  QUERN_ASSIGN_OR_RETURN(const auto kind, reader.u8());
  QUERN_ASSIGN_OR_RETURN(options.cell_units, reader.u32());
  QUERN_ASSIGN_OR_RETURN(options.most_bytes, reader.u64());
  const std::uint64_t expected = checksum64(bytes.first(reader.position()));
  QUERN_ASSIGN_OR_RETURN(const auto checksum, reader.u64());
  QUERN_RETURN_IF_ERROR(reader.expect_end());
  if (checksum != expected) return Status(StatusCode::checksum_mismatch, "its bytes are damaged");
  if (kind > 1 || !is_cell_size(options.cell_units)) return Status(StatusCode::corrupt, "its bytes are impossible");
  is_bundle = kind == 1;
  return {};
}

String options_path(std::string_view root) { return join({root, "/history"}); }

std::optional<EpochName> parse_epoch_name(std::string_view text) {
  if (text.size() != kNumberDigits + 1 + 32 || text[kNumberDigits] != '-') return std::nullopt;
  EpochName name;
  const char* const end = text.data() + kNumberDigits;
  const auto [at, error] = std::from_chars(text.data(), end, name.number);
  const auto root = storage::parse_content_hash(text.substr(kNumberDigits + 1));
  if (error != std::errc() || at != end || name.number == 0 || !root) return std::nullopt;
  name.root = *root;
  return name;
}

Status fail_part(const EpochTile& tile, const TilePart& part, const char* what, Report& report) {
  return storage::fail(report, StatusCode::corrupt,
                       join({tile_text(tile.key), ": its part ", storage::hex(part.hash), what}));
}

}  // namespace

Status History::make(FileSystem& files, const String& root, const HistoryOptions& options, bool is_bundle,
                     Report& report) {
  QUERN_RETURN_IF_ERROR(storage::make_with_parents(files, root, report));
  for (const char* const name : {"/epochs", "/segments", "/tmp"})
    QUERN_RETURN_IF_ERROR(storage::make_one_folder(files, join({root, name}), report));
  const String temporary = join({root, "/tmp/history"});
  (void)files.remove(temporary);
  QUERN_RETURN_IF_ERROR(
      storage::publish_file(files, temporary, options_path(root), root, write_options(options, is_bundle), report));
  const String above = storage::parent_of(root);
  const Status synced = files.sync_folder(above);
  return synced.ok() ? synced : storage::fail_file(report, above, "sync it", synced);
}

Status History::init(FileSystem& files, const String& root, const HistoryOptions& options, Report& report) {
  if (!is_cell_size(options.cell_units))
    return storage::fail(report, StatusCode::invalid_argument,
                         join({root, ": a resolution must go into 32 m, from 0.5 cm to 4 m"}));
  if (files.open(options_path(root)).ok())
    return storage::fail(report, StatusCode::io_error, join({root, ": there is a history already"}));
  return make(files, root, options, false, report);
}

Result<History> History::open(FileSystem& files, const String& root, Report& report) {
  History out(files, root);
  const String path = options_path(root);
  const auto bytes = storage::read_file(files, path, kMostOptionsBytes);
  if (!bytes.ok() && storage::is_missing(bytes.status()))
    return storage::fail(report, StatusCode::io_error,
                         join({root, ": there is no history; make one with quern lidar history init"}));
  if (!bytes.ok()) return storage::fail_file(report, path, "read it", bytes.status());
  if (const Status status = read_options(*bytes, out.options_, out.is_bundle_); !status.ok())
    return storage::fail_at(report, path, status);
  return out;
}

String History::epoch_path(const EpochName& name) const {
  const String number = storage::decimal(name.number);
  return join({root_, "/epochs/", String(kNumberDigits - number.size(), '0'), number, "-", storage::hex(name.root)});
}

Result<Vector<EpochName>> History::epochs(Report& report) const {
  const auto names = files_->list(epochs_folder());
  if (!names.ok()) return storage::fail_file(report, epochs_folder(), "list it", names.status());
  Vector<EpochName> out;
  for (const String& text : *names)
    if (const auto name = parse_epoch_name(text)) out.push_back(*name);
  return out;
}

Result<Epoch> History::read(const EpochName& name, Report& report) const {
  const String path = epoch_path(name);
  const auto bytes = storage::read_file(*files_, path, kMostEpochBytes);
  if (!bytes.ok()) return storage::fail_file(report, path, "read it", bytes.status());
  if (storage::content_hash(*bytes) != name.root)
    return storage::fail(report, StatusCode::checksum_mismatch, join({path, ": the epoch is damaged"}));
  auto epoch = read_epoch(*bytes);
  if (!epoch.ok()) return storage::fail_at(report, path, epoch.status());
  if (epoch->number != name.number || epoch->cell_units != options_.cell_units)
    return storage::fail(report, StatusCode::corrupt, join({path, ": the epoch is of another history"}));
  return epoch;
}

Result<Epoch> History::read(const ContentHash& root, Report& report) const {
  QUERN_ASSIGN_OR_RETURN(const auto names, epochs(report));
  for (const EpochName& name : names)
    if (name.root == root) return read(name, report);
  return storage::fail(report, StatusCode::io_error,
                       join({root_, ": the epoch ", storage::hex(root), " is not in this history"}));
}

Result<std::optional<Epoch>> History::newest(Report& report) const {
  QUERN_ASSIGN_OR_RETURN(const auto names, epochs(report));
  if (names.empty()) return std::optional<Epoch>();
  QUERN_ASSIGN_OR_RETURN(auto epoch, read(names.back(), report));
  return std::optional(std::move(epoch));
}

Result<Vector<History::Segment>> History::segments(Report& report) const {
  const auto names = files_->list(segments_folder());
  if (!names.ok()) return storage::fail_file(report, segments_folder(), "list it", names.status());
  Vector<Segment> out;
  for (const String& name : *names) {
    if (!storage::parse_content_hash(name)) continue;
    const String path = segment_path(name);
    const auto file = files_->open(path);
    if (!file.ok() && storage::is_missing(file.status())) continue;  // collected meanwhile
    if (!file.ok()) return storage::fail_file(report, path, "open it", file.status());
    Segment segment;
    segment.name = name;
    auto blobs = read_segment(**file, segment.whole);
    if (!blobs.ok()) return storage::fail_file(report, path, "read it", blobs.status());
    segment.blobs = std::move(blobs).value();
    out.push_back(std::move(segment));
  }
  return out;
}

Status History::find_places(Report& report) {
  QUERN_ASSIGN_OR_RETURN(const auto all, segments(report));
  Places places;
  for (const Segment& segment : all) {
    for (const BlobPlace& blob : segment.blobs) places.blobs[blob.hash] = {places.names.size(), blob};
    places.names.push_back(segment.name);
  }
  places_ = std::move(places);
  return {};
}

Result<Vector<std::uint8_t>> History::read_part(const EpochTile& tile, const TilePart& part, Report& report) {
  // A collection may have moved it to another segment since the last look.
  const bool looked = places_.has_value();
  for (int look = looked ? 0 : 1; look < 2; ++look) {
    if (look == 1) QUERN_RETURN_IF_ERROR(find_places(report));
    const auto found = places_->blobs.find(part.hash);
    if (found == places_->blobs.end()) continue;
    const auto file = files_->open(segment_path(places_->names[found->second.segment]));
    if (!file.ok() && storage::is_missing(file.status())) continue;
    if (!file.ok())
      return storage::fail_file(report, segment_path(places_->names[found->second.segment]), "open it", file.status());
    auto bytes = read_blob(**file, found->second.blob);
    if (bytes.ok()) return bytes;
    return fail_part(tile, part, " is damaged", report);
  }
  return fail_part(tile, part, " is not in this history", report);
}

Result<Vector<Cell>> History::read_tile(const Epoch& epoch, const EpochTile& tile, Report& report) {
  Vector<Cell> cells;
  for (const TilePart& part : tile.parts) {
    QUERN_ASSIGN_OR_RETURN(const auto bytes, read_part(tile, part, report));
    auto some = read_cells(bytes, epoch.cell_units);
    if (!some.ok() || some->size() != part.cells) return fail_part(tile, part, " holds no cells of a tile", report);
    const auto middle = static_cast<std::ptrdiff_t>(cells.size());
    cells.insert(cells.end(), some->begin(), some->end());
    std::inplace_merge(cells.begin(), cells.begin() + middle, cells.end());
  }
  return cells;
}

Result<std::uint64_t> History::stored_bytes(Report& report) const {
  std::uint64_t sum = 0;
  for (const String& folder : {epochs_folder(), segments_folder()}) {
    const auto names = files_->list(folder);
    if (!names.ok()) return storage::fail_file(report, folder, "list it", names.status());
    for (const String& name : *names) {
      const auto file = files_->open(join({folder, "/", name}));
      const auto size = file.ok() ? (*file)->size() : Result<std::uint64_t>(file.status());
      if (size.ok()) sum += *size;
    }
  }
  return sum;
}

Result<std::unique_ptr<storage::FileLock>> History::lock(Report& report) {
  if (is_bundle_)
    return storage::fail(report, StatusCode::invalid_argument,
                         join({root_, ": this is a bundle, which does not change; name the history it came from"}));
  const String path = join({root_, "/lock"});
  auto lock = files_->lock(path, storage::LockKind::exclusive, false);
  if (!lock.ok() && storage::is_busy(lock.status()))
    return storage::fail(report, StatusCode::io_error,
                         join({root_, ": another process changes the history; try again when it has ended"}));
  if (!lock.ok()) return storage::fail_file(report, path, "lock it", lock.status());
  const String left_in = join({root_, "/tmp"});
  const auto left = files_->list(left_in);
  if (!left.ok()) return storage::fail_file(report, left_in, "list it", left.status());
  for (const String& name : *left) (void)files_->remove(join({left_in, "/", name}));
  return lock;
}

Status History::publish_segment(const ContentHash& name, Report& report) {
  const String path = segment_path(storage::hex(name));
  Status status = files_->rename(new_segment_path(), path);
  if (!status.ok()) return storage::fail_file(report, path, "put it in place", status);
  status = files_->sync_folder(segments_folder());
  if (!status.ok()) return storage::fail_file(report, segments_folder(), "sync it", status);
  forget_segments();
  return {};
}

Result<ContentHash> History::publish_epoch(const Epoch& epoch, Report& report) {
  const auto bytes = write_epoch(epoch);
  const ContentHash root = storage::content_hash(bytes);
  QUERN_RETURN_IF_ERROR(storage::publish_file(*files_, join({root_, "/tmp/epoch"}), epoch_path({epoch.number, root}),
                                              epochs_folder(), bytes, report));
  return root;
}

Status History::fill_bundle(History& made, const NeededTiles& needed, Report& report) {
  SegmentWriter segment(*files_, made.new_segment_path());
  std::set<ContentHash> written;
  for (const auto& [root, keys] : needed) {
    QUERN_ASSIGN_OR_RETURN(const auto epoch, read(root, report));
    for (const TileKey& key : keys) {
      const EpochTile* const tile = epoch.find(key);
      if (tile == nullptr) continue;
      for (const TilePart& part : tile->parts) {
        if (!written.insert(part.hash).second) continue;
        QUERN_ASSIGN_OR_RETURN(const auto bytes, read_part(*tile, part, report));
        QUERN_RETURN_IF_ERROR(segment.add(part.hash, bytes, report));
      }
    }
    QUERN_ASSIGN_OR_RETURN(const auto same, made.publish_epoch(epoch, report));
    if (same != root)
      return storage::fail(report, StatusCode::internal, join({root_, ": an epoch got another root as it was copied"}));
  }
  if (segment.empty()) return {};
  QUERN_ASSIGN_OR_RETURN(const auto segment_name, segment.finish(report));
  return made.publish_segment(segment_name, report);
}

Status History::bundle(const String& out, const NeededTiles& needed, Report& report) {
  String name = out;
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  if (files_->list(name).ok() || files_->open(name).ok())
    return storage::fail(report, StatusCode::io_error, join({name, ": there is something already"}));
  QUERN_ASSIGN_OR_RETURN(const String id, files_->new_name());
  const String temporary = join({name, ".", id});
  const auto made = [&]() -> Status {
    QUERN_RETURN_IF_ERROR(make(*files_, temporary, options_, true, report));
    History bundle(*files_, temporary);
    QUERN_RETURN_IF_ERROR(fill_bundle(bundle, needed, report));
    const Status status = files_->rename(temporary, name);
    return status.ok() ? status : storage::fail_file(report, name, "put it in place", status);
  };
  if (const Status status = made(); !status.ok()) {
    for (const char* const folder : {"/epochs", "/segments", "/tmp"})
      (void)storage::remove_tree(*files_, join({temporary, folder}));
    (void)storage::remove_tree(*files_, temporary);
    return status;
  }
  const String above = storage::parent_of(name);
  const Status status = files_->sync_folder(above);
  return status.ok() ? status : storage::fail_file(report, above, "sync it", status);
}

}  // namespace quern::lidar
