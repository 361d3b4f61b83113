// States of real runs: a replayed step is exact, and presets reach the ratios that are asked of them.
#include <gtest/gtest.h>

#include <cstdio>

#include "codecs/tensor/replay.h"
#include "tests/unit_moments/bounds.h"
#include "tests/unit_moments/presets.h"
#include "tests/unit_moments/stored_runs.h"

namespace quern::testing {
namespace {

using namespace codec::tensor;

/// Parameters with both moments.
std::map<std::string, Parameter> read_state(const std::string& file) {
  const StoredTensors stored = read_tensors(file);
  std::map<std::string, Parameter> state;
  const std::string prefix = "param.";
  for (const auto& [name, weight] : stored) {
    if (name.rfind(prefix, 0) != 0) continue;
    const std::string rest = name.substr(prefix.size());
    if (stored.count("exp_avg_sq." + rest) == 0) continue;  // never trained
    Parameter& p = state[rest];
    p.description = {ElementType::f32, Shape::make(weight.shape).value()};
    p.weight = weight.bytes;
    p.exp_avg = stored.at("exp_avg." + rest).bytes;
    p.exp_avg_sq = stored.at("exp_avg_sq." + rest).bytes;
  }
  return state;
}

const std::string k400 = "gpt-run/step00400.safetensors";
const std::string k401 = "gpt-run/step00401.safetensors";
const std::string kGradient = "gpt-run/grad00401.safetensors";

AdamSettings settings_of(const Parameter& parameter) {
  AdamSettings settings;
  settings.beta2 = .95;
  settings.decay = parameter.description.shape.rank() == 2 ? .1 : 0;
  settings.rate = metadata_number(k401, "lr", 0);
  settings.clip = static_cast<float>(metadata_number(kGradient, "clip_scale", 1));
  settings.step = 401;
  return settings;
}

TEST(StoredRun, Replay_NextStep_IsBitExact) {
  const auto before = read_state(k400);
  if (before.empty()) GTEST_SKIP() << "no checkpoints: set QUERN_TEST_DATA";
  const auto after = read_state(k401);
  const StoredTensors gradients = read_tensors(kGradient);
  SerialRunner runner;
  std::uint64_t stored = 0;
  std::uint64_t raw = 0;
  for (const auto& [name, base] : before) {
    const Parameter& next = after.at(name);
    const StoredTensor& gradient = gradients.at("grad." + name);
    const ReplayGradient from{gradient.bytes, ElementType::bf16};
    const auto rule = make_adam_rule(settings_of(base));
    const OptimizerState base_state{base.weight, base.exp_avg, base.exp_avg_sq};
    const auto side =
        plan_replay(base.description, rule, base_state, from, {next.weight, next.exp_avg, next.exp_avg_sq}, runner);
    ASSERT_TRUE(side.ok()) << name << ": " << side.status().text();
    Bytes w(next.weight.size()), m(w.size()), v(w.size());
    const Status restored = replay_group(base.description, side.value(), base_state, from, {w, m, v}, runner);
    ASSERT_TRUE(restored.ok()) << name << ": " << restored.text();
    EXPECT_EQ(w, next.weight) << name;
    EXPECT_EQ(m, next.exp_avg) << name;
    EXPECT_EQ(v, next.exp_avg_sq) << name;
    // Another order of operations is not this run's.
    auto other = settings_of(base);
    other.order = kernels::AdamOrder::separate;
    if (base.description.elems() > 4096) {
      EXPECT_EQ(plan_replay(base.description, make_adam_rule(other), base_state, from,
                            {next.weight, next.exp_avg, next.exp_avg_sq}, runner)
                    .status()
                    .code(),
                StatusCode::unsupported);
    }
    const auto coded = encode_tensor({ElementType::bf16, base.description.shape}, {}, {gradient.bytes, {}, {}}, runner);
    ASSERT_TRUE(coded.ok());
    stored += side.value().size() + coded.value().total_bytes() + 4 * 24;
    raw += 3 * base.description.bytes();
  }
  const double ratio = static_cast<double>(raw) / static_cast<double>(stored);
  std::printf("replay 400 -> 401: %llu bytes, ratio %.2f\n", static_cast<unsigned long long>(stored), ratio);
  RecordProperty("replay_ratio", std::to_string(ratio));
  if (mode_is_available(Mode::planes)) {
    EXPECT_GE(ratio, 9.8);
  }
}

struct Case {
  Preset preset;
  const char* file;
  const char* base;  ///< empty: none
  double floor;
  double moments_floor = 0;  ///< of the 64 bits of both moments
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.preset.name << " " << c.file << " from " << c.base; }

class StoredRuns : public ::testing::TestWithParam<Case> {};

TEST_P(StoredRuns, Preset_OverCheckpoints_ReachesItsFloorWithinItsBounds) {
  const Case& c = GetParam();
  const auto state = read_state(c.file);
  if (state.empty()) GTEST_SKIP() << "no checkpoints: set QUERN_TEST_DATA";
  if (c.preset.weight_deviations == 0 && !mode_is_available(Mode::planes))
    GTEST_SKIP() << "weights are kept exactly by byte planes, which this build lacks";
  const auto base_state = read_state(c.base);
  CodedSizes sum;
  std::uint64_t elems = 0;
  for (const auto& [name, parameter] : state) {
    Parameter base;
    if (!base_state.empty()) code_parameter(c.preset, base_state.at(name), nullptr, base);
    Parameter decoded;
    const CodedSizes sizes = code_parameter(c.preset, parameter, base_state.empty() ? nullptr : &base, decoded);
    sum.add(sizes);
    elems += parameter.description.elems();
    expect_log_bound(parameter.exp_avg_sq, decoded.exp_avg_sq, c.preset.log_bound);
    expect_update_bound(parameter.exp_avg, decoded.exp_avg, decoded.exp_avg_sq, c.preset.eps);
    expect_deviation_bound(parameter.weight, decoded.weight, c.preset.weight_deviations);
    if (std::getenv("QUERN_TEST_VERBOSE") != nullptr) {
      const auto bits = [&](std::uint64_t bytes) {
        return 8 * static_cast<double>(bytes) / static_cast<double>(parameter.description.elems());
      };
      std::printf("  %-20s w %.3f m %.3f v %.3f bits\n", name.c_str(), bits(sizes.weight), bits(sizes.exp_avg),
                  bits(sizes.exp_avg_sq));
    }
  }
  const auto bits = [&](std::uint64_t bytes) { return 8 * static_cast<double>(bytes) / static_cast<double>(elems); };
  const double moments = 64 / (bits(sum.exp_avg) + bits(sum.exp_avg_sq));
  std::printf("%s, %s from (%s): w %.3f m %.3f v %.3f bits; ratio %.2f (floor %.2f), moments alone %.2f\n",
              c.preset.name, c.file, c.base, bits(sum.weight), bits(sum.exp_avg), bits(sum.exp_avg_sq), sum.ratio(),
              c.floor, moments);
  EXPECT_GE(sum.ratio(), c.floor);
  EXPECT_GE(moments, c.moments_floor);
}

constexpr const char* kStep400 = "gpt-run/step00400.safetensors";
constexpr const char* kStep401 = "gpt-run/step00401.safetensors";
constexpr const char* kStep410 = "gpt-run/step00410.safetensors";
constexpr const char* kStep500 = "gpt-run/step00500.safetensors";
constexpr const char* kEpoch1 = "willmore_pinn/epoch_001.safetensors";
constexpr const char* kEpoch65 = "willmore_pinn/epoch_065.safetensors";
constexpr const char* kEpoch70 = "willmore_pinn/epoch_070.safetensors";

INSTANTIATE_TEST_SUITE_P(
    Transformer, StoredRuns,
    ::testing::Values(Case{kMomentsPreset, kStep400, "", 2.85, 10}, Case{kBalanced, kStep400, "", 5.2, 10},
                      Case{kBalanced, kStep500, "", 5.2, 10}, Case{kBalanced, kStep401, kStep400, 7.5},
                      Case{kBalanced, kStep410, kStep400, 7.5}, Case{kBalanced, kStep500, kStep400, 6.1},
                      Case{kArchive, kStep400, "", 7.9}, Case{kArchive, kStep410, kStep400, 14},
                      Case{kArchive, kStep500, kStep400, 10}));

INSTANTIATE_TEST_SUITE_P(PhysicsInformed, StoredRuns,
                         ::testing::Values(Case{kBalanced, kEpoch1, "", .95 * 4.65}, Case{kArchive, kEpoch1, "", 6.5},
                                           Case{kBalanced, kEpoch65, "", .95 * 5.61}, Case{kArchive, kEpoch65, "", 8.2},
                                           Case{kBalanced, kEpoch70, kEpoch65, 7.6},
                                           Case{kArchive, kEpoch70, kEpoch65, 13.2}));

}  // namespace
}  // namespace quern::testing
