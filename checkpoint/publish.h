// From parts in tmp/ to a checkpoint that others see; and cleaning up after writers that died.
#pragma once

#include "checkpoint/store.h"

namespace quern::checkpoint {

/// Makes tmp/<id>, whose parts are synced, the checkpoint's data and publishes its manifest. Returns the manifest's
/// bytes. After a failure before the manifest is in place the checkpoint does not exist; its data may lie in data/ until
/// it is swept away.
Result<std::uint64_t> publish(const Store& store, const Manifest& manifest, Report& report);

/// Leaves this writer's manifest in tmp/<id> for the last one to arrive.
Status leave_sub_manifest(const Store& store, const Manifest& manifest, Report& report);
/// When all writers have left theirs: the joined manifest. Nothing while some are missing. Files of the join are removed
/// from tmp/<id>. The caller holds the group's arrival lock.
Result<std::optional<Manifest>> join_sub_manifests(const Store& store, const CheckpointName& name,
                                                   std::uint32_t writers, Report& report);
String arrival_lock(const Store& store, std::string_view id);

/// Removes what dead writers left: folders in tmp/ and data without a manifest, when nobody holds their lock. Writers of
/// a group that have done their share and wait for the others hold no lock any more: what they left goes only with
/// `waiting_too`, and so does data that has a copy of its manifest. Best effort; what was removed becomes a note.
void sweep(const Store& store, bool waiting_too, Report& report);

/// Removes a folder of files, the folder too.
Status remove_tree(FileSystem& files, const String& folder);

}  // namespace quern::checkpoint
