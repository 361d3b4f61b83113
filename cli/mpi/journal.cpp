#include "cli/mpi/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/files/byte_streams.h"
#include "cli/files/many_files.h"

namespace quern::cli::mpi {
namespace {

constexpr std::string_view kHead = "quern-mpi journal 1";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\t': out += "\\t"; break;
      case '\n': out += "\\n"; break;
      case '\\': out += "\\\\"; break;
      default: out += c;
    }
  }
  return out;
}

std::string plain(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    ++i;
    out += text[i] == 't' ? '\t' : text[i] == 'n' ? '\n' : text[i];
  }
  return out;
}

std::vector<std::string_view> cut(std::string_view line, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = line.find(at);
    parts.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return parts;
    line.remove_prefix(end + 1);
  }
}

template <class T>
bool read_number(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

bool read_stamp(std::string_view bytes, std::string_view changed, Stamp& stamp) {
  return read_number(bytes, stamp.bytes) && read_number(changed, stamp.changed_ns);
}

std::string words_line(const std::vector<std::string>& words) {
  std::string line = "words";
  for (const std::string& word : words) line += "\t" + escaped(word);
  return line;
}

std::string read_all(int file, const std::string& path) {
  std::string text;
  std::array<char, 65536> part;
  for (;;) {
    const ssize_t count = ::read(file, part.data(), part.size());
    if (count < 0) fail_errno(path, "read");
    if (count == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

Stamp stamp_of(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return {};
  return {static_cast<std::uint64_t>(info.st_size),
          static_cast<std::int64_t>(info.st_mtim.tv_sec) * 1000000000 + info.st_mtim.tv_nsec};
}

Journal::Journal(const std::string& path, const std::vector<std::string>& words) : path_(path) {
  make_folders_for(path);
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) fail_errno(path, "open");
  try {
    if (flock(file_, LOCK_EX | LOCK_NB) != 0)
      fail(Exit::io, path + ": another run works with this journal; wait for it or name another with --journal");
    const std::string text = read_all(file_, path);
    const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
    read(text.substr(0, whole), words);
    if (whole != text.size() && ftruncate(file_, static_cast<off_t>(whole)) != 0) fail_errno(path, "write");
    if (whole == 0) append(std::string(kHead) + "\n" + words_line(words));
  } catch (...) {
    close(file_);
    throw;
  }
}

Journal::~Journal() { close(file_); }

void Journal::read(const std::string& text, const std::vector<std::string>& words) {
  if (text.empty()) return;
  std::vector<std::string_view> lines = cut(text, '\n');
  lines.pop_back();
  if (lines.front() != kHead) fail(Exit::usage, path_ + ": is no journal of quern-mpi; name another with --journal");
  if (lines.size() > 1 && lines[1] != words_line(words))
    fail(Exit::usage, path_ +
                          ": is of a run with other options; remove it to do everything anew, or name another with "
                          "--journal");
  for (const std::string_view line : lines) {
    const std::vector<std::string_view> parts = cut(line, '\t');
    DoneFile file;
    if (parts.size() == 4 && parts[0] == "begun" && read_stamp(parts[1], parts[2], file.stamp))
      begun_[plain(parts[3])] = file.stamp;
    if (parts.size() == 6 && parts[0] == "done" && read_stamp(parts[1], parts[2], file.stamp) &&
        read_number(parts[3], file.raw_bytes) && read_number(parts[4], file.stored_bytes))
      done_[plain(parts[5])] = file;
  }
}

const DoneFile* Journal::find_done(const std::string& name) const {
  const auto found = done_.find(name);
  return found != done_.end() && found->second.stamp == stamp_of(name) ? &found->second : nullptr;
}

void Journal::append(const std::string& line) {
  const std::string whole = line + "\n";
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(whole.data());
  if (!write_all(file_, {bytes, whole.size()}) || fdatasync(file_) != 0) fail_errno(path_, "write");
}

void Journal::begin(const std::string& name) {
  const Stamp stamp = stamp_of(name);
  begun_[name] = stamp;
  append(fmt::format("begun\t{}\t{}\t{}", stamp.bytes, stamp.changed_ns, escaped(name)));
}

void Journal::finish(const std::string& name, std::uint64_t raw_bytes, std::uint64_t stored_bytes) {
  const Stamp stamp = begun_[name];
  done_[name] = {stamp, raw_bytes, stored_bytes};
  append(
      fmt::format("done\t{}\t{}\t{}\t{}\t{}", stamp.bytes, stamp.changed_ns, raw_bytes, stored_bytes, escaped(name)));
}

}  // namespace quern::cli::mpi
