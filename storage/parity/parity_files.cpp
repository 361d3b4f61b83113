#include "storage/parity/parity_files.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/writer.h"
#include "storage/parity/erasure.h"
#include "storage/publish_file.h"

namespace quern::storage {
namespace {

constexpr std::size_t kTrailerBytes = 24;
constexpr std::size_t kSectorBytes = 512;
constexpr std::size_t kTablePiece = 128 * kSectorBytes;

/// The columns of one stripe in memory.
struct Stripe {
  explicit Stripe(const ParityGroup& group) : room(group.columns() * group.stripe_bytes(0)) {
    for (std::uint32_t i = 0; i < group.columns(); ++i) at.push_back(room.data() + i * group.stripe_bytes(0));
  }
  Vector<std::uint8_t> room;
  Vector<std::uint8_t*> at;
};

using Files = Vector<std::unique_ptr<File>>;

/// Files of a group, null where there is none.
Files open_files(const ParityGroup& group) {
  Files out;
  for (std::uint32_t i = 0; i < group.columns(); ++i) {
    auto file = group.system().open(group.file(i).path);
    std::unique_ptr<File> opened;
    if (file.ok()) opened = std::move(file).value();
    // A file that was cut short may still have good columns; one that grew is cut to its size by mending it.
    out.push_back(std::move(opened));
  }
  return out;
}

/// Reads a column, zeros behind its end; false where that fails.
bool read_column(const ParityGroup& group, const Files& files, std::uint32_t column, std::uint64_t stripe,
                 std::uint8_t* to) {
  const std::size_t bytes = group.column_bytes(column, stripe);
  std::memset(to + bytes, 0, group.stripe_bytes(stripe) - bytes);
  if (files[column] == nullptr) return bytes == 0;
  return read_fully(*files[column], group.column_offset(column, stripe), {to, bytes}).ok();
}

std::uint64_t column_checksum(const ParityGroup& group, std::uint32_t column, std::uint64_t stripe,
                              const std::uint8_t* from) {
  return bound_checksum64(column, stripe, {from, group.column_bytes(column, stripe)});
}

/// Makes parity of the data files and hands every stripe to `take`.
template <class Take>
Result<Vector<std::uint64_t>> encode_group(const ParityGroup& group, Report& report, const Take& take) {
  const Files files = open_files(group);
  Stripe stripe(group);
  Vector<std::uint64_t> table;
  for (std::uint64_t s = 0; s < group.stripes(); ++s) {
    for (std::uint32_t c = 0; c < group.data(); ++c)
      if (!read_column(group, files, c, s, stripe.at[c]))
        return fail(report, StatusCode::io_error, join({group.file(c).path, ": cannot read it to make parity"}));
    QUERN_RETURN_IF_ERROR(make_parity(group.data(), group.parity(), group.stripe_bytes(s), stripe.at));
    for (std::uint32_t c = 0; c < group.columns(); ++c) table.push_back(column_checksum(group, c, s, stripe.at[c]));
    QUERN_RETURN_IF_ERROR(take(s, stripe));
  }
  return table;
}

/// Whether a sector of checksums is all zeros, as a hole in a file reads. Checksums never are, 64 in a row.
bool has_hole(std::span<const std::uint8_t> bytes) {
  for (std::size_t at = 0; at + kSectorBytes <= bytes.size(); at += kSectorBytes)
    if (std::ranges::all_of(bytes.subspan(at, kSectorBytes), [](std::uint8_t byte) { return byte == 0; })) return true;
  return false;
}

/// The table at the end of a parity file, and the checksum behind it; nothing where it cannot be read or has a hole. It
/// is read piece by piece: a header may tell of terabytes, and a sparse file may seem to have them.
std::optional<Vector<std::uint8_t>> read_table(const ParityGroup& group, File& file) {
  const auto size = file.size();
  if (!size.ok() || *size < group.parity_file_bytes()) return std::nullopt;
  const std::uint64_t all = group.table_bytes() + kTrailerBytes;
  const std::uint64_t begin = group.parity_file_bytes() - all;
  Vector<std::uint8_t> bytes;
  while (bytes.size() < all) {
    const std::size_t at = bytes.size();
    bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(all, at + kTablePiece)));
    const std::span piece = std::span(bytes).subspan(at);
    if (!read_fully(file, begin + at, piece).ok() || has_hole(piece)) return std::nullopt;
  }
  return bytes;
}

