// Parity files: made from parts, compared with them, and used to mend them.
#include "checkpoint/store/parity.h"

#include <algorithm>
#include <cstring>

#include "checkpoint/store/part_reader.h"
#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/writer.h"
#include "storage/parity/erasure.h"

namespace quern::checkpoint {
namespace {

using storage::has_erasure_coding;
using storage::make_parity;
using storage::rebuild_columns;

constexpr std::array<std::uint8_t, 8> kMagic = {0x9B, 'Q', 'C', 'Y', '\r', '\n', 0x1A, '\n'};
constexpr std::array<std::uint8_t, 8> kEndMagic = {0x9B, 'Q', 'C', 'Z', '\r', '\n', 0x1A, '\n'};
constexpr std::size_t kTrailerBytes = 24;

/// The files of a group: its parts, then its parity files.
class Group {
 public:
  Group(FileSystem& files, String folder, const CheckpointName& name, std::uint32_t number, std::uint32_t data,
        std::uint32_t parity)
      : files_(files), folder_(std::move(folder)), name_(name), number_(number), data_(data), parity_(parity) {}

  FileSystem& files() const { return files_; }
  std::uint32_t data() const { return data_; }
  std::uint32_t parity() const { return parity_; }
  std::uint32_t columns() const { return data_ + parity_; }
  String file_name(std::uint32_t column) const {
    return column < data_ ? numbered_name("part", number_ * data_ + column)
                          : numbered_name("parity", number_ * parity_ + column - data_);
  }
  String path(std::uint32_t column) const { return join({folder_, "/", file_name(column)}); }
  const String& folder() const { return folder_; }

  void set_sizes(std::span<const PartInfo> parts) {
    sizes_.clear();
    for (const PartInfo& part : parts) sizes_.push_back(part.bytes);
    longest_ = *std::max_element(sizes_.begin(), sizes_.end());
  }
  std::uint64_t stripes() const { return (longest_ + kColumnBytes - 1) / kColumnBytes; }
  std::size_t stripe_bytes(std::uint64_t stripe) const { return clip(longest_, stripe); }
  /// Bytes of a column that its file has; the rest of a data column is zeros.
  std::size_t column_bytes(std::uint32_t column, std::uint64_t stripe) const {
    return clip(column < data_ ? sizes_[column] : longest_, stripe);
  }
  std::uint64_t column_offset(std::uint32_t column, std::uint64_t stripe) const {
    return stripe * kColumnBytes + (column < data_ ? 0 : kPartHeaderBytes);
  }
  std::uint64_t table_bytes() const { return stripes() * columns() * 8; }
  std::uint64_t parity_file_bytes() const { return kPartHeaderBytes + longest_ + table_bytes() + kTrailerBytes; }
  std::uint64_t file_bytes(std::uint32_t column) const { return column < data_ ? sizes_[column] : parity_file_bytes(); }

  Vector<std::uint8_t> header(std::uint32_t index) const {
    Vector<std::uint8_t> out(kPartHeaderBytes);
    ByteWriter writer(out);
    writer.bytes(kMagic);
    writer.u16(kPartMajor);
    writer.u16(kPartMinor);
    writer.u32(number_);
    writer.u64(name_.step);
    writer.u32(index);
    writer.u32(data_);
    writer.u32(parity_);
    for (const std::uint64_t size : sizes_) writer.u64(size);
    writer.u8(static_cast<std::uint8_t>(name_.id.size()));
    writer.bytes({reinterpret_cast<const std::uint8_t*>(name_.id.data()), name_.id.size()});
    ByteWriter end{std::span(out).last<8>()};
    end.u64(checksum64(std::span(out).first<kPartHeaderBytes - 8>()));
    return out;
  }
  /// Table of checksums and what follows it.
  Vector<std::uint8_t> footer(const Vector<std::uint64_t>& table, std::uint64_t& checksum) const {
    Vector<std::uint8_t> out;
    Writer writer(out);
    for (const std::uint64_t value : table) writer.u64(value);
    checksum = checksum64(out);
    writer.u64(checksum);
    writer.u64(table.size() * 8);
    writer.bytes(kEndMagic);
    return out;
  }

