// The manifests that stand beside the golden files, and reading and writing whole files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/golden/golden_cases.h"

namespace quern::golden {

/// What one stream of a golden file must decode to.
struct ExpectedArray {
  std::string dtype;
  Vector<std::uint64_t> shape;
  std::string hash;  ///< XXH3-64 of the decoded values in little-endian C order, 16 hexadecimal digits
};

struct ManifestEntry {
  std::string file;
  std::string feature;
  bool reproducible = true;
  std::vector<ExpectedArray> streams;
};

/// A stream that must be refused, and how.
struct MustFailEntry {
  std::string file;
  std::string status;
  std::string why;
};

ExpectedArray expect(const testing::OwnedArray& array);
std::string manifest_text(const std::vector<ManifestEntry>& entries);
std::string must_fail_text(const std::vector<MustFailEntry>& entries);
/// Throw std::exception when the file is missing or no manifest.
std::vector<ManifestEntry> read_manifest(const std::string& path);
std::vector<MustFailEntry> read_must_fail(const std::string& path);

/// Empty when the file cannot be read.
Vector<std::uint8_t> read_bytes(const std::string& path);
bool write_bytes(const std::string& path, std::span<const std::uint8_t> bytes);

}  // namespace quern::golden
