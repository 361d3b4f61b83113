#include "checkpoint/peers/fill_from_peers.h"

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

}  // namespace

Status fill_from_peers(const Store& memory, std::span<const Store> stores, PeerMember& member, TaskRunner& runner,
                       const CopyControl& control, Report& report) {
  QUERN_RETURN_IF_ERROR(memory.make_folders(report));
  QUERN_RETURN_IF_ERROR(member.prepare(report));
  const Store staging(memory.files(), join({memory.root(), "/peers/staging"}));
  remove_staging(staging);
  QUERN_ASSIGN_OR_RETURN(const auto names, memory.list(report));
  if (!names.empty()) return {};
  const auto given = member.recover(staging, report);
  if (!given.ok() || given->empty()) {
    remove_staging(staging);
    return given.status();
  }
  Vector<Store> places;
  places.push_back(staging);
  for (const Store& store : stores) places.push_back(store);
  const auto found = newest_of(places, runner, report);
  Status status = found.status();
  if (found.ok() && found->tier == 0)
    status = copy_checkpoint(staging, memory, found->manifest.name, control, report).status();
  remove_staging(staging);
  return status;
}

}  // namespace quern::checkpoint
