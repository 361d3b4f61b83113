// Manifests as JSON, one file a line.
#include "tests/golden/manifest.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "libcompress/format/frame/checksum.h"

namespace quern::golden {
namespace {

using Json = nlohmann::ordered_json;

std::string lines_of(const std::vector<Json>& objects) {
  std::string text = "[\n";
  for (std::size_t i = 0; i < objects.size(); ++i) text += objects[i].dump() + (i + 1 < objects.size() ? ",\n" : "\n");
  return text + "]\n";
}

Json parse_file(const std::string& path) {
  std::ifstream in(path);
  return Json::parse(in);
}

}  // namespace

ExpectedArray expect(const testing::OwnedArray& array) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(checksum64(array.bytes)));
  const auto extents = array.shape.extents();
  return {dtype_name(array.dtype), {extents.begin(), extents.end()}, digits};
}

std::string manifest_text(const std::vector<ManifestEntry>& entries) {
  std::vector<Json> objects;
  for (const ManifestEntry& e : entries) {
    Json streams = Json::array();
    for (const ExpectedArray& s : e.streams)
      streams.push_back(Json{{"dtype", s.dtype}, {"shape", s.shape}, {"xxh3", s.hash}});
    objects.push_back(
        Json{{"file", e.file}, {"feature", e.feature}, {"reproducible", e.reproducible}, {"streams", streams}});
  }
  return lines_of(objects);
}

std::string must_fail_text(const std::vector<MustFailEntry>& entries) {
  std::vector<Json> objects;
  for (const MustFailEntry& e : entries)
    objects.push_back(Json{{"file", e.file}, {"status", e.status}, {"why", e.why}});
  return lines_of(objects);
}

std::vector<ManifestEntry> read_manifest(const std::string& path) {
  std::vector<ManifestEntry> entries;
  for (const Json& object : parse_file(path)) {
    ManifestEntry e{object.at("file"), object.at("feature"), object.at("reproducible"), {}};
    for (const Json& s : object.at("streams")) e.streams.push_back({s.at("dtype"), s.at("shape"), s.at("xxh3")});
    entries.push_back(std::move(e));
  }
  return entries;
}

std::vector<MustFailEntry> read_must_fail(const std::string& path) {
  std::vector<MustFailEntry> entries;
  for (const Json& object : parse_file(path))
    entries.push_back({object.at("file"), object.at("status"), object.at("why")});
  return entries;
}

Vector<std::uint8_t> read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool write_bytes(const std::string& path, std::span<const std::uint8_t> bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return static_cast<bool>(out.flush());
}

}  // namespace quern::golden
