// Runs a peer on an array: files in, files out, and what came of it.
#pragma once

#include <cstdint>
#include <string>

#include <quern/array.h>

#include "cli/files/byte_streams.h"
#include "cli/peers/peer.h"

namespace quern::cli {

/// A file in the folder of temporary files, which is gone when this is, or when a signal ends the program.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& suffix);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::size_t slot_ = 0;
};

struct PeerResult {
  std::string status = "ok";  ///< else what went wrong, in a word as runs have it
  std::string message;        ///< the peer's last line on its standard error
  std::uint64_t stream_bytes = 0;
  /// Of the processor: what the peer says in a last line "seconds: COMPRESS DECOMPRESS" (or "seconds: S" of one
  /// command), else of its whole process. 0: not known.
  double compress_seconds = 0, decompress_seconds = 0;
};

/// Runs peers on one array, which it writes as raw values into a temporary file.
class PeerRunner {
 public:
  /// Throws CliError (io) where the file cannot be written.
  explicit PeerRunner(const ArrayView& array);

  /// Compresses and decompresses under an absolute bound; `decoded` has the array's size and gets what comes back. A
  /// peer that fails, takes longer than kMostSeconds, or gives back another number of bytes, is a status.
  PeerResult run(const Peer::Way& way, double bound, Buffer& decoded);

  static constexpr double kMostSeconds = 1800;

 private:
  ArrayView array_;
  TemporaryFile input_, stream_, output_;
};

}  // namespace quern::cli
