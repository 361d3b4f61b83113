#include "checkpoint/peers/fill_from_peers.h"

#include <thread>

namespace quern::checkpoint {
namespace {

/// Best effort: what stays is removed the next time.
void remove_staging(const Store& staging) {
  FileSystem& files = staging.files();
  const auto folders = files.list(staging.data_root());
  if (folders.ok())
    for (const String& id : *folders) (void)remove_tree(files, join({staging.data_root(), "/", id}));
  for (const String& folder : {staging.data_root(), staging.manifests_root(), staging.tmp_root(), staging.root()})
    (void)remove_tree(files, folder);
}

constexpr std::chrono::milliseconds kPause(200);  ///< between two times that the others are asked

/// Asks the others once. Whether it is over: a checkpoint came to memory, or all have answered.
Result<bool> ask_once(const Store& memory, const Store& staging, std::span<const Store> stores, PeerMember& member,
                      TaskRunner& runner, const CopyControl& control, Report& report) {
  Vector<Store> places;
  places.push_back(staging);
  for (const Store& store : stores) places.push_back(store);
  std::optional<Found> newest;
  const auto is_enough = [&](const CheckpointName& name) {
    auto found = newest_of(places, runner, report);
    if (!found.ok()) {
      report.notes.push_back(report.problem);
      return false;
    }
    newest = std::move(found).value();
    // What the others have besides is older than this one.
    return newest->tier == 0 || newest->manifest.name.generation >= name.generation;
  };
  Vector<std::uint32_t> silent;
  QUERN_RETURN_IF_ERROR(member.recover(staging, is_enough, silent, report));
  for (const std::uint32_t one : silent)
    report.notes.push_back(
        join({"member ", decimal(one), " of the peers does not answer: what it could give back is not asked for"}));
  if (!newest || newest->tier != 0) return silent.empty();
  const auto copied = copy_checkpoint(staging, memory, newest->manifest.name, control, report);
  if (copied.ok()) return true;
  if (copied.status().code() == StatusCode::cancelled) return copied.status();
  report.notes.push_back(join({"step ", decimal(newest->manifest.name.step),
                               ": the peers gave it back, and it could not be put in memory: ", report.problem}));
  return true;
}

}  // namespace

Status fill_from_peers(const Store& memory, std::span<const Store> stores, PeerMember& member, TaskRunner& runner,
                       const CopyControl& control, std::chrono::milliseconds wait, Report& report) {
  QUERN_RETURN_IF_ERROR(memory.make_folders(report));
  QUERN_RETURN_IF_ERROR(member.prepare(report));
  const Store staging(memory.files(), join({memory.root(), "/peers/staging"}));
  remove_staging(staging);
  const auto end = std::chrono::steady_clock::now() + wait;
  for (;;) {
    // A trainer may save meanwhile: then what is there is newer.
    QUERN_ASSIGN_OR_RETURN(const auto names, memory.list(report));
    if (!names.empty()) return {};
    Report own;
    const auto over = ask_once(memory, staging, stores, member, runner, control, own);
    remove_staging(staging);
    const bool is_cancelled = over.status().code() == StatusCode::cancelled || !control.turn(0);
    if (is_cancelled) return fail(report, StatusCode::cancelled, "interrupted");
    if (!over.ok()) own.notes.push_back(own.problem.empty() ? String(over.status().text()) : own.problem);
    if ((over.ok() && *over) || std::chrono::steady_clock::now() + kPause > end) {
      report.notes.insert(report.notes.end(), own.notes.begin(), own.notes.end());
      // Others are told of it at once: they may be about to ask.
      return member.hash_images(report);
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace quern::checkpoint