/// The table of the first parity file that has the one asked for.
std::optional<Vector<std::uint64_t>> find_table(const ParityGroup& group, const Files& files,
                                                std::optional<std::uint64_t> checksum) {
  for (std::uint32_t c = group.data(); c < group.columns(); ++c) {
    if (files[c] == nullptr) continue;
    const auto bytes = read_table(group, *files[c]);
    if (!bytes) continue;
    ByteReader reader(*bytes);
    Vector<std::uint64_t> table(bytes->size() / 8 - kTrailerBytes / 8);
    for (std::uint64_t& value : table) value = reader.u64();
    const std::uint64_t expected = checksum ? *checksum : reader.u64();
    if (checksum64(std::span(*bytes).first(bytes->size() - kTrailerBytes)) == expected) return table;
  }
  return std::nullopt;
}

/// True when header and footer of a parity file are what they must be, and nothing follows; for a data file, its size.
bool frame_holds(const ParityGroup& group, File& file, std::uint32_t column, const Vector<std::uint64_t>& table) {
  const auto size = file.size();
  if (!size.ok() || *size != group.file_bytes(column)) return false;
  if (column < group.data()) return true;
  std::uint64_t checksum = 0;
  const auto footer = group.footer(table, checksum);
  Vector<std::uint8_t> found(group.header(column).size());
  if (!read_fully(file, 0, found).ok() || found != group.header(column)) return false;
  found.resize(footer.size());
  return read_fully(file, *size - footer.size(), found).ok() && found == footer;
}

/// New files beside those that are there, written stripe by stripe and put in their place together.
class Mending {
 public:
  Mending(const ParityGroup& group, const Vector<std::uint32_t>& columns) : group_(group), columns_(columns) {}

  Status start(Report& report) {
    for (const std::uint32_t c : columns_) {
      const String& path = group_.file(c).temporary;
      (void)group_.system().remove(path);
      auto file = group_.system().create(path);
      if (!file.ok()) return fail_file(report, path, "create it", file.status());
      files_.push_back(std::move(file).value());
    }
    return {};
  }
  Status put(std::uint64_t stripe, const Stripe& columns, Report& report) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::uint32_t c = columns_[i];
      const Status status =
          write_fully(*files_[i], group_.column_offset(c, stripe), {columns.at[c], group_.column_bytes(c, stripe)});
      if (!status.ok()) return fail_file(report, group_.file(c).temporary, "write it", status);
    }
    return {};
  }
  /// Writes what stands around the columns. The files are complete then, and still beside the old ones.
  Status complete(const Vector<std::uint64_t>& table, Report& report) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::uint32_t c = columns_[i];
      const ParityFile& file = group_.file(c);
      Status status;
      if (c >= group_.data()) {
        std::uint64_t checksum = 0;
        const auto footer = group_.footer(table, checksum);
        status = write_fully(*files_[i], 0, group_.header(c));
        if (status.ok()) status = write_fully(*files_[i], group_.parity_file_bytes() - footer.size(), footer);
      }
      if (status.ok()) status = files_[i]->sync();
      if (!status.ok()) return fail_file(report, file.temporary, "write it", status);
    }
    return {};
  }
  Status put_in_place(Report& report) {
    std::set<String> folders;
    for (const std::uint32_t c : columns_) {
      const ParityFile& file = group_.file(c);
      const Status status = group_.system().rename(file.temporary, file.path);
      if (!status.ok()) return fail_file(report, file.temporary, "write it", status);
      folders.insert(parent_of(file.path));
    }
    for (const String& folder : folders) {
      const Status synced = group_.system().sync_folder(folder);
      if (!synced.ok()) return fail_file(report, folder, "sync it", synced);
    }
    return {};
  }
  Status finish(const Vector<std::uint64_t>& table, Report& report) {
    QUERN_RETURN_IF_ERROR(complete(table, report));
    return put_in_place(report);
  }
  void drop() {
    for (const std::uint32_t c : columns_) (void)group_.system().remove(group_.file(c).temporary);
  }

 private:
  const ParityGroup& group_;
  const Vector<std::uint32_t>& columns_;
  Files files_;
};

}  // namespace