 private:
  static std::size_t clip(std::uint64_t bytes, std::uint64_t stripe) {
    const std::uint64_t begin = stripe * kColumnBytes;
    return begin >= bytes ? 0 : static_cast<std::size_t>(std::min<std::uint64_t>(kColumnBytes, bytes - begin));
  }

  FileSystem& files_;
  String folder_;
  const CheckpointName& name_;
  std::uint32_t number_, data_, parity_;
  Vector<std::uint64_t> sizes_;
  std::uint64_t longest_ = 0;
};

/// The columns of one stripe in memory.
struct Stripe {
  explicit Stripe(std::uint32_t columns) : room(columns * kColumnBytes) {
    for (std::uint32_t i = 0; i < columns; ++i) at.push_back(room.data() + i * kColumnBytes);
  }
  Vector<std::uint8_t> room;
  Vector<std::uint8_t*> at;
};

using Files = Vector<std::unique_ptr<File>>;

/// Files of a group, null where there is none or it has another size.
Files open_files(const Group& group) {
  Files out;
  for (std::uint32_t i = 0; i < group.columns(); ++i) {
    auto file = group.files().open(group.path(i));
    std::unique_ptr<File> opened;
    if (file.ok()) opened = std::move(file).value();
    // A file that was cut short may still have good columns; one that grew is cut to its size by mending it.
    out.push_back(std::move(opened));
  }
  return out;
}

/// Reads a column, zeros behind its end; false where that fails.
bool read_column(const Group& group, const Files& files, std::uint32_t column, std::uint64_t stripe, std::uint8_t* to) {
  const std::size_t bytes = group.column_bytes(column, stripe);
  std::memset(to + bytes, 0, kColumnBytes - bytes);
  if (files[column] == nullptr) return bytes == 0;
  return read_fully(*files[column], group.column_offset(column, stripe), {to, bytes}).ok();
}

std::uint64_t column_checksum(const Group& group, std::uint32_t column, std::uint64_t stripe,
                              const std::uint8_t* from) {
  return bound_checksum64(column, stripe, {from, group.column_bytes(column, stripe)});
}

/// Makes parity of the parts and hands every stripe to `take`.
template <class Take>
Result<Vector<std::uint64_t>> encode_group(const Group& group, Report& report, const Take& take) {
  const Files files = open_files(group);
  Stripe stripe(group.columns());
  Vector<std::uint64_t> table;
  for (std::uint64_t s = 0; s < group.stripes(); ++s) {
    for (std::uint32_t c = 0; c < group.data(); ++c)
      if (!read_column(group, files, c, s, stripe.at[c]))
        return fail(report, StatusCode::io_error, join({group.path(c), ": cannot read it to make parity"}));
    QUERN_RETURN_IF_ERROR(make_parity(group.data(), group.parity(), group.stripe_bytes(s), stripe.at));
    for (std::uint32_t c = 0; c < group.columns(); ++c) table.push_back(column_checksum(group, c, s, stripe.at[c]));
    QUERN_RETURN_IF_ERROR(take(s, stripe));
  }
  return table;
}

/// The table of the first parity file that has the one the manifest names.
std::optional<Vector<std::uint64_t>> find_table(const Group& group, const Files& files, std::uint64_t checksum) {
  for (std::uint32_t c = group.data(); c < group.columns(); ++c) {
    if (files[c] == nullptr) continue;
    Vector<std::uint8_t> bytes(static_cast<std::size_t>(group.table_bytes()));
    const std::uint64_t at = group.parity_file_bytes() - kTrailerBytes - bytes.size();
    if (!read_fully(*files[c], at, bytes).ok() || checksum64(bytes) != checksum) continue;
    Vector<std::uint64_t> table(bytes.size() / 8);
    ByteReader reader(bytes);
    for (std::uint64_t& value : table) value = reader.u64();
    return table;
  }
  return std::nullopt;
}

/// True when header and footer of a parity file are what they must be, and nothing follows; for a part, its size.
bool frame_holds(const Group& group, File& file, std::uint32_t column, const Vector<std::uint64_t>& table) {
  const auto size = file.size();
  if (!size.ok() || *size != group.file_bytes(column)) return false;
  if (column < group.data()) return true;
  std::uint64_t checksum = 0;
  const auto header = group.header(column - group.data()), footer = group.footer(table, checksum);
  Vector<std::uint8_t> found(header.size());
  if (!read_fully(file, 0, found).ok() || found != header) return false;
  found.resize(footer.size());
  return read_fully(file, *size - footer.size(), found).ok() && found == footer;
}

/// New files beside the damaged ones, written stripe by stripe and put in their place together.
class Mending {
 public:
  Mending(const Store& store, const Group& group, const CheckpointName& name, const Vector<std::uint32_t>& columns)
      : store_(store), group_(group), name_(name), columns_(columns) {}

