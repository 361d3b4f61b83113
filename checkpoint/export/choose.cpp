// Names, types and shapes of what is exported.
#include "checkpoint/export/choose.h"

#include <algorithm>
#include <map>

#include "checkpoint/export/cast.h"
#include "checkpoint/policy/role_words.h"
#include "checkpoint/policy/roles.h"

namespace quern::checkpoint {
namespace {

constexpr std::pair<std::string_view, std::string_view> kLabels[] = {{"complex64", "C64"},
                                                                     {"complex128", "C128"},
                                                                     {"float8_e8m0fnu", "F8_E8M0"},
                                                                     {"float8_e4m3fnuz", "F8_E4M3FNUZ"},
                                                                     {"float8_e5m2fnuz", "F8_E5M2FNUZ"},
                                                                     {"float4_e2m1fn_x2", "F4"}};

template <class Key, class Value>
using Map = std::map<Key, Value, std::less<>, Allocator<std::pair<const Key, Value>>>;
using Pieces = Map<std::string_view, Vector<std::uint32_t>>;

Pieces pieces_by_name(const Manifest& manifest) {
  Pieces out;
  for (std::uint32_t i = 0; i < manifest.tensors.size(); ++i) out[manifest.tensors[i].name].push_back(i);
  return out;
}

/// The names as a state dict's, where the checkpoint is none.
StateNames plain_names(const Manifest& manifest) {
  StateNames out;
  Map<std::string_view, bool> seen;
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (!seen.emplace(tensor.name, true).second && tensor.is_piece) continue;
    StateTensor found;
    found.name = found.stored = tensor.name;
    out.tensors.push_back(std::move(found));
  }
  return out;
}

/// The model of a state dict: the one outermost dict that a model's words name.
std::optional<String> model_of(const StateNames& names) {
  std::optional<String> out;
  for (const String& container : names.containers) {
    if (context_of(words_of(container)) != NameContext::model) continue;
    if (out) return std::nullopt;
    out = container;
  }
  return out;
}

/// A word that wrappers put before every name of a model.
void note_wrappers(const Vector<ExportTensor>& tensors, Report& report) {
  for (const std::string_view word : {"module.", "_orig_mod.", "_forward_module.", "model.module."})
    if (std::all_of(tensors.begin(), tensors.end(), [&](const ExportTensor& t) { return t.name.starts_with(word); }))
      report.notes.push_back(
          join({"every name begins with '", word, "': strip that prefix too if the model's names do not"}));
}

/// Two names of one tensor, not two tensors with the same values.
bool is_same(const ExportTensor& a, const ExportTensor& b) {
  return a.view == b.view && a.written.what.type == b.written.what.type &&
         a.written.what.shape == b.written.what.shape && a.written.declared == b.written.declared;
}

class Chooser {
 public:
  Chooser(const Manifest& manifest, const ExportChoice& choice, Report& report)
      : manifest_(manifest), choice_(choice), pieces_(pieces_by_name(manifest)), report_(report) {}

  /// What is written of a tensor that is wanted.
  Result<ExportTensor> describe(const StateTensor& named) {
    ExportTensor out;
    out.name = named.name;
    for (const String& prefix : choice_.strip)
      if (out.name.starts_with(prefix)) out.name.erase(0, prefix.size());
    if (named.unfit != nullptr)
      return refuse(named, join({"it is ", named.unfit, ", which safetensors files do not hold"}));
    const auto found = pieces_.find(named.stored);
    if (found == pieces_.end()) return fail_corrupt(named, "the checkpoint does not have its values");
    if (out.name == "__metadata__") return refuse(named, "safetensors files have no tensor of that name");
    if (out.name.empty()) return refuse(named, "no name is left when the prefix is gone");
    out.pieces = found->second;
    const ManifestTensor& first = manifest_.tensors[out.pieces.front()];
    out.stored = first.what;
    if (first.is_piece) out.stored.shape = first.whole;
    out.view = named.view;
    out.written.name = out.name;
    out.written.what = out.stored;
    out.written.declared = first.declared;
    QUERN_RETURN_IF_ERROR(as_in_state(named, out));
    const ElementType type = out.written.what.type;
    const bool real = can_cast(type) && (!out.written.declared || out.written.declared->dtype == element_name(type));
    if (choice_.type && real && type != *choice_.type) {
      out.written.what.type = *choice_.type;
      if (out.written.declared) out.written.declared->dtype = element_name(*choice_.type);
      out.cast = true;
    }
    return out;
  }

