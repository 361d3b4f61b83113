// The manifest beside the golden streams of records: what each section of each stream decodes to.
#pragma once

#include <string>
#include <vector>

#include "tests/golden/record_cases.h"

namespace quern::golden {

struct ExpectedSection {
  std::string name;
  std::string dtype;  ///< "bytes" of a byte section
  std::uint64_t items = 0;
  std::uint64_t item_elems = 0;
  /// XXH3-64, in 16 hexadecimal digits, of the values, or of the strings one after another, each behind its length as
  /// eight bytes.
  std::string hash;

  friend bool operator==(const ExpectedSection&, const ExpectedSection&) = default;
};

struct RecordEntry {
  std::string file;
  std::string feature;
  std::uint64_t items = 0;
  std::vector<std::uint64_t> frames;
  std::vector<ExpectedSection> sections;
};

RecordEntry expect_records(const std::string& file, const std::string& feature, const RecordSet& set);
std::string record_manifest_text(const std::vector<RecordEntry>& entries);
/// Throws std::exception when the file is missing or no manifest.
std::vector<RecordEntry> read_record_manifest(const std::string& path);

}  // namespace quern::golden
