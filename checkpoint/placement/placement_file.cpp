#include "checkpoint/placement/placement_file.h"

#include <algorithm>

#include "checkpoint/placement/nodes.h"
#include "checkpoint/placement/schedulers.h"
#include "checkpoint/safetensors/json.h"

namespace quern::checkpoint {
namespace {

constexpr std::uint64_t kMostPlacementBytes = 8 << 20;

String placement_path(const String& root) { return join({root, "/placement.json"}); }

String placement_text(const Placement& placement) {
  String out = "{\"store\": ";
  append_json_text(out, placement.id);
  out += join({", \"data\": ", decimal(placement.data), ", \"parity\": ", decimal(placement.parity), ", \"nodes\": ["});
  for (std::size_t i = 0; i < placement.nodes.size(); ++i) {
    out += i == 0 ? "\n  {\"name\": " : ",\n  {\"name\": ";
    append_json_text(out, placement.nodes[i].name);
    out += ", \"folder\": ";
    append_json_text(out, placement.nodes[i].folder);
    out += "}";
  }
  out += "\n]}\n";
  return out;
}

/// Says what is wrong with a placement; empty: nothing.
String problem_of(const Placement& placement) {
  if (!parse_content_hash(placement.id)) return "'store' must be 32 hexadecimal digits";
  if (placement.data == 0 || placement.parity == 0 || std::uint64_t{placement.data} + placement.parity > kMostPieces)
    return "'data' and 'parity' must be at least 1, and at most 64 together";
  if (placement.nodes.size() < placement.pieces() || placement.nodes.size() > kMostNodes)
    return join({"there must be ", decimal(placement.pieces()), " to 1024 nodes"});
  for (std::size_t i = 0; i < placement.nodes.size(); ++i) {
    const PlacedNode& node = placement.nodes[i];
    if (node.name.empty() || node.folder.empty()) return "a node has no name or no folder";
    for (std::size_t j = 0; j < i; ++j)
      if (placement.nodes[j].name == node.name || placement.nodes[j].folder == node.folder)
        return join({"node '", node.name, "' has the name or the folder of another"});
  }
  return {};
}

std::optional<Placement> parse_placement(const JsonValue& root) {
  Placement out;
  const auto number = [&](const char* key) {
    const JsonValue* const value = root.find(key);
    const bool fits = value != nullptr && value->is(JsonValue::Kind::number) && value->number <= kMostPieces;
    return fits ? static_cast<std::uint32_t>(value->number) : 0;
  };
  const auto text = [](const JsonValue& value, const char* key) {
    const JsonValue* const found = value.find(key);
    return found != nullptr && found->is(JsonValue::Kind::text) ? found->text : String();
  };
  const JsonValue* const nodes = root.find("nodes");
  if (!root.is(JsonValue::Kind::object) || nodes == nullptr || !nodes->is(JsonValue::Kind::array)) return std::nullopt;
  out.id = text(root, "store");
  out.data = number("data");
  out.parity = number("parity");
  for (const JsonValue& node : nodes->items) {
    if (!node.is(JsonValue::Kind::object)) return std::nullopt;
    out.nodes.push_back({text(node, "name"), text(node, "folder")});
  }
  return out;
}

/// No two folders are one under two names, and none is the store's.
Status check_folders(FileSystem& files, const String& root, const Placement& placement, Report& report) {
  Vector<String> known;
  for (const String& own : {root, join({root, "/data"}), join({root, "/tmp"}), join({root, "/manifests"})}) {
    const auto identity = files.identity(own);
    if (!identity.ok()) return fail_file(report, own, "look at it", identity.status());
    known.push_back(*identity);
  }
  for (std::size_t i = 0; i < placement.nodes.size(); ++i) {
    const PlacedNode& node = placement.nodes[i];
    const auto listed = files.list(node.folder);
    if (!listed.ok()) {
      if (i >= placement.pieces()) continue;  // a former node that is gone
      return fail_at(report, join({"node '", node.name, "'"}),
                     fail_file(report, node.folder, "read the folder, which must be there", listed.status()));
    }
    const auto identity = files.identity(node.folder);
    if (!identity.ok()) return fail_file(report, node.folder, "look at it", identity.status());
    if (std::find(known.begin(), known.end(), *identity) != known.end())
      return fail(report, StatusCode::invalid_argument,
                  join({"node '", node.name, "': ", node.folder,
                        " is the folder of another node or of the store; each node needs one of its own"}));
    known.push_back(*identity);
  }
  return {};
}

/// No node lies in another: a disk that fails would take both.
Status check_nested(FileSystem& files, const Placement& placement, std::size_t count, Report& report) {
  Vector<String> known;
  for (std::size_t i = 0; i < count; ++i) {
    const auto identity = files.identity(placement.nodes[i].folder);
    known.push_back(identity.ok() ? *identity : String());
  }
  for (std::size_t i = 0; i < count; ++i) {
    const PlacedNode& node = placement.nodes[i];
    for (String above = parent_of(node.folder), last = node.folder; above != last;
         last = above, above = parent_of(above)) {
      const auto identity = files.identity(above);
      const auto found = identity.ok() ? std::find(known.begin(), known.end(), *identity) : known.end();
      if (found == known.end()) continue;
      const PlacedNode& outer = placement.nodes[static_cast<std::size_t>(found - known.begin())];
      return fail(report, StatusCode::invalid_argument,
                  join({"node '", node.name, "': ", node.folder, " lies in the folder of node '", outer.name,
                        "'; each node needs a disk of its own"}));
    }
  }
  return {};
}

/// Writers of a group leave sub-manifests until the last one joins them; all must see one placement.
Status check_groups(FileSystem& files, const String& root, Report& report) {
  const String tmp = join({root, "/tmp"});
  const auto ids = files.list(tmp);
  if (!ids.ok()) return fail_file(report, tmp, "read it", ids.status());
  for (const String& id : *ids) {
    const auto names = files.list(join({tmp, "/", id}));
    if (!names.ok()) continue;  // a file
    for (const String& name : *names)
      if (name.starts_with("sub-"))
        return fail(report, StatusCode::io_error,
                    join({tmp, "/", id,
                          ": some writers of this group have saved and others have not; try again when "
                          "they have, or, if they are gone, after quern checkpoint gc --store ",
                          root}));
  }
  return {};
}

Status publish_text(FileSystem& files, const String& folder, const String& path, const String& text, Report& report) {
  const String temporary = join({folder, "/tmp/placement.new"});
  (void)files.remove(temporary);
  return publish_file(files, temporary, path, folder, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()},
                      report);
}

String owner_path(const Placement& placement, std::size_t node) { return placement.local(node, "owner"); }

/// What a folder keeps when the machine starts again, and a copy of it does not have: its inodes, not its device.
Result<String> owner_text(FileSystem& files, const String& root, Report& report) {
  String out;
  for (const char* const area : {"/data", "/manifests", "/tmp"}) {
    const String folder = join({root, area});
    const auto identity = files.identity(folder);
    if (!identity.ok()) return fail_file(report, folder, "look at it", identity.status());
    out += join({identity->substr(identity->find(':') + 1), "\n"});
  }
  return out;
}

Result<std::unique_ptr<FileLock>> lock_store(FileSystem& files, const String& root, Report& report) {
  const String path = join({root, "/lock"});
  auto lock = files.lock(path, LockKind::exclusive, false);
  if (!lock.ok() && is_busy(lock.status()))
    return fail(report, StatusCode::io_error, join({root, ": somebody saves there; try again later"}));
  if (!lock.ok()) return fail_file(report, path, "lock it", lock.status());
  return lock;
}

Status prepare_node(FileSystem& files, const Placement& placement, std::size_t node, const String& text,
                    const String& owner, Report& report) {
  const String base = join({placement.nodes[node].folder, "/quern-", placement.id});
  for (const String& folder : {base, placement.local(node, "data"), placement.local(node, "tmp")})
    QUERN_RETURN_IF_ERROR(make_one_folder(files, folder, report));
  for (const String& folder : {base, placement.nodes[node].folder})
    if (const Status synced = files.sync_folder(folder); !synced.ok())
      return fail_file(report, folder, "sync it", synced);
  QUERN_RETURN_IF_ERROR(publish_text(files, base, owner_path(placement, node), owner, report));
  return publish_text(files, base, placement_path(base), text, report);
}

}  // namespace