ParityGroup::ParityGroup(FileSystem& system, Vector<ParityFile> files, Vector<std::uint64_t> sizes,
                         Vector<Vector<std::uint8_t>> headers, const std::array<std::uint8_t, 8>& end_magic)
    : system_(&system),
      files_(std::move(files)),
      sizes_(std::move(sizes)),
      headers_(std::move(headers)),
      end_magic_(end_magic),
      longest_(*std::max_element(sizes_.begin(), sizes_.end())) {}

std::size_t ParityGroup::clip(std::uint64_t bytes, std::uint64_t stripe) {
  const std::uint64_t begin = stripe * kParityColumnBytes;
  return begin >= bytes ? 0 : static_cast<std::size_t>(std::min<std::uint64_t>(kParityColumnBytes, bytes - begin));
}

std::size_t ParityGroup::column_bytes(std::uint32_t column, std::uint64_t stripe) const {
  return clip(column < data() ? sizes_[column] : longest_, stripe);
}

std::uint64_t ParityGroup::column_offset(std::uint32_t column, std::uint64_t stripe) const {
  return stripe * kParityColumnBytes + (column < data() ? 0 : header(column).size());
}

std::uint64_t ParityGroup::parity_file_bytes() const {
  return headers_.front().size() + longest_ + table_bytes() + kTrailerBytes;
}

std::uint64_t ParityGroup::file_bytes(std::uint32_t column) const {
  return column < data() ? sizes_[column] : parity_file_bytes();
}

Vector<std::uint8_t> ParityGroup::footer(const Vector<std::uint64_t>& table, std::uint64_t& checksum) const {
  Vector<std::uint8_t> out;
  Writer writer(out);
  for (const std::uint64_t value : table) writer.u64(value);
  checksum = checksum64(out);
  writer.u64(checksum);
  writer.u64(table.size() * 8);
  writer.bytes(end_magic_);
  return out;
}

Result<std::uint64_t> write_parity_files(const ParityGroup& group, Report& report) {
  Files out;
  for (std::uint32_t c = group.data(); c < group.columns(); ++c) {
    const String& path = group.file(c).path;
    auto file = group.system().create(path);
    if (!file.ok()) return fail_file(report, path, "create it", file.status());
    out.push_back(std::move(file).value());
    const Status status = write_fully(*out.back(), 0, group.header(c));
    if (!status.ok()) return fail_file(report, path, "write it", status);
  }
  QUERN_ASSIGN_OR_RETURN(
      const auto table, encode_group(group, report, [&](std::uint64_t s, const Stripe& stripe) -> Status {
        for (std::uint32_t c = group.data(); c < group.columns(); ++c) {
          const Status status =
              write_fully(*out[c - group.data()], group.column_offset(c, s), {stripe.at[c], group.column_bytes(c, s)});
          if (!status.ok()) return fail_file(report, group.file(c).path, "write it", status);
        }
        return {};
      }));
  std::uint64_t checksum = 0;
  const auto footer = group.footer(table, checksum);
  for (std::uint32_t c = group.data(); c < group.columns(); ++c) {
    File& file = *out[c - group.data()];
    Status status = write_fully(file, group.parity_file_bytes() - footer.size(), footer);
    if (status.ok()) status = file.sync();
    if (!status.ok()) return fail_file(report, group.file(c).path, "write it", status);
  }
  return checksum;
}

