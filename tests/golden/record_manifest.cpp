// The manifest as JSON, one file a line.
#include "tests/golden/record_manifest.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "libcompress/format/frame/checksum.h"

namespace quern::golden {
namespace {

using Json = nlohmann::ordered_json;

std::string hash_of(std::span<const std::uint8_t> bytes) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(checksum64(bytes)));
  return digits;
}

ExpectedSection expect_section(const RecordSet& set, std::size_t index) {
  const RecordSection& section = set.layout.sections[index];
  if (section.form == SectionForm::values)
    return {section.name.c_str(), dtype_name(section.dtype), section.items, section.item_elems,
            hash_of(set.values[index])};
  Vector<std::uint8_t> all;
  for (const auto& text : set.strings[index]) {
    put_bits(all, text.size(), 8);
    all.insert(all.end(), text.begin(), text.end());
  }
  return {section.name.c_str(), "bytes", 0, 0, hash_of(all)};
}

}  // namespace

RecordEntry expect_records(const std::string& file, const std::string& feature, const RecordSet& set) {
  RecordEntry entry{file, feature, set.layout.items, {set.layout.frames.begin(), set.layout.frames.end()}, {}};
  for (std::size_t i = 0; i < set.layout.sections.size(); ++i) entry.sections.push_back(expect_section(set, i));
  return entry;
}

std::string record_manifest_text(const std::vector<RecordEntry>& entries) {
  std::string text = "[\n";
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const RecordEntry& e = entries[i];
    Json sections = Json::array();
    for (const ExpectedSection& s : e.sections)
      sections.push_back(Json{
          {"name", s.name}, {"dtype", s.dtype}, {"items", s.items}, {"item_elems", s.item_elems}, {"xxh3", s.hash}});
    const Json object{
        {"file", e.file}, {"feature", e.feature}, {"items", e.items}, {"frames", e.frames}, {"sections", sections}};
    text += object.dump() + (i + 1 < entries.size() ? ",\n" : "\n");
  }
  return text + "]\n";
}

std::vector<RecordEntry> read_record_manifest(const std::string& path) {
  std::ifstream in(path);
  std::vector<RecordEntry> entries;
  for (const Json& object : Json::parse(in)) {
    RecordEntry e{object.at("file"), object.at("feature"), object.at("items"), object.at("frames"), {}};
    for (const Json& s : object.at("sections"))
      e.sections.push_back({s.at("name"), s.at("dtype"), s.at("items"), s.at("item_elems"), s.at("xxh3")});
    entries.push_back(std::move(e));
  }
  return entries;
}

}  // namespace quern::golden
