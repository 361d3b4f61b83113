// Counting and wording.
#include "checkpoint/convert/lossy_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <tuple>

namespace quern::checkpoint {
namespace {

/// Of a tensor that presets would make lossy.
constexpr std::uint64_t kLeastBytes = 4 * 4096;

/// Four digits say enough to a person.
String number(double value) {
  std::array<char, 32> room;
  std::snprintf(room.data(), room.size(), "%.4g", value);
  return String(room.data());
}

struct RoleText {
  std::string_view role, one, many;
};
constexpr RoleText kRoleTexts[] = {
    {"param", "weight", "weights"},
    {"exp_avg", "first moment", "first moments"},
    {"exp_avg_sq", "second moment", "second moments"},
    {"max_exp_avg_sq", "largest second moment", "largest second moments"},
    {"second_moment", "second moment", "second moments"},
    {"exp_inf", "infinity norm", "infinity norms"},
};

std::size_t order_of(std::string_view role) {
  const auto* const found =
      std::find_if(std::begin(kRoleTexts), std::end(kRoleTexts), [&](const RoleText& t) { return t.role == role; });
  return static_cast<std::size_t>(found - std::begin(kRoleTexts));
}

String subject_text(const LossyKind& kind) {
  const bool one = kind.tensors == 1;
  if (!kind.request) return join({decimal(kind.tensors), one ? " 16-bit copy" : " 16-bit copies"});
  const std::size_t order = order_of(kind.role);
  if (order < std::size(kRoleTexts))
    return join({decimal(kind.tensors), " ", one ? kRoleTexts[order].one : kRoleTexts[order].many});
  const String told = kind.role.empty() ? String() : join({" of the role ", kind.role});
  return join({decimal(kind.tensors), one ? " tensor" : " tensors", told});
}

String promise_text(const LossyKind& kind) {
  if (!kind.request) return kind.tensors == 1 ? "that follows its weight" : "that follow their weights";
  const LossyRequest& request = *kind.request;
  switch (request.mode) {
    case Mode::ebq: return join({"within ", number(request.bound), request.in_deviations ? " std" : " absolute"});
    case Mode::updq: return join({"within ", number(request.bound), " updates"});
    case Mode::logq: return join({"within a factor ", number(std::exp(2 * request.bound))});
    default: return join({"in ", codec::tensor::mode_name(request.mode), ", without a bound"});
  }
}

auto key_of(const LossyKind& kind) {
  const LossyRequest none{Mode::derived, 0, false};
  const LossyRequest& request = kind.request ? *kind.request : none;
  return std::tuple(order_of(kind.role), std::string_view(kind.role), !kind.request, request.mode, request.bound,
                    request.in_deviations);
}

}  // namespace

const char* unit_text(const LossyRequest& lossy) {
  switch (lossy.mode) {
    case Mode::ebq: return lossy.in_deviations ? "std" : "absolute";
    case Mode::updq: return "sqrt(v)";
    case Mode::logq: return "ln sqrt(v)";
    default: return "";
  }
}

LossySummary summarize_loss(const Vector<TensorSummary>& tensors) {
  LossySummary out;
  for (const TensorSummary& tensor : tensors) {
    if (!(tensor.saved.worst_absolute > 0)) {
      ++out.exact;
      continue;
    }
    ++out.lossy;
    LossyKind kind{tensor.role, tensor.lossy, 1};
    const auto found = std::find_if(out.kinds.begin(), out.kinds.end(),
                                    [&](const LossyKind& other) { return key_of(other) == key_of(kind); });
    if (found == out.kinds.end()) {
      out.kinds.push_back(std::move(kind));
    } else {
      ++found->tensors;
    }
  }
  std::sort(out.kinds.begin(), out.kinds.end(),
            [](const LossyKind& a, const LossyKind& b) { return key_of(a) < key_of(b); });
  return out;
}

String loss_sentence(const LossySummary& summary) {
  const auto exact = [&](const char* all) {
    return join({all, decimal(summary.exact), summary.exact == 1 ? " tensor exact" : " tensors exact"});
  };
  if (summary.kinds.empty()) return exact(summary.exact == 1 ? "" : "all ");
  String out = join({decimal(summary.kinds.size()), summary.kinds.size() == 1 ? " kind" : " kinds", " made lossy: "});
  for (const LossyKind& kind : summary.kinds) {
    if (&kind != &summary.kinds.front()) out += ", ";
    out += join({subject_text(kind), " ", promise_text(kind)});
  }
  return join({out, "; ", exact("")});
}

String unnamed_weights_note(Preset preset, const Vector<TensorSummary>& tensors) {
  if (preset != Preset::balanced && preset != Preset::archive) return {};
  const TensorSummary* unnamed = nullptr;
  for (const TensorSummary& tensor : tensors) {
    if (tensor.role == "param") return {};
    if (unnamed == nullptr && tensor.role.empty() && tensor.raw_bytes >= kLeastBytes) unnamed = &tensor;
  }
  if (unnamed == nullptr) return {};
  return join({"no name tells which tensors are weights (as model.* would), so '", unnamed->name,
               "' and the like stay exact: give weights the role param to make them lossy"});
}

}  // namespace quern::checkpoint
