// The history of drives: what earlier scans saw, in a folder. It holds epochs, each a whole state of the history under
// its hash, and segments with the parts of tiles. Nothing that was published is written again.
//
//   history          what the folder is: cell size, limit, store or bundle
//   epochs/N-HASH    epoch number N (12 digits); HASH of its bytes is its root
//   segments/HASH    parts of tiles
//   parity/HASH-NN   parity over epochs and segments, where somebody asked for it (lidar/history/parity.h)
//   places/HASH      where scans were made, for encoders that look for their place (lidar/history/places.h)
//   tmp/  lock       what a writer has not published; who writes
//
// An addition writes and syncs its segment, renames it, syncs the folder, and then does the same with its epoch: a
// crash at any moment leaves the old state or the new one. One process writes at a time; readers need no lock. Stored
// form: docs/format-history.md.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "lidar/history/epoch.h"
#include "lidar/history/segment.h"
#include "storage/publish_file.h"

namespace quern::lidar {

using storage::Report;

struct HistoryOptions {
  std::uint32_t cell_units = 200;  ///< see is_cell_size()
  std::uint64_t most_bytes = 0;    ///< of the tiles of an epoch; 0: no limit
};

struct EpochName {
  std::uint64_t number = 0;
  ContentHash root;

  friend bool operator==(const EpochName&, const EpochName&) = default;
};

/// Of the name of an epoch's file; nothing where it is none.
std::optional<EpochName> parse_epoch_name(std::string_view text);

/// Tiles by the root of their epoch.
using NeededTiles = std::map<ContentHash, std::set<TileKey>>;

/// Whether a failure says that an epoch or a part is missing or damaged; others say that the system refused, or that
/// memory does not suffice.
bool is_lost(const Status& status);

/// Reads and changes a history. One thread at a time. Failures keep a sentence in the report that names file and tile.
class History {
 public:
  /// Makes a history in a folder that is missing or empty of one; the folder is locked meanwhile.
  static Status init(storage::FileSystem& files, const String& root, const HistoryOptions& options, Report& report);
  static Result<History> open(storage::FileSystem& files, const String& root, Report& report);

  const HistoryOptions& options() const { return options_; }
  /// A bundle has some tiles of its epochs and does not change.
  bool is_bundle() const { return is_bundle_; }
  const String& root() const { return root_; }
  storage::FileSystem& files() const { return *files_; }

  /// Oldest first.
  Result<Vector<EpochName>> epochs(Report& report) const;
  /// Fails with what is_lost() knows where the epoch is missing or its bytes are not those of its root.
  Result<Epoch> read(const EpochName& name, Report& report) const { return read(name, epoch_path(name), report); }
  /// The same from a file that has not its name yet.
  Result<Epoch> read(const EpochName& name, const String& path, Report& report) const;
  Result<Epoch> read(const ContentHash& root, Report& report) const;
  /// The newest epoch, nothing where there is none.
  Result<std::optional<Epoch>> newest(Report& report) const;

  /// Cells of a tile, rising. Fails with `corrupt` where a part is missing or damaged in all segments that have it; the
  /// sentence names tile and part.
  Result<Vector<Cell>> read_tile(const Epoch& epoch, const EpochTile& tile, Report& report);
  /// The bytes of a part of a tile.
  Result<Vector<std::uint8_t>> read_part(const EpochTile& tile, const TilePart& part, Report& report);
  /// Bytes of all epochs, segments and parity.
  Result<std::uint64_t> stored_bytes(Report& report) const;
  /// Bytes of the file at `path`.
  Result<std::uint64_t> file_bytes(const String& path, Report& report) const;

  /// Held while the history is changed; files that a writer that died left in tmp/ are removed. Fails where somebody
  /// holds it, for bundles, and where a folder of the history is a symbolic link.
  Result<std::unique_ptr<storage::FileLock>> lock(Report& report);
  /// Where the lock's holder writes a segment.
  String new_segment_path() const { return storage::join({root_, "/tmp/segment"}); }
  /// Where he writes file `column` of a set of parity.
  static constexpr std::string_view kParityTemporary = "parity-";
  String parity_temporary(std::uint32_t column) const {
    return storage::join({root_, "/tmp/", kParityTemporary, storage::decimal(column)});
  }
  /// Gives a finished segment its name.
  Status publish_segment(const ContentHash& name, Report& report);
  /// Publishes an epoch whose parts are all published. Returns its root.
  Result<ContentHash> publish_epoch(const Epoch& epoch, Report& report);

  String epoch_path(const EpochName& name) const;
  String segment_path(std::string_view name) const { return storage::join({root_, "/segments/", name}); }
  String epochs_folder() const { return storage::join({root_, "/epochs"}); }
  String segments_folder() const { return storage::join({root_, "/segments"}); }
  String parity_folder() const { return storage::join({root_, "/parity"}); }
  String places_folder() const { return storage::join({root_, "/places"}); }

  /// Copies epochs with these of their tiles into a new history that does not change. `out` must not be there.
  Status bundle(const String& out, const NeededTiles& needed, Report& report);

  /// A segment and what it holds.
  struct Segment {
    String name;
    Vector<PartPlace> parts;
    bool whole = true;  ///< its index holds
  };
  Result<Vector<Segment>> segments(Report& report) const;
  /// Segments are looked for anew at the next read.
  void forget_segments() { places_.reset(); }

 private:
  History(storage::FileSystem& files, String root) : files_(&files), root_(std::move(root)) {}
  static Status make(storage::FileSystem& files, const String& root, const HistoryOptions& options, bool is_bundle,
                     Report& report);
  Status fill_bundle(History& made, const NeededTiles& needed, Report& report);
  Result<Vector<Segment>> segments(std::span<const String> names, Report& report) const;
  /// Lists the parts of the segments unless these are the same as the last time; returns whether it did.
  Result<bool> find_places(Report& report);

  struct Place {
    std::size_t segment = 0;  ///< of names
    PartPlace part;
  };
  struct Places {
    Vector<String> listed;  ///< in the folder of segments, before they were opened
    Vector<String> names;
    std::map<ContentHash, Vector<Place>> parts;
  };

  storage::FileSystem* files_;
  String root_;
  HistoryOptions options_;
  bool is_bundle_ = false;
  std::optional<Places> places_;
};

}  // namespace quern::lidar
