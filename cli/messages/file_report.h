// What is said of one file when it is done: one JSON object on a line of stdout, or one line for people on stderr.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <quern/bound.h>
#include <quern/compress.h>

#include "cli/args/args.h"
#include "cli/messages/messages.h"

namespace quern::cli {

using Json = nlohmann::ordered_json;

struct FileReport {
  std::string input;
  std::string output;
  std::uint64_t input_bytes = 0;
  std::uint64_t output_bytes = 0;
  std::uint64_t raw_bytes = 0;  ///< of the array; what ratio and mb_per_s are about
  std::uint64_t stream_bytes = 0;
  std::string codec;
  std::optional<CodecReason> reason;  ///< when a codec was chosen
  Vector<CodecTrial> tried;
  std::optional<std::uint64_t> stencil_bytes;  ///< where a codec was asked for that auto never takes
  ErrorBound requested;
  std::optional<EnforcedBound> enforced;
  double seconds = 0;
  std::optional<double> max_error;
  std::optional<double> psnr_db;  ///< infinity is written as null
  std::optional<std::uint64_t> violations;
  std::string device = "cpu";
  RunArgs run;
};

/// At least: input_bytes output_bytes ratio codec bound seconds mb_per_s max_error psnr_db violations device threads
/// version.
Json to_json(const FileReport& report);

/// A finite number, or null.
Json number_or_null(std::optional<double> value);
/// {"kind": "abs", "value": 0.01}
Json bound_json(BoundKind kind, double value);
/// "|x - x'| <= 0.01", "lossless", ...
std::string bound_text(BoundKind kind, double value);

/// "12 MB/s", "0.35 MB/s"; nothing where there is nothing to divide.
std::string speed_text(std::uint64_t bytes, double seconds);

/// Why a codec wrote the stream: "the smallest of those tried; lorenzo 1.31x the size, lossless is larger". Brief:
/// "smallest; lorenzo 1.31x", or nothing where there was nothing to choose.
std::string choice_text(const CompressReport& made, bool brief);

/// Prints one object on one line; to stderr when stdout carries data. Throws CliError when that fails.
void print_json(const Json& object, bool stdout_is_data = false);

/// The threads a run uses, with 0 resolved.
std::size_t thread_count(const RunArgs& run);

}  // namespace quern::cli
