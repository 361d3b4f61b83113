// Names in the store, and opening what is there.
#include "checkpoint/store/store.h"

#include <algorithm>
#include <charconv>

#include "checkpoint/store/part_reader.h"
#include "checkpoint/store/stored_manifests.h"

namespace quern::checkpoint {
namespace {

constexpr std::size_t kStepDigits = 12;
constexpr std::string_view kRetired = ".kept";

String padded(std::uint64_t number, std::size_t digits) {
  String text = decimal(number);
  return text.size() >= digits ? text : String(digits - text.size(), '0') + text;
}

std::optional<std::uint64_t> parse_decimal(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

String numbered_name(std::string_view kind, std::uint32_t number) { return join({kind, "-", padded(number, 4)}); }

String manifest_file_name(const CheckpointName& name) {
  const String step = padded(name.step, kStepDigits);
  if (name.generation == 0) return join({step, "-", name.id});
  return join({step, ".", decimal(name.generation), "-", name.id});
}

std::optional<CheckpointName> parse_manifest_file_name(std::string_view name) {
  const std::size_t dash = name.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view numbers = name.substr(0, dash);
  const std::size_t dot = numbers.find('.');
  const auto step = parse_decimal(numbers.substr(0, dot));
  const auto generation =
      dot == std::string_view::npos ? std::optional<std::uint64_t>(0) : parse_decimal(numbers.substr(dot + 1));
  if (!step || !generation) return std::nullopt;
  CheckpointName out{*step, String(name.substr(dash + 1)), *generation};
  // Other spellings of the same numbers are not ours.
  if (!is_plain_id(out.id) || manifest_file_name(out) != name) return std::nullopt;
  return out;
}

PartIdentity part_identity(const CheckpointName& name, std::uint32_t number) { return {name.id, name.step, number}; }

Result<Store> Store::open(FileSystem& files, const String& root, Report& report) {
  QUERN_ASSIGN_OR_RETURN(auto placed, PlacedFiles::open(files, root, report));
  Store out(placed == nullptr ? files : *placed, root);
  out.placed_ = std::move(placed);
  return out;
}

String Store::manifest_path(const CheckpointName& name) const {
  return join({root_, "/manifests/", manifest_file_name(name)});
}

String Store::retired_path(const CheckpointName& name) const { return join({manifest_path(name), kRetired}); }

Status Store::make_folders(Report& report) const {
  const auto there = files_->list(data_root());
  if (there.ok() && files_->list(manifests_root()).ok() && files_->list(tmp_root()).ok()) return {};
  QUERN_RETURN_IF_ERROR(make_with_parents(*files_, root_, report));
  for (const String& folder : {data_root(), manifests_root(), tmp_root()})
    QUERN_RETURN_IF_ERROR(make_one_folder(*files_, folder, report));
  const Status synced = files_->sync_folder(root_);
  if (!synced.ok()) return fail_file(report, root_, "sync it", synced);
  const String parent = parent_of(root_);
  const Status parent_synced = files_->sync_folder(parent);
  if (!parent_synced.ok()) return fail_file(report, parent, "sync it", parent_synced);
  return {};
}

Status Store::check_apart(const Store& other, Report& report) const {
  for (const bool of_manifests : {true, false}) {
    const String own = of_manifests ? manifests_root() : data_root();
    const String others = of_manifests ? other.manifests_root() : other.data_root();
    const auto a = files_->identity(own), b = other.files().identity(others);
    if (a.ok() && b.ok() && *a == *b)
      return fail(report, StatusCode::invalid_argument,
                  join({other.root(), ": is the same folder as ", root_, "; a tier needs a folder of its own"}));
    if (!a.ok() && !is_missing(a.status())) return fail_file(report, own, "look at it", a.status());
    if (!b.ok() && !is_missing(b.status())) return fail_file(report, others, "look at it", b.status());
  }
  return {};
}

Status Store::check_writable(Report& report) const {
  if (placed_ != nullptr) return placed_->check_owner(report);
  QUERN_ASSIGN_OR_RETURN(const auto placement, read_placement(*files_, root_, report));
  if (!placement) return {};
  return fail(report, StatusCode::invalid_argument,
              join({root_, ": was spread over nodes after it was opened here; open the store again"}));
}

Vector<Vector<std::uint8_t>> Store::manifest_copies(std::string_view id) const {
  const String path = join({data_folder(id), "/manifest"});
  if (placed_ != nullptr) return placed_->read_copies(path, kMaxManifestFile);
  Vector<Vector<std::uint8_t>> out;
  if (auto bytes = read_file(*files_, path, kMaxManifestFile); bytes.ok()) out.push_back(std::move(bytes).value());
  return out;
}

Status Store::check_is_store(Report& report) const {
  const auto manifests = files_->list(manifests_root());
  if (manifests.ok()) return {};
  if (is_missing(manifests.status()))
    return fail(report, StatusCode::io_error,
                join({root_, ": no checkpoint store is here (it has no folder manifests)"}));
  return fail_file(report, manifests_root(), "read it", manifests.status());
}

Result<Vector<CheckpointName>> Store::names_in_order(bool retired, Report& report) const {
  QUERN_RETURN_IF_ERROR(check_is_store(report));
  const auto names = files_->list(manifests_root());
  if (!names.ok()) return fail_file(report, manifests_root(), "read it", names.status());
  Vector<CheckpointName> out;
  for (const String& name : *names) {
    const std::string_view text = name;
    const bool is_retired = text.ends_with(kRetired);
    if (auto parsed = parse_manifest_file_name(is_retired ? text.substr(0, text.size() - kRetired.size()) : text)) {
      if (is_retired == retired) out.push_back(std::move(*parsed));
    } else if (!retired) {
      report.notes.push_back(join({manifests_root(), "/", name, ": not the name of a manifest, left alone"}));
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const CheckpointName& a, const CheckpointName& b) {
    return a.generation != b.generation ? a.generation < b.generation : a.step < b.step;
  });
  return out;
}

Result<Vector<CheckpointName>> Store::list(Report& report) const { return names_in_order(false, report); }

Result<Vector<CheckpointName>> Store::list_retired(Report& report) const { return names_in_order(true, report); }

Result<Vector<CheckpointName>> Store::list_all(Report& report) const {
  QUERN_ASSIGN_OR_RETURN(auto names, list(report));
  QUERN_ASSIGN_OR_RETURN(const auto retired, list_retired(report));
  names.insert(names.end(), retired.begin(), retired.end());
  return names;
}

Result<Vector<CheckpointName>> Store::list_current(Report& report) const {
  QUERN_ASSIGN_OR_RETURN(auto names, list(report));
  Vector<CheckpointName> out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool again = std::any_of(names.begin() + static_cast<std::ptrdiff_t>(i), names.end(), [&](const auto& later) {
      return later.step == names[i].step && later.generation > names[i].generation;
    });
    if (!again) out.push_back(names[i]);
  }
  return out;
}

Result<Manifest> Store::read(const CheckpointName& name, Report& report) const {
  String path = manifest_path(name);
  auto bytes = read_file(*files_, path, kMaxManifestFile);
  if (!bytes.ok() && is_missing(bytes.status())) {
    path = retired_path(name);
    bytes = read_file(*files_, path, kMaxManifestFile);
  }
  if (!bytes.ok()) {
    if (is_missing(bytes.status()))
      return fail(report, StatusCode::io_error,
                  join({"checkpoint ", decimal(name.step), " (", name.id, ") is not in the store ", root_}));
    return fail_file(report, path, "read it", bytes.status());
  }
  auto manifest = read_manifest(*bytes, report);
  if (!manifest.ok()) return fail_at(report, path, manifest.status());
  if (manifest->name != name || manifest->name.generation != name.generation)
    return fail(report, StatusCode::corrupt, join({path, ": is the manifest of another checkpoint"}));
  return manifest;
}

Status Store::check_part(const Manifest& manifest, std::uint32_t number, Report& report) const {
  return PartReader::open(*files_, join({data_folder(manifest.name.id), "/", numbered_name("part", number)}),
                          part_identity(manifest.name, number), manifest.parts[number], report)
      .status();
}

Result<Manifest> Store::read_checked(const CheckpointName& name, Report& report) const {
  QUERN_ASSIGN_OR_RETURN(Manifest manifest, read(name, report));
  for (std::uint32_t i = 0; i < manifest.parts.size(); ++i) QUERN_RETURN_IF_ERROR(check_part(manifest, i, report));
  return manifest;
}

Status Store::check_needs(const Manifest& manifest, Report& report) const {
  if (manifest.references.empty()) return {};
  StoredManifests manifests(*this);
  Needs needs(manifests);
  QUERN_RETURN_IF_ERROR(needs.add(manifest, report));
  for (const Needed& needed : needs.checkpoints())
    for (std::uint32_t i = 0; needed.name != manifest.name && i < needed.parts.size(); ++i)
      if (needed.parts[i] != 0) QUERN_RETURN_IF_ERROR(check_part(*needed.manifest, i, report));
  return {};
}

Result<Manifest> Store::newest(Report& report, const CheckpointName* before) const {
  QUERN_ASSIGN_OR_RETURN(const auto names, list_current(report));
  std::size_t end = names.size();
  if (before != nullptr) end = static_cast<std::size_t>(std::find(names.begin(), names.end(), *before) - names.begin());
  for (std::size_t i = end; i-- > 0;) {
    auto manifest = read_checked(names[i], report);
    if (manifest.ok() && check_needs(*manifest, report).ok()) {
      report.problem.clear();
      return manifest;
    }
    report.notes.push_back(join({"step ", decimal(names[i].step), " was passed over: ", report.problem}));
  }
  return fail(report, StatusCode::io_error,
              join({root_, names.empty() ? ": the store has no checkpoint"
                           : end == 0    ? ": the store has no older checkpoint"
                                      : ": no checkpoint of the store is whole; quern checkpoint verify says what is "
                                        "damaged, quern checkpoint repair mends what parity allows"}));
}

Result<Manifest> Store::at_step(std::uint64_t step, Report& report) const {
  QUERN_ASSIGN_OR_RETURN(const auto names, list_current(report));
  Status last;
  for (const CheckpointName& name : names) {
    if (name.step != step) continue;
    auto manifest = read_checked(name, report);
    if (manifest.ok()) return manifest;
    last = manifest.status();
  }
  if (!last.ok()) return last;
  return fail(report, StatusCode::invalid_argument,
              join({root_, ": the store has no checkpoint of step ", decimal(step), "; see quern checkpoint ls"}));
}

}  // namespace quern::checkpoint
