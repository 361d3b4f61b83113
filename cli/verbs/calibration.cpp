// A CSV file of one line a compression. Lines that are cut count nothing.
#include "cli/verbs/calibration.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <quern/codec.h>

#include "cli/args/exit_codes.h"
#include "cli/args/values.h"
#include "cli/files/byte_streams.h"
#include "models/sha256.h"
#include "surrogate/model.h"

namespace quern::cli {
namespace {

constexpr const char* kHeader = "codec,codec_version,model,bound,ratio_estimated,ratio_measured";
constexpr std::size_t kMostCounted = 64;
constexpr std::size_t kLeastCounted = 3;

/// Estimates of one model say nothing of another's errors.
const std::string& model_id() {
  static const std::string id = models::hex(models::sha256(surrogate::builtin_model())).substr(0, 16);
  return id;
}

std::string version_of(const std::string& codec) {
  const ArrayCodec* known = builtin_codecs().by_name(codec);
  return known == nullptr ? "" : std::to_string(known->info().version);
}

[[noreturn]] void refuse_kind(const std::string& path) {
  fail(Exit::usage, path + ": is no calibration file of quern; name another with --calibration");
}

bool positive(const std::string& text, double& value) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() && std::isfinite(value) && value > 0;
}

/// log2 of measured by estimated ratio, in the file's order, by codec.
std::map<std::string, std::vector<double>> errors_in(const std::string& path) {
  std::map<std::string, std::vector<double>> out;
  if (access(path.c_str(), F_OK) != 0) return out;
  std::ifstream file(path);
  std::string line;
  if (!file) fail_errno(path, "open");
  if (!std::getline(file, line)) return out;
  const bool cut = file.eof() && std::string_view(kHeader).starts_with(line);
  if (line != kHeader && !cut) refuse_kind(path);
  while (std::getline(file, line)) {
    std::vector<std::string> fields;
    for (std::size_t at = 0; at <= line.size();) {
      const std::size_t end = std::min(line.find(',', at), line.size());
      fields.push_back(line.substr(at, end - at));
      at = end + 1;
    }
    double estimated = 0;
    double measured = 0;
    if (fields.size() != 6 || fields[1] != version_of(fields[0]) || fields[2] != model_id() ||
        !positive(fields[4], estimated) || !positive(fields[5], measured))
      continue;
    out[fields[0]].push_back(std::log2(measured / estimated));
  }
  return out;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// What must stand in the file before the next line: the header or what is missing of it, or the end of a line that
/// was cut. Nothing where it is a file of another kind.
std::optional<std::string> missing_before_line(int file) {
  const std::string header = std::string(kHeader) + "\n";
  std::string found(header.size(), '\0');
  const ssize_t read = pread(file, found.data(), found.size(), 0);
  if (read < 0) return std::nullopt;
  found.resize(static_cast<std::size_t>(read));
  if (!header.starts_with(found)) return std::nullopt;
  if (found.size() < header.size()) return header.substr(found.size());
  struct stat info {};
  char last = '\n';
  if (fstat(file, &info) != 0 || pread(file, &last, 1, info.st_size - 1) != 1) return std::nullopt;
  return last == '\n' ? "" : "\n";
}

}  // namespace

void check_calibration_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) {
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    if (access(folder.c_str(), W_OK | X_OK) != 0) fail_errno(path, "create");
    return;
  }
  if (file < 0) fail_errno(path, "open");
  const bool known = missing_before_line(file).has_value();
  close(file);
  if (!known) refuse_kind(path);
}

void record_compression(const std::string& path, const Estimate& estimate, double measured_ratio) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) fail_errno(path, "open");
  const std::optional<std::string> before = missing_before_line(file);
  const std::string text =
      before.value_or("") + fmt::format("{},{},{},{},{},{}\n", estimate.codec, version_of(estimate.codec), model_id(),
                                        estimate.absolute, estimate.ratio.value, measured_ratio);
  const bool written = before && write_all(file, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  const int error = errno;
  const bool closed = close(file) == 0;
  if (written && !closed) fail_errno(path, "write");
  errno = error;
  if (!before) refuse_kind(path);
  if (!written) fail_errno(path, "write");
}

void correct_by_compressions(const std::string& path, EstimateReport& report) {
  for (auto& [codec, errors] : errors_in(path)) {
    if (errors.size() > kMostCounted) errors.erase(errors.begin(), errors.end() - kMostCounted);
    if (errors.size() < kLeastCounted) continue;
    const double factor = std::exp2(median(errors));
    bool used = false;
    for (Estimate& e : report.estimates) {
      if (e.codec != codec) continue;
      e.ratio = {e.ratio.low * factor, e.ratio.value * factor, e.ratio.high * factor};
      used = true;
    }
    if (used)
      report.notes.push_back(fmt::format("ratios of {} are multiplied by {:.4g}, the median of {} compressions in {}",
                                         codec, factor, errors.size(), path));
  }
}

}  // namespace quern::cli
