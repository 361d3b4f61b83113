// Roles from names, and what belongs together.
#include "checkpoint/policy/roles.h"

#include <algorithm>
#include <span>

#include "checkpoint/policy/role_words.h"

namespace quern::checkpoint {
namespace {

constexpr std::string_view kNonNegative[] = {"exp_avg_sq", "max_exp_avg_sq", "second_moment", "centered_second_moment",
                                             "exp_inf",    "step_size"};

bool is_16_bit(ElementType type) { return type == ElementType::bf16 || type == ElementType::f16; }

/// One tensor in the order of parameters.
struct Member {
  String parameter;
  std::uint32_t index;
};

/// Finds what belongs to tensors of one parameter.
class Group {
 public:
  Group(std::span<const Member> members, const Vector<RoleSubject>& subjects, const Vector<String>& frames,
        Vector<AssignedRole>& roles)
      : members_(members), subjects_(subjects), frames_(frames), roles_(roles) {}

  void mark_centered() {
    const bool is_centered = std::any_of(members_.begin(), members_.end(),
                                         [&](const Member& m) { return roles_[m.index].role == "grad_avg"; });
    if (!is_centered) return;
    for (const Member& member : members_)
      if (roles_[member.index].role == "second_moment") roles_[member.index].role = "centered_second_moment";
  }

  void find_companions() {
    for (const Member& member : members_) {
      AssignedRole& own = roles_[member.index];
      const RoleSubject& subject = subjects_[member.index];
      if (own.role == "exp_avg") {
        own.companion = find(subject, "exp_avg_sq", [&](std::uint32_t other) {
          const bool is_told = !own.from_name || !roles_[other].from_name;
          return subjects_[other].what.type == subject.what.type &&
                 (is_told || frames_[other] == frames_[member.index]);
        });
      } else if (is_weight(own.role) && subject.what.type == ElementType::f32) {
        const auto is_f32 = [&](std::uint32_t other) { return subjects_[other].what.type == ElementType::f32; };
        own.exp_avg = find(subject, "exp_avg", is_f32);
        own.exp_avg_sq = find(subject, "exp_avg_sq", is_f32);
        own.gradient = find(subject, "grad", [&](std::uint32_t other) {
          return is_f32(other) || subjects_[other].what.type == ElementType::bf16;
        });
      } else if (is_weight(own.role) && is_16_bit(subject.what.type)) {
        own.companion =
            find(subject, "param", [&](std::uint32_t other) { return subjects_[other].what.type == ElementType::f32; });
      }
    }
  }

 private:
  static bool is_weight(std::string_view role) { return role == "param" || role.empty(); }

  template <class Fits>
  std::optional<std::uint32_t> find(const RoleSubject& of, std::string_view role, const Fits& fits) const {
    for (const Member& member : members_) {
      const std::string_view has = roles_[member.index].role;
      const bool plays = role == "param" ? is_weight(has) : has == role;
      if (plays && subjects_[member.index].what.shape == of.what.shape && fits(member.index)) return member.index;
    }
    return std::nullopt;
  }

  std::span<const Member> members_;
  const Vector<RoleSubject>& subjects_;
  const Vector<String>& frames_;
  Vector<AssignedRole>& roles_;
};

/// Takes the companions of exp_avg away where an optimizer keeps more of the parameter than Adam does: there exp_avg
/// may be in other units (SOAP, Adafactor with beta1, CAME).
void part_from_other_optimizers(const Vector<RoleSubject>& subjects, Vector<AssignedRole>& roles) {
  Vector<std::string_view> names;
  for (const RoleSubject& subject : subjects) names.push_back(subject.name);
  std::sort(names.begin(), names.end());
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    if (!roles[i].companion || !roles[i].from_name || roles[i].role != "exp_avg") continue;
    const std::string_view name = subjects[i].name;
    const std::string_view word = "exp_avg";
    if (!name.ends_with(word) || name.size() == word.size()) continue;
    const std::string_view place = name.substr(0, name.size() - word.size());
    for (auto at = std::lower_bound(names.begin(), names.end(), place); at != names.end() && at->starts_with(place);
         ++at) {
      const std::string_view rest = at->substr(place.size());
      if (is_adam_state(rest.substr(0, rest.find_first_of("./")))) continue;
      roles[i].companion.reset();
      break;
    }
  }
}

}  // namespace

Role role_of(const RoleSubject& subject) {
  Role out;
  const Vector<std::string_view> words = words_of(subject.name);
  const NameContext context = context_of(words);
  std::string_view hole;
  for (const std::string_view word : words) {
    const std::string_view role = role_of_word(word, context);
    if (!role.empty() && (out.role.empty() || out.role == "param")) {
      out.role = role;
      hole = word;
    } else if (!is_container(word)) {
      if (!out.parameter.empty()) out.parameter += '.';
      out.parameter += word;
    }
  }
  out.frame = subject.name;
  if (!hole.empty()) out.frame.replace(static_cast<std::size_t>(hole.data() - subject.name.data()), hole.size(), "*");
  if (out.role.empty() && context == NameContext::model && codec::tensor::is_float(subject.what.type))
    out.role = "param";
  if (out.role == "param" && names_buffer(words)) out.role = "buffer";
  if (!hole.empty() && words.size() > 1 && words[words.size() - 2].data() == hole.data() && is_code_part(words.back()))
    out.role = "quantized";
  return out;
}

bool is_non_negative_role(std::string_view role) {
  return std::find(std::begin(kNonNegative), std::end(kNonNegative), role) != std::end(kNonNegative);
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
  Vector<AssignedRole> out(subjects.size());
  Vector<Member> members;
  Vector<String> frames;
  for (std::uint32_t i = 0; i < subjects.size(); ++i) {
    Role role = role_of(subjects[i]);
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&](const auto& r) { return glob_matches(r.first, subjects[i].name); });
    if (!subjects[i].role.empty()) {
      out[i].role = subjects[i].role;
    } else if (rule != rules.end()) {
      out[i].role = rule->second;
    } else {
      out[i].role = std::move(role.role);
      out[i].from_name = true;
    }
    members.push_back({std::move(role.parameter), i});
    frames.push_back(std::move(role.frame));
  }
  std::stable_sort(members.begin(), members.end(),
                   [](const Member& a, const Member& b) { return a.parameter < b.parameter; });
  for (std::size_t begin = 0, end = 0; begin < members.size(); begin = end) {
    while (end < members.size() && members[end].parameter == members[begin].parameter) ++end;
    const std::span<const Member> all(members);
    Group group(all.subspan(begin, end - begin), subjects, frames, out);
    group.mark_centered();
    // Of a parameter there are a few tensors at most; names without words of their own make no group.
    if (!members[begin].parameter.empty() && end - begin <= 64) group.find_companions();
  }
  part_from_other_optimizers(subjects, out);
  return out;
}

}  // namespace quern::checkpoint
