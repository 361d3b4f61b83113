// The file "member" in each folder of a state: which state the folder belongs to, and at which place. Without it a folder
// given at another place, or with others, would look like one full of files that nobody needs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "offload/folders.h"
#include "storage/content_hash.h"

namespace quern::offload {

struct Member {
  storage::ContentHash state;  ///< random, of the state
  std::uint32_t number = 0;    ///< of the folder, from 0
  std::uint32_t count = 0;     ///< folders of the state
};

Vector<std::uint8_t> write_member(const Member& member);
/// Any bytes; fails with `corrupt`, `bad_magic`, `checksum_mismatch` or `unsupported_version`.
Result<Member> parse_member(std::span<const std::uint8_t> bytes);

/// The state that these folders, in this order, are all the folders of; nothing where all may become folders of a new
/// state, because no files of a state lie there. Else `invalid_argument`, with a sentence that names the folder. Changes
/// nothing.
Result<std::optional<storage::ContentHash>> find_state(storage::FileSystem& files,
                                                       std::span<const std::unique_ptr<Folder>> folders,
                                                       storage::Report& report);
/// Makes the folders those of a new state, which it returns.
Result<storage::ContentHash> begin_state(storage::FileSystem& files, std::span<const std::unique_ptr<Folder>> folders,
                                         storage::Report& report);

}  // namespace quern::offload
