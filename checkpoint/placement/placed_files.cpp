#include "checkpoint/placement/placed_files.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>

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
  if (place.kind == Kind::mended) return mend_target(placement, place);
  const std::uint32_t node =
      place.is_parity ? placement.data + place.number % placement.parity : place.number % placement.data;
  return placement.local(node, place.rest);
}

String PlacedFiles::mend_target(const Placement& placement, const Place& place) {
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
  for (std::size_t i = 0; i < placement.nodes.size(); ++i)
    if (has_pieces(i, true)) return placement.local(i, place.rest);
  for (std::size_t i = 0; i < placement.nodes.size(); ++i)
    if (base_.list(placement.local(i, "tmp")).ok() && !has_pieces(i, false)) return placement.local(i, place.rest);
  return join({root_, "/", place.rest});
}

/// Where a file is: the node of the placement first, then all others, then the store's own folder.
std::optional<String> PlacedFiles::find(const Placement& placement, const Place& place, Status& problem) {
  problem = missing();
  const auto is_there = [&](const String& path) {
    const auto file = base_.open(path);
    if (!file.ok() && !is_missing(file.status())) problem = file.status();
    return file.ok();
  };
  if (place.kind == Kind::piece) {
    String path = target(placement, place);
    if (is_there(path)) return path;
  }
  for (std::size_t i = 0; i < placement.nodes.size(); ++i) {
    String path = placement.local(i, place.rest);
    if (is_there(path)) return path;
  }
  String path = join({root_, "/", place.rest});
  if (is_there(path)) return path;
  return std::nullopt;
}

/// In the store's own folder last. Missing where it is missing everywhere, else the first other failure.
Status PlacedFiles::everywhere(const Placement& placement, const Place& place,
                               const std::function<Status(const String&)>& work) {
  Status problem;
  bool done = false;
  const auto one = [&](const String& path) {
    const Status status = work(path);
    done = done || status.ok();
    if (!status.ok() && !is_missing(status) && problem.ok()) problem = status;
  };
  for (std::size_t i = 0; i < placement.nodes.size(); ++i) one(placement.local(i, place.rest));
  one(join({root_, "/", place.rest}));
  if (!problem.ok()) return problem;
  return done ? Status() : missing();
}

Result<std::unique_ptr<File>> PlacedFiles::open(std::string_view path) {
  const Place place = classify(path);
  if (place.kind == Kind::copy) {
    auto own = base_.open(path);
    if (own.ok() || !is_missing(own.status())) return own;
    // The store's folder was lost. A few nodes alone may have been away when the checkpoint was removed.
    const auto placement = this->placement();
    std::uint32_t count = 0;
    Result<std::unique_ptr<File>> found = own.status();
    for (std::size_t i = 0; i < placement->nodes.size(); ++i) {
      auto file = base_.open(placement->local(i, place.rest));
      if (!file.ok()) continue;
      ++count;
      if (!found.ok()) found = std::move(file);
    }
    return count >= placement->data ? std::move(found) : Result<std::unique_ptr<File>>(own.status());
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
  return base_.create(target(*placement(), place));
}

Result<std::unique_ptr<WriteQueue>> PlacedFiles::create_queue(std::string_view path, unsigned depth) {
  const Place place = classify(path);
  if (place.kind != Kind::piece && place.kind != Kind::mended) return base_.create_queue(path, depth);
  return base_.create_queue(target(*placement(), place), depth);
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
  const String path = join({base, to.rest});
  QUERN_RETURN_IF_ERROR(base_.rename(from, path));
  // One that cannot be removed is found instead, if at all, and then has the same bytes or is mended in its turn.
  (void)everywhere(placement, to, [&](const String& other) { return other == path ? Status() : base_.remove(other); });
  return {};
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
    const String temporary = placement.local(i, join({"tmp/", to.id, ".mend"}));
    QUERN_RETURN_IF_ERROR(copy_file(from, temporary));
    QUERN_RETURN_IF_ERROR(base_.rename(temporary, join({at, "/manifest"})));
    QUERN_RETURN_IF_ERROR(base_.sync_folder(at));
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
  const String temporary = mend_target(*placement, mended);
  QUERN_RETURN_IF_ERROR(copy_file(String(from), temporary));
  QUERN_RETURN_IF_ERROR(put_piece(*placement, temporary, goal));
  return base_.remove(from);
}

Status PlacedFiles::remove(std::string_view path) {
  const Place place = classify(path);
  if (place.file.empty()) return base_.remove(path);
  return everywhere(*placement(), place, [&](const String& one) { return base_.remove(one); });
}

Status PlacedFiles::make_folder(std::string_view path) {
  const Place place = classify(path);
  const auto placement = this->placement();
  if (place.kind == Kind::folder) {
    for (std::size_t i = 0; i < placement->pieces(); ++i) {
      const Status made = base_.make_folder(placement->local(i, place.rest));
      if (!made.ok() && !exists_already(made)) return made;
    }
  }
  return base_.make_folder(path);
}

Status PlacedFiles::remove_folder(std::string_view path) {
  const Place place = classify(path);
  if (place.kind != Kind::folder) return base_.remove_folder(path);
  return everywhere(*placement(), place, [&](const String& one) { return base_.remove_folder(one); });
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
  return everywhere(*placement(), place, [&](const String& one) { return base_.sync_folder(one); });
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
