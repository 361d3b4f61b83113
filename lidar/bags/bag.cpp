// What bags of both kinds share, and the list of files of a bag that is a folder.
#include "lidar/bags/bag.h"

#include <algorithm>
#include <array>

#include "lidar/bags/expand.h"
#include "lidar/bags/mcap_format.h"

namespace quern::lidar {
namespace {

bool begins(std::span<const std::uint8_t> bytes, std::string_view mark) {
  return bytes.size() >= mark.size() && std::equal(mark.begin(), mark.end(), bytes.begin(), [](char a, std::uint8_t b) {
           return static_cast<std::uint8_t>(a) == b;
         });
}

constexpr std::string_view kSqliteMark("SQLite format 3\0", 16);

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

/// A scalar of YAML as rosbag2 writes names: plain, or in quotes.
std::string_view unquoted(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front()) {
    text.remove_prefix(1);
    text.remove_suffix(1);
  }
  return text;
}

}  // namespace

std::size_t Bag::topic_at(std::string_view name, std::string_view type, std::string_view encoding) {
  const auto [entry, is_new] =
      numbers_.try_emplace(std::tuple(String(name), String(type), String(encoding)), topics_.size());
  if (is_new) topics_.push_back({String(name), String(type), String(encoding), 0});
  return entry->second;
}

Status Bag::take_index(std::uint64_t bytes, const BagLimits& limits) {
  index_bytes_ += bytes;
  if (index_bytes_ <= limits.most_bytes) return {};
  return Status(StatusCode::memory_limit, "the bag has more messages than fit into {0} bytes",
                static_cast<std::int64_t>(limits.most_bytes));
}

BagFormat bag_format_of(std::span<const std::uint8_t> bytes) {
  if (begins(bytes, mcap::kMagic)) return BagFormat::mcap;
  if (begins(bytes, kSqliteMark)) return BagFormat::sqlite;
  if (begins(bytes, kZstdMark)) return BagFormat::zstd;
  return BagFormat::none;
}

bool is_bag_name(std::string_view path) {
  static constexpr std::array<std::string_view, 4> kEndings = {".mcap", ".db3", ".mcap.zstd", ".db3.zstd"};
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return path.size() > ending.size() && path.ends_with(ending); });
}

Result<Vector<std::uint8_t>> unpack_bag(std::span<const std::uint8_t> file, const BagLimits& limits) {
  return expand_zstd(file, limits.most_bytes);
}

Result<Vector<String>> files_of_metadata(std::string_view yaml) {
  Vector<String> out;
  bool inside = false;
  while (!yaml.empty()) {
    const std::size_t end = std::min(yaml.find('\n'), yaml.size());
    const std::string_view line = trimmed(yaml.substr(0, end));
    yaml.remove_prefix(std::min(end + 1, yaml.size()));
    if (!inside) {
      inside = line == "relative_file_paths:";
      continue;
    }
    if (line.empty() || line.front() == '#') continue;
    if (!line.starts_with("- ")) break;
    const std::string_view name = unquoted(trimmed(line.substr(2)));
    if (name.empty() || name.find('/') != std::string_view::npos || name.front() == '.')
      return Status(StatusCode::corrupt, "metadata.yaml names a file that is not in the bag's folder");
    out.emplace_back(name);
  }
  if (out.empty()) return Status(StatusCode::corrupt, "metadata.yaml has no list relative_file_paths");
  return out;
}

}  // namespace quern::lidar