Result<std::optional<Placement>> read_placement(FileSystem& files, const String& root, Report& report) {
  const String path = placement_path(root);
  const auto bytes = read_file(files, path, kMostPlacementBytes);
  if (!bytes.ok() && is_missing(bytes.status())) return std::optional<Placement>();
  if (!bytes.ok()) return fail_file(report, path, "read it", bytes.status());
  Report own;
  const auto root_value = parse_json({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, {}, own);
  auto placement = root_value.ok() ? parse_placement(*root_value) : std::nullopt;
  const String problem = placement ? problem_of(*placement) : own.problem;
  if (!placement || !problem.empty())
    return fail(
        report, StatusCode::corrupt,
        join({path, ": is no placement: ", problem, "; each node's folder has a copy, in quern-*/placement.json"}));
  return placement;
}

Status write_placement(FileSystem& files, const String& root, Placement placement, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const auto lock, lock_store(files, root, report));
  QUERN_ASSIGN_OR_RETURN(const auto former, read_placement(files, root, report));
  QUERN_RETURN_IF_ERROR(check_groups(files, root, report));
  const std::size_t given = placement.nodes.size();
  if (former) {
    QUERN_RETURN_IF_ERROR(check_owner(files, root, *former, report));
    placement.id = former->id;
    for (const PlacedNode& node : former->nodes) {
      const auto same = [&](const PlacedNode& one) { return one.folder == node.folder; };
      if (std::any_of(placement.nodes.begin(), placement.nodes.end(), same)) continue;
      PlacedNode kept = node;
      while (std::any_of(placement.nodes.begin(), placement.nodes.end(),
                         [&](const PlacedNode& one) { return one.name == kept.name; }))
        kept.name += " (former)";
      placement.nodes.push_back(std::move(kept));
    }
  } else {
    auto name = files.new_name();
    if (!name.ok()) return fail_file(report, root, "make a name", name.status());
    placement.id = std::move(name).value();
  }
  if (const String problem = problem_of(placement); !problem.empty())
    return fail(report, StatusCode::invalid_argument, problem);
  QUERN_RETURN_IF_ERROR(check_folders(files, root, placement, report));
  QUERN_RETURN_IF_ERROR(check_nested(files, placement, given, report));
  QUERN_ASSIGN_OR_RETURN(const String owner, owner_text(files, root, report));
  const String text = placement_text(placement);
  if (text.size() > kMostPlacementBytes) return fail(report, StatusCode::invalid_argument, "the placement is too long");
  for (std::size_t i = 0; i < placement.nodes.size(); ++i) {
    const auto is_it = [&](const PlacedNode& node) { return node.folder == placement.nodes[i].folder; };
    const bool is_former = former && std::any_of(former->nodes.begin(), former->nodes.end(), is_it);
    // A former node without its folders is a mount point without its disk, unless it is chosen again.
    const String needed = is_former ? placement.local(i, "data") : placement.nodes[i].folder;
    if (i >= placement.pieces() && !files.list(needed).ok()) continue;
    QUERN_RETURN_IF_ERROR(prepare_node(files, placement, i, text, owner, report));
  }
  return publish_text(files, root, placement_path(root), text, report);
}

