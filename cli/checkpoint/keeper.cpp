// quern checkpoint keeper: a process of its own that looks after a store in memory, which outlives the trainer that
// saves to it, and brings its checkpoints to a disk.
#include "checkpoint/tiers/keeper.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "checkpoint/peers/fill_from_peers.h"
#include "checkpoint/peers/unix_peers.h"
#include "checkpoint/tiers/retry.h"
#include "cli/args/values.h"
#include "cli/checkpoint/verb.h"
#include "cli/files/interrupt.h"
#include "cli/messages/file_report.h"

namespace quern::cli {
namespace {

namespace ck = quern::checkpoint;

constexpr long kTmpfs = 0x01021994, kRamfs = 0x858458F6;  ///< f_type of statfs(2)
constexpr std::chrono::milliseconds kPause(100);
constexpr std::chrono::seconds kLongestPause(30);  ///< between copies that fail
constexpr std::chrono::seconds kWaitForPeers(15);  ///< that were started with this keeper

std::string text(const String& s) { return {s.data(), s.size()}; }

/// One for each user and store, by whatever path, so that a keeper that is started again finds what its trainer saved.
std::string usual_folder(const std::string& store) {
  std::error_code error;
  std::filesystem::path real = std::filesystem::weakly_canonical(store, error);
  if (error) real = std::filesystem::absolute(store, error).lexically_normal();
  const std::string path = real.string();
  const auto hash = ck::content_hash({reinterpret_cast<const std::uint8_t*>(path.data()), path.size()});
  return fmt::format("/dev/shm/quern-{}-{}", geteuid(), text(ck::hex(hash)));
}

/// Makes the folder where it is missing. It must lie in memory, and nobody else may enter it: it holds a model. A store
/// that a trainer made before, with the rights that folders have as a rule, is closed to others.
void make_private_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) fail_errno(path, "make the folder");
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0 && errno != ELOOP && errno != ENOTDIR) fail_errno(path, "open it");
  struct stat info {};
  struct statfs system {};
  struct stat inside {};
  const bool ours = folder >= 0 && fstat(folder, &info) == 0 && info.st_uid == geteuid();
  const bool closed = ours && (info.st_mode & 077) == 0;
  const bool known = folder >= 0 && fstatfs(folder, &system) == 0;
  const bool in_memory = static_cast<long>(system.f_type) == kTmpfs || static_cast<long>(system.f_type) == kRamfs;
  bool mended = false;
  if (ours && !closed && known && in_memory && (info.st_mode & 022) == 0 &&
      fstatat(folder, "manifests", &inside, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(inside.st_mode))
    mended = fchmod(folder, 0700) == 0;
  if (folder >= 0) close(folder);
  if (!closed && !mended)
    fail(Exit::io, path + ": must be a folder of yours that nobody else can enter (chmod 700), and no link");
  if (!known) fail(Exit::io, path + ": cannot look at its file system");
  if (!in_memory) fail(Exit::usage, fmt::format("--dir {}: does not lie in memory (tmpfs), as /dev/shm does", path));
}

std::unique_ptr<ck::FileLock> lock_for_keeper(const std::string& folder, const char* work) {
  const std::string path = folder + "/keeper.lock";
  auto lock = ck::system_files().lock(path, ck::LockKind::exclusive, false);
  if (!lock.ok() && ck::is_busy(lock.status()))
    fail(Exit::io, fmt::format("{}: another keeper {}; end that one first", folder, work));
  if (!lock.ok()) fail(Exit::io, path + ": cannot lock it");
  return std::move(lock).value();
}

/// Prints what was not printed a moment ago: rounds follow each other, and say the same again.
class Teller {
 public:
  explicit Teller(bool quiet) : quiet_(quiet) {}

  void tell(const ck::Store& store, const ck::Kept& kept, const ck::Report& report) {
    // Also when quiet: it is a failure.
    for (const std::uint64_t step : kept.lost)
      print_note(fmt::format("step {} had to leave memory before it was in {}", step, text(store.root())));
    if (!quiet_)
      for (const String& note : report.notes) once(text(note));
  }
  void once(const std::string& line) {
    if (std::find(told_.begin(), told_.end(), line) != told_.end()) return;
    print_note(line);
    if (told_.size() == kRemembered) told_.pop_front();
    told_.push_back(line);
  }

 private:
  static constexpr std::size_t kRemembered = 64;
  const bool quiet_;
  std::deque<std::string> told_;
};