  Status start(Report& report) {
    for (const std::uint32_t c : columns_) {
      (void)store_.files().remove(temporary(c));
      auto file = store_.files().create(temporary(c));
      if (!file.ok()) return fail_file(report, temporary(c), "create it", file.status());
      files_.push_back(std::move(file).value());
    }
    return {};
  }
  Status put(std::uint64_t stripe, const Stripe& columns, Report& report) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::uint32_t c = columns_[i];
      const Status status =
          write_fully(*files_[i], group_.column_offset(c, stripe), {columns.at[c], group_.column_bytes(c, stripe)});
      if (!status.ok()) return fail_file(report, temporary(c), "write it", status);
    }
    return {};
  }
  Status finish(const Vector<std::uint64_t>& table, Report& report) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::uint32_t c = columns_[i];
      Status status;
      if (c >= group_.data()) {
        std::uint64_t checksum = 0;
        const auto header = group_.header(c - group_.data()), footer = group_.footer(table, checksum);
        status = write_fully(*files_[i], 0, header);
        if (status.ok()) status = write_fully(*files_[i], group_.parity_file_bytes() - footer.size(), footer);
      }
      if (status.ok()) status = files_[i]->sync();
      if (status.ok()) status = store_.files().rename(temporary(c), group_.path(c));
      if (!status.ok()) return fail_file(report, temporary(c), "write it", status);
    }
    const Status synced = store_.files().sync_folder(group_.folder());
    if (!synced.ok()) return fail_file(report, group_.folder(), "sync it", synced);
    return {};
  }

 private:
  String temporary(std::uint32_t column) const {
    return join({store_.tmp_root(), "/", name_.id, ".", group_.file_name(column)});
  }
  const Store& store_;
  const Group& group_;
  const CheckpointName& name_;
  const Vector<std::uint32_t>& columns_;
  Files files_;
};

/// No parity file has its table: every part must hold by itself, then parity is made anew.
Result<GroupDamage> remake_parity(const Store& store, const Manifest& manifest, std::uint32_t number,
                                  const Group& group, bool mend, Report& report) {
  GroupDamage out;
  for (std::uint32_t c = 0; c < group.data(); ++c) {
    const std::uint32_t part = number * group.data() + c;
    Report own;
    const auto reader =
        PartReader::open(store.files(), group.path(c), part_identity(manifest.name, part), manifest.parts[part], own);
    Vector<std::uint8_t> body;
    bool good = reader.ok();
    for (std::size_t r = 0; good && r < reader->records().size(); ++r) good = reader->read(r, body, own).ok();
    if (!good) {
      out.damaged.push_back(group.file_name(c));
      out.repairable = false;
    }
  }
  Vector<std::uint32_t> columns;
  for (std::uint32_t c = group.data(); c < group.columns(); ++c) {
    out.damaged.push_back(group.file_name(c));
    columns.push_back(c);
  }
  if (!mend || !out.repairable) return out;
  Mending mending(store, group, manifest.name, columns);
  QUERN_RETURN_IF_ERROR(mending.start(report));
  QUERN_ASSIGN_OR_RETURN(const auto table, encode_group(group, report, [&](std::uint64_t s, const Stripe& stripe) {
                           return mending.put(s, stripe, report);
                         }));
  QUERN_RETURN_IF_ERROR(mending.finish(table, report));
  return out;
}

}  // namespace

Status check_parity(std::uint32_t data, std::uint32_t parity, Report& report) {
  if (data == 0 && parity == 0) return {};
  if (data == 0 || parity == 0 || std::uint64_t{data} + parity > kMaxParityColumns)
    return fail(report, StatusCode::invalid_argument,
                "parity needs at least 1 part and 1 parity file, and at most 64 of both together");
  if (!has_erasure_coding())
    return fail(report, StatusCode::unsupported, "this build has no parity: it was made without ISA-L");
  return {};
}

