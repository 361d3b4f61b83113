// Fields of a line in their order, written with the fewest digits that give the same number.
#include "surrogate/runs.h"

#include <charconv>

namespace quern::surrogate {
namespace {

constexpr std::string_view kColumns =
    "input,sha256,dtype,shape,codec,codec_version,bound_rel,bound_abs,range,raw_bytes,stream_bytes,psnr_db,ssim,"
    "autocorrelation,max_error,compress_seconds,decompress_seconds,calibration_seconds,status,power_steps,inputs";

std::string number(double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end.ptr);
}
std::string number(const std::optional<double>& value) { return value ? number(*value) : ""; }

/// Commas and line breaks of a file's name would be columns and lines.
std::string plain(std::string text) {
  for (char& c : text)
    if (c == ',' || static_cast<unsigned char>(c) < 0x20) c = '_';
  return text;
}

/// Takes the fields of a line one after another.
class Fields {
 public:
  explicit Fields(std::string_view line) : rest_(line) {}
  std::string text() {
    if (done_) {
      good_ = false;
      return {};
    }
    const std::size_t comma = rest_.find(',');
    std::string out(rest_.substr(0, comma));
    done_ = comma == std::string_view::npos;
    if (!done_) rest_.remove_prefix(comma + 1);
    return out;
  }
  template <class T>
  T value() {
    T out{};
    const std::string field = text();
    const auto end = std::from_chars(field.data(), field.data() + field.size(), out);
    if (end.ec != std::errc() || end.ptr != field.data() + field.size()) good_ = false;
    return out;
  }
  std::optional<double> optional() {
    const std::string_view here = rest_;
    if (!done_ && (here.empty() || here.front() == ',')) {
      text();
      return std::nullopt;
    }
    return value<double>();
  }
  bool good() const { return good_; }
  bool at_end() const { return done_; }

 private:
  std::string_view rest_;
  bool done_ = false;
  bool good_ = true;
};

}  // namespace

std::string runs_header() { return std::string(kColumns); }

std::string run_line(const Run& run) {
  std::string out = plain(run.input);
  const auto add = [&](const std::string& field) { out += "," + field; };
  add(run.sha256);
  add(run.dtype);
  add(run.shape);
  add(run.codec);
  add(std::to_string(run.codec_version));
  for (const double value : {run.bound_rel, run.bound_abs, run.range}) add(number(value));
  add(std::to_string(run.raw_bytes));
  add(std::to_string(run.stream_bytes));
  for (const auto& value : {run.psnr_db, run.ssim, run.autocorrelation}) add(number(value));
  for (const double value : {run.max_error, run.compress_seconds, run.decompress_seconds, run.calibration_seconds})
    add(number(value));
  add(run.status);
  add(run.power_steps ? "1" : "0");
  std::string inputs;
  for (const double value : run.inputs) inputs += (inputs.empty() ? "" : " ") + number(value);
  add(inputs);
  return out;
}

std::optional<Run> parse_run(std::string_view line) {
  Fields fields(line);
  Run run;
  run.input = fields.text();
  run.sha256 = fields.text();
  run.dtype = fields.text();
  run.shape = fields.text();
  run.codec = fields.text();
  run.codec_version = fields.value<unsigned>();
  run.bound_rel = fields.value<double>();
  run.bound_abs = fields.value<double>();
  run.range = fields.value<double>();
  run.raw_bytes = fields.value<std::uint64_t>();
  run.stream_bytes = fields.value<std::uint64_t>();
  run.psnr_db = fields.optional();
  run.ssim = fields.optional();
  run.autocorrelation = fields.optional();
  run.max_error = fields.value<double>();
  run.compress_seconds = fields.value<double>();
  run.decompress_seconds = fields.value<double>();
  run.calibration_seconds = fields.value<double>();
  run.status = fields.text();
  run.power_steps = fields.value<unsigned>() != 0;
  const std::string inputs = fields.text();
  for (const char *at = inputs.data(), *end = at + inputs.size(); at != end;) {
    if (*at == ' ') ++at;
    double value = 0;
    const auto read = std::from_chars(at, end, value);
    if (read.ec != std::errc()) return std::nullopt;
    run.inputs.push_back(value);
    at = read.ptr;
  }
  if (!fields.good() || !fields.at_end() || run.sha256.size() != 64) return std::nullopt;
  return run;
}

}  // namespace quern::surrogate
