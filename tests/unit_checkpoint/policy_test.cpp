// Policies and rules of optimizers: what they say, and what is refused.
#include <gtest/gtest.h>

#include <string>

#include "checkpoint/policy/policy.h"
#include "checkpoint/policy/replay_rule.h"

namespace quern::checkpoint {
namespace {

TensorDescription f32(std::vector<std::uint64_t> shape) { return {ElementType::f32, *Shape::try_make(shape)}; }

TEST(Policy, Presets_TakeLargeMatricesByRole) {
  for (const auto& [preset, weights, first, second] :
       {std::tuple(Preset::moments, 0.0, .05, .05), std::tuple(Preset::balanced, 1e-3, .05, .05),
        std::tuple(Preset::archive, 1e-2, .2, .1)}) {
    const Policy policy = preset_policy(preset);
    const auto bound = [&](const char* role, Treatment wanted) {
      const PolicyRule* const rule = rule_for(policy, {"x", role, f32({64, 64})});
      if (rule == nullptr) return 0.0;
      EXPECT_EQ(rule->treatment, wanted);
      return rule->bound;
    };
    EXPECT_EQ(bound("param", Treatment::ebq), weights);
    EXPECT_EQ(bound("exp_avg", Treatment::updq), first);
    EXPECT_EQ(bound("exp_avg_sq", Treatment::logq), second);
    EXPECT_EQ(rule_for(policy, {"x", "param", f32({4096})}), nullptr);
    EXPECT_EQ(rule_for(policy, {"x", "param", f32({63, 64})}), nullptr);
    EXPECT_NE(rule_for(policy, {"x", "exp_avg", f32({64})}), nullptr);
    EXPECT_EQ(rule_for(policy, {"x", "exp_avg", f32({63})}), nullptr);
    EXPECT_EQ(rule_for(policy, {"x", "step", f32({64, 64})}), nullptr);
  }
  EXPECT_TRUE(preset_policy(Preset::exact).rules.empty());
}

TEST(Policy, Presets_BoundWhatIsPositiveInRatios) {
  for (const Preset preset : {Preset::moments, Preset::balanced, Preset::archive}) {
    const Policy policy = preset_policy(preset);
    const double bound = preset == Preset::archive ? .1 : .05;
    for (const char* const role : {"exp_avg_sq", "max_exp_avg_sq", "second_moment", "exp_inf"}) {
      const PolicyRule* const rule = rule_for(policy, {"x", role, f32({64, 64})});
      ASSERT_NE(rule, nullptr) << role;
      EXPECT_EQ(rule->treatment, Treatment::logq) << role;
      EXPECT_EQ(rule->bound, role == std::string_view("exp_inf") ? bound / 2 : bound) << role;
      EXPECT_TRUE(is_non_negative_role(role));
      EXPECT_EQ(rule_for(policy, {"x", role, {ElementType::bf16, f32({64, 64}).shape}}), nullptr);
    }
    for (const char* const role : {"", "centered_second_moment", "step_size", "momentum", "grad_avg", "average",
                                   "history", "preconditioner", "buffer", "grad", "step", "other"})
      EXPECT_EQ(rule_for(policy, {"x", role, f32({64, 64})}), nullptr) << role;
  }
}

TEST(Policy, Rules_InOrderBeforeThePresets) {
  Report report;
  const auto policy = parse_policy(
      R"({"preset":"balanced","roles":[{"name":"m.*","role":"exp_avg"}],"rules":[
          {"name":"*embed*","mode":"exact"},
          {"role":"param","dtype":"F32","min_rank":1,"max_rank":2,"min_elements":10,"max_elements":100,
           "mode":"ebq","bound":0.5,"unit":"rate"},
          {"role":"exp_avg*","max_elements":9,"mode":"blk8"}]})",
      report);
  ASSERT_TRUE(policy.ok()) << report.problem;
  EXPECT_EQ(rule_for(*policy, {"a.embed.b", "param", f32({64, 64})})->treatment, Treatment::exact);
  const PolicyRule* const own = rule_for(*policy, {"w", "param", f32({10, 10})});
  EXPECT_EQ(own->bound, .5);
  EXPECT_EQ(own->unit, BoundUnit::rates);
  EXPECT_EQ(rule_for(*policy, {"w", "param", f32({64, 64})})->bound, 1e-3);
  EXPECT_EQ(rule_for(*policy, {"w", "param", f32({3, 3})}), nullptr);
  EXPECT_EQ(rule_for(*policy, {"m", "exp_avg_sq", f32({3, 3})})->treatment, Treatment::blk8);
  ASSERT_EQ(policy->roles.size(), 1U);
  EXPECT_EQ(policy->roles[0].second, "exp_avg");
}

