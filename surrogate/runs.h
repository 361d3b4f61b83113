// Labels: what codecs made of arrays, one line of a CSV file each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quern::surrogate {

/// Stands for the version of a codec that is not quern's.
inline constexpr unsigned kForeignVersion = 0;

struct Run {
  std::string input;   ///< file name, and ":dataset" where there is one
  std::string sha256;  ///< of the array's bytes
  std::string dtype;
  std::string shape;
  std::string codec;
  unsigned codec_version = 0;
  double bound_rel = 0;  ///< 0: lossless
  double bound_abs = 0;
  double range = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t stream_bytes = 0;
  std::optional<double> psnr_db, ssim, autocorrelation;
  double max_error = 0;
  double compress_seconds = 0, decompress_seconds = 0, calibration_seconds = 0;
  std::string status = "ok";
  bool power_steps = false;    ///< the codec rounds bounds down to powers of two; `inputs` are for that bound
  std::vector<double> inputs;  ///< of the model, for this array and bound
};

/// The first line of the file, without a line break.
std::string runs_header();
std::string run_line(const Run& run);
/// Nothing for a line that is cut or no run.
std::optional<Run> parse_run(std::string_view line);

}  // namespace quern::surrogate
