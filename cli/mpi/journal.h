// What a run has begun and done, kept in a file so that the next one goes on. Lines of text:
//
//   quern-mpi journal 1
//   words WORDS                        verb and options, tab between them
//   begun SIZE TIME NAME               of the input: bytes, time of change in ns
//   done SIZE TIME RAW STORED NAME     and bytes of the array and of the stream
//
// Tabs, line breaks and backslashes in words and names are written as \t, \n and \\. A last line without an end is one
// that was being written when the job was killed; it does not count.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace quern::cli::mpi {

/// How a journal knows an input again.
struct Stamp {
  std::uint64_t bytes = 0;
  std::int64_t changed_ns = 0;
  friend bool operator==(const Stamp&, const Stamp&) = default;
};
/// All zero where the file cannot be seen.
Stamp stamp_of(const std::string& path);

struct DoneFile {
  Stamp stamp;
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;
};

class Journal {
 public:
  /// Opens or makes the file and keeps it locked. Throws CliError: it is of another command (usage), another run has it
  /// (io), it cannot be read or written (io).
  Journal(const std::string& path, const std::vector<std::string>& words);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// What is known of an input that is done and has not changed since; null for others.
  const DoneFile* find_done(const std::string& name) const;
  /// Whether a run began with it: its output may be there, and is of this command.
  bool was_begun(const std::string& name) const { return begun_.contains(name); }

  /// Both reach the disk before they return.
  void begin(const std::string& name);
  void finish(const std::string& name, std::uint64_t raw_bytes, std::uint64_t stored_bytes);

 private:
  void read(const std::string& text, const std::vector<std::string>& words);
  void append(const std::string& line);

  std::string path_;
  int file_ = -1;
  std::map<std::string, Stamp> begun_;
  std::map<std::string, DoneFile> done_;
};

}  // namespace quern::cli::mpi