Status check_owner(FileSystem& files, const String& root, const Placement& placement, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const String own, owner_text(files, root, report));
  for (std::size_t i = 0; i < placement.nodes.size(); ++i) {
    const auto bytes = read_file(files, owner_path(placement, i), kMostPlacementBytes);
    if (!bytes.ok()) continue;  // a node that is gone, or was prepared before there were owners
    if (std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size()) == own) continue;
    return fail(
        report, StatusCode::invalid_argument,
        join({root, ": node '", placement.nodes[i].name,
              "' belongs to another folder of this store, which was lost, moved or copied; if this folder takes "
              "its place, type quern checkpoint place --adopt --store ",
              root}));
  }
  return {};
}

Status adopt_placement(FileSystem& files, const String& root, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const auto lock, lock_store(files, root, report));
  QUERN_ASSIGN_OR_RETURN(const auto placement, read_placement(files, root, report));
  if (!placement)
    return fail(report, StatusCode::io_error,
                join({placement_path(root), ": is missing; each node's folder has a copy, in quern-*/placement.json"}));
  QUERN_ASSIGN_OR_RETURN(const String owner, owner_text(files, root, report));
  for (std::size_t i = 0; i < placement->nodes.size(); ++i)
    if (files.list(placement->local(i, "tmp")).ok())
      QUERN_RETURN_IF_ERROR(publish_text(files, join({placement->nodes[i].folder, "/quern-", placement->id}),
                                         owner_path(*placement, i), owner, report));
  return {};
}

}  // namespace quern::checkpoint
