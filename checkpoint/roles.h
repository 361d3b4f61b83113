// What tensors are for, told from their names, and which of them belong together.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "checkpoint/element_names.h"
#include "checkpoint/report.h"

namespace quern::checkpoint {

/// A tensor as far as its role is concerned.
struct RoleSubject {
  std::string_view name;
  TensorDescription what;
  std::string_view role = {};  ///< that the caller knows it to have; empty: to be told from the name
};

struct Role {
  String role;       ///< "param", "exp_avg", "exp_avg_sq", "momentum", "grad", "step" or empty
  String parameter;  ///< the parameter it belongs to: the name without words for roles and containers
};

/// Words between '.' and '/' decide: exp_avg, exp_avg_sq, max_exp_avg_sq, momentum_buffer, grad, step, and param,
/// master, fp32_param and their like. Without such a word a floating-point tensor is a param.
Role role_of(const RoleSubject& subject);

/// Glob and the role that it gives.
using RoleRules = Vector<std::pair<String, String>>;

struct AssignedRole {
  String role;
  std::optional<std::uint32_t> companion;
  // Of an f32 param.
  std::optional<std::uint32_t> exp_avg;
  std::optional<std::uint32_t> exp_avg_sq;
  std::optional<std::uint32_t> gradient;  ///< bf16 or f32
};

/// Roles of all tensors (the caller's, else the first rule whose glob matches, else role_of), and what belongs to the
/// same parameter and has its shape: the companion (exp_avg_sq for exp_avg, the f32 param for a 16-bit copy of it),
/// moments, gradient.
Vector<AssignedRole> assign_roles(const Vector<RoleSubject>& subjects, const RoleRules& rules);

/// '*' any text, '?' any one byte; all else itself.
bool glob_matches(std::string_view glob, std::string_view text);

}  // namespace quern::checkpoint
