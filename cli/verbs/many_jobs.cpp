// Many files: who works on them, the progress line, the sum.
#include "cli/verbs/many_jobs.h"

#include <sys/stat.h>

#include <chrono>
#include <new>

#include <fmt/format.h>

#include "cli/args/values.h"
#include "cli/files/file_names.h"
#include "cli/messages/messages.h"
#include "cli/messages/progress.h"
#include "cli/verbs/verbs.h"

namespace quern::cli {
namespace {

std::uint64_t bytes_of(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

/// What all jobs came to.
struct Sum {
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;

  void add(const FileOutcome& outcome) {
    ++(outcome.code == Exit::ok ? done : failed);
    raw_bytes += outcome.raw_bytes;
    stored_bytes += outcome.stored_bytes;
  }
};

std::string sum_text(const Sum& sum, const ManyJobs& jobs, double seconds) {
  std::string text = fmt::format("{} {}", sum.done, jobs.done_word);
  if (const std::uint64_t failed = sum.failed + jobs.failed_before; failed != 0)
    text += fmt::format(", {} failed", failed);
  if (jobs.left_alone != 0) text += fmt::format(", {} left alone (the output exists)", jobs.left_alone);
  if (jobs.others != 0) text += fmt::format(", {} other files passed over", jobs.others);
  if (sum.stored_bytes != 0)
    text +=
        fmt::format(";  {} of arrays, {} of streams, {:.2f}x", size_text(sum.raw_bytes), size_text(sum.stored_bytes),
                    static_cast<double>(sum.raw_bytes) / static_cast<double>(sum.stored_bytes));
  return text + fmt::format(", {:.1f} s\n", seconds);
}

FileOutcome do_job(const ManyJobs& jobs, std::size_t i, const RunArgs& run) {
  FileOutcome outcome;
  attempt(outcome.code, [&] { jobs.work(i, run, outcome); });
  return outcome;
}

class Run {
 public:
  Run(const ManyJobs& jobs, const RunArgs& run) : jobs_(jobs), run_(run) {}

  void one_after_the_other() {
    for (std::size_t i = 0; i < jobs_.inputs.size(); ++i) note(i, do_job(jobs_, i, run_));
  }

  void side_by_side(const Shares& shares) {
    Progress progress("", run_, 1);
    std::uint64_t total = 0;
    std::uint64_t done = 0;
    for (const std::string& input : jobs_.inputs) total += bytes_of(input);
    const auto show = [&](std::size_t files) {
      progress.set_name(fmt::format("{} of {} files", files, jobs_.inputs.size()));
      progress.update(done, total);
    };
    show(0);
    work_side_by_side(
        jobs_.inputs.size(), shares.processes, [&](std::size_t i) { return do_job(jobs_, i, shares.run); },
        [&](std::size_t i) { return jobs_.inputs[i]; },
        [&](std::size_t i, const FinishedFile& file) {
          progress.clear();
          print_message(file.messages);
          if (!file.text.empty()) print_text(file.text);
          note(i, file.outcome);
          done += bytes_of(jobs_.inputs[i]);
          show(i + 1);
        });
  }

  Exit result() const { return result_; }
  const Sum& sum() const { return sum_; }

 private:
  void note(std::size_t i, FileOutcome outcome) {
    sum_.add(outcome);
    attempt(outcome.code, [&] { jobs_.finished(i, outcome); });
    if (result_ == Exit::ok) result_ = outcome.code;
  }

  const ManyJobs& jobs_;
  const RunArgs& run_;
  Sum sum_;
  Exit result_ = Exit::ok;
};

}  // namespace

FoundFiles find_inputs(const std::vector<std::string>& inputs, const ManyArgs& many,
                       const std::function<bool(const std::string&)>& takes) {
  std::vector<std::string> names = inputs;
  if (!many.files_from.empty())
    for (std::string& name : read_file_list(many.files_from)) names.push_back(std::move(name));
  return find_files(names, many.recursive, takes);
}

std::string output_folder(const std::string& wanted, const ManyArgs& many) {
  if (wanted.empty() || wanted == "-") return {};
  if (is_directory(wanted)) return wanted;
  if (!many.recursive && many.files_from.empty()) return {};
  struct stat info {};
  if (stat(wanted.c_str(), &info) == 0) fail(Exit::usage, "-o " + wanted + ": is a file; many files go into a folder");
  return wanted;
}

Exit run_jobs(const ManyJobs& jobs, const ManyArgs& many, const RunArgs& run) {
  const auto began = std::chrono::steady_clock::now();
  Run work(jobs, run);
  const Shares shares = share_out(run, jobs.inputs.size());
  if (jobs.in_one_process || shares.processes < 2) {
    work.one_after_the_other();
  } else {
    work.side_by_side(shares);
  }
  if ((many.recursive || !many.files_from.empty()) && !run.quiet && !run.json)
    print_message(
        sum_text(work.sum(), jobs, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()));
  return work.result();
}

}  // namespace quern::cli
