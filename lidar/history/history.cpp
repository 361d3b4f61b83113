#include "lidar/history/history.h"

#include <algorithm>
#include <array>
#include <cerrno>
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
constexpr std::uint64_t kMostCellBytes = 10;  ///< of a varint
constexpr std::array<const char*, 4> kTemporary = {"/tmp/history", "/tmp/epoch", "/tmp/segment", "/tmp/places"};

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

bool is_parity_temporary(std::string_view name) {
  constexpr std::string_view kBegin = History::kParityTemporary;
  if (!name.starts_with(kBegin) || name.size() < kBegin.size() + 1 || name.size() > kBegin.size() + 2) return false;
  return name.find_first_not_of("0123456789", kBegin.size()) == std::string_view::npos;
}

/// Nothing is written or removed in a folder that somebody else's name leads to.
Status check_folders(FileSystem& files, const String& root, Report& report) {
  for (const char* const name : {"/epochs", "/segments", "/parity", "/places", "/tmp"}) {
    const String path = join({root, name});
    const auto link = files.is_link(path);
    if (!link.ok()) return storage::fail_file(report, path, "look at it", link.status());
    if (*link)
      return storage::fail(report, StatusCode::invalid_argument,
                           join({path, ": this is a symbolic link; put the folder itself into the history"}));
  }
  return {};
}

Result<std::unique_ptr<storage::FileLock>> lock_folder(FileSystem& files, const String& root, Report& report) {
  const String path = join({root, "/lock"});
  auto lock = files.lock(path, storage::LockKind::exclusive, false);
  if (!lock.ok() && storage::is_busy(lock.status()))
    return storage::fail(report, StatusCode::io_error,
                         join({root, ": another process changes the history; try again when it has ended"}));
  if (!lock.ok()) return storage::fail_file(report, path, "lock it", lock.status());
  return lock;
}

Status check_empty(FileSystem& files, const String& root, Report& report) {
  const auto there = files.open(options_path(root));
  if (there.ok()) return storage::fail(report, StatusCode::io_error, join({root, ": there is a history already"}));
  if (storage::is_missing(there.status())) return {};
  return storage::fail_file(report, options_path(root), "open it", there.status());
}

Status missing() { return Status(StatusCode::io_error, "it is not there, error {0}", ENOENT); }

Status fail_part(const EpochTile& tile, const TilePart& part, const char* what, Report& report) {
  return storage::fail(report, StatusCode::corrupt,
                       join({tile_text(tile.key), ": its part ", storage::hex(part.hash), what}));
}

}  // namespace

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

bool is_lost(const Status& status) {
  return storage::is_missing(status) || status.code() == StatusCode::corrupt ||
         status.code() == StatusCode::checksum_mismatch || status.code() == StatusCode::truncated;
}

Status History::make(FileSystem& files, const String& root, const HistoryOptions& options, bool is_bundle,
                     Report& report) {
  QUERN_RETURN_IF_ERROR(check_folders(files, root, report));
  for (const char* const name : {"/epochs", "/segments", "/tmp"})
    QUERN_RETURN_IF_ERROR(storage::make_one_folder(files, join({root, name}), report));
  const String temporary = join({root, kTemporary[0]});
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
  QUERN_RETURN_IF_ERROR(check_empty(files, root, report));
  QUERN_RETURN_IF_ERROR(storage::make_with_parents(files, root, report));
  QUERN_ASSIGN_OR_RETURN(const auto lock, lock_folder(files, root, report));
  QUERN_RETURN_IF_ERROR(check_empty(files, root, report));  // somebody else may have made it meanwhile
  return make(files, root, options, false, report);
}

