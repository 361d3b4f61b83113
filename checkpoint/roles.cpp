// Roles from names as PyTorch, DeepSpeed and Megatron write them.
#include "checkpoint/roles.h"

#include <algorithm>

namespace quern::checkpoint {
namespace {

constexpr std::pair<std::string_view, std::string_view> kRoleWords[] = {
    {"exp_avg_sq", "exp_avg_sq"},
    {"exp_avg", "exp_avg"},
    {"max_exp_avg_sq", "max_exp_avg_sq"},
    {"momentum_buffer", "momentum"},
    {"momentum", "momentum"},
    {"grad", "grad"},
    {"grads", "grad"},
    {"param", "param"},
    {"params", "param"},
    {"fp32_param", "param"},
    {"fp32_params", "param"},
    {"fp32_from_fp16_params", "param"},
    {"master", "param"},
    {"master_param", "param"},
    {"master_params", "param"},
    {"master_weight", "param"},
    {"master_weights", "param"},
    {"fp32", "param"},
    {"step", "step"},
};
/// Words that only say where a tensor was kept.
constexpr std::string_view kContainers[] = {
    "optimizer",        "optimizer_state",     "optim", "state", "state_dict", "model", "module", "zero", "weights",
    "model_state_dict", "base_optimizer_state"};

bool is_container(std::string_view word) {
  return std::find(std::begin(kContainers), std::end(kContainers), word) != std::end(kContainers) ||
         word.starts_with("chained_");
}

bool is_16_bit(ElementType type) { return type == ElementType::bf16 || type == ElementType::f16; }

}  // namespace

Role role_of(const RoleSubject& subject) {
  Role out;
  std::string_view rest = subject.name;
  while (!rest.empty()) {
    const std::size_t length = std::min(rest.find_first_of("./"), rest.size());
    const std::string_view word = rest.substr(0, length);
    rest.remove_prefix(std::min(length + 1, rest.size()));
    const auto* const found = std::find_if(std::begin(kRoleWords), std::end(kRoleWords),
                                           [&](const auto& known) { return known.first == word; });
    if (found != std::end(kRoleWords) && (out.role.empty() || out.role == "param")) {
      out.role = found->second;
    } else if (!is_container(word)) {
      if (!out.parameter.empty()) out.parameter += '.';
      out.parameter += word;
    }
  }
  if (out.role.empty() && codec::tensor::is_float(subject.what.type)) out.role = "param";
  return out;
}

bool glob_matches(std::string_view glob, std::string_view text) {
  std::size_t g = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g;
      ++t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

Vector<AssignedRole> assign_roles(const Vector<RoleSubject>& subjects, const RoleRules& rules) {
  struct Member {
    String parameter;
    std::uint32_t index;
  };
  Vector<AssignedRole> out(subjects.size());
  Vector<Member> members;
  for (std::uint32_t i = 0; i < subjects.size(); ++i) {
    Role role = role_of(subjects[i]);
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&](const auto& r) { return glob_matches(r.first, subjects[i].name); });
    if (!subjects[i].role.empty()) {
      out[i].role = subjects[i].role;
    } else {
      out[i].role = rule != rules.end() ? rule->second : std::move(role.role);
    }
    members.push_back({std::move(role.parameter), i});
  }
  std::stable_sort(members.begin(), members.end(),
                   [](const Member& a, const Member& b) { return a.parameter < b.parameter; });
  for (std::size_t begin = 0, end = 0; begin < members.size(); begin = end) {
    while (end < members.size() && members[end].parameter == members[begin].parameter) ++end;
    // Of a parameter there are a few tensors at most; names without words of their own make no group.
    if (members[begin].parameter.empty() || end - begin > 64) continue;
    const auto find = [&](const RoleSubject& of, std::string_view role, auto fits) -> std::optional<std::uint32_t> {
      for (std::size_t i = begin; i < end; ++i) {
        const std::uint32_t index = members[i].index;
        if (out[index].role == role && subjects[index].what.shape == of.what.shape && fits(subjects[index]))
          return index;
      }
      return std::nullopt;
    };
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t index = members[i].index;
      const RoleSubject& subject = subjects[index];
      if (out[index].role == "exp_avg")
        out[index].companion =
            find(subject, "exp_avg_sq", [&](const RoleSubject& s) { return s.what.type == subject.what.type; });
      if (out[index].role == "param" && subject.what.type == ElementType::f32) {
        const auto is_f32 = [](const RoleSubject& s) { return s.what.type == ElementType::f32; };
        out[index].exp_avg = find(subject, "exp_avg", is_f32);
        out[index].exp_avg_sq = find(subject, "exp_avg_sq", is_f32);
        out[index].gradient =
            find(subject, "grad", [&](const RoleSubject& s) { return is_f32(s) || s.what.type == ElementType::bf16; });
      }
      if (out[index].role == "param" && is_16_bit(subject.what.type))
        out[index].companion =
            find(subject, "param", [](const RoleSubject& s) { return s.what.type == ElementType::f32; });
    }
  }
  return out;
}

}  // namespace quern::checkpoint
