// The arrays and options behind the golden streams. Deterministic on every machine: integers, exact powers of two and a
// hash decide every value, no mathematical library does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <quern/compress.h>

#include "tests/support/array_cases.h"

namespace quern::golden {

/// One stream of a golden file: what goes in.
struct GoldenStream {
  testing::OwnedArray array;
  CompressOptions options;
};

/// One golden file: streams one after another.
struct GoldenFile {
  std::string name;     ///< file name without its ending
  std::string feature;  ///< what it is there for
  std::vector<GoldenStream> streams;
  bool reproducible = true;      ///< false where zstd takes part: its bytes may differ between its versions
  Vector<std::uint8_t> written;  ///< the file itself, where no encoder makes it from its streams; else empty
  unsigned key_every = 0;        ///< not 0: of the session that writes the streams as time steps
};

/// Every golden file of format 0.1, in the order of the manifest.
std::vector<GoldenFile> golden_files();

/// Compresses all streams of a file with the built-in codecs.
Result<Vector<std::uint8_t>> encode(const GoldenFile& file);

/// Decodes all streams of a file; nothing is known beforehand. Never returns more than `max_bytes` of values in all:
/// fails with `destination_too_small` then. A file without a stream fails with `truncated`.
Result<std::vector<testing::OwnedArray>> decode(std::span<const std::uint8_t> bytes, const Execution& execution,
                                                const DecompressOptions& options, std::uint64_t max_bytes,
                                                Vector<Hole>* holes = nullptr);

}  // namespace quern::golden
