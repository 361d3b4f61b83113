// How a library status becomes an exit code and a sentence.
#include "cli/args/exit_codes.h"

#include <cerrno>
#include <system_error>

namespace quern::cli {
namespace {

/// What the user can do, by code; empty when the status's own text already says it.
const char* advice(StatusCode code, Phase phase) {
  switch (code) {
    case StatusCode::bad_magic: return "; this is not a quern stream, name a file that quern compress wrote";
    case StatusCode::truncated: return "; the file is incomplete, fetch or write it again";
    case StatusCode::corrupt:
    case StatusCode::checksum_mismatch:
      return "; the file is damaged, restore it from a copy or save what is left with --keep-going";
    case StatusCode::unsupported_version: return "; a newer quern wrote it, update this one";
    case StatusCode::reference_missing:
      return "; use the whole file that it was written to, or restore that from a copy";
    case StatusCode::trailing_data: return "; something that is not a quern stream follows the data";
    case StatusCode::out_of_memory: return "; not enough memory, lower -T or free some";
    case StatusCode::memory_limit:
      return phase == Phase::encode ? "; raise --memory, or use less of it with --goal speed" : "; raise --memory";
    case StatusCode::internal:
    case StatusCode::destination_too_small: return "; this is a defect in quern, please report it";
    case StatusCode::missing_model: return "; name it with --model FILE, or its folder with --model-store DIR";
    case StatusCode::hardware_fault: return "; try again, and have the memory of this machine tested";
    default: return "";
  }
}

}  // namespace

const char* errno_advice(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR: return "; check the path and its folder";
    case EACCES:
    case EPERM:
    case EROFS: return "; check the permissions, or use another folder";
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return "; make room, or choose another place";
    case EPIPE: return "; the program that reads it has ended";
    case EMFILE:
    case ENFILE: return "; raise the limit of open files (ulimit -n)";
    default: return "";
  }
}

std::string errno_text(int error) { return std::generic_category().message(error) + errno_advice(error); }

void fail(Exit code, std::string message) { throw CliError(code, std::move(message)); }

Exit exit_for(const Status& status, Phase phase) {
  const Exit by_phase = phase == Phase::encode ? Exit::usage : Exit::stream;
  switch (status.code()) {
    case StatusCode::ok: return Exit::ok;
    case StatusCode::invalid_argument:
    case StatusCode::invalid_shape:
    case StatusCode::invalid_bound:
    case StatusCode::unknown_setting: return Exit::usage;
    case StatusCode::bound_not_met: return Exit::bound;
    case StatusCode::bad_magic:
    case StatusCode::truncated:
    case StatusCode::corrupt:
    case StatusCode::checksum_mismatch:
    case StatusCode::unsupported_version:
    case StatusCode::trailing_data: return Exit::stream;
    case StatusCode::reference_missing: return Exit::missing;
    case StatusCode::unsupported:
    case StatusCode::unknown_codec: return by_phase;
    case StatusCode::missing_model: return Exit::missing;
    case StatusCode::io_error: return Exit::io;
    case StatusCode::cancelled: return Exit::interrupted;
    case StatusCode::out_of_memory:
    case StatusCode::memory_limit:
    case StatusCode::device_unavailable:
    case StatusCode::device_error:
    case StatusCode::destination_too_small:
    case StatusCode::hardware_fault:
    case StatusCode::internal: return Exit::resource;
  }
  return Exit::resource;
}

void fail_status(const Status& status, Phase phase, const std::string& file) {
  fail(exit_for(status, phase), file + ": " + status.text() + advice(status.code(), phase));
}

void fail_call(int status, const std::string& text, Phase phase, const std::string& file) {
  const auto code = static_cast<StatusCode>(status);
  fail(exit_for(Status(code, ""), phase), file + ": " + text + advice(code, phase));
}

void fail_errno(const std::string& file, const std::string& what) {
  const int error = errno;
  fail(Exit::io, file + ": cannot " + what + ": " + errno_text(error));
}

}  // namespace quern::cli