 private:
  Status refuse(const StateTensor& named, std::string_view why) {
    return fail(report_, StatusCode::invalid_argument,
                join({"tensor '", named.name, "': ", why, "; leave it out: choose the others with --only"}));
  }
  Status fail_corrupt(const StateTensor& named, std::string_view why) {
    return fail(report_, StatusCode::corrupt, join({"tensor '", named.name, "': ", why}));
  }

  /// Type and shape as the state dict has them, where the store has the same bytes under others.
  Status as_in_state(const StateTensor& named, ExportTensor& out) {
    if (named.label.empty() && !named.shape && !named.view) return {};
    const auto own = out.stored.shape.extents();
    DeclaredType said{element_name(out.stored.type), Vector<std::uint64_t>(own.begin(), own.end())};
    if (!named.label.empty()) {
      const auto* const known =
          std::find_if(std::begin(kLabels), std::end(kLabels), [&](const auto& l) { return l.first == named.label; });
      if (known == std::end(kLabels))
        return refuse(named, join({"safetensors files have no type for its ", named.label}));
      said.dtype = known->second;
    }
    if (named.shape) said.shape = *named.shape;
    if (named.view) said.shape = named.view->shape;
    if (said.dtype == "F4" && !said.shape.empty()) said.shape.back() *= 2;  // two codes an element
    const auto elements = count_elements(said.shape);
    const auto bits = packed_bits(said.dtype);
    const auto type = parse_element(said.dtype);
    if (!elements || (!type && !bits)) return fail_corrupt(named, "its type or shape is impossible");
    const std::uint64_t bytes = type ? *elements * codec::tensor::element_bytes(*type) : *elements * *bits / 8;
    if (!fits(said, bytes) || (!named.view && bytes != out.stored.bytes()))
      return fail_corrupt(named, "its shape does not fit its values");
    const std::size_t width = type ? codec::tensor::element_bytes(*type) : 1;
    const bool as_it_is = type && said.shape.size() <= kMaxRank;
    const Vector<std::uint64_t> flat{bytes / width};
    out.written.what = {type.value_or(ElementType::u8), *Shape::try_make(as_it_is ? said.shape : flat)};
    out.written.declared.reset();
    if (!as_it_is) out.written.declared = std::move(said);
    return {};
  }

  const Manifest& manifest_;
  const ExportChoice& choice_;
  Pieces pieces_;
  Report& report_;
};

}  // namespace

Result<ChosenTensors> choose_tensors(const Manifest& manifest, const StateNames* state, const ExportChoice& choice,
                                     Report& report) {
  const StateNames names = state != nullptr ? *state : plain_names(manifest);
  ExportChoice used = choice;
  if (used.only.empty()) {
    if (const auto model = model_of(names)) {
      used.only.push_back(join({*model, ".*"}));
      used.strip.insert(used.strip.begin(), join({*model, "."}));
      report.notes.push_back(join({"exporting '", *model, ".*' without '", *model, ".'; choose others with --only"}));
    }
  }
  for (const String& glob : used.only)
    if (std::none_of(names.tensors.begin(), names.tensors.end(),
                     [&](const StateTensor& tensor) { return glob_matches(glob, tensor.name); }))
      return fail(report, StatusCode::invalid_argument,
                  join({"--only ", glob, ": step ", decimal(manifest.name.step),
                        " has no such tensor; quern checkpoint info lists them"}));
  Chooser chooser(manifest, used, report);
  ChosenTensors out;
  Map<String, bool> taken;
  Map<std::uint32_t, Vector<std::size_t>> by_piece;
  for (const StateTensor& named : names.tensors) {
    if (!used.only.empty() && std::none_of(used.only.begin(), used.only.end(),
                                           [&](const String& glob) { return glob_matches(glob, named.name); }))
      continue;
    QUERN_ASSIGN_OR_RETURN(ExportTensor tensor, chooser.describe(named));
    if (!taken.emplace(tensor.name, true).second)
      return fail(report, StatusCode::invalid_argument,
                  join({"two tensors would be called '", tensor.name, "'; choose one of them with --only"}));
    Vector<std::size_t>& same = by_piece[tensor.pieces.front()];
    const auto first =
        std::find_if(same.begin(), same.end(), [&](std::size_t index) { return is_same(out.tensors[index], tensor); });
    if (first != same.end()) {
      out.tied.emplace_back(tensor.name, out.tensors[*first].name);
    } else {
      same.push_back(out.tensors.size());
      out.tensors.push_back(std::move(tensor));
    }
  }
  if (out.tensors.empty())
    return fail(report, StatusCode::invalid_argument,
                join({"step ", decimal(manifest.name.step), " has no tensors to export"}));
  note_wrappers(out.tensors, report);
  return out;
}

}  // namespace quern::checkpoint
