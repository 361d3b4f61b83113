// magic | version | state | number | count | XXH3-128 of all before
#include "offload/members.h"

#include <algorithm>
#include <array>

#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"
#include "offload/sealed.h"
#include "offload/subgroup_file.h"
#include "storage/publish_file.h"

namespace quern::offload {
namespace {

using storage::decimal;
using storage::join;
using storage::Report;

constexpr std::array<std::uint8_t, 8> kMagic{0x93, 'Q', 'N', 'O', 'M', 'E', 'M', '\n'};
constexpr std::uint8_t kVersion = 1;
constexpr std::uint64_t kMostBytes = 4096;

Status refuse(Report& report, String sentence) {
  return storage::fail(report, StatusCode::invalid_argument, std::move(sentence));
}

Result<std::optional<Member>> read_member(storage::FileSystem& files, const Folder& folder, Report& report) {
  const String path = folder.file("member");
  const auto bytes = storage::read_file(files, path, kMostBytes);
  if (!bytes.ok() && storage::is_missing(bytes.status())) return std::optional<Member>();
  if (!bytes.ok()) return storage::fail_file(report, path, "read it", bytes.status());
  const auto member = parse_member(*bytes);
  if (!member.ok()) return storage::fail_file(report, path, "use it", member.status());
  return std::optional<Member>(*member);
}

Result<bool> holds_a_state(storage::FileSystem& files, const Folder& folder, Report& report) {
  const auto names = files.list(folder.path());
  if (!names.ok()) return storage::fail_file(report, folder.path(), "list it", names.status());
  return std::any_of(names->begin(), names->end(),
                     [](const String& name) { return name == "state" || is_subgroup_file_name(name); });
}

}  // namespace

Vector<std::uint8_t> write_member(const Member& member) {
  Vector<std::uint8_t> bytes;
  Writer out(bytes);
  out.bytes(kMagic);
  out.u8(kVersion);
  write_hash(out, member.state);
  out.varint(member.number);
  out.varint(member.count);
  seal(bytes);
  return bytes;
}

Result<Member> parse_member(std::span<const std::uint8_t> bytes) {
  QUERN_ASSIGN_OR_RETURN(const auto body, open_sealed(bytes, kMagic));
  Reader in(body);
  QUERN_ASSIGN_OR_RETURN(const std::uint8_t version, in.u8());
  if (version != kVersion)
    return Status(StatusCode::unsupported_version, "a folder of version {0}; this version reads 1", version);
  Member member;
  QUERN_ASSIGN_OR_RETURN(member.state, read_hash(in));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t number, in.varint(UINT32_MAX));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t count, in.varint(UINT32_MAX));
  QUERN_RETURN_IF_ERROR(in.expect_end());
  if (number >= count) return Status(StatusCode::corrupt, "a folder beyond the last one of its state");
  member.number = static_cast<std::uint32_t>(number);
  member.count = static_cast<std::uint32_t>(count);
  return member;
}

Result<std::optional<storage::ContentHash>> find_state(storage::FileSystem& files,
                                                       std::span<const std::unique_ptr<Folder>> folders,
                                                       Report& report) {
  Vector<std::optional<Member>> members(folders.size());
  bool whole = true;
  for (std::size_t f = 0; f < folders.size(); ++f) {
    QUERN_ASSIGN_OR_RETURN(members[f], read_member(files, *folders[f], report));
    if (members[f] && (members[f]->number != f || members[f]->count != folders.size()))
      return refuse(report,
                    join({folders[f]->path(), ": this is folder ", decimal(members[f]->number + 1), " of ",
                          decimal(members[f]->count), " of its state, and was given as folder ", decimal(f + 1), " of ",
                          decimal(folders.size()),
                          ". Give the folders of the state, all of them and in their order, or empty folders"}));
    whole = whole && members[f] && members[f]->state == members[0]->state;
  }
  if (whole) return std::optional(members[0]->state);
  // Folders without files may be what is left of a state that was never begun.
  for (std::size_t f = 0; f < folders.size(); ++f) {
    QUERN_ASSIGN_OR_RETURN(const bool holds, holds_a_state(files, *folders[f], report));
    if (!holds) continue;
    if (!members[f])
      return refuse(report,
                    join({folders[f]->path(),
                          ": files of a state lie here, but no file \"member\" that says of which. Put that file "
                          "back, or give an empty folder"}));
    for (std::size_t other = 0; other < folders.size(); ++other)
      if (!members[other] || members[other]->state != members[f]->state)
        return refuse(report, join({folders[other]->path(), ": this folder does not belong to the state in ",
                                    folders[f]->path(), ", whose folder ", decimal(other + 1), " of ",
                                    decimal(folders.size()), " is another one. Give that one, or empty folders only"}));
  }
  return std::optional<storage::ContentHash>();
}

Result<storage::ContentHash> begin_state(storage::FileSystem& files, std::span<const std::unique_ptr<Folder>> folders,
                                         Report& report) {
  const auto name = files.new_name();
  if (!name.ok()) return storage::fail_file(report, folders.front()->path(), "name a state", name.status());
  Member member;
  member.state = storage::content_hash({reinterpret_cast<const std::uint8_t*>(name->data()), name->size()});
  member.count = static_cast<std::uint32_t>(folders.size());
  for (const auto& folder : folders) {
    const String temporary = folder->file("member.new");
    (void)files.remove(temporary);
    QUERN_RETURN_IF_ERROR(
        storage::publish_file(files, temporary, folder->file("member"), folder->path(), write_member(member), report));
    ++member.number;
  }
  return member.state;
}

}  // namespace quern::offload
