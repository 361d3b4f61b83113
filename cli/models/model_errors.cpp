#include "cli/models/model_errors.h"

namespace quern::cli {
namespace {

const char* advice(StatusCode code) {
  switch (code) {
    case StatusCode::bad_magic: return "; name a file that quern train wrote";
    case StatusCode::truncated:
    case StatusCode::corrupt:
    case StatusCode::checksum_mismatch: return "; restore it from a copy, or train it again";
    case StatusCode::unsupported_version: return "; a newer quern wrote it, update this one";
    case StatusCode::out_of_memory: return "; not enough memory, free some";
    default: return "";
  }
}

}  // namespace

void fail_model(const Status& status, const std::string& file) {
  fail(exit_for(status, Phase::decode), file + ": " + status.text() + advice(status.code()));
}

}  // namespace quern::cli
