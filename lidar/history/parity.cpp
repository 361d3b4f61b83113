#include "lidar/history/parity.h"

#include <algorithm>
#include <array>
#include <map>

#include "storage/parity/erasure.h"
#include "storage/parity/parity_files.h"

namespace quern::lidar {
namespace {

using storage::join;

constexpr std::array<std::uint8_t, 8> kEndMagic = {0x9B, 'Q', 'H', 'Q', '\r', '\n', 0x1A, '\n'};
constexpr const char* kRepair = "; bring it back with quern lidar history repair, or from a copy";

String two_digits(std::uint32_t value) { return join({value < 10 ? "0" : "", storage::decimal(value)}); }

storage::ParityGroup group_of(const History& history, const ParityList& list) {
  const String name = storage::hex(parity_name(list));
  Vector<storage::ParityFile> files;
  Vector<std::uint64_t> sizes;
  Vector<Vector<std::uint8_t>> headers;
  const auto add = [&](const String& file) {
    const auto column = static_cast<std::uint32_t>(files.size());
    files.push_back({file, join({history.root(), "/", file}), history.parity_temporary(column)});
  };
  for (const GuardedFile& file : list.files) {
    add(file.name);
    sizes.push_back(file.bytes);
  }
  for (std::uint32_t i = 0; i < list.parity; ++i) {
    add(join({"parity/", name, "-", two_digits(i)}));
    headers.push_back(write_parity_header(list, static_cast<std::uint8_t>(i)));
  }
  return storage::ParityGroup(history.files(), std::move(files), std::move(sizes), std::move(headers), kEndMagic);
}

/// Whether the file at `path` is what the name says: an epoch by its hash, a segment by its index and the hashes of its
/// parts. Fails where the system refuses.
Result<bool> holds(const History& history, const String& name, const String& path, Report& report) {
  if (name.starts_with("epochs/")) {
    Report own;
    const Status status = history.read(*parse_epoch_name(name.substr(7)), path, own).status();
    if (status.ok() || is_lost(status)) return status.ok();
    report = own;
    return status;
  }
  const auto file = history.files().open(path);
  if (!file.ok() && storage::is_missing(file.status())) return false;
  if (!file.ok()) return storage::fail_file(report, path, "open it", file.status());
  bool whole = false;
  const auto parts = read_segment(**file, whole);
  if (!parts.ok()) return storage::fail_file(report, path, "read it", parts.status());
  if (!whole || !heads_hold(**file, *parts) || segment_name(*parts) != *storage::parse_content_hash(name.substr(9)))
    return false;
  for (const PartPlace& part : *parts) {
    const auto bytes = read_part_bytes(**file, part);
    if (bytes.ok()) continue;
    if (is_lost(bytes.status())) return false;
    return storage::fail_file(report, path, "read it", bytes.status());
  }
  return true;
}

class Guard {
 public:
  Guard(History& history, std::optional<ParityNumbers> numbers) : history_(history), wanted_(numbers) {}

  Result<GuardedHistory> run(Report& report) {
    QUERN_ASSIGN_OR_RETURN(files_, guardable_files(history_, report));
    QUERN_ASSIGN_OR_RETURN(sets_, parity_sets(history_, report));
    QUERN_RETURN_IF_ERROR(choose_numbers(report));
    QUERN_RETURN_IF_ERROR(choose_sets(report));
    QUERN_RETURN_IF_ERROR(make_sets(report));
    for (const ParitySet& set : sets_)
      if (stays_.count(set.name) == 0) QUERN_RETURN_IF_ERROR(remove_parity_set(history_, set, report));
    QUERN_RETURN_IF_ERROR(sync(history_.parity_folder(), report));
    QUERN_RETURN_IF_ERROR(count_bytes(report));
    out_.files = files_.size();
    return out_;
  }

 private:
  Status sync(const String& folder, Report& report) const {
    const Status status = history_.files().sync_folder(folder);
    return status.ok() ? status : storage::fail_file(report, folder, "sync it", status);
  }