Status replace_parity_files(const ParityGroup& group, Report& report) {
  Vector<std::uint32_t> columns;
  for (std::uint32_t c = group.data(); c < group.columns(); ++c) columns.push_back(c);
  Mending mending(group, columns);
  QUERN_RETURN_IF_ERROR(mending.start(report));
  QUERN_ASSIGN_OR_RETURN(const auto table, encode_group(group, report, [&](std::uint64_t s, const Stripe& stripe) {
                           return mending.put(s, stripe, report);
                         }));
  return mending.finish(table, report);
}

Result<std::optional<GroupDamage>> check_parity_files(const ParityGroup& group,
                                                      std::optional<std::uint64_t> table_checksum, bool mend,
                                                      Report& report, const DataCheck* data) {
  const Files files = open_files(group);
  const auto table = find_table(group, files, table_checksum);
  if (!table) return std::optional<GroupDamage>();

  Vector<bool> damaged(group.columns(), false);
  GroupDamage out;
  for (std::uint32_t c = 0; c < group.columns(); ++c)
    damaged[c] = files[c] == nullptr || !frame_holds(group, *files[c], c, *table);
  Stripe stripe(group);
  std::array<bool, kMostParityColumns> lost{};
  const auto read_stripe = [&](std::uint64_t s) {
    std::uint32_t count = 0;
    for (std::uint32_t c = 0; c < group.columns(); ++c) {
      lost[c] = !read_column(group, files, c, s, stripe.at[c]) ||
                column_checksum(group, c, s, stripe.at[c]) != (*table)[s * group.columns() + c];
      if (lost[c]) ++count;
      damaged[c] = damaged[c] || lost[c];
    }
    return count;
  };
  for (std::uint64_t s = 0; s < group.stripes(); ++s)
    if (read_stripe(s) > group.parity()) out.repairable = false;
  Vector<std::uint32_t> columns;
  for (std::uint32_t c = 0; c < group.columns(); ++c) {
    if (!damaged[c]) continue;
    columns.push_back(c);
    out.damaged.push_back(group.file(c).name);
    if (data == nullptr || c >= group.data() || files[c] == nullptr) continue;
    QUERN_ASSIGN_OR_RETURN(const bool is_whole, data->holds(c, group.file(c).path, report));
    if (is_whole) out.unfitting.push_back(group.file(c).name);
  }
  if (!out.unfitting.empty()) out.repairable = false;
  if (!mend || columns.empty() || !out.repairable) return std::optional(std::move(out));
  Mending mending(group, columns);
  QUERN_RETURN_IF_ERROR(mending.start(report));
  for (std::uint64_t s = 0; s < group.stripes(); ++s) {
    read_stripe(s);
    QUERN_RETURN_IF_ERROR(rebuild_columns(group.data(), group.parity(), group.stripe_bytes(s), stripe.at,
                                          std::span(lost).first(group.columns())));
    for (std::uint32_t c = 0; c < group.columns(); ++c) {
      if (column_checksum(group, c, s, stripe.at[c]) == (*table)[s * group.columns() + c]) continue;
      mending.drop();
      if (data == nullptr)
        return fail(report, StatusCode::corrupt,
                    join({group.file(c).path, ": what parity gives is not what was saved"}));
      out.unfitting.push_back(group.file(c).name);
      out.repairable = false;
      return std::optional(std::move(out));
    }
    QUERN_RETURN_IF_ERROR(mending.put(s, stripe, report));
  }
  QUERN_RETURN_IF_ERROR(mending.complete(*table, report));
  for (const std::uint32_t c : columns) {
    if (data == nullptr || c >= group.data()) continue;
    QUERN_ASSIGN_OR_RETURN(const bool is_whole, data->holds(c, group.file(c).temporary, report));
    if (!is_whole) out.unfitting.push_back(group.file(c).name);
  }
  if (out.unfitting.empty()) {
    QUERN_RETURN_IF_ERROR(mending.put_in_place(report));
  } else {
    mending.drop();
    out.repairable = false;
  }
  return std::optional(std::move(out));
}

}  // namespace quern::storage