Status write_parity(FileSystem& files, const String& folder, const CheckpointName& name, std::uint32_t group_number,
                    const Vector<PartInfo>& parts, ParityInfo& parity, Report& report) {
  Group group(files, folder, name, group_number, parity.data, parity.parity);
  group.set_sizes(parts);
  Files out;
  for (std::uint32_t c = group.data(); c < group.columns(); ++c) {
    auto file = files.create(group.path(c));
    if (!file.ok()) return fail_file(report, group.path(c), "create it", file.status());
    out.push_back(std::move(file).value());
    const Status status = write_fully(*out.back(), 0, group.header(c - group.data()));
    if (!status.ok()) return fail_file(report, group.path(c), "write it", status);
  }
  QUERN_ASSIGN_OR_RETURN(
      const auto table, encode_group(group, report, [&](std::uint64_t s, const Stripe& stripe) -> Status {
        for (std::uint32_t c = group.data(); c < group.columns(); ++c) {
          const Status status =
              write_fully(*out[c - group.data()], group.column_offset(c, s), {stripe.at[c], group.column_bytes(c, s)});
          if (!status.ok()) return fail_file(report, group.path(c), "write it", status);
        }
        return {};
      }));
  std::uint64_t checksum = 0;
  const auto footer = group.footer(table, checksum);
  for (std::uint32_t c = group.data(); c < group.columns(); ++c) {
    File& file = *out[c - group.data()];
    Status status = write_fully(file, group.parity_file_bytes() - footer.size(), footer);
    if (status.ok()) status = file.sync();
    if (!status.ok()) return fail_file(report, group.path(c), "write it", status);
    parity.files.push_back({group.parity_file_bytes(), checksum});
  }
  return {};
}

Result<GroupDamage> check_group(const Store& store, const Manifest& manifest, std::uint32_t number, bool mend,
                                Report& report) {
  const ParityInfo& info = manifest.parity;
  QUERN_RETURN_IF_ERROR(check_parity(info.data, info.parity, report));
  Group group(store.files(), store.data_folder(manifest.name.id), manifest.name, number, info.data, info.parity);
  group.set_sizes(std::span(manifest.parts).subspan(std::size_t{number} * info.data, info.data));
  const PartInfo& expected = info.files[std::size_t{number} * info.parity];
  if (expected.bytes != group.parity_file_bytes())
    return fail(report, StatusCode::corrupt, "the manifest's sizes of parity files are impossible");
  const Files files = open_files(group);
  const auto table = find_table(group, files, expected.index_checksum);
  if (!table) return remake_parity(store, manifest, number, group, mend, report);

  Vector<bool> damaged(group.columns(), false);
  GroupDamage out;
  for (std::uint32_t c = 0; c < group.columns(); ++c)
    damaged[c] = files[c] == nullptr || !frame_holds(group, *files[c], c, *table);
  Stripe stripe(group.columns());
  std::array<bool, kMaxParityColumns> lost{};
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
    out.damaged.push_back(group.file_name(c));
  }
  if (!mend || columns.empty() || !out.repairable) return out;
  Mending mending(store, group, manifest.name, columns);
  QUERN_RETURN_IF_ERROR(mending.start(report));
  for (std::uint64_t s = 0; s < group.stripes(); ++s) {
    read_stripe(s);
    QUERN_RETURN_IF_ERROR(rebuild_columns(group.data(), group.parity(), group.stripe_bytes(s), stripe.at,
                                          std::span(lost).first(group.columns())));
    for (std::uint32_t c = 0; c < group.columns(); ++c)
      if (column_checksum(group, c, s, stripe.at[c]) != (*table)[s * group.columns() + c])
        return fail(report, StatusCode::corrupt, join({group.path(c), ": what parity gives is not what was saved"}));
    QUERN_RETURN_IF_ERROR(mending.put(s, stripe, report));
  }
  QUERN_RETURN_IF_ERROR(mending.finish(*table, report));
  return out;
}

}  // namespace quern::checkpoint