  /// Those of the fullest set, where none are asked for.
  Status choose_numbers(Report& report) {
    std::size_t most = 0;
    for (const ParitySet& set : sets_) {
      if (wanted_ || !set.list || set.list->files.size() <= most) continue;
      most = set.list->files.size();
      out_.numbers = {set.list->data, set.list->parity};
    }
    if (wanted_) out_.numbers = *wanted_;
    if (!are_parity_numbers(out_.numbers.data, out_.numbers.parity))
      return storage::fail(report, StatusCode::invalid_argument,
                           "parity needs at least 1 file and 1 parity file, and at most 64 of both together");
    if (!storage::has_erasure_coding())
      return storage::fail(report, StatusCode::unsupported, "this build has no parity: it was made without ISA-L");
    return {};
  }

  /// Full sets with all their parity files stay.
  Status choose_sets(Report& report) {
    std::set<String> guarded;
    for (const ParitySet& set : sets_) {
      if (!set.list) continue;
      for (const GuardedFile& file : set.list->files)
        if (!std::binary_search(files_.begin(), files_.end(), file.name))
          return storage::fail(report, StatusCode::corrupt,
                               join({history_.root(), "/", file.name, ": is not there", kRepair}));
      const bool stays = set.list->files.size() == out_.numbers.data && set.list->data == out_.numbers.data &&
                         set.list->parity == out_.numbers.parity && set.files.size() == set.list->parity;
      if (!stays) continue;
      stays_.insert(set.name);
      for (const GuardedFile& file : set.list->files) guarded.insert(file.name);
    }
    for (const String& name : files_) {
      if (guarded.count(name) != 0) continue;
      const String path = join({history_.root(), "/", name});
      QUERN_ASSIGN_OR_RETURN(const bool good, holds(history_, name, path, report));
      if (!good) return storage::fail(report, StatusCode::corrupt, join({path, ": is damaged", kRepair}));
      QUERN_ASSIGN_OR_RETURN(const auto bytes, history_.file_bytes(path, report));
      open_.push_back({name, bytes});
    }
    // A parity file has the bytes of the largest file of its set.
    std::stable_sort(open_.begin(), open_.end(),
                     [](const GuardedFile& a, const GuardedFile& b) { return a.bytes > b.bytes; });
    return {};
  }

  Status make_sets(Report& report) {
    QUERN_RETURN_IF_ERROR(storage::make_one_folder(history_.files(), history_.parity_folder(), report));
    QUERN_RETURN_IF_ERROR(sync(history_.root(), report));
    for (std::size_t first = 0; first < open_.size(); first += out_.numbers.data) {
      ParityList list{out_.numbers.data, out_.numbers.parity, {}};
      const std::size_t end = std::min<std::size_t>(open_.size(), first + out_.numbers.data);
      list.files.assign(open_.begin() + static_cast<std::ptrdiff_t>(first),
                        open_.begin() + static_cast<std::ptrdiff_t>(end));
      const ContentHash name = parity_name(list);
      stays_.insert(name);
      const bool is_there = std::any_of(sets_.begin(), sets_.end(), [&](const ParitySet& set) {
        return set.name == name && set.list && set.files.size() == list.parity;
      });
      if (is_there) continue;
      QUERN_RETURN_IF_ERROR(storage::replace_parity_files(group_of(history_, list), report));
      ++out_.made_sets;
    }
    return {};
  }

  Status count_bytes(Report& report) {
    QUERN_ASSIGN_OR_RETURN(const auto sets, parity_sets(history_, report));
    for (const ParitySet& set : sets)
      for (const String& path : set.files) {
        QUERN_ASSIGN_OR_RETURN(const auto bytes, history_.file_bytes(path, report));
        out_.parity_bytes += bytes;
      }
    return {};
  }

  History& history_;
  std::optional<ParityNumbers> wanted_;
  GuardedHistory out_;
  Vector<String> files_;    ///< all there are, rising
  Vector<ParitySet> sets_;  ///< that were there
  std::set<ContentHash> stays_;
  Vector<GuardedFile> open_;  ///< to be guarded
};

/// Anybody can write parity with right checksums: the names of the files say what they must be.
class NamesCheck final : public storage::DataCheck {
 public:
  NamesCheck(const History& history, const storage::ParityGroup& group) : history_(history), group_(group) {}
  Result<bool> holds(std::uint32_t column, const String& path, Report& report) const override {
    return lidar::holds(history_, group_.file(column).name, path, report);
  }

