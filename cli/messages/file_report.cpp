// JSON and text of results.
#include "cli/messages/file_report.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"

namespace quern::cli {

Json number_or_null(std::optional<double> value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json bound_json(BoundKind kind, double value) {
  Json out;
  out["kind"] = bound_kind_name(kind);
  out["value"] = kind == BoundKind::lossless ? Json(nullptr) : Json(value);
  return out;
}

std::string bound_text(BoundKind kind, double value) {
  switch (kind) {
    case BoundKind::lossless: return "lossless";
    case BoundKind::abs: return value == 0 ? "exact values" : fmt::format("|x - x'| <= {:.6g}", value);
    case BoundKind::rel: return fmt::format("|x - x'| <= {:.6g} of the range", value);
    case BoundKind::pwrel: return fmt::format("|x - x'| <= {:.6g} |x|", value);
    case BoundKind::psnr: return fmt::format("PSNR >= {:.6g} dB", value);
    case BoundKind::ratio: return fmt::format("ratio >= {:.6g}", value);
  }
  return "unknown";
}

std::string speed_text(std::uint64_t bytes, double seconds) {
  if (bytes == 0 || !(seconds > 0)) return {};
  const double rate = static_cast<double>(bytes) / 1e6 / seconds;
  return rate < 10 ? fmt::format("{:.2g} MB/s", rate) : fmt::format("{:.0f} MB/s", rate);
}

std::size_t thread_count(const RunArgs& run) {
  if (run.threads != 0) return run.threads;
  const unsigned hardware = std::thread::hardware_concurrency();
  return hardware == 0 ? 1 : hardware;
}

namespace {

const char* brief_reason(CodecReason reason) {
  switch (reason) {
    case CodecReason::fastest: return "goal speed";
    case CodecReason::smallest: return "smallest";
    case CodecReason::least_bound: return "smallest bound";
    case CodecReason::best_quality: return "best quality";
    case CodecReason::expected_best: return "best expected";
    case CodecReason::asked_for:
    case CodecReason::only_one:
    case CodecReason::exact: break;
  }
  return "";
}

}  // namespace

std::string choice_text(const CompressReport& made, bool brief) {
  std::string text = brief ? brief_reason(made.reason) : codec_reason_text(made.reason);
  const char* part = "; ";
  const bool by_bound = made.reason == CodecReason::least_bound;
  for (const CodecTrial& trial : made.tried) {
    if (trial.codec == made.codec || (brief && trial.at_least)) continue;
    const double size =
        static_cast<double>(trial.bytes) / static_cast<double>(std::max<std::uint64_t>(made.output_bytes, 1));
    const double share = by_bound ? trial.enforced.value / made.enforced.value : size;
    text += part + trial.codec + (trial.at_least ? " is larger" : fmt::format(" {:.2f}x", share));
    if (!brief && !trial.at_least) text += by_bound ? " the bound" : " the size";
    if (!brief && trial.psnr_db && std::isfinite(*trial.psnr_db)) text += fmt::format(" at {:.1f} dB", *trial.psnr_db);
    part = ", ";
  }
  return text;
}

namespace {

Json tried_json(const Vector<CodecTrial>& tried) {
  Json out = Json::array();
  for (const CodecTrial& trial : tried) {
    Json one;
    one["codec"] = trial.codec;
    one["bytes"] = trial.bytes;
    one["at_least"] = trial.at_least;
    one["enforced"] = trial.at_least ? Json(nullptr) : bound_json(trial.enforced.kind, trial.enforced.value);
    one["psnr_db"] = number_or_null(trial.psnr_db);
    one["on_device"] = trial.on_device;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

Json to_json(const FileReport& report) {
  const auto raw = static_cast<double>(report.raw_bytes);
  Json out;
  out["input"] = report.input;
  out["output"] = report.output;
  out["input_bytes"] = report.input_bytes;
  out["output_bytes"] = report.output_bytes;
  out["ratio"] = report.stream_bytes == 0 ? Json(nullptr) : Json(raw / static_cast<double>(report.stream_bytes));
  out["codec"] = report.codec;
  if (report.reason) {
    out["codec_reason"] = codec_reason_text(*report.reason);
    out["tried"] = tried_json(report.tried);
  }
  if (report.stencil_bytes) out["stencil_bytes"] = *report.stencil_bytes;
  out["bound"] = bound_json(report.requested.kind, report.requested.value);
  out["enforced"] = report.enforced ? bound_json(report.enforced->kind, report.enforced->value) : Json(nullptr);
  out["seconds"] = report.seconds;
  out["mb_per_s"] = report.seconds > 0 ? Json(raw / 1e6 / report.seconds) : Json(nullptr);
  out["max_error"] = number_or_null(report.max_error);
  out["psnr_db"] = number_or_null(report.psnr_db);
  out["violations"] = report.violations ? Json(*report.violations) : Json(nullptr);
  out["device"] = report.device;
  out["threads"] = thread_count(report.run);
  out["version"] = QUERN_VERSION;
  return out;
}

void print_json(const Json& object, bool stdout_is_data) {
  // File names may hold any bytes; what is not UTF-8 is replaced rather than refused.
  const std::string line = object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (stdout_is_data) {
    print_text_to_stderr(line);
  } else {
    print_text(line);
  }
}

}  // namespace quern::cli