TEST(Policy, BadFiles_AreRefusedWithTheRule) {
  const auto says = [](const char* text, const char* part) {
    Report report;
    const auto policy = parse_policy(text, report);
    EXPECT_FALSE(policy.ok()) << text;
    EXPECT_NE(std::string(report.problem).find(part), std::string::npos) << text << ": " << report.problem;
  };
  says("", "JSON");
  says("[]", "object");
  says(R"({"preset":"x"})", "'x'");
  says(R"({"presets":"exact"})", "'presets'");
  says(R"({"rules":[{"mode":"exact"},{"mode":"zip"}]})", "rule 2");
  says(R"({"rules":[{"mode":"ebq"}]})", "bound");
  says(R"({"rules":[{"mode":"ebq","bound":-1}]})", "above 0");
  says(R"({"rules":[{"mode":"updq","bound":5}]})", "updq");
  says(R"({"rules":[{"mode":"logq","bound":1e-9}]})", "logq");
  says(R"({"rules":[{"mode":"exact","bound":1}]})", "does not exist");
  says(R"({"rules":[{"mode":"logq","bound":0.1,"unit":"std"}]})", "units");
  says(R"({"rules":[{"mode":"ebq","bound":0.1,"unit":"miles"}]})", "'unit'");
  says(R"({"rules":[{"bound":0.1}]})", "no mode");
  says(R"({"rules":[{"mode":"exact","color":1}]})", "'color'");
  says(R"({"rules":[{"mode":"exact","dtype":"F99"}]})", "'dtype'");
  says(R"({"rules":[{"mode":"exact","min_rank":-1}]})", "'min_rank'");
  says(R"({"rules":[{"mode":"exact","mode":"exact"}]})", "twice");
  says(R"({"rules":[7]})", "rule 1");
  says(R"({"roles":[{"name":"x"}]})", "roles");
}

TEST(ReplayRule, Groups_AndMetadataCompleteIt) {
  Report report;
  auto rule = parse_replay_rule(
      R"({"optimizer":"adam","order":"separate","betas":[0.8,0.99],"eps":1e-6,"weight_decay":0.25,"bias_correction":false,
          "groups":[{"name":"*.bias","weight_decay":0},{"min_rank":3,"lr":0.5}]})",
      report);
  ASSERT_TRUE(rule.ok()) << report.problem;
  const Metadata first{{"lr", "0.0007131494014793272"}, {"step", "401"}}, second{{"clip_scale", "0.5"}, {"lr", "9"}};
  ASSERT_TRUE(complete_rule(*rule, {&first, &second}, 7, report).ok()) << report.problem;
  const auto bias = replay_settings(*rule, "x.bias", 1);
  EXPECT_EQ(bias.order, kernels::AdamOrder::separate);
  EXPECT_EQ(bias.decay_kind, kernels::AdamDecay::coupled);
  EXPECT_FALSE(bias.correct_bias);
  EXPECT_EQ(bias.rate, 0.0007131494014793272);
  EXPECT_EQ(bias.beta1, .8);
  EXPECT_EQ(bias.beta2, .99);
  EXPECT_EQ(bias.epsilon, 1e-6);
  EXPECT_EQ(bias.decay, 0);
  EXPECT_EQ(bias.clip, .5F);
  EXPECT_EQ(bias.step, 401U);
  EXPECT_EQ(replay_settings(*rule, "x.weight", 2).decay, .25);
  EXPECT_EQ(replay_settings(*rule, "x.weight", 3).rate, .5);
}

TEST(ReplayRule, BadRules_AreRefused) {
  const auto says = [](const char* text, const char* part, const Metadata& metadata = {{"lr", "1"}}) {
    Report report;
    auto rule = parse_replay_rule(text, report);
    const bool good = rule.ok() && complete_rule(*rule, {&metadata}, 1, report).ok();
    EXPECT_FALSE(good) << text;
    EXPECT_NE(std::string(report.problem).find(part), std::string::npos) << text << ": " << report.problem;
  };
  says("{}", "'betas'");
  says("[]", "object");
  says(R"({"betas":[0.9]})", "'betas'");
  says(R"({"betas":[0.9,"x"]})", "number");
  says(R"({"betas":[0.9,1.5]})", "number");
  says(R"({"betas":[0.9,0.9],"lr":-1})", "'lr'");
  says(R"({"betas":[0.9,0.9],"lr":1e999})", "JSON");
  says(R"({"betas":[0.9,0.9],"step":0})", "'step'");
  says(R"({"betas":[0.9,0.9],"optimizer":"sgd"})", "adamw");
  says(R"({"betas":[0.9,0.9],"order":"x"})", "fused");
  says(R"({"betas":[0.9,0.9],"momentum":1})", "'momentum'");
  says(R"({"betas":[0.9,0.9],"groups":[{"min_rank":9}]})", "'min_rank'");
  says(R"({"betas":[0.9,0.9]})", "learning rate", {});
  says(R"({"betas":[0.9,0.9]})", "'lr': 'fast'", {{"lr", "fast"}});
}

}  // namespace
}  // namespace quern::checkpoint
