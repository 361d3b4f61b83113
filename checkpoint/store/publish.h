// From parts in tmp/ to a checkpoint that others see; and cleaning up after writers that died.
#pragma once

#include "checkpoint/store/store.h"

namespace quern::checkpoint {

/// Where a checkpoint takes its place in the order of the store.
struct PublishAs {
  bool replace =
      false;  ///< the step may be there; else it is refused, also when another writer has published it meanwhile
  std::optional<std::uint64_t> generation;  ///< nothing: behind all others
  std::uint64_t above = 0;                  ///< then it gets a generation above this one, too
};

/// Makes tmp/<id>, whose parts are synced, the checkpoint's data and publishes its manifest with a generation of its
/// own. Returns the manifest's bytes. After a failure before the manifest is in place the checkpoint does not exist;
/// its data may lie in data/ until it is swept away.
Result<std::uint64_t> publish(const Store& store, Manifest& manifest, const PublishAs& as, Report& report);

/// The end of publish(): tmp/<id>, whose parts are synced, becomes the checkpoint's data, and `bytes` its manifest, or
/// that of a retired checkpoint. The caller holds the order lock.
Status put_in_place(const Store& store, const CheckpointName& name, std::span<const std::uint8_t> bytes, bool retired,
                    Report& report);

/// Removes what a dead writer, or a group of them, has in tmp/ under that id. The caller holds the id's lock, which stays.
Status remove_unfinished(const Store& store, std::string_view id);

/// Removes data/<id> of a checkpoint whose manifest never got its place; nothing where it did.
void remove_unpublished(const Store& store, const CheckpointName& name);

/// The largest generation of the store; 0: it has none.
Result<std::uint64_t> newest_generation(const Store& store, Report& report);

/// Fails when a checkpoint of that step is in the store and its parts are whole.
Status check_step_is_free(const Store& store, std::uint64_t step, Report& report);

/// Leaves this writer's manifest in tmp/<id> for the last one to arrive.
Status leave_sub_manifest(const Store& store, const Manifest& manifest, Report& report);
/// When all writers have left theirs: the joined manifest. Nothing while some are missing. Files of the join are
/// removed from tmp/<id>. The caller holds the group's arrival lock.
Result<std::optional<Manifest>> join_sub_manifests(const Store& store, const CheckpointName& name,
                                                   std::uint32_t writers, Report& report);
String arrival_lock(const Store& store, std::string_view id);

/// Removes what dead writers left: folders in tmp/ and data without a manifest, when nobody holds their lock. Writers
/// of a group that have done their share and wait for the others hold no lock any more: what they left goes when
/// another checkpoint was published since, for then all writers of the run have gone on, or with `waiting_too`. Data
/// that has a copy of its manifest goes only with `waiting_too`. The group `but` stays. Best effort; what was removed
/// becomes a note.
void sweep(const Store& store, bool waiting_too, std::string_view but, Report& report);

}  // namespace quern::checkpoint
