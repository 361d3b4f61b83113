// Roles and companions from names.
#include <gtest/gtest.h>

#include <string>

#include "checkpoint/policy/roles.h"

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

/// Names as state dicts have them, {"model": ..., "optimizer": ...} joined by dots, read from the packages themselves.
TEST(Roles, OfEveryOptimizersState) {
  const struct {
    const char *optimizer, *words, *roles;
  } cases[] = {
      {"Adadelta", "step square_avg acc_delta", "step second_moment second_moment"},
      {"Adafactor", "step row_var col_var variance", "step second_moment second_moment second_moment"},
      {"Adagrad", "step sum", "step second_moment"},
      {"Adam", "step exp_avg exp_avg_sq max_exp_avg_sq", "step exp_avg exp_avg_sq max_exp_avg_sq"},
      {"Adamax", "exp_avg exp_inf", "exp_avg exp_inf"},
      {"ASGD", "eta mu ax", "- - average"},
      {"LBFGS", "d prev_flat_grad old_dirs.0 old_stps.3 H_diag ro.0 al.1", "- history history history - - -"},
      {"Muon", "momentum_buffer", "momentum"},
      {"NAdam", "mu_product exp_avg exp_avg_sq", "- exp_avg exp_avg_sq"},
      {"RMSprop", "square_avg momentum_buffer", "second_moment momentum"},
      {"RMSprop centered", "square_avg momentum_buffer grad_avg", "centered_second_moment momentum grad_avg"},
      {"Rprop", "prev step_size", "history step_size"},
      {"Adafactor of transformers", "exp_avg exp_avg_sq_row exp_avg_sq_col RMS",
       "exp_avg second_moment second_moment -"},
      {"CAME", "exp_avg exp_avg_res_row exp_avg_res_col", "exp_avg - -"},
      {"AdaBelief", "exp_avg exp_avg_var", "exp_avg second_moment"},
      {"SOAP", "exp_avg exp_avg_sq GG.0 Q.1", "exp_avg exp_avg_sq preconditioner preconditioner"},
      {"Shampoo", "pre_cond_0 inv_pre_cond_0", "- -"},
      {"schedule-free", "z exp_avg_sq", "- exp_avg_sq"},
      {"torchao, by parts", "exp_avg.codes exp_avg.scale exp_avg_sq.qmap", "quantized quantized quantized"},
      {"bitsandbytes", "__bnb_optimizer_quant_state__.state1 __bnb_optimizer_quant_state__.absmax2", "- -"},
  };
  const auto split = [](std::string text) {
    std::vector<std::string> out;
    text += ' ';
    for (std::size_t end; (end = text.find(' ')) != std::string::npos; text.erase(0, end + 1))
      out.push_back(text.substr(0, end));
    return out;
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.optimizer);
    const auto words = split(one.words), wanted = split(one.roles);
    ASSERT_EQ(words.size(), wanted.size());
    for (const char* const place :
         {"optimizer.state.7.", "state.7.", "optimizer_states.0.state.7.", "optim.state.layers.0.w."}) {
      Vector<RoleSubject> subjects;
      std::vector<std::string> names;
      for (const std::string& word : words) names.push_back(place + word);
      for (const std::string& name : names) subjects.push_back({name, what(ElementType::f32)});
      const auto roles = assign_roles(subjects, {});
      for (std::size_t i = 0; i < words.size(); ++i)
        EXPECT_EQ(std::string(roles[i].role), wanted[i] == "-" ? "" : wanted[i]) << names[i];
    }
  }
}

TEST(Roles, WeightsAreUnderAModel_OrMasters) {
  const auto role = [](const char* name) { return std::string(role_of({name, what(ElementType::f32)}).role); };
  for (const char* const name :
       {"model.layers.0.w", "module.w", "state_dict.layers.0.weight", "model_state_dict.w", "weights.w", "app.model.w",
        "base_model.model.q.lora_A.weight", "_orig_mod.w", "0.module.w", "model0.w", "model.sum.w",
        "model.fc_var.weight", "optimizer.fp32_param.w", "optimizer.state.0.master_param", "param.w"})
    EXPECT_EQ(role(name), "param") << name;
  for (const char* const name :
       {"w", "cache.table", "ema.model.w", "transformer.h.0.w", "queue", "optimizer.state.0.z", "state.model.w.ax2",
        "optimizer.state.z.module.w", "optimizer.model.w", "generator.w", "sum.w", "Q.w", "rng.table"})
    EXPECT_EQ(role(name), "") << name;
  for (const char* const name : {"model.bn.running_var", "model.bn.running_mean", "model.rope.inv_freq", "model.queue",
                                 "model.kv_cache.0", "state_dict.model_ema.w", "ema.params.w", "model.w_scale_inv",
                                 "model.attn.causal_mask", "model.vq.cluster_size"})
    EXPECT_EQ(role(name), "buffer") << name;
  EXPECT_EQ(std::string(role_of({"model.ids", what(ElementType::i64)}).role), "");
}

TEST(Roles, FirstMomentsOfOtherOptimizers_HaveNoCompanion) {
  const auto companion = [](std::vector<const char*> names) {
    Vector<RoleSubject> subjects;
    for (const char* const name : names) subjects.push_back({name, what(ElementType::f32)});
    return assign_roles(subjects, {})[0].companion;
  };
  EXPECT_EQ(companion({"o.state.1.exp_avg", "o.state.1.exp_avg_sq", "o.state.1.step", "o.state.11.GG.0"}), 1U);
  EXPECT_EQ(companion({"w.exp_avg", "w.exp_avg_sq", "w.fp32_param", "w.grad"}), 1U);
  EXPECT_FALSE(companion({"o.state.1.exp_avg", "o.state.1.exp_avg_sq", "o.state.1.GG.0"})) << "SOAP";
  EXPECT_FALSE(companion({"o.state.1.exp_avg", "o.state.1.exp_avg_sq", "o.state.1.RMS"})) << "Adafactor, of a vector";
  EXPECT_FALSE(companion({"o.state.1.exp_avg", "o.state.1.exp_inf"})) << "Adamax";
  EXPECT_FALSE(companion({"optimizer.state.1.exp_avg", "optim.state.1.exp_avg_sq"})) << "Lion beside Adam";
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
