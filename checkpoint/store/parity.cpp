// Which files of a checkpoint form a group, and the headers of its parity files.
#include "checkpoint/store/parity.h"

#include <array>

#include "checkpoint/store/part_reader.h"
#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/writer.h"
#include "storage/parity/erasure.h"

namespace quern::checkpoint {
namespace {

using storage::ParityGroup;

constexpr std::array<std::uint8_t, 8> kMagic = {0x9B, 'Q', 'C', 'Y', '\r', '\n', 0x1A, '\n'};
constexpr std::array<std::uint8_t, 8> kEndMagic = {0x9B, 'Q', 'C', 'Z', '\r', '\n', 0x1A, '\n'};

/// The number of a group among those of its writer, and its size.
struct GroupNumbers {
  std::uint32_t group = 0, data = 0, parity = 0;
};

Vector<std::uint8_t> header_of(const CheckpointName& name, const GroupNumbers& numbers, std::uint32_t index,
                               std::span<const std::uint64_t> sizes) {
  Vector<std::uint8_t> out(kPartHeaderBytes);
  ByteWriter writer(out);
  writer.bytes(kMagic);
  writer.u16(kPartMajor);
  writer.u16(kPartMinor);
  writer.u32(numbers.group);
  writer.u64(name.step);
  writer.u32(index);
  writer.u32(numbers.data);
  writer.u32(numbers.parity);
  for (const std::uint64_t size : sizes) writer.u64(size);
  writer.u8(static_cast<std::uint8_t>(name.id.size()));
  writer.bytes({reinterpret_cast<const std::uint8_t*>(name.id.data()), name.id.size()});
  ByteWriter end{std::span(out).last<8>()};
  end.u64(checksum64(std::span(out).first<kPartHeaderBytes - 8>()));
  return out;
}

/// `tmp`: the folder of files on their way.
ParityGroup group_of(FileSystem& system, const String& folder, const String& tmp, const CheckpointName& name,
                     const GroupNumbers& numbers, std::span<const PartInfo> parts) {
  Vector<storage::ParityFile> files;
  for (std::uint32_t c = 0; c < numbers.data + numbers.parity; ++c) {
    String file = c < numbers.data ? numbered_name("part", numbers.group * numbers.data + c)
                                   : numbered_name("parity", numbers.group * numbers.parity + c - numbers.data);
    String path = join({folder, "/", file}), temporary = join({tmp, "/", name.id, ".", file});
    files.push_back({std::move(file), std::move(path), std::move(temporary)});
  }
  Vector<std::uint64_t> sizes;
  for (const PartInfo& part : parts) sizes.push_back(part.bytes);
  Vector<Vector<std::uint8_t>> headers;
  for (std::uint32_t i = 0; i < numbers.parity; ++i) headers.push_back(header_of(name, numbers, i, sizes));
  return ParityGroup(system, std::move(files), std::move(sizes), std::move(headers), kEndMagic);
}

/// No parity file has its table: every part must hold by itself, then parity is made anew.
Result<GroupDamage> remake_parity(const Store& store, const Manifest& manifest, std::uint32_t number,
                                  const ParityGroup& group, bool mend, Report& report) {
  GroupDamage out;
  for (std::uint32_t c = 0; c < group.data(); ++c) {
    const std::uint32_t part = number * group.data() + c;
    Report own;
    const auto reader = PartReader::open(store.files(), group.file(c).path, part_identity(manifest.name, part),
                                         manifest.parts[part], own);
    Vector<std::uint8_t> body;
    bool good = reader.ok();
    for (std::size_t r = 0; good && r < reader->records().size(); ++r) good = reader->read(r, body, own).ok();
    if (!good) {
      out.damaged.push_back(group.file(c).name);
      out.repairable = false;
    }
  }
  for (std::uint32_t c = group.data(); c < group.columns(); ++c) out.damaged.push_back(group.file(c).name);
  if (mend && out.repairable) QUERN_RETURN_IF_ERROR(storage::replace_parity_files(group, report));
  return out;
}

}  // namespace

Status check_parity(std::uint32_t data, std::uint32_t parity, Report& report) {
  if (data == 0 && parity == 0) return {};
  if (data == 0 || parity == 0 || std::uint64_t{data} + parity > storage::kMostParityColumns)
    return fail(report, StatusCode::invalid_argument,
                "parity needs at least 1 part and 1 parity file, and at most 64 of both together");
  if (!storage::has_erasure_coding())
    return fail(report, StatusCode::unsupported, "this build has no parity: it was made without ISA-L");
  return {};
}

Status write_parity(FileSystem& files, const String& folder, const CheckpointName& name, std::uint32_t group_number,
                    const Vector<PartInfo>& parts, ParityInfo& parity, Report& report) {
  const auto group = group_of(files, folder, folder, name, {group_number, parity.data, parity.parity}, parts);
  QUERN_ASSIGN_OR_RETURN(const auto checksum, storage::write_parity_files(group, report));
  for (std::uint32_t i = 0; i < group.parity(); ++i) parity.files.push_back({group.parity_file_bytes(), checksum});
  return {};
}

Result<GroupDamage> check_group(const Store& store, const Manifest& manifest, std::uint32_t number, bool mend,
                                Report& report) {
  const ParityInfo& info = manifest.parity;
  QUERN_RETURN_IF_ERROR(check_parity(info.data, info.parity, report));
  const auto group = group_of(store.files(), store.data_folder(manifest.name.id), store.tmp_root(), manifest.name,
                              {number, info.data, info.parity},
                              std::span(manifest.parts).subspan(std::size_t{number} * info.data, info.data));
  const PartInfo& expected = info.files[std::size_t{number} * info.parity];
  if (expected.bytes != group.parity_file_bytes())
    return fail(report, StatusCode::corrupt, "the manifest's sizes of parity files are impossible");
  QUERN_ASSIGN_OR_RETURN(auto found, storage::check_parity_files(group, expected.index_checksum, mend, report));
  if (!found) return remake_parity(store, manifest, number, group, mend, report);
  return std::move(*found);
}

}  // namespace quern::checkpoint
