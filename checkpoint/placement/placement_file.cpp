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

Status publish_text(FileSystem& files, const String& folder, const String& text, Report& report) {
  const String temporary = join({folder, "/tmp/placement.new"});
  (void)files.remove(temporary);
  return publish_file(files, temporary, placement_path(folder), folder,
                      {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, report);
}

Status prepare_node(FileSystem& files, const Placement& placement, std::size_t node, const String& text,
                    Report& report) {
  const String base = join({placement.nodes[node].folder, "/quern-", placement.id});
  for (const String& folder : {base, placement.local(node, "data"), placement.local(node, "tmp")})
    QUERN_RETURN_IF_ERROR(make_one_folder(files, folder, report));
  for (const String& folder : {base, placement.nodes[node].folder})
    if (const Status synced = files.sync_folder(folder); !synced.ok())
      return fail_file(report, folder, "sync it", synced);
  return publish_text(files, base, text, report);
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
  const String lock_path = join({root, "/lock"});
  const auto lock = files.lock(lock_path, LockKind::exclusive, false);
  if (!lock.ok() && is_busy(lock.status()))
    return fail(report, StatusCode::io_error, join({root, ": somebody saves there; try again later"}));
  if (!lock.ok()) return fail_file(report, lock_path, "lock it", lock.status());
  QUERN_ASSIGN_OR_RETURN(const auto former, read_placement(files, root, report));
  if (former) {
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
  const String text = placement_text(placement);
  if (text.size() > kMostPlacementBytes) return fail(report, StatusCode::invalid_argument, "the placement is too long");
  for (std::size_t i = 0; i < placement.nodes.size(); ++i) {
    const bool chosen = i < placement.pieces();
    if (!chosen && !files.list(placement.nodes[i].folder).ok()) continue;
    QUERN_RETURN_IF_ERROR(prepare_node(files, placement, i, text, report));
  }
  return publish_text(files, root, text, report);
}

}  // namespace quern::checkpoint
