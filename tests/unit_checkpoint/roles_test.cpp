// Roles and companions from names.
#include <gtest/gtest.h>

#include <string>

#include "checkpoint/roles.h"

namespace quern::checkpoint {
namespace {

TensorDescription what(ElementType type) { return {type, *Shape::try_make(std::vector<std::uint64_t>{4, 4})}; }

TEST(Roles, OfCommonNames) {
  const struct {
    const char *name, *role, *parameter;
  } cases[] = {
      {"param.emb.weight", "param", "emb.weight"},
      {"exp_avg.emb.weight", "exp_avg", "emb.weight"},
      {"exp_avg_sq.emb.weight", "exp_avg_sq", "emb.weight"},
      {"optimizer.state.layers.0.w.exp_avg", "exp_avg", "layers.0.w"},
      {"zero/layers.0.w/fp32", "param", "layers.0.w"},
      {"zero/layers.0.w/exp_avg_sq", "exp_avg_sq", "layers.0.w"},
      {"chained_0.optimizer.state.fp32_param.layers.0.w", "param", "layers.0.w"},
      {"optimizer.state.exp_avg.module.layers.0.w", "exp_avg", "layers.0.w"},
      {"model.layers.0.w", "param", "layers.0.w"},
      {"grad.layers.0.w", "grad", "layers.0.w"},
      {"optimizer.state.w.momentum_buffer", "momentum", "w"},
  };
  for (const auto& one : cases) {
    const Role role = role_of({one.name, what(ElementType::f32)});
    EXPECT_EQ(std::string(role.role), one.role) << one.name;
    EXPECT_EQ(std::string(role.parameter), one.parameter) << one.name;
  }
  EXPECT_TRUE(role_of({"ids", what(ElementType::i64)}).role.empty());
}

TEST(Roles, Companions_AreOfTheSameParameterAndShape) {
  Vector<RoleSubject> subjects;
  subjects.push_back({"model.w", what(ElementType::bf16)});
  subjects.push_back({"exp_avg.w", what(ElementType::f32)});
  subjects.push_back({"exp_avg_sq.w", what(ElementType::f32)});
  subjects.push_back({"master.w", what(ElementType::f32)});
  subjects.push_back({"exp_avg.other", what(ElementType::f32)});
  subjects.push_back({"exp_avg_sq.other", {ElementType::f32, *Shape::try_make(std::vector<std::uint64_t>{16})}});
  const auto roles = assign_roles(subjects, {});
  EXPECT_EQ(roles[0].companion, 3U);
  EXPECT_EQ(roles[1].companion, 2U);
  EXPECT_FALSE(roles[2].companion);
  EXPECT_FALSE(roles[3].companion);
  EXPECT_FALSE(roles[4].companion);
  RoleRules rules;
  rules.emplace_back("exp_avg_sq.*", "mine");
  const auto ruled = assign_roles(subjects, rules);
  EXPECT_EQ(std::string(ruled[2].role), "mine");
  EXPECT_FALSE(ruled[1].companion);
}

TEST(Roles, Globs) {
  EXPECT_TRUE(glob_matches("*", ""));
  EXPECT_TRUE(glob_matches("a*b*c", "axxbyyc"));
  EXPECT_FALSE(glob_matches("a*b*c", "axxbyy"));
  EXPECT_TRUE(glob_matches("?b", "ab"));
  EXPECT_FALSE(glob_matches("", "a"));
  EXPECT_FALSE(glob_matches(std::string(200, '*') + "b", std::string(2000, 'a')));
}

}  // namespace
}  // namespace quern::checkpoint
