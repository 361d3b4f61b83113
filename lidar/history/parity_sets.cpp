#include "lidar/history/parity_sets.h"

#include <algorithm>
#include <array>

#include "libcompress/format/frame/checksum.h"
#include "lidar/history/stored_numbers.h"

namespace quern::lidar {
namespace {

using storage::join;

constexpr std::array<std::uint8_t, 8> kMagic = {0x9B, 'Q', 'H', 'P', '\r', '\n', 0x1A, '\n'};
constexpr std::uint16_t kVersion = 1;
constexpr std::uint64_t kMostNameBytes = 64;
constexpr std::uint64_t kMostFilesOfASet = 64;
constexpr std::size_t kHashDigits = 32;

Vector<std::uint8_t> write_list(const ParityList& list) {
  Vector<std::uint8_t> out;
  Writer writer(out);
  writer.varint(list.data);
  writer.varint(list.parity);
  writer.varint(list.files.size());
  for (const GuardedFile& file : list.files) {
    writer.varint(file.name.size());
    writer.bytes({reinterpret_cast<const std::uint8_t*>(file.name.data()), file.name.size()});
    writer.varint(file.bytes);
  }
  return out;
}

/// Nothing outside of the two folders is ever guarded, and so none is written when files are mended.
bool is_guarded_name(std::string_view name) {
  if (name.starts_with("segments/")) return storage::parse_content_hash(name.substr(9)).has_value();
  return name.starts_with("epochs/") && parse_epoch_name(name.substr(7)).has_value();
}

Result<ParityList> read_list(std::span<const std::uint8_t> bytes) {
  Reader reader(bytes);
  ParityList out;
  QUERN_ASSIGN_OR_RETURN(const auto data, reader.varint(kMostFilesOfASet));
  QUERN_ASSIGN_OR_RETURN(const auto parity, reader.varint(kMostFilesOfASet));
  QUERN_ASSIGN_OR_RETURN(const auto count, reader.varint(kMostFilesOfASet));
  if (!are_parity_numbers(data, parity) || count == 0 || count > data)
    return Status(StatusCode::corrupt, "a set of parity has impossible numbers");
  out.data = static_cast<std::uint32_t>(data);
  out.parity = static_cast<std::uint32_t>(parity);
  for (std::uint64_t i = 0; i < count; ++i) {
    QUERN_ASSIGN_OR_RETURN(const auto size, reader.varint(kMostNameBytes));
    QUERN_ASSIGN_OR_RETURN(const auto text, reader.bytes(static_cast<std::size_t>(size)));
    GuardedFile file{String(reinterpret_cast<const char*>(text.data()), text.size()), 0};
    QUERN_ASSIGN_OR_RETURN(file.bytes, reader.varint(ParityList::kMostFileBytes));
    const bool is_twice = std::any_of(out.files.begin(), out.files.end(),
                                      [&](const GuardedFile& other) { return other.name == file.name; });
    if (!is_guarded_name(file.name) || is_twice)
      return Status(StatusCode::corrupt, "a set of parity names what is no file of a history, or one twice");
    out.files.push_back(std::move(file));
  }
  QUERN_RETURN_IF_ERROR(reader.expect_end());
  return out;
}

/// "HASH-NN".
struct ParityFileName {
  ContentHash set;
  std::uint8_t index = 0;
};

std::optional<ParityFileName> parse_file_name(std::string_view text) {
  if (text.size() != kHashDigits + 3 || text[kHashDigits] != '-') return std::nullopt;
  const auto set = storage::parse_content_hash(text.substr(0, kHashDigits));
  const char tens = text[kHashDigits + 1], ones = text[kHashDigits + 2];
  if (!set || tens < '0' || tens > '9' || ones < '0' || ones > '9') return std::nullopt;
  return ParityFileName{*set, static_cast<std::uint8_t>(10 * (tens - '0') + ones - '0')};
}

/// The list of a parity file whose header holds and belongs to its name.
std::optional<ParityList> list_of(storage::FileSystem& files, const String& path, const ParityFileName& name) {
  const auto file = files.open(path);
  if (!file.ok()) return std::nullopt;
  const auto size = (*file)->size();
  if (!size.ok()) return std::nullopt;
  Vector<std::uint8_t> bytes(std::min<std::uint64_t>(*size, kMostParityHeaderBytes));
  if (!storage::read_fully(**file, 0, bytes).ok()) return std::nullopt;
  std::uint8_t index = 0;
  auto list = read_parity_header(bytes, index);
  if (!list.ok() || index != name.index || parity_name(*list) != name.set) return std::nullopt;
  return std::move(list).value();
}

}  // namespace

bool are_parity_numbers(std::uint64_t data, std::uint64_t parity) {
  return data >= 1 && parity >= 1 && data <= kMostFilesOfASet && data + parity <= kMostFilesOfASet;
}

Vector<std::uint8_t> write_parity_header(const ParityList& list, std::uint8_t index) {
  const auto body = write_list(list);
  Vector<std::uint8_t> out;
  Writer writer(out);
  writer.bytes(kMagic);
  writer.u16(kVersion);
  writer.u8(index);
  writer.u32(static_cast<std::uint32_t>(body.size()));
  writer.bytes(body);
  const std::uint64_t checksum = checksum64(out);
  writer.u64(checksum);
  return out;
}

Result<ParityList> read_parity_header(std::span<const std::uint8_t> bytes, std::uint8_t& index) {
  Reader reader(bytes);
  QUERN_ASSIGN_OR_RETURN(const auto magic, reader.bytes(kMagic.size()));
  if (!std::equal(magic.begin(), magic.end(), kMagic.begin()))
    return Status(StatusCode::corrupt, "this is no parity of a history");
  QUERN_ASSIGN_OR_RETURN(const auto version, reader.u16());
  if (version != kVersion) return Status(StatusCode::unsupported_version, "the parity has version {0}", version);
  QUERN_ASSIGN_OR_RETURN(index, reader.u8());
  QUERN_ASSIGN_OR_RETURN(const auto size, reader.u32());
  QUERN_ASSIGN_OR_RETURN(const auto body, reader.bytes(size));
  const std::uint64_t expected = checksum64(bytes.first(reader.position()));
  QUERN_ASSIGN_OR_RETURN(const auto checksum, reader.u64());
  if (checksum != expected) return Status(StatusCode::checksum_mismatch, "the header of a parity file is damaged");
  QUERN_ASSIGN_OR_RETURN(auto list, read_list(body));
  if (index >= list.parity) return Status(StatusCode::corrupt, "a parity file has an impossible number");
  return list;
}

ContentHash parity_name(const ParityList& list) { return storage::content_hash(write_list(list)); }

Result<Vector<ParitySet>> parity_sets(const History& history, Report& report) {
  const String folder = history.parity_folder();
  const auto names = history.files().list(folder);
  Vector<ParitySet> out;
  if (!names.ok() && storage::is_missing(names.status())) return out;
  if (!names.ok()) return storage::fail_file(report, folder, "list it", names.status());
  for (const String& text : *names) {
    const auto name = parse_file_name(text);
    if (!name) continue;
    if (out.empty() || out.back().name != name->set) out.push_back({name->set, std::nullopt, {}});
    ParitySet& set = out.back();
    set.files.push_back(join({folder, "/", text}));
    if (!set.list) set.list = list_of(history.files(), set.files.back(), *name);
  }
  return out;
}

Result<Vector<String>> guardable_files(const History& history, Report& report) {
  Vector<String> out;
  for (const char* const folder : {"epochs", "segments"}) {
    const String path = join({history.root(), "/", folder});
    const auto names = history.files().list(path);
    if (!names.ok()) return storage::fail_file(report, path, "list it", names.status());
    for (const String& name : *names)
      if (String file = join({folder, "/", name}); is_guarded_name(file)) out.push_back(std::move(file));
  }
  return out;
}

Status remove_parity_set(const History& history, const ParitySet& set, Report& report) {
  for (const String& path : set.files) {
    const Status status = history.files().remove(path);
    if (!status.ok()) return storage::fail_file(report, path, "remove it", status);
  }
  return {};
}

Result<std::uint64_t> remove_parity_of(const History& history, const std::set<String>& names, Report& report) {
  if (names.empty()) return std::uint64_t{0};
  QUERN_ASSIGN_OR_RETURN(const auto sets, parity_sets(history, report));
  std::uint64_t left = 0;
  bool any = false;
  for (const ParitySet& set : sets) {
    const auto guarded = set.list ? set.list->files : Vector<GuardedFile>();
    const auto others = static_cast<std::uint64_t>(std::count_if(
        guarded.begin(), guarded.end(), [&](const GuardedFile& file) { return names.count(file.name) == 0; }));
    if (set.list && others == guarded.size()) continue;
    QUERN_RETURN_IF_ERROR(remove_parity_set(history, set, report));
    left += others;
    any = true;
  }
  if (!any) return left;
  const String folder = history.parity_folder();
  const Status synced = history.files().sync_folder(folder);
  if (!synced.ok()) return storage::fail_file(report, folder, "sync it", synced);
  return left;
}

}  // namespace quern::lidar
