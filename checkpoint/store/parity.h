// Reed-Solomon parity over a checkpoint's parts: any `parity` files of a group of data + parity may be lost or damaged.
#pragma once

#include "checkpoint/storage.h"
#include "checkpoint/store/manifest.h"
#include "checkpoint/store/store.h"
#include "storage/parity/parity_files.h"

namespace quern::checkpoint {

using storage::GroupDamage;

/// Fails when the numbers are impossible or this build has no parity. 0 and 0 are no parity.
Status check_parity(std::uint32_t data, std::uint32_t parity, Report& report);

/// Writes the parity files of one group, whose parts lie in `folder`, and syncs them. `parts` are those of this writer.
Status write_parity(FileSystem& files, const String& folder, const CheckpointName& name, std::uint32_t group,
                    const Vector<PartInfo>& parts, ParityInfo& parity, Report& report);

/// Compares every column of a group with the table of checksums and, where `mend` is set, writes damaged files anew and
/// puts them in the place of the old ones. Files that cannot be mended are left as they are.
Result<GroupDamage> check_group(const Store& store, const Manifest& manifest, std::uint32_t group, bool mend,
                                Report& report);

}  // namespace quern::checkpoint
