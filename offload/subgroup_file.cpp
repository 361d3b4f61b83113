#include "offload/subgroup_file.h"

#include <array>
#include <cstring>

#include "offload/packed_file.h"

namespace quern::offload {
namespace {

using storage::File;
using storage::Report;

std::span<const std::uint8_t> weight_bytes(const SubgroupData& data) {
  return {data.weights.data(), data.weights.size()};
}

Status read_plain(File& file, const StoredSubgroup& stored, SubgroupData& data) {
  std::uint64_t at = 0;
  const auto read = [&](std::span<std::uint8_t> to) {
    const Status status = storage::read_fully(file, at, to);
    at += to.size();
    return status;
  };
  QUERN_RETURN_IF_ERROR(read(data.weights.span()));
  QUERN_RETURN_IF_ERROR(read(data.moments.fixed_room()));
  QUERN_ASSIGN_OR_RETURN(const auto beside, data.moments.beside_room(stored.beside_bytes));
  QUERN_RETURN_IF_ERROR(read(beside));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t size, file.size());
  if (size != at)
    return Status(StatusCode::corrupt, "the file has {0} bytes, not {1}", static_cast<std::int64_t>(size),
                  static_cast<std::int64_t>(at));
  return {};
}

Status read_parts(File& file, const StoredSubgroup& stored, SubgroupData& data, FileCoder* coder, Moved& moved) {
  if (stored.packed_bytes == 0) {
    const Stopwatch watch(moved.path_seconds);
    QUERN_RETURN_IF_ERROR(read_plain(file, stored, data));
    moved.bytes = data.bytes();
  } else if (coder == nullptr) {
    return Status(StatusCode::internal, "an entropy-coded file and nothing to decode it with");
  } else {
    QUERN_RETURN_IF_ERROR(read_packed(file, stored, *coder, data, moved));
  }
  if (hash_of(data) != stored.hash) return Status(StatusCode::checksum_mismatch, "the file is damaged");
  return data.moments.accept();
}

Status write_plain(File& file, const SubgroupData& data) {
  std::uint64_t at = 0;
  for (const auto part : {weight_bytes(data), data.moments.fixed_part(), data.moments.beside_part()}) {
    QUERN_RETURN_IF_ERROR(storage::write_fully(file, at, part));
    at += part.size();
  }
  return {};
}

Status write_parts(File& file, const SubgroupData& data, bool synced, FileCoder* coder, StoredSubgroup& stored,
                   Moved& moved) {
  stored.packed_bytes = 0;
  if (coder != nullptr) {
    QUERN_RETURN_IF_ERROR(write_packed(file, data, *coder, moved));
    stored.packed_bytes = moved.bytes;
  }
  const Stopwatch watch(moved.path_seconds);
  if (coder == nullptr) {
    QUERN_RETURN_IF_ERROR(write_plain(file, data));
    moved.bytes = data.bytes();
  }
  return synced ? file.sync() : Status();
}

}  // namespace

storage::ContentHash hash_of(const SubgroupData& data) {
  std::array<std::uint8_t, 48> parts;
  std::size_t at = 0;
  for (const auto part : {weight_bytes(data), data.moments.fixed_part(), data.moments.beside_part()}) {
    const storage::ContentHash hash = storage::content_hash(part);
    std::memcpy(&parts[at], &hash.low, 8);
    std::memcpy(&parts[at + 8], &hash.high, 8);
    at += 16;
  }
  return storage::content_hash(parts);
}

std::uint64_t plain_bytes(std::uint64_t values, const codec::tensor::AtRestForm& form) {
  const std::uint64_t blocks = (values + kernels::kAtRestBlock - 1) / kernels::kAtRestBlock;
  const std::uint64_t tiles = (values + kernels::kAtRestTile - 1) / kernels::kAtRestTile;
  return 4 * values + 4 * (blocks + tiles) + blocks * kernels::at_rest_slot_bytes(form);
}

Status SubgroupData::fit(const Subgroup& group, const codec::tensor::AtRestForm& form) {
  QUERN_RETURN_IF_ERROR(weights.resize(4 * group.values));
  if (moments.values() == group.values) {
    moments.set_first_value(group.first_value);
    return {};
  }
  moments = {};  // before the new room is taken
  QUERN_ASSIGN_OR_RETURN(moments, codec::tensor::AtRestMoments::make(group.values, group.first_value, form));
  return {};
}

String subgroup_file_name(std::size_t number, std::uint64_t stamp) {
  return storage::join({"g", storage::decimal(number), "-", storage::decimal(stamp)});
}

bool is_subgroup_file_name(std::string_view name) {
  const std::size_t dash = name.find('-');
  const auto digits = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return name.starts_with('g') && dash != std::string_view::npos && digits(name.substr(1, dash - 1)) &&
         digits(name.substr(dash + 1));
}

Status read_subgroup(storage::FileSystem& files, const String& path, const StoredSubgroup& stored, SubgroupData& data,
                     FileCoder* coder, Moved& moved, Report& report) {
  const auto file = files.open(path);
  if (!file.ok()) return storage::fail_file(report, path, "open it", file.status());
  const Status status = read_parts(*file.value(), stored, data, coder, moved);
  return status.ok() ? status : storage::fail_file(report, path, "read it", status);
}

Status write_subgroup(storage::FileSystem& files, const String& path, const SubgroupData& data, bool synced,
                      FileCoder* coder, StoredSubgroup& stored, Moved& moved, Report& report) {
  auto file = files.create(path);
  if (!file.ok() && storage::exists_already(file.status())) {
    (void)files.remove(path);
    file = files.create(path);
  }
  if (!file.ok()) return storage::fail_file(report, path, "create it", file.status());
  const Status status = write_parts(*file.value(), data, synced, coder, stored, moved);
  if (!status.ok()) {
    (void)files.remove(path);
    return storage::fail_file(report, path, "write it", status);
  }
  stored.beside_bytes = data.moments.beside_part().size();
  stored.hash = hash_of(data);
  return {};
}

}  // namespace quern::offload
