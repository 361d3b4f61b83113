// Verification and repair.
#include "checkpoint/restore/verify.h"

#include <algorithm>

#include "checkpoint/store/parity.h"
#include "checkpoint/store/part_reader.h"

namespace quern::checkpoint {
namespace {

void add_problem(Finding& finding, const Report& report, const Status& status) {
  finding.good = false;
  finding.problems.push_back(report.problem.empty() ? String(status.text()) : report.problem);
}

String part_path(const Store& store, const Manifest& manifest, std::uint32_t number) {
  return join({store.data_folder(manifest.name.id), "/", numbered_name("part", number)});
}

/// Every record of a part, also those that no tensor of the manifest names.
Status check_records(const Store& store, const Manifest& manifest, std::uint32_t number, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const PartReader part,
                         PartReader::open(store.files(), part_path(store, manifest, number),
                                          part_identity(manifest.name, number), manifest.parts[number], report));
  Vector<std::uint8_t> body;
  for (std::size_t i = 0; i < part.records().size(); ++i) QUERN_RETURN_IF_ERROR(part.read(i, body, report));
  return {};
}

void check_values(const Store& store, const Manifest& manifest, TaskRunner& runner, Finding& finding) {
  Restorer restorer(store, runner);
  AlignedBuffer values;
  Vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < manifest.tensors.size(); ++i) {
    Report report;
    const Status status = restorer.tensor(manifest.name, i, values, report);
    if (!status.ok()) add_problem(finding, report, status);
  }
  for (std::size_t i = 0; i < manifest.blobs.size(); ++i) {
    Report report;
    const Status status = restorer.blob(manifest.name, i, bytes, report);
    if (!status.ok()) add_problem(finding, report, status);
  }
}

std::uint32_t groups(const Manifest& manifest) {
  return manifest.parity.data == 0 ? 0 : static_cast<std::uint32_t>(manifest.parts.size() / manifest.parity.data);
}

void check_parity_files(const Store& store, const Manifest& manifest, Finding& finding) {
  for (std::uint32_t g = 0; g < groups(manifest); ++g) {
    Report report;
    const auto damage = check_group(store, manifest, g, false, report);
    if (!damage.ok()) {
      add_problem(finding, report, damage.status());
      continue;
    }
    for (const String& file : damage->damaged) {
      finding.good = false;
      finding.problems.push_back(join({store.data_folder(manifest.name.id), "/", file, ": is not what was saved",
                                       damage->repairable ? "; quern checkpoint repair can mend it" : ""}));
    }
  }
}

/// Copies of one manifest beside the parts.
struct Copies {
  Vector<Vector<std::uint8_t>> all;
  std::size_t used = 0;              ///< in `all`, of the first that can be read
  std::optional<Manifest> manifest;  ///< nothing: none can be read

  bool are(const Vector<std::uint8_t>& bytes) const {
    return !all.empty() && std::all_of(all.begin(), all.end(), [&](const auto& one) { return one == bytes; });
  }
};

Copies read_copies(const Store& store, const String& id) {
  Copies out;
  out.all = store.manifest_copies(id);
  for (; out.used < out.all.size(); ++out.used) {
    Report unheard;
    auto manifest = read_manifest(out.all[out.used], unheard);
    if (!manifest.ok() || manifest->name.id != id) continue;
    out.manifest = std::move(manifest).value();
    break;
  }
  return out;
}

/// Every copy beside the parity must be the manifest, byte for byte.
void check_copy(const Store& store, const Manifest& manifest, Finding& finding) {
  if (manifest.parity.data == 0) return;
  const String copy = join({store.data_folder(manifest.name.id), "/manifest"});
  const auto used = read_file(store.files(), store.manifest_path(manifest.name), kMaxManifestFile);
  if (used.ok() && read_copies(store, manifest.name.id).are(*used)) return;
  finding.good = false;
  finding.problems.push_back(join({copy, ": is not a copy of the manifest"}));
}

Status replace_file(const Store& store, const CheckpointName& name, const String& path, const String& folder,
                    std::span<const std::uint8_t> bytes, Report& report) {
  const String temporary = join({store.tmp_root(), "/", name.id, ".mend"});
  (void)store.files().remove(temporary);
  return publish_file(store.files(), temporary, path, folder, bytes, report);
}

bool is_gone(const Store& store, const String& path) {
  const auto file = store.files().open(path);
  return !file.ok() && is_missing(file.status());
}

/// Whether all parts are there or parity brings them back.
bool is_recoverable(const Store& store, const Manifest& manifest) {
  for (std::uint32_t g = 0; g < groups(manifest); ++g) {
    Report unheard;
    const auto damage = check_group(store, manifest, g, false, unheard);
    if (!damage.ok() || !damage->repairable) return false;
  }
  return true;
}

/// Manifest and copy from each other. True when the manifest can be used.
bool repair_manifest(const Store& store, const CheckpointName& name, Finding& finding) {
  const String path = store.manifest_path(name);
  const String folder = store.data_folder(name.id), copy = join({folder, "/manifest"});
  Report report;
  const auto used = store.read(name, report);
  const Copies copies = read_copies(store, name.id);
  if (!used.ok()) {
    if (!copies.manifest || copies.manifest->name != name) {
      add_problem(finding, report, used.status());
      return false;
    }
    // Without a manifest it may also be what a save that failed could not remove: it does not appear unless it is whole.
    if (is_gone(store, path) && is_gone(store, store.retired_path(name)) && !is_recoverable(store, *copies.manifest)) {
      report.problem =
          join({folder, ": holds files of step ", decimal(name.step),
                " without their manifest, and too few for parity to bring back the others; quern checkpoint gc "
                "removes them"});
      add_problem(finding, report, used.status());
      return false;
    }
    const Status status = replace_file(store, name, path, store.manifests_root(), copies.all[copies.used], report);
    finding.repaired = status.ok();
    if (!status.ok()) {
      add_problem(finding, report, status);
      return false;
    }
  }
  if ((used.ok() ? *used : *copies.manifest).parity.data == 0) return true;
  const auto bytes = read_file(store.files(), path, kMaxManifestFile);
  if (bytes.ok() && copies.are(*bytes)) return true;
  const Status status = bytes.ok() ? replace_file(store, name, copy, folder, *bytes, report) : bytes.status();
  if (!status.ok()) add_problem(finding, report, status);
  finding.repaired = finding.repaired || status.ok();
  return true;
}

