// Writes the golden streams and their manifests. usage: make_golden FOLDER, where FOLDER is tests/golden. Only for a
// new version of the format (into a new folder of its own) and for new features: what is committed stays as it is.
#include <filesystem>
#include <iostream>

#include "tests/golden/golden_cases.h"
#include "tests/golden/manifest.h"
#include "tests/golden/must_fail_cases.h"

namespace {

using namespace quern;

constexpr std::size_t kMostBytes = 4096;
constexpr std::uint64_t kMostValues = std::uint64_t{16} << 20;

bool write_text(const std::string& path, const std::string& text) {
  return golden::write_bytes(path, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

bool complain(const std::string& what) {
  std::cerr << "make_golden: " << what << "\n";
  return false;
}

bool write_golden(const std::string& folder) {
  std::vector<golden::ManifestEntry> entries;
  for (const golden::GoldenFile& file : golden::golden_files()) {
    const auto bytes = golden::encode(file);
    if (!bytes.ok()) return complain(file.name + ": " + bytes.status().text());
    if (bytes->size() > kMostBytes)
      return complain(file.name + " has " + std::to_string(bytes->size()) + " bytes; " + std::to_string(kMostBytes) +
                      " are the limit");
    const auto arrays = golden::decode(*bytes, {}, {}, kMostValues);
    if (!arrays.ok()) return complain(file.name + ": " + arrays.status().text());
    golden::ManifestEntry entry{file.name + ".qn", file.feature, file.reproducible, {}};
    for (const testing::OwnedArray& array : *arrays) entry.streams.push_back(golden::expect(array));
    entries.push_back(std::move(entry));
    if (!golden::write_bytes(folder + "/" + file.name + ".qn", *bytes)) return complain("cannot write " + file.name);
  }
  return write_text(folder + "/manifest.json", golden::manifest_text(entries)) || complain("cannot write the manifest");
}

bool write_must_fail(const std::string& folder) {
  std::vector<golden::MustFailEntry> entries;
  for (const golden::MustFailCase& c : golden::must_fail_cases()) {
    entries.push_back({c.name + ".qn", status_name(c.status), c.why});
    if (!golden::write_bytes(folder + "/" + c.name + ".qn", c.bytes)) return complain("cannot write " + c.name);
  }
  return write_text(folder + "/manifest.json", golden::must_fail_text(entries)) ||
         complain("cannot write the manifest of broken streams");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_golden FOLDER\n";
    return 1;
  }
  const std::filesystem::path root(argv[1]);
  std::filesystem::create_directories(root / "v0");
  std::filesystem::create_directories(root / "must_fail");
  return write_golden((root / "v0").string()) && write_must_fail((root / "must_fail").string()) ? 0 : 1;
}