/// This keeper as a member of its group.
class Group {
 public:
  Group(const CheckpointArgs& args, const ck::Store& memory, const ck::CopyControl& control)
      : transport_(sockets(args), kPeerSeconds),
        member_(memory,
                {{static_cast<std::uint32_t>(args.peers.size()), static_cast<std::uint32_t>(args.peer_parity)},
                 static_cast<std::uint32_t>(args.member),
                 ck::kPeerBlockBytes,
                 control.turn},
                transport_) {}

  ck::PeerMember& member() { return member_; }
  /// Others are answered from now on, and told of all that is in memory.
  Status serve(const CheckpointArgs& args, ck::Report& report) {
    QUERN_RETURN_IF_ERROR(member_.hash_images(report));
    auto server = ck::UnixPeerServer::start(String(args.peers[args.member]), member_, kPeerSeconds, report);
    if (!server.ok()) return server.status();
    server_ = std::move(server).value();
    return {};
  }
  /// A round; what it says is told when it changes. Which checkpoint is safe stays known while members are away.
  void protect(Teller& teller, bool quiet, std::optional<ck::CheckpointName>& safe) {
    ck::PeerRound round;
    ck::Report report;
    const Status status = member_.protect(round, report);
    if (round.safe && safe != round.safe) {
      safe = round.safe;
      if (!quiet) print_note(fmt::format("step {} is safe: parity of it is with all peers", safe->step));
    }
    if (status.code() == StatusCode::cancelled) return;
    if (!status.ok()) teller.once(report.problem.empty() ? std::string(status.text()) : text(report.problem));
    std::string away;
    for (const std::uint32_t one : round.silent) away += fmt::format("{}{}", away.empty() ? "" : ", ", one);
    if (away != away_ && !away.empty())
      print_note(fmt::format("peers that do not answer: {}; what is saved now is not safe without them", away));
    away_ = away;
  }

 private:
  static constexpr double kPeerSeconds = 10;
  static Vector<String> sockets(const CheckpointArgs& args) {
    Vector<String> out;
    for (const std::string& path : args.peers) out.emplace_back(path);
    return out;
  }

  ck::UnixPeers transport_;
  ck::PeerMember member_;
  std::unique_ptr<ck::UnixPeerServer> server_;
  std::string away_;
};

}  // namespace

Exit run_checkpoint_keeper(const CheckpointArgs& args) {
  const std::string folder = args.keeper_folder.empty() ? usual_folder(args.store) : args.keeper_folder;
  make_private_folder(folder);
  const ck::Store memory = open_store(folder), store = open_store(args.store);
  const auto own = lock_for_keeper(folder, "looks after it");
  CheckpointWorkspace work(args);
  work.check(memory.make_folders(work.report()));
  work.check(store.make_folders(work.report()));
  work.check(memory.check_apart(store, work.report()));
  const auto others = lock_for_keeper(args.store, "copies to it");

  const SignalGuard signals;
  ck::KeeperOptions options;
  options.memory_bytes = args.memory_bytes;
  options.every = args.every;
  options.copy.turn = [](std::size_t) { return !SignalGuard::is_interrupted(); };
  std::unique_ptr<Group> group;
  if (!args.peers.empty()) {
    group = std::make_unique<Group>(args, memory, options.copy);
    work.check(group->member().prepare(work.report()));
    work.check(group->serve(args, work.report()));
    work.check(ck::fill_from_peers(memory, std::span(&store, 1), group->member(), work.runner(), options.copy,
                                   kWaitForPeers, work.report()));
  }
  work.check(ck::fill_memory(memory, store, options, work.runner(), work.report()));
  work.print_notes();
  if (!args.run.quiet && !args.once) print_note(fmt::format("keeper: save to {}", folder));

  Teller teller(args.run.quiet);
  ck::Retry retry(kLongestPause);
  ck::KeeperState state;
  std::string told;
  for (;;) {
    ck::Report report;
    ck::Kept kept;
    if (group) group->protect(teller, args.run.quiet, options.stays);
    options.copies = retry.is_due();
    const Status status = ck::keep_once(memory, store, options, state, kept, report);
    teller.tell(store, kept, report);
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
                        {"dropped", kept.dropped},
                        {"lost", std::vector<std::uint64_t>(kept.lost.begin(), kept.lost.end())}});
      return Exit::ok;
    }
    // Said when it begins, and again when it is another; not in every round.
    if (problem != told && !problem.empty()) print_note(problem);
    if (options.copies || !status.ok()) told = problem;
    if (options.copies) retry.heard(status.ok());
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace quern::cli