/// A part whose records are whole and whose end is not.
void repair_footer(const Store& store, const Manifest& manifest, std::uint32_t number, Finding& finding) {
  const String path = part_path(store, manifest, number);
  Report report;
  if (PartReader::open(store.files(), path, part_identity(manifest.name, number), manifest.parts[number], report).ok())
    return;
  std::uint64_t begin = 0;
  Vector<std::uint8_t> footer;
  const auto possible = rebuild_footer(store.files(), path, manifest.parts[number], begin, footer, report);
  if (!possible.ok() || !*possible) return;  // what is wrong is said when everything is checked again
  const auto file = store.files().open(path);
  Vector<std::uint8_t> bytes(static_cast<std::size_t>(begin));
  if (!file.ok() || !read_fully(*file.value(), 0, bytes).ok()) return;
  write_part_header(part_identity(manifest.name, number), std::span(bytes).first<kPartHeaderBytes>());
  bytes.insert(bytes.end(), footer.begin(), footer.end());
  const Status status = replace_file(store, manifest.name, path, store.data_folder(manifest.name.id), bytes, report);
  if (status.ok()) {
    finding.repaired = true;
  } else {
    add_problem(finding, report, status);
  }
}

}  // namespace

Finding verify_checkpoint(const Store& store, const CheckpointName& name, bool full, TaskRunner& runner) {
  Finding finding;
  finding.name = name;
  Report report;
  const auto manifest = store.read_checked(name, report);
  if (!manifest.ok()) {
    add_problem(finding, report, manifest.status());
    return finding;
  }
  Report own_needs;
  const Status needs = store.check_needs(*manifest, own_needs);
  if (!needs.ok()) add_problem(finding, own_needs, needs);
  check_copy(store, *manifest, finding);
  for (std::uint32_t i = 0; full && i < manifest->parts.size(); ++i) {
    Report own;
    const Status status = check_records(store, *manifest, i, own);
    if (!status.ok()) add_problem(finding, own, status);
  }
  if (full) check_parity_files(store, *manifest, finding);
  if (full && finding.good) check_values(store, *manifest, runner, finding);
  return finding;
}

Finding repair_checkpoint(const Store& store, const CheckpointName& name, TaskRunner& runner) {
  Finding finding;
  finding.name = name;
  if (!repair_manifest(store, name, finding)) return finding;
  Report report;
  const auto manifest = store.read(name, report);
  if (!manifest.ok()) {
    add_problem(finding, report, manifest.status());
    return finding;
  }
  for (std::uint32_t g = 0; g < groups(*manifest); ++g) {
    Report own;
    const auto damage = check_group(store, *manifest, g, true, own);
    if (!damage.ok()) {
      add_problem(finding, own, damage.status());
    } else if (!damage->damaged.empty() && damage->repairable) {
      finding.repaired = true;
    }
  }
  for (std::uint32_t i = 0; i < manifest->parts.size(); ++i) repair_footer(store, *manifest, i, finding);
  Finding after = verify_checkpoint(store, name, true, runner);
  after.repaired = finding.repaired && after.good;
  // What was mended and could not be synced is not safe, however it looks now.
  if (after.good && !finding.good) {
    after.good = false;
    after.problems = finding.problems;
  }
  return after;
}

Result<Vector<CheckpointName>> names_to_repair(const Store& store, Report& report) {
  QUERN_RETURN_IF_ERROR(store.check_writable(report));
  QUERN_ASSIGN_OR_RETURN(auto names, store.list(report));
  QUERN_ASSIGN_OR_RETURN(const auto retired, store.list_retired(report));
  const auto is_of = [](const String& id) { return [&id](const CheckpointName& name) { return name.id == id; }; };
  const auto folders = store.files().list(store.data_root());
  if (!folders.ok()) return fail_file(report, store.data_root(), "read it", folders.status());
  for (const String& id : *folders) {
    if (std::any_of(names.begin(), names.end(), is_of(id)) || std::any_of(retired.begin(), retired.end(), is_of(id)))
      continue;
    const Copies copies = read_copies(store, id);
    if (!copies.manifest) {
      if (!copies.all.empty())
        report.notes.push_back(
            join({store.data_folder(id), ": left alone, because no copy of its manifest can be read"}));
      continue;
    }
    const CheckpointName& found = copies.manifest->name;
    // A step that was saved again has no need of data that never got its manifest.
    if (std::any_of(names.begin(), names.end(), [&](const CheckpointName& name) { return name.step == found.step; }))
      continue;
    // A few nodes alone may have been away when the checkpoint was removed.
    if (store.placed() != nullptr && copies.all.size() < copies.manifest->parity.data) {
      report.notes.push_back(
          join({"step ", decimal(found.step), ": left alone, because only ", decimal(copies.all.size()),
                " nodes have files of it and ", decimal(copies.manifest->parity.data),
                " are needed; quern checkpoint gc removes them"}));
      continue;
    }
    names.push_back(found);
  }
  return names;
}

}  // namespace quern::checkpoint
