#include "cli/mpi/ranks.h"

#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/files/child.h"

namespace quern::cli::mpi {
namespace {

constexpr int kToZero = 1;
constexpr int kFromZero = 2;
constexpr useconds_t kPause = 500;  // microseconds between two looks of rank 0

struct Result {
  std::uint64_t text_bytes = 0;
  std::uint64_t message_bytes = 0;
  std::int32_t code = 0;
  std::uint32_t has_file = 0;
};

std::vector<char> packed(const Finished* finished) {
  Result result;
  if (finished != nullptr) result = {finished->text.size(), finished->messages.size(), finished->code, 1};
  std::vector<char> bytes(sizeof result);
  std::memcpy(bytes.data(), &result, sizeof result);
  if (finished != nullptr) {
    bytes.insert(bytes.end(), finished->text.begin(), finished->text.end());
    bytes.insert(bytes.end(), finished->messages.begin(), finished->messages.end());
  }
  return bytes;
}

std::optional<Finished> unpacked(const std::vector<char>& bytes) {
  Result result;
  std::memcpy(&result, bytes.data(), sizeof result);
  if (result.has_file == 0) return std::nullopt;
  const char* const text = bytes.data() + sizeof result;
  return Finished{result.code, std::string(text, result.text_bytes),
                  std::string(text + result.text_bytes, result.message_bytes)};
}

std::vector<char> receive(int from, int tag) {
  MPI_Status status;
  MPI_Probe(from, tag, MPI_COMM_WORLD, &status);
  int count = 0;
  MPI_Get_count(&status, MPI_CHAR, &count);
  std::vector<char> bytes(static_cast<std::size_t>(count));
  MPI_Recv(bytes.data(), count, MPI_CHAR, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return bytes;
}

void send(int to, int tag, const std::vector<char>& bytes) {
  MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_CHAR, to, tag, MPI_COMM_WORLD);
}

std::vector<char> joined(const std::vector<std::string>& words) {
  std::vector<char> bytes;
  for (const std::string& word : words) {
    bytes.insert(bytes.end(), word.begin(), word.end());
    bytes.push_back('\0');
  }
  return bytes;
}

std::vector<std::string> split(const std::vector<char>& bytes) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < bytes.size(); at += words.back().size() + 1) words.emplace_back(bytes.data() + at);
  return words;
}

/// What it said, and a sentence where a signal ended it.
Finished end_of(const Child& child) {
  std::string messages = child.messages();
  if (child.signal() != 0)
    messages += fmt::format("quern: its process was ended by signal {}{}\n", child.signal(),
                            child.signal() == SIGKILL ? "; if memory ran out, fewer ranks a node need less" : "");
  return {child.code(), child.text(), messages};
}

Finished run(const std::vector<std::string>& words) {
  try {
    Child child(words);
    child.has_ended(true);
    return end_of(child);
  } catch (const CliError& error) {
    return {static_cast<int>(error.code()), "", std::string("quern: ") + error.what() + "\n"};
  }
}

/// Rank 0: its own quern between messages of the others.
class Coordination {
 public:
  Coordination(int ranks, const Coordinator& coordinator)
      : coordinator_(coordinator), waiting_(ranks - 1), jobs_(static_cast<std::size_t>(ranks)) {}

  void run() {
    bool more = begin_own();
    while (waiting_ > 0 || more) {
      bool moved = serve_others();
      if (more && (own_ == nullptr || own_->has_ended(waiting_ == 0))) {
        if (own_ != nullptr) coordinator_.finished(jobs_[0], end_of(*own_));
        more = begin_own();
        moved = true;
      }
      if (!moved) usleep(kPause);
    }
  }

 private:
  /// False when nothing is left to do for this rank.
  bool begin_own() {
    own_ = nullptr;
    std::vector<std::string> words;
    if (!coordinator_.next(jobs_[0], words)) return false;
    try {
      own_ = std::make_unique<Child>(words);
    } catch (const CliError& error) {
      coordinator_.finished(jobs_[0],
                            {static_cast<int>(error.code()), "", std::string("quern: ") + error.what() + "\n"});
    }
    return true;
  }

  bool serve_others() {
    if (waiting_ == 0) return false;
    int there = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, kToZero, MPI_COMM_WORLD, &there, &status);
    if (there == 0) return false;
    const int rank = status.MPI_SOURCE;
    std::size_t& job = jobs_[static_cast<std::size_t>(rank)];
    if (const auto finished = unpacked(receive(rank, kToZero))) coordinator_.finished(job, *finished);
    std::vector<std::string> words;
    if (!coordinator_.next(job, words)) --waiting_;
    mpi::send(rank, kFromZero, joined(words));
    return true;
  }

  const Coordinator& coordinator_;
  int waiting_;  // ranks that have not been told that nothing is left
  std::vector<std::size_t> jobs_;
  std::unique_ptr<Child> own_;
};

}  // namespace

void serve_rank() {
  std::vector<char> result = packed(nullptr);
  for (;;) {
    send(0, kToZero, result);
    const std::vector<std::string> words = split(receive(0, kFromZero));
    if (words.empty()) return;
    const Finished finished = run(words);
    result = packed(&finished);
  }
}

void coordinate(int ranks, const Coordinator& coordinator) { Coordination(ranks, coordinator).run(); }

}  // namespace quern::cli::mpi
