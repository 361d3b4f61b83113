// What tensors are for, told from their names, and which of them belong together.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "checkpoint/safetensors/element_names.h"
#include "checkpoint/storage.h"

namespace quern::checkpoint {

/// A tensor as far as its role is concerned.
struct RoleSubject {
  std::string_view name;
  TensorDescription what;
  std::string_view role = {};  ///< that the caller knows it to have; empty: to be told from the name
};

struct Role {
  String role;       ///< see role_of; empty: of nothing known
  String parameter;  ///< the parameter it belongs to: the name without words for roles and containers
  String frame;      ///< the name with a hole where the role's word stands
};

/// Words between '.' and '/' decide. What presets know: param (of a model: under "model", "module", "state_dict",
/// "weights" and their like, or a master copy), exp_avg, exp_avg_sq, max_exp_avg_sq, second_moment (square_avg, sum,
/// acc_delta, exp_avg_sq_row, row_var, ...), exp_inf. What they leave alone: momentum, grad, step, step_size, grad_avg,
/// average, history, preconditioner, quantized (parts of codes in few bits), buffer (of a model: statistics, averages,
/// caches, scales, masks), and whatever has no role: the name tells nothing.
Role role_of(const RoleSubject& subject);

/// Whether a tensor of that role has no negative values: then positive ones stay positive, and zeros zeros.
bool is_non_negative_role(std::string_view role);

/// Glob and the role that it gives.
using RoleRules = Vector<std::pair<String, String>>;

struct AssignedRole {
  String role;
  bool from_name = false;  ///< nobody said it
  std::optional<std::uint32_t> companion;
  // Of an f32 param.
  std::optional<std::uint32_t> exp_avg;
  std::optional<std::uint32_t> exp_avg_sq;
  std::optional<std::uint32_t> gradient;  ///< bf16 or f32
};

/// Roles of all tensors (the caller's, else the first rule whose glob matches, else role_of), and what belongs to the
/// same parameter and has its shape: the companion (exp_avg_sq for the exp_avg of an optimizer that keeps what Adam
/// keeps, the f32 param for a 16-bit copy of it), moments, gradient. Tensors without a role may be weights as far as
/// only predictions depend on it. Beside a grad_avg a second moment is a centered_second_moment: the optimizer takes
/// the root of their difference, which no error of one of them may turn negative.
Vector<AssignedRole> assign_roles(const Vector<RoleSubject>& subjects, const RoleRules& rules);

/// '*' any text, '?' any one byte; all else itself.
bool glob_matches(std::string_view glob, std::string_view text);

}  // namespace quern::checkpoint
