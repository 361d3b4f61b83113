// Reed-Solomon parity over a checkpoint's parts: any `parity` files of a group of data + parity may be lost or damaged.
// Columns are 1 MiB of one part each; a stripe has the columns of the same place in all parts of a group.
#pragma once

#include "checkpoint/storage.h"
#include "checkpoint/store/manifest.h"
#include "checkpoint/store/store.h"

namespace quern::checkpoint {

inline constexpr std::size_t kColumnBytes = std::size_t{1} << 20;
inline constexpr std::uint32_t kMaxParityColumns = 64;  ///< data and parity together

/// Fails when the numbers are impossible or this build has no parity. 0 and 0 are no parity.
Status check_parity(std::uint32_t data, std::uint32_t parity, Report& report);

/// Writes the parity files of one group, whose parts lie in `folder`, and syncs them. `parts` are those of this writer.
Status write_parity(FileSystem& files, const String& folder, const CheckpointName& name, std::uint32_t group,
                    const Vector<PartInfo>& parts, ParityInfo& parity, Report& report);

/// A file of a group, and what is wrong with it.
struct GroupDamage {
  Vector<String> damaged;  ///< names of files with something wrong
  bool repairable = true;  ///< no stripe has lost more columns than there are parity files
};

/// Compares every column of a group with the table of checksums and, where `mend` is set, writes damaged files anew and
/// puts them in the place of the old ones. Files that cannot be mended are left as they are.
Result<GroupDamage> check_group(const Store& store, const Manifest& manifest, std::uint32_t group, bool mend,
                                Report& report);

}  // namespace quern::checkpoint
