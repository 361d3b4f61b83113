// quern-mpi: many files on the ranks of an MPI job.
#include <mpi.h>

#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/args/values.h"
#include "cli/files/many_files.h"
#include "cli/files/safe_file.h"
#include "cli/messages/messages.h"
#include "cli/messages/progress.h"
#include "cli/mpi/jobs.h"
#include "cli/mpi/ranks.h"

namespace quern::cli::mpi {
namespace {

/// The run as rank 0 sees it: journal, report, progress.
class Run {
 public:
  explicit Run(const Request& request)
      : request_(request),
        list_(list_jobs(request)),
        journal_(journal_path(request), run_words(request)),
        progress_("", run_args(request), 1) {
    for (const Job& job : list_.jobs) total_ += stamp_of(job.input).bytes;
  }

  bool next(std::size_t& job, std::vector<std::string>& words) {
    for (; at_ < list_.jobs.size(); ++at_) {
      const Job& candidate = list_.jobs[at_];
      const DoneFile* const done = journal_.find_done(candidate.input);
      if (done == nullptr) break;
      ++before_;
      note(candidate, *done);
    }
    if (at_ == list_.jobs.size()) return false;
    job = at_++;
    const bool again = journal_.was_begun(list_.jobs[job].input);
    journal_.begin(list_.jobs[job].input);
    const std::string& output = list_.jobs[job].output;
    if (request_.work == Work::h5_pack) make_folders_for(output);
    if (request_.work == Work::compress || request_.work == Work::decompress) make_folders_for(output + "/file");
    if (again && request_.work != Work::verify) remove_leftovers(written_file(request_, list_.jobs[job]));
    words = quern_words(request_, list_.jobs[job], again);
    return true;
  }

  void finished(std::size_t at, const Finished& finished) {
    const Job& job = list_.jobs[at];
    progress_.clear();
    if (request_.json && !finished.text.empty()) print_text(finished.text);
    if (!request_.quiet || finished.code != 0) print_message(finished.messages);
    if (finished.code == 0) {
      const Bytes bytes = bytes_in(finished.text, request_.work);
      journal_.finish(job.input, bytes.raw, bytes.stored);
      ++done_;
      note(job, {{}, bytes.raw, bytes.stored});
      if (request_.verbose && !request_.quiet) print_message(job.input + ": done\n");
    } else {
      ++failed_;
      done_bytes_ += stamp_of(job.input).bytes;
      if (code_ == 0) code_ = finished.code;
      print_note(fmt::format("{}: failed with code {}", job.input, finished.code));
    }
    progress_.set_name(fmt::format("{} of {} files", done_ + failed_ + before_, list_.jobs.size()));
    progress_.update(done_bytes_, total_);
  }

  int code() const { return code_; }

  void print_sum(int ranks) {
    progress_.clear();
    if (request_.quiet || request_.json) return;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    std::string text = fmt::format("{} files: {} done", list_.jobs.size(), done_);
    if (before_ != 0) text += fmt::format(", {} done before", before_);
    if (failed_ != 0) text += fmt::format(", {} failed", failed_);
    if (list_.others != 0) text += fmt::format(", {} other files passed over", list_.others);
    if (stored_ != 0)
      text += fmt::format(";  {} -> {}, {:.2f}x", size_text(raw_), size_text(stored_),
                          static_cast<double>(raw_) / static_cast<double>(stored_));
    print_message(text + fmt::format(", {} rank{}, {:.1f} s\n", ranks, ranks == 1 ? "" : "s", seconds));
  }

 private:
  static RunArgs run_args(const Request& request) {
    RunArgs run;
    run.progress = request.progress;
    run.quiet = request.quiet;
    return run;
  }
  void note(const Job& job, const DoneFile& file) {
    raw_ += file.raw_bytes;
    stored_ += file.stored_bytes;
    done_bytes_ += stamp_of(job.input).bytes;
  }

  const Request& request_;
  JobList list_;
  Journal journal_;
  Progress progress_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::size_t at_ = 0;
  std::uint64_t total_ = 0, done_bytes_ = 0, raw_ = 0, stored_ = 0;
  std::uint64_t done_ = 0, failed_ = 0, before_ = 0;
  int code_ = 0;
};

/// Rank 0. An error before the first file must still tell the other ranks that nothing is left.
int lead(const std::vector<std::string>& words, int ranks) {
  std::unique_ptr<Request> request;
  std::unique_ptr<Run> run;
  int code = 0;
  try {
    request = std::make_unique<Request>(read_words(words));
    run = std::make_unique<Run>(*request);
  } catch (const CliError& error) {
    print_note(error.what());
    code = static_cast<int>(error.code());
  }
  std::string broken;
  Coordinator coordinator;
  const auto guarded = [&](const auto& work) {
    try {
      work();
    } catch (const CliError& error) {  // such as a journal on a full disk: no file more is begun
      broken = error.what();
      code = static_cast<int>(error.code());
    }
  };
  coordinator.next = [&](std::size_t& job, std::vector<std::string>& next_words) {
    bool more = false;
    if (run != nullptr && broken.empty()) guarded([&] { more = run->next(job, next_words); });
    return more && broken.empty();
  };
  coordinator.finished = [&](std::size_t job, const Finished& finished) {
    guarded([&] { run->finished(job, finished); });
  };
  coordinate(ranks, coordinator);
  if (!broken.empty()) print_note(broken);
  if (run == nullptr) return code;
  run->print_sum(ranks);
  return code != 0 ? code : run->code();
}

int ranks_main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int code = 0;
  try {
    const bool help = !words.empty() && (words[0] == "--help" || words[0] == "-h" || words.back() == "--help");
    if (help) {
      if (rank == 0) print_text(usage_text());
    } else if (rank == 0) {
      code = lead(words, ranks);
    } else {
      serve_rank();
    }
  } catch (const std::exception& error) {
    print_note(std::string("an unexpected error, please report it: ") + error.what());
    MPI_Abort(MPI_COMM_WORLD, static_cast<int>(Exit::resource));
  }
  MPI_Finalize();
  return code;
}

}  // namespace
}  // namespace quern::cli::mpi

int main(int argc, char** argv) { return quern::cli::mpi::ranks_main(argc, argv); }
