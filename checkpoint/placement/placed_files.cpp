#include "checkpoint/placement/placed_files.h"

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace quern::checkpoint {
namespace {

bool is_plain(std::string_view id) {
  return !id.empty() && id.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") ==
                            std::string_view::npos;
}

/// "part-0003", "parity-0001".
bool parse_piece(std::string_view file, std::uint32_t& number, bool& is_parity) {
  is_parity = file.starts_with("parity-");
  if (!is_parity && !file.starts_with("part-")) return false;
  const std::string_view digits = file.substr(file.find('-') + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() && digits.size() >= 4;
}

bool has_errno(const Status& status, std::initializer_list<std::int64_t> numbers) {
  return status.code() == StatusCode::io_error &&
         std::find(numbers.begin(), numbers.end(), status.first()) != numbers.end();
}

Status missing() { return Status(StatusCode::io_error, "no such file", ENOENT); }

}  // namespace

Result<std::shared_ptr<PlacedFiles>> PlacedFiles::open(FileSystem& base, const String& root, Report& report) {
  std::shared_ptr<PlacedFiles> out(new PlacedFiles(base, root));
  QUERN_ASSIGN_OR_RETURN(const bool is_placed, out->reload(report));
  return is_placed ? out : nullptr;
}

std::shared_ptr<const Placement> PlacedFiles::placement() const {
  const std::lock_guard lock(mutex_);
  return placement_;
}

Result<bool> PlacedFiles::reload(Report& report) {
  QUERN_ASSIGN_OR_RETURN(auto read, read_placement(base_, root_, report));
  if (!read) return false;  // of a store that was placed: its file was lost, and what was known still holds
  const std::lock_guard lock(mutex_);
  const auto same = [](const PlacedNode& a, const PlacedNode& b) { return a.name == b.name && a.folder == b.folder; };
  if (placement_ != nullptr && placement_->data == read->data && placement_->parity == read->parity &&
      std::equal(read->nodes.begin(), read->nodes.end(), placement_->nodes.begin(), placement_->nodes.end(), same))
    return false;
  placement_ = std::make_shared<const Placement>(std::move(*read));
  return true;
}

Status PlacedFiles::check_nodes(Report& report) const {
  const auto placement = this->placement();
  for (std::size_t i = 0; i < placement->pieces(); ++i) {
    for (const char* const area : {"data", "tmp"}) {
      const String folder = placement->local(i, area);
      const auto listed = base_.list(folder);
      if (listed.ok()) continue;
      const Status status = fail_file(report, folder, "read the folder", listed.status());
      report.problem = join({"node '", placement->nodes[i].name, "': ", report.problem,
                             "; bring the node back, or choose others with quern checkpoint place"});
      return status;
    }
  }
  return {};
}

Vector<String> PlacedFiles::absent_nodes() const {
  const auto placement = this->placement();
  Vector<String> out;
  for (std::size_t i = 0; i < placement->nodes.size(); ++i) {
    const String folder = placement->local(i, "data");
    Report own;
    const auto listed = base_.list(folder);
    if (listed.ok()) continue;
    (void)fail_file(own, folder, "read the folder", listed.status());
    out.push_back(join({"node '", placement->nodes[i].name, "' is not there: ", own.problem}));
  }
  return out;
}

PlacedFiles::Place PlacedFiles::classify(std::string_view path) const {
  Place out;
  if (path.size() <= root_.size() + 1 || !path.starts_with(root_) || path[root_.size()] != '/') return out;
  out.rest = path.substr(root_.size() + 1);
  const std::string_view area = out.rest.substr(0, out.rest.find('/'));
  if (area != "data" && area != "tmp") return out;
  if (area.size() == out.rest.size()) {
    out.kind = Kind::area;
    return out;
  }
  const std::string_view inside = out.rest.substr(area.size() + 1);
  out.id = inside.substr(0, inside.find('/'));
  if (out.id.size() == inside.size()) {
    const std::size_t dot = inside.find('.');
    out.id = inside.substr(0, dot);
    if (!is_plain(out.id)) return out;
    if (dot == std::string_view::npos) {
      out.kind = Kind::folder;
    } else {
      out.file = inside.substr(dot + 1);
      const bool is_mended = area == "tmp" && parse_piece(out.file, out.number, out.is_parity);
      out.kind = is_mended ? Kind::mended : Kind::file;
    }
    return out;
  }
  if (!is_plain(out.id)) return out;
  out.file = inside.substr(out.id.size() + 1);
  const bool is_piece = parse_piece(out.file, out.number, out.is_parity);
  out.kind = is_piece ? Kind::piece : area == "data" && out.file == "manifest" ? Kind::copy : Kind::file;
  return out;
}

String PlacedFiles::target(const Placement& placement, const Place& place) {
  const std::uint32_t node =
      place.is_parity ? placement.data + place.number % placement.parity : place.number % placement.data;
  return placement.local(node, place.rest);
}

Vector<String> PlacedFiles::mend_targets(const Placement& placement, const Place& place) {
  const auto has_pieces = [&](std::size_t node, bool of_this_name) {
    Place other;
    const auto names = base_.list(placement.local(node, join({"data/", place.id})));
    const auto on_the_way = base_.list(placement.local(node, "tmp"));
    const auto is_one = [&](const String& name) {
      return of_this_name ? name == place.file : parse_piece(name, other.number, other.is_parity);
    };
    if (names.ok() && std::any_of(names->begin(), names->end(), is_one)) return true;
    const String prefix = join({place.id, "."});
    return !of_this_name && on_the_way.ok() &&
           std::any_of(on_the_way->begin(), on_the_way->end(),
                       [&](const String& name) { return name.starts_with(prefix); });
  };
  Vector<String> out;
  for (std::size_t i = 0; i < placement.nodes.size(); ++i)
    if (has_pieces(i, true)) out.push_back(placement.local(i, place.rest));
  for (std::size_t i = 0; i < placement.nodes.size(); ++i)
    if (base_.list(placement.local(i, "tmp")).ok() && !has_pieces(i, false))
      out.push_back(placement.local(i, place.rest));
  out.push_back(join({root_, "/", place.rest}));
  return out;
}

Status PlacedFiles::try_targets(const Vector<String>& targets, const std::function<Status(const String&)>& work) {
  Status status;
  for (const String& path : targets) {
    touch(*placement(), path);
    status = work(path);
    if (!has_errno(status, {EROFS, ENOSPC, EIO})) break;
    (void)base_.remove(path);
  }
  return status;
}

void PlacedFiles::touch(const Placement& placement, std::string_view path) {
  for (std::size_t i = 0; i < placement.nodes.size(); ++i) {
    if (!path.starts_with(placement.local(i, ""))) continue;
    const std::lock_guard lock(mutex_);
    touched_.insert(placement.nodes[i].folder);
  }
}

bool PlacedFiles::is_touched(const Placement& placement, std::size_t node) const {
  const std::lock_guard lock(mutex_);
  return touched_.contains(placement.nodes[node].folder);
}

/// Where a file is: the node of the placement first, then all others, then the store's own folder; a copy of a manifest
/// is looked for there first.
std::optional<String> PlacedFiles::find(const Placement& placement, const Place& place, Status& problem) {
  problem = missing();
  const auto is_there = [&](const String& path) {
    const auto file = base_.open(path);
    if (!file.ok() && !is_missing(file.status())) problem = file.status();
    return file.ok();
  };
  const String own = join({root_, "/", place.rest});
  if (place.kind == Kind::copy && is_there(own)) return own;
  if (place.kind == Kind::piece) {
    String path = target(placement, place);
    if (is_there(path)) return path;
  }
  for (std::size_t i = 0; i < placement.nodes.size(); ++i) {
    String path = placement.local(i, place.rest);
    if (is_there(path)) return path;
  }
  if (place.kind != Kind::copy && is_there(own)) return own;
  return std::nullopt;
}

/// In the store's own folder last. Missing where it is missing everywhere, else the first other failure. A node that was
/// not written needs no sync. What stays on one that does not answer, or is read-only, goes with a later collection.
Status PlacedFiles::everywhere(const Placement& placement, const Place& place, Everywhere what,
                               const std::function<Status(const String&)>& work) {
  Status problem;
  bool done = false;
  const auto matters = [&](std::size_t node, const Status& status) {
    if (what == Everywhere::sync) return is_touched(placement, node);
    return !has_errno(status, {EROFS}) && base_.list(placement.local(node, "data")).ok();
  };
  for (std::size_t i = 0; i <= placement.nodes.size(); ++i) {
    const bool is_node = i < placement.nodes.size();
    const Status status = work(is_node ? placement.local(i, place.rest) : join({root_, "/", place.rest}));
    if (!status.ok() && is_missing(status)) continue;
    if (status.ok() || (is_node && !matters(i, status))) {
      done = true;
    } else if (problem.ok()) {
      problem = status;
    }
  }
  if (!problem.ok()) return problem;
  return done ? Status() : missing();
}

Vector<Vector<std::uint8_t>> PlacedFiles::read_copies(std::string_view path, std::uint64_t limit) const {
  const Place place = classify(path);
  const auto placement = this->placement();
  Vector<Vector<std::uint8_t>> out;
  const auto add = [&](const String& one) {
    if (auto bytes = read_file(base_, one, limit); bytes.ok()) out.push_back(std::move(bytes).value());
  };
  add(String(path));
  for (std::size_t i = 0; place.kind == Kind::copy && i < placement->nodes.size(); ++i)
    add(placement->local(i, place.rest));
  return out;
}

Status PlacedFiles::check_owner(Report& report) const {
  return checkpoint::check_owner(base_, root_, *placement(), report);
}

Result<std::unique_ptr<File>> PlacedFiles::open(std::string_view path) {
  const Place place = classify(path);
  if (place.kind == Kind::copy) {
    Status problem;
    const auto found = find(*placement(), place, problem);
    return found ? base_.open(*found) : Result<std::unique_ptr<File>>(problem);
  }
  if (place.kind != Kind::piece && place.kind != Kind::mended) return base_.open(path);
  Status problem;
  auto found = find(*placement(), place, problem);
  if (!found) {
    Report unheard;  // nodes may have been added since
    const auto changed = reload(unheard);
    if (changed.ok() && *changed) found = find(*placement(), place, problem);
  }
  if (!found) return problem;
  return base_.open(*found);
}

Result<std::unique_ptr<File>> PlacedFiles::create(std::string_view path) {
  const Place place = classify(path);
  if (place.kind != Kind::piece && place.kind != Kind::mended) return base_.create(path);
  const auto placement = this->placement();
  Result<std::unique_ptr<File>> out = missing();
  const auto targets =
      place.kind == Kind::mended ? mend_targets(*placement, place) : Vector<String>{target(*placement, place)};
  (void)try_targets(targets, [&](const String& one) {
    out = base_.create(one);
    return out.status();
  });
  return out;
}

Result<std::unique_ptr<WriteQueue>> PlacedFiles::create_queue(std::string_view path, unsigned depth) {
  const Place place = classify(path);
  if (place.kind == Kind::mended) return FileSystem::create_queue(path, depth);
  if (place.kind != Kind::piece) return base_.create_queue(path, depth);
  const auto placement = this->placement();
  const String at = target(*placement, place);
  touch(*placement, at);
  return base_.create_queue(at, depth);
}

Status PlacedFiles::copy_file(const String& from, const String& to) {
  QUERN_ASSIGN_OR_RETURN(const auto source, base_.open(from));
  (void)base_.remove(to);
  QUERN_ASSIGN_OR_RETURN(const auto file, base_.create(to));
  Vector<std::uint8_t> bytes(std::size_t{1} << 20);
  for (std::uint64_t at = 0;;) {
    QUERN_ASSIGN_OR_RETURN(const std::size_t count, source->read_at(at, bytes));
    if (count == 0) break;
    QUERN_RETURN_IF_ERROR(write_fully(*file, at, std::span(bytes).first(count)));
    at += count;
  }
  return file->sync();
}

Status PlacedFiles::publish_folder(const Placement& placement, const Place& from, const Place& to) {
  const String own = join({root_, "/", from.rest}), manifest = join({own, "/manifest"});
  const bool has_manifest = base_.open(manifest).ok();
  for (std::size_t i = 0; i < placement.pieces(); ++i) {
    const String folder = placement.local(i, from.rest);
    if (has_manifest) QUERN_RETURN_IF_ERROR(copy_file(manifest, join({folder, "/manifest"})));
    QUERN_RETURN_IF_ERROR(base_.sync_folder(folder));
    QUERN_RETURN_IF_ERROR(base_.rename(folder, placement.local(i, to.rest)));
    QUERN_RETURN_IF_ERROR(base_.sync_folder(placement.local(i, "data")));
    QUERN_RETURN_IF_ERROR(base_.sync_folder(placement.local(i, "tmp")));
  }
  return base_.rename(own, join({root_, "/", to.rest}));
}

/// A mended file into its place, on the node where it is; other files of that name are copies of what it replaces.
Status PlacedFiles::put_piece(const Placement& placement, const String& from, const Place& to) {
  const auto base_of = [&](const String& path) {
    for (std::size_t i = 0; i < placement.nodes.size(); ++i)
      if (path.starts_with(placement.local(i, ""))) return placement.local(i, "");
    return join({root_, "/"});
  };
  const String base = base_of(from), data = join({base, "data"}), folder = join({data, "/", to.id});
  const Status made = base_.make_folder(folder);
  if (!made.ok() && !exists_already(made)) return made;
  QUERN_RETURN_IF_ERROR(base_.sync_folder(data));  // also where an earlier attempt made it and could not
  // Whoever rebuilds the store counts the nodes that have a copy.
  Place copy = to;
  const String copy_rest = join({"data/", to.id, "/manifest"});
  copy.kind = Kind::copy;
  copy.rest = copy_rest;
  Status unheard;
  const auto known = find(placement, copy, unheard);
  if (known && is_missing(base_.open(join({base, copy_rest})).status()))
    QUERN_RETURN_IF_ERROR(put_copy_at(*known, base, to.id));
  const String path = join({base, to.rest});
  QUERN_RETURN_IF_ERROR(base_.rename(from, path));
  // One that cannot be removed is found instead, if at all, and then has the same bytes or is mended in its turn.
  (void)everywhere(placement, to, Everywhere::removal,
                   [&](const String& other) { return other == path ? Status() : base_.remove(other); });
  return {};
}

/// Into `base`, which is the store's folder or a node's, with a '/' behind it.
Status PlacedFiles::put_copy_at(const String& from, const String& base, std::string_view id) {
  const String folder = join({base, "data/", id}), temporary = join({base, "tmp/", id, ".copy"});
  QUERN_RETURN_IF_ERROR(copy_file(from, temporary));
  QUERN_RETURN_IF_ERROR(base_.rename(temporary, join({folder, "/manifest"})));
  return base_.sync_folder(folder);
}

/// The store's own copy; nodes that have files of the checkpoint get it too.
Status PlacedFiles::put_copy(const Placement& placement, const String& from, const Place& to) {
  const String folder = join({root_, "/data/", to.id});
  const Status made = base_.make_folder(folder);
  if (!made.ok() && !exists_already(made)) return made;
  QUERN_RETURN_IF_ERROR(base_.sync_folder(join({root_, "/data"})));
  for (std::size_t i = 0; i < placement.nodes.size(); ++i) {
    const String at = placement.local(i, join({"data/", to.id}));
    if (!base_.list(at).ok()) continue;
    // One that cannot be written keeps what it has; the store's own copy is what counts.
    const Status put = put_copy_at(from, placement.local(i, ""), to.id);
    if (!put.ok() && !has_errno(put, {EROFS})) return put;
  }
  return base_.rename(from, join({root_, "/", to.rest}));
}

Status PlacedFiles::rename(std::string_view from, std::string_view to) {
  const Place source = classify(from), goal = classify(to);
  const auto placement = this->placement();
  if (source.kind == Kind::folder && goal.kind == Kind::folder) return publish_folder(*placement, source, goal);
  if (goal.kind == Kind::copy) return put_copy(*placement, String(from), goal);
  if (goal.kind != Kind::piece) return base_.rename(from, to);
  if (source.kind == Kind::mended) {
    Status problem;
    const auto found = find(*placement, source, problem);
    return found ? put_piece(*placement, *found, goal) : problem;
  }
  // From the store's folder: to the node of a file that is mended.
  Place mended = goal;
  mended.kind = Kind::mended;
  const String name = join({"tmp/", goal.id, ".", goal.file});
  mended.rest = name;
  String temporary;
  QUERN_RETURN_IF_ERROR(try_targets(mend_targets(*placement, mended), [&](const String& one) {
    temporary = one;
    return copy_file(String(from), one);
  }));
  QUERN_RETURN_IF_ERROR(put_piece(*placement, temporary, goal));
  return base_.remove(from);
}

Status PlacedFiles::remove(std::string_view path) {
  const Place place = classify(path);
  if (place.file.empty()) return base_.remove(path);
  return everywhere(*placement(), place, Everywhere::removal, [&](const String& one) { return base_.remove(one); });
}

Status PlacedFiles::make_folder(std::string_view path) {
  const Place place = classify(path);
  const auto placement = this->placement();
  if (place.kind == Kind::folder) {
    for (std::size_t i = 0; i < placement->pieces(); ++i) {
      const String folder = placement->local(i, place.rest);
      touch(*placement, folder);
      const Status made = base_.make_folder(folder);
      if (!made.ok() && !exists_already(made)) return made;
    }
  }
  return base_.make_folder(path);
}

Status PlacedFiles::remove_folder(std::string_view path) {
  const Place place = classify(path);
  if (place.kind != Kind::folder) return base_.remove_folder(path);
  return everywhere(*placement(), place, Everywhere::removal,
                    [&](const String& one) { return base_.remove_folder(one); });
}

Result<Vector<String>> PlacedFiles::list(std::string_view path) {
  const Place place = classify(path);
  auto own = base_.list(path);
  if (place.kind != Kind::area && place.kind != Kind::folder) return own;
  if (!own.ok() && (place.kind == Kind::area || !is_missing(own.status()))) return own;
  std::set<String> names;
  if (own.ok()) names.insert(own->begin(), own->end());
  bool found = own.ok();
  const auto placement = this->placement();
  for (std::size_t i = 0; i < placement->nodes.size(); ++i) {
    const auto there = base_.list(placement->local(i, place.rest));
    if (!there.ok()) continue;  // a node that is gone
    found = true;
    for (const String& name : *there)
      if (name != "placement.new") names.insert(name);
  }
  if (!found) return own;
  return Vector<String>(names.begin(), names.end());
}

Result<bool> PlacedFiles::is_link(std::string_view path) {
  const Place place = classify(path);
  Status problem;
  if (place.kind == Kind::piece || place.kind == Kind::mended)
    if (const auto found = find(*placement(), place, problem)) return base_.is_link(*found);
  return base_.is_link(path);
}

Status PlacedFiles::sync_folder(std::string_view path) {
  const Place place = classify(path);
  if (place.kind != Kind::area && place.kind != Kind::folder) return base_.sync_folder(path);
  return everywhere(*placement(), place, Everywhere::sync, [&](const String& one) { return base_.sync_folder(one); });
}

Result<std::unique_ptr<FileLock>> PlacedFiles::lock(std::string_view path, LockKind kind, bool wait) {
  auto held = base_.lock(path, kind, wait);
  if (!held.ok() || path != join({root_, "/lock"})) return held;
  // No placement is written while the lock is held.
  Report unheard;
  const auto read = reload(unheard);
  if (!read.ok()) return read.status();
  return held;
}

}  // namespace quern::checkpoint
