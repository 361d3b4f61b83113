// A subgroup in memory, and its file: the weights in binary32, then the moments as they lie in memory, or the same
// entropy coded (packed_file.h). No value is encoded a second time. A file is written once under a name of its own and
// never changed.
#pragma once

#include "codecs/tensor/at_rest.h"
#include "offload/layout.h"
#include "offload/manifest.h"
#include "storage/file_system.h"
#include "storage/report.h"

namespace quern::offload {

class FileCoder;  // packed_file.h

/// What a read or write of a file moved, and how long that took.
struct Moved {
  std::uint64_t bytes = 0;    ///< of the file
  double path_seconds = 0;    ///< that the folder was at work
  double coding_seconds = 0;  ///< that coding took beside it; 0: nothing was coded
};

struct SubgroupData {
  AlignedBuffer weights;
  codec::tensor::AtRestMoments moments;

  /// Makes room for that subgroup, with what is there where it fits; moments are then zeros or anything.
  Status fit(const Subgroup& group, const codec::tensor::AtRestForm& form);
  float* weight() { return reinterpret_cast<float*>(weights.data()); }
  std::uint64_t bytes() const { return weights.size() + moments.bytes(); }
};

/// Bytes of a subgroup without what its moments keep beside their slots.
std::uint64_t plain_bytes(std::uint64_t values, const codec::tensor::AtRestForm& form);

/// The hash that the manifest keeps of a subgroup: of the hashes of its parts.
storage::ContentHash hash_of(const SubgroupData& data);

/// "gNUMBER-STAMP".
String subgroup_file_name(std::size_t number, std::uint64_t stamp);
bool is_subgroup_file_name(std::string_view name);

/// Reads a file into `data`, which fits the subgroup. `checksum_mismatch` or `corrupt` when it is not what was written.
/// `coder` is needed for files that are entropy coded. `moved`: what the read took.
Status read_subgroup(storage::FileSystem& files, const String& path, const StoredSubgroup& stored, SubgroupData& data,
                     FileCoder* coder, Moved& moved, storage::Report& report);
/// Writes a new file, synced when that is asked for, and fills in sizes and hash. `coder`: null, or what codes it. A
/// file of that name that an earlier pass left is replaced. Nothing is left after a failure, if the disk allows it.
Status write_subgroup(storage::FileSystem& files, const String& path, const SubgroupData& data, bool synced,
                      FileCoder* coder, StoredSubgroup& stored, Moved& moved, storage::Report& report);

}  // namespace quern::offload