 private:
  const History& history_;
  const storage::ParityGroup& group_;
};

constexpr const char* kUnfitting =
    "parity of its set does not fit it; remove parity with quern lidar history parity --parity none and make it anew";

/// No parity file has its checksums: files that hold by themselves get parity again.
Status check_alone(const History& history, const storage::ParityGroup& group, bool mend, ParityCheck& out,
                   Report& report) {
  bool all_hold = true;
  for (std::uint32_t c = 0; c < group.data(); ++c) {
    const storage::ParityFile& file = group.file(c);
    QUERN_ASSIGN_OR_RETURN(const bool good, holds(history, file.name, file.path, report));
    std::uint64_t bytes = 0;
    if (good) {
      QUERN_ASSIGN_OR_RETURN(bytes, history.file_bytes(file.path, report));
    }
    if (good && bytes == group.file_bytes(c)) continue;
    all_hold = false;
    out.damage.push_back(join({file.path, good ? ": the " : ": is damaged or missing, and so is the parity over it",
                               good ? kUnfitting : ""}));
  }
  if (mend && all_hold) QUERN_RETURN_IF_ERROR(storage::replace_parity_files(group, report));
  for (std::uint32_t c = group.data(); c < group.columns(); ++c) {
    if (mend && all_hold) {
      out.mended.push_back(group.file(c).name);
    } else {
      out.damage.push_back(join({group.file(c).path, ": its checksums are damaged"}));
    }
  }
  return {};
}

Status check_set(const History& history, const ParityList& list, bool mend, ParityCheck& out, Report& report) {
  const auto group = group_of(history, list);
  const NamesCheck names(history, group);
  QUERN_ASSIGN_OR_RETURN(auto found, storage::check_parity_files(group, std::nullopt, mend, report, &names));
  if (!found) return check_alone(history, group, mend, out, report);
  for (const String& name : found->damaged) {
    if (mend && found->repairable) {
      out.mended.push_back(name);
      continue;
    }
    const String path = join({history.root(), "/", name});
    if (std::count(found->unfitting.begin(), found->unfitting.end(), name) != 0) {
      out.damage.push_back(join({path, ": the ", kUnfitting}));
      continue;
    }
    if (!found->unfitting.empty()) {
      out.damage.push_back(join({path, ": is damaged or missing; the parity of its set does not fit its files"}));
      continue;
    }
    out.damage.push_back(join({path, ": is damaged or missing; ",
                               found->repairable ? "parity can bring it back"
                                                 : "more files of its set are damaged than parity brings back"}));
  }
  return {};
}

}  // namespace

Result<GuardedHistory> guard_history(History& history, std::optional<ParityNumbers> numbers, Report& report) {
  return Guard(history, numbers).run(report);
}

Result<std::uint64_t> drop_parity(History& history, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const auto sets, parity_sets(history, report));
  for (const ParitySet& set : sets) QUERN_RETURN_IF_ERROR(remove_parity_set(history, set, report));
  if (sets.empty()) return std::uint64_t{0};
  const Status synced = history.files().sync_folder(history.parity_folder());
  if (!synced.ok()) return storage::fail_file(report, history.parity_folder(), "sync it", synced);
  return sets.size();
}

Result<ParityCheck> check_parity(History& history, bool mend, Report& report) {
  ParityCheck out;
  QUERN_ASSIGN_OR_RETURN(const auto sets, parity_sets(history, report));
  if (sets.empty()) return out;
  if (mend && !storage::has_erasure_coding())
    return storage::fail(report, StatusCode::unsupported, "this build has no parity: it was made without ISA-L");
  std::set<String> guarded;
  for (const ParitySet& set : sets) {
    ++out.sets;
    if (!set.list) {
      out.damage.push_back(join({history.parity_folder(), "/", storage::hex(set.name),
                                 "-*: no header holds; make parity anew with quern lidar history parity"}));
      continue;
    }
    for (const GuardedFile& file : set.list->files) guarded.insert(file.name);
    QUERN_RETURN_IF_ERROR(check_set(history, *set.list, mend, out, report));
  }
  out.guarded = guarded.size();
  if (!out.mended.empty()) history.forget_segments();
  QUERN_ASSIGN_OR_RETURN(const auto files, guardable_files(history, report));
  out.unguarded = static_cast<std::uint64_t>(
      std::count_if(files.begin(), files.end(), [&](const String& name) { return guarded.count(name) == 0; }));
  return out;
}

}  // namespace quern::lidar
