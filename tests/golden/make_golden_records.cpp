// Writes the golden streams of records, the broken ones, and their manifests. usage: make_golden_records FOLDER, where
// FOLDER is tests/golden/records. What is committed stays as it is.
#include <filesystem>
#include <iostream>

#include "tests/golden/manifest.h"
#include "tests/golden/record_manifest.h"
#include "tests/golden/record_must_fail.h"

namespace {

using namespace quern;

constexpr std::size_t kMostBytes = 8192;
constexpr std::uint64_t kMostValues = std::uint64_t{1} << 20;

bool write_text(const std::string& path, const std::string& text) {
  return golden::write_bytes(path, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

bool complain(const std::string& what) {
  std::cerr << "make_golden_records: " << what << "\n";
  return false;
}

bool write_golden(const std::string& folder) {
  std::vector<golden::RecordEntry> entries;
  for (const golden::RecordCase& c : golden::record_cases()) {
    const std::string file = c.name + ".qn";
    const auto bytes = golden::encode(c);
    if (!bytes.ok()) return complain(file + ": " + bytes.status().text());
    if (bytes->size() > kMostBytes) return complain(file + " has " + std::to_string(bytes->size()) + " bytes");
    const auto set = golden::decode_records(*bytes, golden::record_codecs(), {}, kMostValues);
    if (!set.ok()) return complain(file + ": " + set.status().text());
    entries.push_back(golden::expect_records(file, c.feature, *set));
    if (!golden::write_bytes(folder + "/" + file, *bytes)) return complain("cannot write " + file);
  }
  return write_text(folder + "/manifest.json", golden::record_manifest_text(entries)) ||
         complain("cannot write the manifest");
}

bool write_must_fail(const std::string& folder) {
  std::vector<golden::MustFailEntry> entries;
  for (const golden::MustFailCase& c : golden::record_must_fail_cases()) {
    entries.push_back({c.name + ".qn", status_name(c.status), c.why});
    if (!golden::write_bytes(folder + "/" + c.name + ".qn", c.bytes)) return complain("cannot write " + c.name);
  }
  return write_text(folder + "/manifest.json", golden::must_fail_text(entries)) ||
         complain("cannot write the manifest of broken streams");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_golden_records FOLDER\n";
    return 1;
  }
  const std::filesystem::path root(argv[1]);
  std::filesystem::create_directories(root / "must_fail");
  return write_golden(root.string()) && write_must_fail((root / "must_fail").string()) ? 0 : 1;
}
