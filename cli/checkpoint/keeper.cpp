// quern checkpoint keeper: a process of its own that looks after a store in memory, which outlives the trainer that saves
// to it, and brings its checkpoints to a disk.
#include "checkpoint/tiers/keeper.h"

#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "cli/args/values.h"
#include "cli/checkpoint/verb.h"
#include "cli/files/interrupt.h"
#include "cli/messages/file_report.h"

namespace quern::cli {
namespace {

namespace ck = quern::checkpoint;

constexpr long kTmpfs = 0x01021994, kRamfs = 0x858458F6;  ///< f_type of statfs(2)
constexpr auto kPause = std::chrono::milliseconds(100);

std::string text(const String& s) { return {s.data(), s.size()}; }

/// One for each user and store, so that a keeper that is started again finds what its trainer saved.
std::string usual_folder(const std::string& store) {
  std::error_code error;
  const std::string path = std::filesystem::absolute(store, error).lexically_normal().string();
  const auto hash = ck::content_hash({reinterpret_cast<const std::uint8_t*>(path.data()), path.size()});
  return fmt::format("/dev/shm/quern-{}-{}", geteuid(), text(ck::hex(hash)));
}

/// Makes the folder where it is missing. It must lie in memory, and nobody else may enter it: it holds a model.
void make_private_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) fail_errno(path, "make the folder");
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) fail_errno(path, "look at it");
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0)
    fail(Exit::io, path + ": must be a folder of yours that nobody else can enter (chmod 700), and no link");
  struct statfs system {};
  if (statfs(path.c_str(), &system) != 0) fail_errno(path, "look at its file system");
  if (static_cast<long>(system.f_type) != kTmpfs && static_cast<long>(system.f_type) != kRamfs)
    fail(Exit::usage, fmt::format("--dir {}: does not lie in memory (tmpfs), as /dev/shm does", path));
}

void tell(const CheckpointArgs& args, ck::Report& report) {
  if (!args.run.quiet)
    for (const String& note : report.notes) print_note(text(note));
  report.notes.clear();
}

}  // namespace

Exit run_checkpoint_keeper(const CheckpointArgs& args) {
  const std::string folder = args.keeper_folder.empty() ? usual_folder(args.store) : args.keeper_folder;
  make_private_folder(folder);
  const ck::Store memory = open_store(folder), store = open_store(args.store);
  const auto own = ck::system_files().lock(folder + "/keeper.lock", ck::LockKind::exclusive, false);
  if (!own.ok() && ck::is_busy(own.status()))
    fail(Exit::io, folder + ": another keeper looks after it; end that one first");
  if (!own.ok()) fail(Exit::io, folder + "/keeper.lock: cannot lock it");

  const SignalGuard signals;
  ck::KeeperOptions options;
  options.memory_bytes = args.memory_bytes;
  options.every = args.every;
  options.copy.turn = [](std::size_t) { return !SignalGuard::is_interrupted(); };
  CheckpointWorkspace work(args);
  work.check(ck::fill_memory(memory, store, options, work.runner(), work.report()));
  work.print_notes();
  if (!args.run.quiet && !args.once) print_note(fmt::format("keeper: save to {}", folder));

  std::string told;
  for (;;) {
    ck::Report report;
    ck::Kept kept;
    const Status status = ck::keep_once(memory, store, options, kept, report);
    tell(args, report);
    if (SignalGuard::is_interrupted()) {
      // Now, for the guard's end is that of the process.
      print_note(fmt::format("what is in memory stays in {}; remove it when training is over", folder));
      fail(Exit::interrupted, "interrupted");
    }
    const std::string problem = status.ok()              ? std::string()
                                : report.problem.empty() ? std::string(status.text())
                                                         : text(report.problem);
    if (args.once) {
      if (!status.ok()) fail(exit_for(status, Phase::encode), problem);
      if (args.run.json)
        print_json(Json{{"memory_store", folder},
                        {"steps", std::vector<std::uint64_t>(kept.steps.begin(), kept.steps.end())},
                        {"held_bytes", kept.held_bytes},
                        {"copied", kept.copied},
                        {"copied_bytes", kept.copied_bytes},
                        {"dropped", kept.dropped}});
      return Exit::ok;
    }
    // Said when it begins, and again when it is another; not in every round.
    if (problem != told && !problem.empty()) print_note(problem);
    told = problem;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace quern::cli
