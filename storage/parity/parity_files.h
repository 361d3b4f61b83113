// Files of parity over other files: a group of data files and parity files, of which as many may be lost or damaged as
// there are parity files. Columns are 1 MiB of one file each; a stripe has the columns of the same place in all files.
//
//   parity file   header | columns | checksums of all columns, stripe after stripe | their checksum, their bytes, magic
//
// Every parity file has all checksums; whose header it is, the store decides.
#pragma once

#include <array>
#include <optional>

#include "storage/file_system.h"
#include "storage/report.h"

namespace quern::storage {

inline constexpr std::size_t kParityColumnBytes = std::size_t{1} << 20;
inline constexpr std::uint32_t kMostParityColumns = 64;  ///< data and parity together

struct ParityFile {
  String name;       ///< in sentences
  String path;       ///< where it lies
  String temporary;  ///< where it is written before it is put in its place
};

class ParityGroup {
 public:
  /// `files`: data, at least one, then parity, as many as `headers`, which have one length. `sizes`: of data files.
  ParityGroup(FileSystem& system, Vector<ParityFile> files, Vector<std::uint64_t> sizes,
              Vector<Vector<std::uint8_t>> headers, const std::array<std::uint8_t, 8>& end_magic);

  FileSystem& system() const { return *system_; }
  std::uint32_t data() const { return static_cast<std::uint32_t>(sizes_.size()); }
  std::uint32_t parity() const { return static_cast<std::uint32_t>(headers_.size()); }
  std::uint32_t columns() const { return data() + parity(); }
  const ParityFile& file(std::uint32_t column) const { return files_[column]; }
  const Vector<std::uint8_t>& header(std::uint32_t column) const { return headers_[column - data()]; }

  std::uint64_t stripes() const { return (longest_ + kParityColumnBytes - 1) / kParityColumnBytes; }
  std::size_t stripe_bytes(std::uint64_t stripe) const { return clip(longest_, stripe); }
  /// Bytes of a column that its file has; the rest of a data column is zeros.
  std::size_t column_bytes(std::uint32_t column, std::uint64_t stripe) const;
  std::uint64_t column_offset(std::uint32_t column, std::uint64_t stripe) const;
  std::uint64_t table_bytes() const { return stripes() * columns() * 8; }
  std::uint64_t parity_file_bytes() const;
  std::uint64_t file_bytes(std::uint32_t column) const;
  /// The table of checksums and what follows it.
  Vector<std::uint8_t> footer(const Vector<std::uint64_t>& table, std::uint64_t& checksum) const;
  const std::array<std::uint8_t, 8>& end_magic() const { return end_magic_; }

 private:
  static std::size_t clip(std::uint64_t bytes, std::uint64_t stripe);

  FileSystem* system_;
  Vector<ParityFile> files_;
  Vector<std::uint64_t> sizes_;
  Vector<Vector<std::uint8_t>> headers_;
  std::array<std::uint8_t, 8> end_magic_;
  std::uint64_t longest_ = 0;
};

/// Writes the parity files of data files that are there, at their paths, and syncs them. Returns the checksum of the
/// table. O(bytes of the data files); memory: a column for each file.
Result<std::uint64_t> write_parity_files(const ParityGroup& group, Report& report);

/// The same by way of their temporary names; takes the place of what is there. The folders are synced.
Status replace_parity_files(const ParityGroup& group, Report& report);

/// What is wrong with the files of a group.
struct GroupDamage {
  Vector<String> damaged;  ///< names of files with something wrong
  bool repairable = true;  ///< no stripe has lost more columns than there are parity files, and none is unfitting
  /// Names of data files that are whole though the checksums are of other bytes, or that parity would not bring back.
  Vector<String> unfitting;
};

/// Knows data files without their parity, where the store can tell.
class DataCheck {
 public:
  virtual ~DataCheck() = default;
  /// Whether the file at `path` is what the data file of a column must be. Fails where the system refuses.
  virtual Result<bool> holds(std::uint32_t column, const String& path, Report& report) const = 0;
};

/// Compares every column of a group with the table of checksums and, where `mend` is set, writes damaged files anew and
/// puts them in the place of the old ones. Files that cannot be mended are left as they are. Nothing where no parity
/// file has its table: that of `table_checksum`, or where that is not given one that has the checksum behind it. Such a
/// table proves nothing about its origin, and so `data` must know the data files: no file that it knows as whole is
/// replaced, and none is put in place that it does not know as whole.
Result<std::optional<GroupDamage>> check_parity_files(const ParityGroup& group,
                                                      std::optional<std::uint64_t> table_checksum, bool mend,
                                                      Report& report, const DataCheck* data = nullptr);

}  // namespace quern::storage
