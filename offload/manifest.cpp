// magic | version | state | form | regions | subgroups | XXH3-128 of all before. Version 1 stays what is written while
// no file is entropy coded.
#include "offload/manifest.h"

#include <algorithm>
#include <array>

#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"
#include "offload/layout.h"
#include "offload/sealed.h"

namespace quern::offload {
namespace {

constexpr std::array<std::uint8_t, 8> kMagic{0x93, 'Q', 'N', 'O', 'P', 'T', '\r', '\n'};
constexpr std::uint8_t kVersion = 1;        ///< all files are as in memory
constexpr std::uint8_t kPackedVersion = 2;  ///< each subgroup says whether its file is entropy coded
constexpr std::uint64_t kMostRegions = UINT64_C(1) << 20;

Status corrupt(const char* what) { return Status(StatusCode::corrupt, what); }

}  // namespace

Vector<std::uint8_t> write_manifest(const Manifest& manifest) {
  Vector<std::uint8_t> bytes;
  Writer out(bytes);
  out.bytes(kMagic);
  const bool packed = std::any_of(manifest.groups.begin(), manifest.groups.end(),
                                  [](const StoredSubgroup& group) { return group.packed_bytes != 0; });
  out.u8(packed ? kPackedVersion : kVersion);
  write_hash(out, manifest.state);
  out.u8(static_cast<std::uint8_t>(manifest.form.bits));
  out.u8(manifest.form.finest ? 1 : 0);
  out.varint(manifest.subgroup_values);
  out.u64(manifest.seed);
  out.varint(manifest.step);
  out.varint(manifest.stamp);
  out.varint(manifest.folders);
  out.varint(manifest.region_values.size());
  for (const std::uint64_t values : manifest.region_values) out.varint(values);
  for (const StoredSubgroup& group : manifest.groups) {
    out.varint(group.folder);
    out.varint(group.stamp);
    out.varint(group.beside_bytes);
    write_hash(out, group.hash);
    if (packed) out.varint(group.packed_bytes);
  }
  seal(bytes);
  return bytes;
}

Result<Manifest> parse_manifest(std::span<const std::uint8_t> bytes) {
  QUERN_ASSIGN_OR_RETURN(const auto body, open_sealed(bytes, kMagic));
  Reader in(body);
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t version, in.u8());
  if (version != kVersion && version != kPackedVersion)
    return Status(StatusCode::unsupported_version, "offloaded state of version {0}; this version reads 1 and 2",
                  version);
  Manifest out;
  QUERN_ASSIGN_OR_RETURN(out.state, read_hash(in));
  QUERN_ASSIGN_OR_RETURN(out.form.bits, in.u8());
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t finest, in.u8());
  if ((out.form.bits != 8 && out.form.bits != 4) || finest > 1) return corrupt("offloaded state of an unknown form");
  out.form.finest = finest == 1;
  QUERN_ASSIGN_OR_RETURN(out.subgroup_values, in.varint(kMostValues));
  QUERN_ASSIGN_OR_RETURN(out.seed, in.u64());
  QUERN_ASSIGN_OR_RETURN(out.step, in.varint(kMostSteps));
  QUERN_ASSIGN_OR_RETURN(out.stamp, in.varint());
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t folders, in.varint(UINT32_MAX));
  out.folders = static_cast<std::uint32_t>(folders);
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t regions, in.varint(std::min<std::uint64_t>(kMostRegions, in.remaining())));
  for (std::uint64_t r = 0; r < regions; ++r) {
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t values, in.varint(kMostValues));
    out.region_values.push_back(values);
  }
  // Each subgroup has bytes of its own in the manifest, so a small one cannot ask for many.
  std::uint64_t wanted = 0;
  for (const std::uint64_t values : out.region_values) {
    if (out.subgroup_values != 0) wanted += (values + out.subgroup_values - 1) / out.subgroup_values;
    if (wanted > in.remaining()) return corrupt("offloaded state with more subgroups than its manifest has room for");
  }
  QUERN_ASSIGN_OR_RETURN(const auto groups, cut_subgroups(out.region_values, out.subgroup_values));
  for (std::size_t g = 0; g < groups.size(); ++g) {
    StoredSubgroup group;
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t folder, in.varint(UINT32_MAX));
    if (folder >= folders) return corrupt("offloaded state with a subgroup in no folder");
    group.folder = static_cast<std::uint32_t>(folder);
    QUERN_ASSIGN_OR_RETURN(group.stamp, in.varint(out.stamp));
    QUERN_ASSIGN_OR_RETURN(group.beside_bytes, in.varint(8 * groups[g].values + 8 * kernels::kAtRestBlock));
    QUERN_ASSIGN_OR_RETURN(group.hash, read_hash(in));
    // A coded chunk takes at least some bytes and is hardly larger than its values.
    if (version == kPackedVersion) {
      QUERN_ASSIGN_OR_RETURN(group.packed_bytes, in.varint(16 * groups[g].values + (UINT64_C(1) << 16)));
    }
    out.groups.push_back(group);
  }
  QUERN_RETURN_IF_ERROR(in.expect_end());
  return out;
}

}  // namespace quern::offload
