#include "checkpoint/placement/nodes.h"

#include <cmath>

#include "checkpoint/safetensors/json.h"

namespace quern::checkpoint {
namespace {

using Kind = JsonValue::Kind;

constexpr double kMostBytes = 9e18;
constexpr double kMostYearlyFailures = 1e6;

class NodeReader {
 public:
  explicit NodeReader(std::size_t place) : where_(join({"node ", decimal(place + 1)})) {}

  Node read(const JsonValue& value) {
    Node out;
    require(value.is(Kind::object), "is not an object");
    if (const JsonValue* name = value.find("name"); name != nullptr && name->is(Kind::text) && !name->text.empty()) {
      out.name = name->text;
      where_ = join({"node '", out.name, "'"});
    } else {
      require(false, "has no 'name'");
    }
    bool has_capacity = false, has_write = false, has_read = false, has_failures = false;
    for (const JsonValue& item : value.items) {
      if (item.key == "name") continue;
      if (item.key == "folder") {
        require(item.is(Kind::text) && !item.text.empty(), "'folder' must be a path");
        out.folder = item.text;
      } else if (item.key == "capacity") {
        has_capacity = true;
        out.bytes = bytes(item);
      } else if (item.key == "used") {
        out.used = bytes(item);
      } else if (item.key == "write") {
        has_write = true;
        out.write_rate = rate(item);
      } else if (item.key == "read") {
        has_read = true;
        out.read_rate = rate(item);
      } else if (item.key == "yearly_failure_rate") {
        has_failures = true;
        out.yearly_failures = number(item, 0, kMostYearlyFailures, "failures expected in a year, such as 0.02");
      } else {
        require(false, join({"'", item.key, "' is not known"}));
      }
    }
    require(has_capacity && has_write && has_read && has_failures,
            "needs 'capacity', 'write', 'read' and 'yearly_failure_rate'");
    require(out.used <= out.bytes, "'used' is more than 'capacity'");
    return out;
  }
  const String& problem() const { return problem_; }

 private:
  void require(bool holds, std::string_view what) {
    if (!holds && problem_.empty()) problem_ = join({where_, ": ", what});
  }
  double number(const JsonValue& item, double least, double most, const char* what) {
    const bool fits = (item.is(Kind::number) || item.is(Kind::real)) && std::isfinite(item.real) &&
                      item.real >= least && item.real <= most;
    require(fits, join({"'", item.key, "' must be ", what}));
    return fits ? item.real : least;
  }
  std::uint64_t bytes(const JsonValue& item) {
    const double value = number(item, 0, kMostBytes, "a number of bytes, such as 4e12");
    return item.is(Kind::number) && problem_.empty() ? item.number : static_cast<std::uint64_t>(value);
  }
  double rate(const JsonValue& item) { return number(item, 1, kMostBytes, "bytes a second, such as 2e8"); }

  String where_;
  String problem_;
};

}  // namespace

Result<Vector<Node>> parse_nodes(std::string_view text, Report& report) {
  JsonLimits limits;
  limits.settings = true;
  limits.values = kMostNodes * 16;
  QUERN_ASSIGN_OR_RETURN(const JsonValue root, parse_json(text, limits, report));
  const JsonValue* const list = root.is(Kind::object) && root.items.size() == 1 ? root.find("nodes") : nullptr;
  if (list == nullptr || !list->is(Kind::array) || list->items.empty() || list->items.size() > kMostNodes)
    return fail(report, StatusCode::invalid_argument,
                R"(must be {"nodes": [...]} with 1 to 1024 nodes and nothing beside it)");
  Vector<Node> out;
  for (const JsonValue& item : list->items) {
    NodeReader reader(out.size());
    out.push_back(reader.read(item));
    if (!reader.problem().empty()) return fail(report, StatusCode::invalid_argument, reader.problem());
    for (std::size_t i = 0; i + 1 < out.size(); ++i)
      if (out[i].name == out.back().name)
        return fail(report, StatusCode::invalid_argument, join({"node '", out.back().name, "' is there twice"}));
  }
  return out;
}

}  // namespace quern::checkpoint
