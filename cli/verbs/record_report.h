// Streams of records as `quern info` and `quern verify` tell of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <quern/records.h>

#include "cli/messages/file_report.h"

namespace quern::cli {

/// How much of a stream is read.
enum class RecordDepth {
  header,   ///< the header alone
  heads,    ///< heads of segments too: stored sizes
  content,  ///< every byte: checksums, and parts that a codec of this build decodes
};

/// What is known of one stream of records.
struct RecordFindings {
  RecordInfo info;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool has_sizes = false;
  bool checked = false;
  bool decoded = false;  ///< by a check: no coded part was left out
  std::uint64_t parts = 0;
  std::uint64_t raw_parts = 0;
  std::vector<std::uint64_t> section_bytes;         ///< of the values or strings
  std::vector<std::uint64_t> section_stored_bytes;  ///< in the stream
  bool is_drive = false;                            ///< the items are frames of LiDAR scans
  std::string frame_sources;                        ///< of a drive: what its frames came from
  std::uint64_t frames_without_history = 0;         ///< of a drive: not decoded, for a history predicted them
  std::vector<std::string> damage;
};

/// Whether the bytes begin a stream of records whose header is whole.
bool begins_records(std::span<const std::uint8_t> bytes);
/// The same of a file; false where it cannot be read. "-" is none.
bool is_record_file(const std::string& path);

/// Reads a stream as far as asked. Damage is listed, but of the header: that throws CliError.
RecordFindings read_record_report(std::span<const std::uint8_t> stream, std::uint64_t offset, RecordDepth depth,
                                  const RunArgs& run, const std::string& name);

Json record_json(const RecordFindings& report);
std::string record_text(const RecordFindings& report);
/// One line, for lists of several streams.
std::string record_line(const RecordFindings& report);

}  // namespace quern::cli
