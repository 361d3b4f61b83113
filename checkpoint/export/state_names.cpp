// The tree of a state dict, walked for its tensors.
#include "checkpoint/export/state_names.h"

#include <algorithm>

#include "checkpoint/safetensors/json.h"

namespace quern::checkpoint {
namespace {

using Kind = JsonValue::Kind;

constexpr std::string_view kMappings[] = {"dict", "ordered", "counter", "defaultdict", "namespace"};
constexpr std::string_view kSequences[] = {"list", "tuple", "deque"};
constexpr const char* kUnfit[] = {"sparse", "quantized", "wrapper"};
constexpr std::size_t kDeepest = 2000;

bool is_in(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

class StateWalk {
 public:
  explicit StateWalk(StateNames& out) : out_(out) {}

  /// False: this is no text of a state dict.
  bool node(const JsonValue& value, const String& path) {
    if (!value.is(Kind::object) || value.items.empty()) return false;
    const JsonValue& first = value.items.front();
    if (value.find("tensor") != nullptr) return tensor(value, path);
    if (is_in(first.key, kMappings)) return mapping(first, path);
    if (is_in(first.key, kSequences)) return sequence(first, path);
    if (first.key == "named") return member(value, "items", [&](const JsonValue& m) { return sequence(m, path); });
    if (first.key == "dataclass") return member(value, "fields", [&](const JsonValue& m) { return mapping(m, path); });
    if (first.key == "object") return member(value, "value", [&](const JsonValue& m) { return node(m, path); });
    for (const char* const unfit : kUnfit) {
      if (first.key != unfit) continue;
      StateTensor found;
      found.name = path;
      found.unfit = unfit;
      out_.tensors.push_back(std::move(found));
    }
    return true;  // a value, or what has no tensors
  }

 private:
  template <class Walk>
  bool member(const JsonValue& value, std::string_view name, const Walk& walk) {
    const JsonValue* const found = value.find(name);
    return found != nullptr && walk(*found);
  }
  static String below(const String& path, std::string_view key) {
    return path.empty() ? String(key) : join({path, ".", key});
  }
  bool mapping(const JsonValue& items, const String& path) {
    if (!items.is(Kind::array)) return false;
    for (const JsonValue& item : items.items) {
      if (!item.is(Kind::array) || item.items.size() != 2) return false;
      const JsonValue& key = item.items[0];
      String name = key.text;
      if (key.is(Kind::number)) name = decimal(key.number);
      if (!key.is(Kind::number) && !key.is(Kind::text) && !key.is(Kind::real)) name.assign(1, '?');
      const JsonValue& value = item.items[1];
      const bool has_dict = value.is(Kind::object) && !value.items.empty() && is_in(value.items[0].key, kMappings);
      if (path.empty() && has_dict) out_.containers.push_back(name);
      if (!node(value, below(path, name))) return false;
    }
    return true;
  }
  bool sequence(const JsonValue& items, const String& path) {
    if (!items.is(Kind::array)) return false;
    for (std::size_t i = 0; i < items.items.size(); ++i)
      if (!node(items.items[i], below(path, decimal(i)))) return false;
    return true;
  }
  static bool numbers(const JsonValue* list, Vector<std::uint64_t>& out) {
    if (list == nullptr || !list->is(Kind::array)) return false;
    for (const JsonValue& item : list->items) {
      if (!item.is(Kind::number)) return false;
      out.push_back(item.number);
    }
    return true;
  }
  static bool view(const JsonValue& value, StateView& out) {
    const JsonValue* const offset = value.find("offset");
    const JsonValue* const strides = value.find("strides");
    if (offset == nullptr || !offset->is(Kind::number) || strides == nullptr || !strides->is(Kind::array)) return false;
    out.offset = offset->number;
    for (const JsonValue& stride : strides->items) {
      if (!stride.is(Kind::number) && !stride.is(Kind::real)) return false;
      if (!(stride.real > -0x1p60 && stride.real < 0x1p60)) return false;
      out.strides.push_back(static_cast<std::int64_t>(stride.real));
    }
    return numbers(value.find("shape"), out.shape) && out.shape.size() == out.strides.size();
  }
  bool tensor(const JsonValue& value, const String& path) {
    StateTensor found;
    found.name = path;
    const JsonValue* const stored = value.find("tensor");
    if (!stored->is(Kind::text)) return false;
    found.stored = stored->text;
    if (const JsonValue* const label = value.find("dtype"))
      found.label = label->is(Kind::text) ? label->text : "NumPy type";
    if (const JsonValue* const shape = value.find("shape")) {
      found.shape.emplace();
      if (!numbers(shape, *found.shape)) return false;
    }
    if (const JsonValue* const of = value.find("view")) {
      found.view.emplace();
      if (!of->is(Kind::object) || !view(*of, *found.view)) return false;
    }
    out_.tensors.push_back(std::move(found));
    return true;
  }

  StateNames& out_;
};

}  // namespace

Result<StateNames> parse_state_names(std::string_view text, Report& report) {
  const JsonLimits limits{.depth = kDeepest, .others = true, .settings = true, .lone_surrogates = true};
  QUERN_ASSIGN_OR_RETURN(const JsonValue root, parse_json(text, limits, report));
  StateNames out;
  const JsonValue* const tree = root.is(Kind::object) ? root.find("tree") : nullptr;
  if (tree == nullptr || !StateWalk(out).node(*tree, {}))
    return fail(report, StatusCode::corrupt, join({"blob '", kStateBlob, "' does not describe a state dict"}));
  return out;
}

}  // namespace quern::checkpoint