Result<History> History::open(FileSystem& files, const String& root, Report& report) {
  History out(files, root);
  const String path = options_path(root);
  const auto bytes = storage::read_file(files, path, kMostOptionsBytes);
  if (!bytes.ok() && storage::is_missing(bytes.status())) {
    report.problem = join({root, ": there is no history"});
    return bytes.status();
  }
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

Result<Epoch> History::read(const EpochName& name, const String& path, Report& report) const {
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
  for (const EpochName& name : names) {
    if (name.root != root) continue;
    auto epoch = read(name, report);
    if (epoch.ok() || !storage::is_missing(epoch.status())) return epoch;
  }
  report.problem = join({root_, ": the epoch ", storage::hex(root), " is not in this history"});
  return missing();
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
  return segments(*names, report);
}

Result<Vector<History::Segment>> History::segments(std::span<const String> names, Report& report) const {
  Vector<Segment> out;
  for (const String& name : names) {
    if (!storage::parse_content_hash(name)) continue;
    const String path = segment_path(name);
    const auto file = files_->open(path);
    if (!file.ok() && storage::is_missing(file.status())) continue;  // collected meanwhile
    if (!file.ok()) return storage::fail_file(report, path, "open it", file.status());
    Segment segment;
    segment.name = name;
    auto parts = read_segment(**file, segment.whole);
    if (!parts.ok()) return storage::fail_file(report, path, "read it", parts.status());
    segment.parts = std::move(parts).value();
    out.push_back(std::move(segment));
  }
  return out;
}

Result<bool> History::find_places(Report& report) {
  const auto listed = files_->list(segments_folder());
  if (!listed.ok()) return storage::fail_file(report, segments_folder(), "list it", listed.status());
  if (places_ && places_->listed == *listed) return false;
  Places places;
  places.listed = *listed;
  QUERN_ASSIGN_OR_RETURN(const auto all, segments(*listed, report));
  for (const Segment& segment : all) {
    for (const PartPlace& part : segment.parts) places.parts[part.hash].push_back({places.names.size(), part});
    places.names.push_back(segment.name);
  }
  places_ = std::move(places);
  return true;
}

Result<Vector<std::uint8_t>> History::read_part(const EpochTile& tile, const TilePart& part, Report& report) {
  bool damaged = false;
  std::optional<Status> refused;
  // A collection may move the part to another segment after a look, and during one.
  for (int look = places_ ? 0 : 1; look < 3; ++look) {
    if (look > 0) {
      QUERN_ASSIGN_OR_RETURN(const bool is_new, find_places(report));
      if (!is_new) break;
    }
    const auto found = places_->parts.find(part.hash);
    if (found == places_->parts.end()) continue;
    for (const Place& place : found->second) {
      const String path = segment_path(places_->names[place.segment]);
      const auto file = files_->open(path);
      if (!file.ok() && storage::is_missing(file.status())) continue;
      // More bytes than cells can take are not read at all.
      const bool fits = place.part.bytes / kMostCellBytes <= part.cells;
      auto bytes = !file.ok() ? Result<Vector<std::uint8_t>>(file.status())
                   : fits     ? read_part_bytes(**file, place.part)
                              : Result<Vector<std::uint8_t>>(Status(StatusCode::corrupt, "too many bytes"));
      if (bytes.ok()) return bytes;
      if (is_lost(bytes.status())) {
        damaged = true;
      } else {
        refused = storage::fail_file(report, path, "read it", bytes.status());
      }
    }
  }
  if (refused) return *refused;
  return damaged ? fail_part(tile, part, " is damaged", report)
                 : fail_part(tile, part, " is not in this history", report);
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
    if (std::adjacent_find(cells.begin(), cells.end()) != cells.end())
      return fail_part(tile, part, " has cells that another part of the tile has", report);
  }
  return cells;
}

Result<std::uint64_t> History::stored_bytes(Report& report) const {
  std::uint64_t sum = 0;
  for (const String& folder : {epochs_folder(), segments_folder(), parity_folder(), places_folder()}) {
    const auto names = files_->list(folder);
    if (!names.ok() && storage::is_missing(names.status())) continue;
    if (!names.ok()) return storage::fail_file(report, folder, "list it", names.status());
    for (const String& name : *names) {
      const auto file = files_->open(join({folder, "/", name}));
      const auto size = file.ok() ? (*file)->size() : Result<std::uint64_t>(file.status());
      if (size.ok()) sum += *size;
    }
  }
  return sum;
}

Result<std::uint64_t> History::file_bytes(const String& path, Report& report) const {
  const auto file = files_->open(path);
  if (!file.ok()) return storage::fail_file(report, path, "open it", file.status());
  const auto bytes = (*file)->size();
  if (!bytes.ok()) return storage::fail_file(report, path, "read it", bytes.status());
  return *bytes;
}

Result<std::unique_ptr<storage::FileLock>> History::lock(Report& report) {
  if (is_bundle_)
    return storage::fail(report, StatusCode::invalid_argument,
                         join({root_, ": this is a bundle, which does not change; name the history it came from"}));
  QUERN_ASSIGN_OR_RETURN(auto lock, lock_folder(*files_, root_, report));
  QUERN_RETURN_IF_ERROR(check_folders(*files_, root_, report));
  for (const char* const name : kTemporary) (void)files_->remove(join({root_, name}));
  const auto left = files_->list(join({root_, "/tmp"}));
  if (left.ok())
    for (const String& name : *left)
      if (is_parity_temporary(name)) (void)files_->remove(join({root_, "/tmp/", name}));
  return lock;
}

Status History::publish_segment(const ContentHash& name, Report& report) {
  const String path = segment_path(storage::hex(name));
  Status status = files_->rename(new_segment_path(), path);
  if (!status.ok()) {
    (void)files_->remove(new_segment_path());
    return storage::fail_file(report, path, "put it in place", status);
  }
  status = files_->sync_folder(segments_folder());
  if (!status.ok()) return storage::fail_file(report, segments_folder(), "sync it", status);
  forget_segments();
  return {};
}

Result<ContentHash> History::publish_epoch(const Epoch& epoch, Report& report) {
  const auto bytes = write_epoch(epoch);
  const ContentHash root = storage::content_hash(bytes);
  QUERN_RETURN_IF_ERROR(storage::publish_file(*files_, join({root_, kTemporary[1]}), epoch_path({epoch.number, root}),
                                              epochs_folder(), bytes, report));
  return root;
}

}  // namespace quern::lidar
