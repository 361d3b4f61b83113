// One process after another; the times are the processor's.
#include "cli/peers/run_peer.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/files/child.h"
#include "cli/files/file_names.h"
#include "cli/files/interrupt.h"
#include "cli/messages/clock.h"

namespace quern::cli {
namespace {

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return {};
  const std::size_t before = text.rfind('\n', end);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return text.substr(begin, end + 1 - begin);
}

/// The numbers of a last line "seconds: A B"; empty where it is another.
std::vector<double> told_seconds(const std::string& text) {
  constexpr std::string_view kWord = "seconds:";
  const std::string line = last_line(text);
  std::vector<double> out;
  if (!line.starts_with(kWord)) return out;
  for (const char *at = line.data() + kWord.size(), *end = line.data() + line.size(); at != end;) {
    if (*at == ' ') {
      ++at;
      continue;
    }
    double value = 0;
    const auto read = std::from_chars(at, end, value);
    if (read.ec != std::errc() || value < 0) return {};
    out.push_back(value);
    at = read.ptr;
  }
  return out;
}

/// Waits for the process; false when it took too long and was ended.
bool wait_for(Child& child) {
  const Stopwatch watch;
  useconds_t pause = 500;
  while (!child.has_ended(false)) {
    if (watch.seconds() > PeerRunner::kMostSeconds) return false;
    usleep(pause);
    pause = std::min<useconds_t>(pause * 2, 20000);
  }
  return true;
}

/// Runs one command; its times, or a status.
std::vector<double> run_command(const CommandTemplate& command, const PeerFiles& files, const char* work,
                                PeerResult& result) {
  std::vector<std::string> words;
  try {
    words = filled(command, files);
  } catch (const CliError& error) {
    result.status = "unsupported";
    result.message = error.what();
    return {};
  }
  Child child(words, Child::Group::own);
  if (!wait_for(child)) {
    result.status = fmt::format("{}_takes_too_long", work);
    return {};
  }
  if (child.signal() != 0) {
    result.status = fmt::format("{}_ended_by_signal_{}", work, child.signal());
  } else if (child.code() != 0) {
    result.status = fmt::format("{}_exit_{}", work, child.code());
  }
  if (result.status != "ok") result.message = last_line(child.messages());
  std::vector<double> told = told_seconds(child.text());
  if (told.empty()) told.push_back(child.seconds());
  return told;
}

}  // namespace

TemporaryFile::TemporaryFile(const std::string& suffix)
    : path_(in_folder(temporary_folder(), "quern-peer-XXXXXX" + suffix)) {
  const int file = mkostemps(path_.data(), static_cast<int>(suffix.size()), O_CLOEXEC);
  if (file < 0) fail_errno(path_, "create");
  close(file);
  slot_ = register_temporary(path_);
}

TemporaryFile::~TemporaryFile() {
  unlink(path_.c_str());
  forget_temporary(slot_);
}

PeerRunner::PeerRunner(const ArrayView& array) : array_(array), input_(".raw"), stream_(".bin"), output_(".out") {
  const int file = open(input_.path().c_str(), O_WRONLY | O_CLOEXEC | O_TRUNC);
  const bool written = file >= 0 && write_all(file, {static_cast<const std::uint8_t*>(array.data),
                                                     static_cast<std::size_t>(array.bytes())});
  if (file >= 0 && close(file) == 0 && written) return;
  fail_errno(input_.path(), "write");
}

PeerResult PeerRunner::run(const Peer::Way& way, double bound, Buffer& decoded) {
  PeerFiles files;
  files.input = input_.path();
  files.stream = stream_.path();
  files.output = output_.path();
  files.type = dtype_name(array_.dtype);
  for (const std::uint64_t extent : array_.shape.extents()) files.extents.push_back(std::to_string(extent));
  files.bound = fmt::format("{}", bound);
  // What an earlier run left must not be taken for this one's.
  for (const TemporaryFile* file : {&stream_, &output_})
    if (truncate(file->path().c_str(), 0) != 0 && errno != ENOENT) fail_errno(file->path(), "write");
  PeerResult result;
  std::vector<double> seconds = run_command(way.compress, files, "compress", result);
  if (result.status == "ok" && !way.decompress.empty()) {
    const std::vector<double> more = run_command(way.decompress, files, "decompress", result);
    if (!more.empty()) seconds.insert(seconds.begin() + 1, more.front());
  }
  if (result.status != "ok") return result;
  result.compress_seconds = seconds.front();
  if (seconds.size() > 1) result.decompress_seconds = seconds[1];
  std::ifstream stream(files.stream, std::ios::binary | std::ios::ate);
  result.stream_bytes = stream ? static_cast<std::uint64_t>(stream.tellg()) : 0;
  std::ifstream back(files.output, std::ios::binary | std::ios::ate);
  const std::uint64_t bytes = back ? static_cast<std::uint64_t>(back.tellg()) : 0;
  if (result.stream_bytes == 0) {
    result.status = "no_stream";
  } else if (bytes != array_.bytes()) {
    result.status = "wrong_size";
    result.message = fmt::format("{} bytes came back, not {}", bytes, array_.bytes());
  } else {
    back.seekg(0);
    back.read(reinterpret_cast<char*>(decoded.data()), static_cast<std::streamsize>(bytes));
    if (!back) result.status = "wrong_size";
  }
  return result;
}

}  // namespace quern::cli
