// Presets through the store: bounds along chains, what lossy modes cannot take, sharing, compaction, hostile manifests.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "checkpoint/convert/lossy_summary.h"
#include "checkpoint/restore/verify.h"
#include "checkpoint/save/compact.h"
#include "checkpoint/store/collect.h"
#include "storage/parity/erasure.h"
#include "tests/unit_checkpoint/store_fixture.h"
#include "tests/unit_checkpoint/training_run.h"
#include "tests/unit_moments/bounds.h"

namespace quern::testing {
namespace {

using checkpoint::ElementType;
using checkpoint::FileSaveOptions;
using checkpoint::Manifest;
using checkpoint::ManifestTensor;
using checkpoint::Mode;
using checkpoint::Preset;
using checkpoint::Report;
using checkpoint::Store;

class LossyStore : public StoreFixture {
 protected:
  Result<checkpoint::FileSaveResult> save(std::uint64_t step, const RunTensors& tensors, FileSaveOptions options,
                                          std::optional<std::uint64_t> base = std::nullopt) {
    options.save.step = step;
    options.save.base = base;
    report_ = {};
    Vector<String> paths;
    paths.push_back(put_file(disk_, "s" + std::to_string(step), tensors));
    return checkpoint::save_files(store_, paths, options, runner_, report_);
  }
  std::map<std::string, Bytes> restored(std::uint64_t step) {
    auto all = restore_all(store_, step, report_);
    EXPECT_TRUE(all.ok()) << report_.problem;
    return all.ok() ? std::move(all).value() : std::map<std::string, Bytes>();
  }
  const ManifestTensor& tensor(const Manifest& manifest, std::string_view name) {
    for (const ManifestTensor& one : manifest.tensors)
      if (one.name == name) return one;
    throw std::runtime_error("no such tensor");
  }
  Manifest manifest(std::uint64_t step) { return store_.at_step(step, report_).value(); }
};

FileSaveOptions with(Preset preset) {
  FileSaveOptions options;
  options.preset = preset;
  return options;
}

/// Bounds of a preset's modes on what came back of the matrix "a" and of all moments; everything else bit for bit.
void expect_within(const RunTensors& state, const std::map<std::string, Bytes>& back, double weights, double first,
                   double second) {
  for (const RunTensor& tensor : state) {
    const Bytes& found = back.at(tensor.name);
    SCOPED_TRACE(tensor.name);
    if (tensor.name == "param.a") {
      expect_deviation_bound(tensor.values, found, weights);
    } else if (tensor.name.starts_with("exp_avg.")) {
      expect_update_bound(tensor.values, found, back.at("exp_avg_sq." + tensor.name.substr(8)), first);
    } else if (tensor.name.starts_with("exp_avg_sq.")) {
      expect_log_bound(tensor.values, found, second);
    } else if (tensor.name != "model.a") {
      EXPECT_EQ(tensor.values, found);
    }
  }
  // The copy is the rounded weight that came back.
  const Bytes &weight = back.at("param.a"), &copy = back.at("model.a");
  for (std::size_t i = 0; i < copy.size() / 2; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, weight.data() + 4 * i, 4);
    bits += 0x7FFF + (bits >> 16 & 1);
    ASSERT_EQ(copy[2 * i] | copy[2 * i + 1] << 8, static_cast<int>(bits >> 16)) << i;
  }
}

TEST_F(LossyStore, Chain_StaysWithinItsBoundsAtEveryStep) {
  for (const auto& [preset, weights, first, second] :
       {std::tuple(Preset::moments, 0.0, .05, .05), std::tuple(Preset::balanced, 1e-3, .05, .05),
        std::tuple(Preset::archive, 1e-2, .2, .1)}) {
    TrainingRun run;
    run.step();
    store_ = Store(disk_, checkpoint::join({"store", checkpoint::decimal(static_cast<std::uint64_t>(preset))}));
    const std::uint64_t begin = 100;
    std::uint32_t deepest = 0;
    bool predicted = false;
    for (std::uint64_t i = 1; i <= 12; ++i) {
      run.step();
      const auto base = i == 1 ? std::nullopt : std::optional<std::uint64_t>(begin + i - 1);
      FileSaveOptions options = with(preset);
      options.save.limits.chain_percent = options.save.limits.restore_percent = 100000;
      const auto saved = save(begin + i, run.state(), options, base);
      ASSERT_TRUE(saved.ok()) << report_.problem;
      ASSERT_NO_FATAL_FAILURE(expect_within(run.state(), restored(begin + i), weights, first, second));
      for (const auto& summary : saved->tensors) EXPECT_LE(summary.saved.worst, summary.saved.bound) << summary.name;
      const Manifest made = manifest(begin + i);
      EXPECT_EQ(tensor(made, "exp_avg_sq.a").mode, Mode::logq);
      EXPECT_EQ(tensor(made, "exp_avg.a").mode, Mode::updq);
      EXPECT_EQ(made.tensors[*tensor(made, "exp_avg.a").companion].name, "exp_avg_sq.a");
      EXPECT_EQ(tensor(made, "model.a").mode, Mode::derived);
      EXPECT_EQ(made.tensors[0].name, "param.a");  // the order is that of the file
      for (const ManifestTensor& one : made.tensors) deepest = std::max(deepest, one.depth);
      predicted = predicted || tensor(made, "param.a").moments;
    }
    EXPECT_EQ(deepest, 8U);
    EXPECT_EQ(predicted, preset != Preset::moments) << "weights are to be predicted from where the moments point";
    const auto names = store_.list(report_);
    for (const auto& name : *names) {
      const auto finding = checkpoint::verify_checkpoint(store_, name, true, runner_);
      EXPECT_TRUE(finding.good) << (finding.problems.empty() ? "" : finding.problems[0]);
    }
  }
}

TEST_F(LossyStore, Specials_ComeBackAndPositiveStaysPositive) {
  TrainingRun run;
  run.step();
  for (const std::uint64_t step : {1, 2}) {
    run.step();
    RunTensors state = run.state();
    auto w = floats_of(state[0].values), m = floats_of(state[1].values), v = floats_of(state[2].values);
    const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    w[5] = nan, w[6] = -inf, w[7] = -0.0F, w[8] = 0, w[9] = 1e-40F, w[10] = step == 1 ? 1e5F : 3e38F;
    m[5] = nan, m[6] = inf, m[7] = -0.0F, m[8] = 0, m[9] = 1e-40F, m[10] = -3e38F, m[20] = 0.5F, m[21] = 0.5F;
    v[5] = nan, v[6] = inf, v[7] = -0.0F, v[8] = 1e-45F, v[9] = 1e-40F, v[10] = 3e38F, v[20] = 0, v[21] = -1;
    state[0].values = bytes_of(w), state[1].values = bytes_of(m), state[2].values = bytes_of(v);
    state.pop_back();  // the copy is no longer one
    const auto saved =
        save(step, state, with(Preset::archive), step == 1 ? std::nullopt : std::optional<std::uint64_t>(1));
    ASSERT_TRUE(saved.ok()) << report_.problem;
    const auto back = restored(step);
    expect_log_bound(state[2].values, back.at("exp_avg_sq.a"), .1);
    expect_update_bound(state[1].values, back.at("exp_avg.a"), back.at("exp_avg_sq.a"), .2);
    const auto wb = floats_of(back.at("param.a"));
    EXPECT_EQ(std::memcmp(back.at("param.a").data() + 20, state[0].values.data() + 20, 16), 0);
    EXPECT_TRUE(std::isfinite(wb[9]) && std::isfinite(wb[10]));
    EXPECT_EQ(floats_of(back.at("exp_avg.a"))[20], 0.5F);
    const auto vb = floats_of(back.at("exp_avg_sq.a"));
    for (std::size_t i = 0; i < v.size(); ++i) EXPECT_EQ(v[i] > 0, vb[i] > 0) << i;
  }
}

/// Values of one sign over the whole range of F32: 1e-38 beside 1e3, denormals, zeros.
Bytes adversarial(std::size_t count, std::uint32_t seed) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    const float odd[] = {1e-38F, 1e3F, 1e-45F, 0.0F, 3e38F, 1e-40F};
    out[i] = i % 3 == 0 ? odd[seed % 6] : std::exp2(static_cast<float>(seed >> 8) * 0x1p-17F - 100);
  }
  return bytes_of(out);
}

TEST_F(LossyStore, WhatIsPositive_StaysSoForEveryOptimizer) {
  const char* const words[] = {"exp_avg_sq",  "max_exp_avg_sq", "square_avg", "sum",     "acc_delta",
                               "exp_inf",     "exp_avg_sq_row", "row_var",    "col_var", "variance",
                               "exp_avg_var", "step_size",      "unknown",    "ax"};
  const std::vector<std::string> model = {"model.bn.running_var", "model.mystery", "table", "ema.model.w"};
  std::uint64_t step = 0;
  for (const Preset preset : {Preset::exact, Preset::moments, Preset::balanced, Preset::archive}) {
    RunTensors state;
    for (const char* const word : words)
      state.push_back({"optimizer.state." + std::to_string(state.size()) + "." + word, ElementType::f32, {64, 80}, {}});
    for (const std::string& name : model) state.push_back({name, ElementType::f32, {64, 80}, {}});
    for (RunTensor& tensor : state) tensor.values = adversarial(64 * 80, static_cast<std::uint32_t>(++step));
    ASSERT_TRUE(save(step, state, with(preset)).ok()) << report_.problem;
    const auto back = restored(step);
    std::size_t lossy = 0;
    for (const RunTensor& tensor : state) {
      SCOPED_TRACE(tensor.name);
      const auto was = floats_of(tensor.values), is = floats_of(back.at(tensor.name));
      for (std::size_t i = 0; i < was.size(); ++i) {
        ASSERT_EQ(was[i] > 0, is[i] > 0) << i;
        ASSERT_EQ(was[i] == 0, is[i] == 0) << i;
      }
      if (tensor.values == back.at(tensor.name)) continue;
      ++lossy;
      const double bound = preset == Preset::archive ? .1 : .05;
      expect_log_bound(tensor.values, back.at(tensor.name), tensor.name.ends_with("exp_inf") ? bound / 2 : bound);
    }
    EXPECT_EQ(lossy, preset == Preset::exact ? 0U : 11U) << "the moments, and nothing else";
  }
}

TEST_F(LossyStore, AbsoluteBounds_OfWhatIsPositiveFallBack) {
  FileSaveOptions options;
  options.policy =
      checkpoint::parse_policy(R"({"rules":[{"name":"*","mode":"ebq","bound":0.001,"unit":"absolute"}]})", report_)
          .value();
  RunTensors state;
  for (const char* const name : {"state.0.square_avg", "state.0.step_size"})
    state.push_back({name, ElementType::f32, {64, 80}, adversarial(64 * 80, 7)});
  state[1].values = adversarial(64 * 80, 8);
  ASSERT_TRUE(save(1, state, options).ok()) << report_.problem;
  const auto back = restored(1);
  for (const RunTensor& tensor : state) EXPECT_EQ(back.at(tensor.name), tensor.values) << tensor.name;
}

TEST_F(LossyStore, TheCallersArrays_StayExact) {
  TrainingRun run;
  run.step();
  const Bytes values = run.state()[0].values;
  for (const Preset preset : {Preset::moments, Preset::balanced, Preset::archive}) {
    RunTensors state;
    for (const char* const name : {"model.w", "cache", "ema.model.w", "optimizer.state.0.momentum_buffer", "queue.keys",
                                   "state.0.ax", "optimizer.state.0.GG.0", "transformer.h.0.w", "told.as.weight"}) {
      Bytes own = values;
      own[0] ^= static_cast<std::uint8_t>(state.size() + 1);  // no two are the same, and none is in the store
      own[4] ^= static_cast<std::uint8_t>(preset);
      state.push_back({name, ElementType::f32, {80, 64}, std::move(own)});
    }
    FileSaveOptions options = with(preset);
    options.roles.emplace_back("told.*", "param");
    const std::uint64_t step = 1 + static_cast<std::uint64_t>(preset);
    const auto saved = save(step, state, options);
    ASSERT_TRUE(saved.ok()) << report_.problem;
    const auto back = restored(step);
    for (const RunTensor& tensor : state) {
      const bool may_lose = preset != Preset::moments && (tensor.name == "model.w" || tensor.name == "told.as.weight");
      EXPECT_EQ(back.at(tensor.name) == tensor.values, !may_lose) << tensor.name;
    }
    const auto summary = checkpoint::summarize_loss(saved->tensors);
    EXPECT_EQ(std::string(checkpoint::loss_sentence(summary)),
              preset == Preset::moments    ? "all 9 tensors exact"
              : preset == Preset::balanced ? "1 kind made lossy: 2 weights within 0.001 std; 7 tensors exact"
                                           : "1 kind made lossy: 2 weights within 0.01 std; 7 tensors exact");
  }
}

TEST_F(LossyStore, OneSentenceSaysWhatWasMadeLossy) {
  TrainingRun run;
  run.step();
  auto saved = save(1, run.state(), with(Preset::balanced));
  ASSERT_TRUE(saved.ok()) << report_.problem;
  const auto summary = checkpoint::summarize_loss(saved->tensors);
  EXPECT_EQ(std::string(checkpoint::loss_sentence(summary)),
            "4 kinds made lossy: 1 weight within 0.001 std, 1 16-bit copy that follows its weight, 2 first moments "
            "within 0.05 updates, 2 second moments within a factor 1.105; 1 tensor exact");
  EXPECT_TRUE(checkpoint::unnamed_weights_note(Preset::balanced, saved->tensors).empty());
  RunTensors plain;
  plain.push_back({"h.0.w", ElementType::f32, {80, 64}, run.state()[0].values});
  saved = save(2, plain, with(Preset::archive));
  ASSERT_TRUE(saved.ok()) << report_.problem;
  EXPECT_NE(checkpoint::unnamed_weights_note(Preset::archive, saved->tensors).find("'h.0.w'"), String::npos);
  EXPECT_TRUE(checkpoint::unnamed_weights_note(Preset::moments, saved->tensors).empty());
}

TEST_F(LossyStore, WhatModesCannotTake_IsKeptExactlyAndSaid) {
  TrainingRun run;
  run.step();
  const RunTensors state = run.state();
  const auto half = [](const RunTensor& of) {
    RunTensor out = of;
    out.type = ElementType::bf16;
    out.values.resize(of.values.size() / 2);
    return out;
  };
  RunTensors odd;
  odd.push_back(state[1]);  // no second moment belongs to it
  odd.push_back(half(state[2]));
  odd[1].name = "exp_avg_sq.c";
  odd.push_back({"param.empty", ElementType::f32, {0, 4}, {}});
  odd.push_back({"param.scalar", ElementType::f32, {}, Bytes(4, 7)});
  odd.push_back({"param.nan", ElementType::f32, {64, 64}, Bytes(64 * 64 * 4, 0xff)});
  std::vector<float> noise(64 * 64);
  std::uint32_t seed = 1;
  for (float& x : noise) {  // NaN with payloads: nothing a quantizer could take
    seed = seed * 1664525U + 1013904223U;
    const std::uint32_t bits = 0x7fc00000U | seed >> 10;
    std::memcpy(&x, &bits, 4);
  }
  odd.push_back({"exp_avg_sq.nan", ElementType::f32, {64, 64}, Bytes(noise.size() * 4)});
  std::memcpy(odd.back().values.data(), noise.data(), noise.size() * 4);
  odd.push_back({"param.other", ElementType::f32, {64, 64}, odd.back().values});
  odd.push_back({"param.int", ElementType::i32, {64, 64}, Bytes(64 * 64 * 4, 1)});
  FileSaveOptions options;
  const auto policy = checkpoint::parse_policy(R"({"rules":[{"role":"exp_avg_sq","mode":"logq","bound":0.05},
      {"role":"exp_avg","mode":"updq","bound":0.05},{"name":"*","mode":"ebq","bound":0.001}]})",
                                               report_);
  ASSERT_TRUE(policy.ok()) << report_.problem;
  options.policy = *policy;
  const auto saved = save(1, odd, options);
  ASSERT_TRUE(saved.ok()) << report_.problem;
  const auto back = restored(1);
  for (std::size_t i = 0; i < odd.size(); ++i) {
    EXPECT_EQ(back.at(odd[i].name), odd[i].values) << odd[i].name;
    if (odd[i].name != "param.scalar" && odd[i].name != "param.nan" && odd[i].name != "param.other") {
      EXPECT_FALSE(saved->tensors[i].saved.fallback.empty()) << odd[i].name;
    }
  }
  EXPECT_TRUE(notes_say("updq: no second moment"));
  EXPECT_TRUE(notes_say("logq: its values are not F32"));
  EXPECT_TRUE(notes_say("'param.empty' kept exactly"));
  EXPECT_EQ(manifest(1).tensors[4].mode, Mode::constant);
}

TEST_F(LossyStore, SeveralWriters_EachWithItsParameters) {
  std::array<TrainingRun, 2> runs;
  const auto named = [](const RunTensors& state, std::size_t writer) {
    RunTensors out = state;
    for (RunTensor& tensor : out) tensor.name += std::to_string(writer);
    return out;
  };
  runs[1].step();
  for (const std::uint64_t step : {1, 2}) {
    for (std::size_t w = 0; w < 2; ++w) {
      runs[w].step();
      FileSaveOptions options = with(Preset::balanced);
      options.save.group = checkpoint::join({"group", checkpoint::decimal(step)});
      options.save.writer = static_cast<std::uint32_t>(w);
      options.save.writers = 2;
      options.save.step = step;
      if (step == 2) options.save.base = 1;
      Vector<String> paths;
      paths.push_back(put_file(disk_, "rank" + std::to_string(w), named(runs[w].state(), w)));
      const auto saved = checkpoint::save_files(store_, paths, options, runner_, report_);
      ASSERT_TRUE(saved.ok()) << report_.problem;
      EXPECT_EQ(saved->save.published, w == 1);
    }
  }
  const Manifest made = manifest(2);
  ASSERT_TRUE(tensor(made, "param.a1").moments);
  EXPECT_EQ(made.tensors[(*tensor(made, "param.a1").moments)[0]].name, "exp_avg.a1");
  EXPECT_EQ(made.tensors[*tensor(made, "exp_avg.a1").companion].name, "exp_avg_sq.a1");
  const auto all = restored(2);
  for (std::size_t w = 0; w < 2; ++w) {
    std::map<std::string, Bytes> own;
    for (const RunTensor& t : runs[w].state()) own[t.name] = all.at(t.name + std::to_string(w));
    expect_within(runs[w].state(), own, 1e-3, .05, .05);
  }
}

TEST_F(LossyStore, BoundInLearningRates_NeedsThem) {
  TrainingRun run;
  run.step();
  FileSaveOptions options;
  options.policy = checkpoint::parse_policy(
                       R"({"rules":[{"role":"param","mode":"ebq","bound":0.1,"unit":"rate","min_rank":2}]})", report_)
                       .value();
  EXPECT_FALSE(save(1, run.state(), options).ok());
  EXPECT_NE(std::string(report_.problem).find("'lr'"), std::string::npos) << report_.problem;
  options.save.step = 1;
  const String path = put_file(disk_, "rates", run.state(), {{"lr", "0.002"}});
  Vector<String> paths;
  paths.push_back(path);
  ASSERT_TRUE(checkpoint::save_files(store_, paths, options, runner_, report_).ok()) << report_.problem;
  expect_absolute_bound(run.state()[0].values, restored(1).at("param.a"), 0.1L * 0.002L);
  EXPECT_EQ(tensor(manifest(1), "param.a").bound, 0.1 * 0.002);
}

TEST_F(LossyStore, EqualTensors_ShareTheirLoss) {
  TrainingRun run;
  run.step();
  const RunTensors state = run.state();
  RunTensors tied = state;
  FileSaveOptions balanced = with(Preset::balanced), archive = with(Preset::archive);
  balanced.save.least_shared_bytes = archive.save.least_shared_bytes = 0;
  tied.push_back({"param.tied", ElementType::f32, state[0].shape, state[0].values});
  ASSERT_TRUE(save(1, tied, balanced).ok()) << report_.problem;
  auto back = restored(1);
  EXPECT_EQ(back.at("param.tied"), back.at("param.a"));
  // A step that changed nothing takes nothing, and its errors are those of the base.
  const auto saved = save(2, tied, balanced, 1);
  ASSERT_TRUE(saved.ok()) << report_.problem;
  EXPECT_TRUE(saved->tensors[0].saved.alias);
  EXPECT_TRUE(saved->tensors[2].saved.alias);
  EXPECT_GT(saved->tensors[0].saved.worst, 0);
  EXPECT_LE(saved->tensors[0].saved.worst, 1e-3);
  EXPECT_EQ(restored(2).at("param.a"), back.at("param.a"));
  // Another bound does not share.
  const auto finer = save(3, tied, archive);
  ASSERT_TRUE(finer.ok()) << report_.problem;
  EXPECT_FALSE(finer->tensors[0].saved.alias);
  // And an exact save shares nothing that has lost something.
  ASSERT_TRUE(save(4, tied, with(Preset::exact), 1).ok()) << report_.problem;
  for (const RunTensor& one : tied) EXPECT_EQ(restored(4).at(one.name), one.values);
}

TEST_F(LossyStore, Compaction_ChangesNoBitOfWhatComesBack) {
  for (const Preset preset : {Preset::moments, Preset::balanced, Preset::archive}) {
    TrainingRun run;
    store_ = Store(disk_, checkpoint::join({"store", checkpoint::decimal(static_cast<std::uint64_t>(preset))}));
    const std::uint64_t begin = 100;
    for (std::uint64_t i = 1; i <= 4; ++i) {
      run.step();
      const auto base = i == 1 ? std::nullopt : std::optional<std::uint64_t>(begin + i - 1);
      ASSERT_TRUE(save(begin + i, run.state(), with(preset), base).ok()) << report_.problem;
    }
    const auto before = restored(begin + 4);
    const Manifest old = manifest(begin + 4);
    ASSERT_FALSE(old.references.empty());
    ASSERT_TRUE(checkpoint::compact(store_, begin + 4, {}, runner_, report_).ok()) << report_.problem;
    const Manifest made = manifest(begin + 4);
    EXPECT_TRUE(made.references.empty());
    EXPECT_EQ(restored(begin + 4), before);
    for (std::size_t i = 0; i < made.tensors.size(); ++i) {
      EXPECT_EQ(made.tensors[i].content, old.tensors[i].content) << made.tensors[i].name;
      EXPECT_EQ(made.tensors[i].restored(), old.tensors[i].restored()) << made.tensors[i].name;
    }
    // Moments keep their mode; weights that came from a base keep their bound and lose nothing more.
    EXPECT_EQ(tensor(made, "exp_avg_sq.a").mode, Mode::logq);
    EXPECT_EQ(tensor(made, "exp_avg.a").mode, Mode::updq);
    if (preset != Preset::moments) {
      EXPECT_EQ(tensor(made, "param.a").bound, tensor(old, "param.a").bound);
      EXPECT_EQ(tensor(made, "param.a").bound_mode, std::optional<Mode>(Mode::ebq));
    }
    // Once more, now that it stands alone: again the same.
    ASSERT_TRUE(checkpoint::compact(store_, begin + 4, {}, runner_, report_).ok()) << report_.problem;
    EXPECT_EQ(restored(begin + 4), before);
    EXPECT_EQ(tensor(manifest(begin + 4), "param.a").bound, tensor(old, "param.a").bound);
  }
  checkpoint::CollectOptions collect;
  collect.keep = 1;
  ASSERT_TRUE(checkpoint::collect(store_, collect, report_).ok());
  EXPECT_EQ(store_.list(report_)->size(), 1U);
}

TEST_F(LossyStore, ADryRun_SavesNothingAndSaysTheSame) {
  TrainingRun run;
  run.step();
  ASSERT_TRUE(save(1, run.state(), with(Preset::balanced)).ok());
  run.step();
  put_file(disk_, "s2", run.state());
  const auto files = disk_.all_files();
  FileSaveOptions options = with(Preset::balanced);
  options.dry_run = true;
  const auto dry = save(2, run.state(), options, 1);
  ASSERT_TRUE(dry.ok()) << report_.problem;
  EXPECT_EQ(disk_.all_files(), files);
  const auto wet = save(2, run.state(), with(Preset::balanced), 1);
  ASSERT_TRUE(wet.ok());
  for (std::size_t i = 0; i < wet->tensors.size(); ++i) {
    EXPECT_EQ(wet->tensors[i].saved.stored_bytes, dry->tensors[i].saved.stored_bytes);
    EXPECT_EQ(wet->tensors[i].saved.worst_absolute, dry->tensors[i].saved.worst_absolute);
  }
  EXPECT_EQ(wet->save.manifest.stored_bytes(), dry->save.manifest.stored_bytes());
  // Where there is no store none comes to be, and parity is counted.
  store_ = Store(disk_, "nowhere");
  if (storage::has_erasure_coding()) options.save.parity_data = options.save.parity_files = 2;
  const auto first = save(3, run.state(), options);
  ASSERT_TRUE(first.ok()) << report_.problem;
  EXPECT_FALSE(disk_.exists("nowhere"));
  EXPECT_EQ(first->save.manifest.parity.files.size(), options.save.parity_files);
}

TEST_F(LossyStore, BlockCodes_KeepWhatIsPositive) {
  TrainingRun run;
  run.step();
  RunTensors state = run.state();
  auto v = floats_of(state[2].values);
  v[3] = 1e-30F;
  FileSaveOptions options;
  const auto policy = checkpoint::parse_policy(
      R"({"rules":[{"role":"exp_avg*","min_rank":2,"mode":"blk8"},{"role":"param","min_rank":2,"mode":"blk4"}]})",
      report_);
  options.policy = policy.value();
  ASSERT_TRUE(save(1, state, options).ok()) << report_.problem;
  EXPECT_EQ(tensor(manifest(1), "exp_avg.a").mode, Mode::blk8);
  EXPECT_EQ(tensor(manifest(1), "param.a").mode, Mode::blk4);
  const auto back = restored(1);
  ASSERT_TRUE(checkpoint::compact(store_, 1, {}, runner_, report_).ok()) << report_.problem;
  EXPECT_EQ(restored(1), back);
  state[2].values = bytes_of(v);
  ASSERT_TRUE(save(2, state, options).ok()) << report_.problem;
  EXPECT_EQ(restored(2).at("exp_avg_sq.a"), state[2].values);
  EXPECT_TRUE(notes_say("blk8: not every value"));
}

TEST_F(LossyStore, BasesThatDoNotFit_MeanNoBaseAndTheBoundHolds) {
  TrainingRun run;
  run.step();
  ASSERT_TRUE(save(1, run.state(), with(Preset::balanced)).ok());
  run.step();
  RunTensors state = run.state();
  ASSERT_TRUE(save(2, state, with(Preset::balanced), 9).ok()) << report_.problem;
  EXPECT_TRUE(notes_say("no checkpoint of step 9"));
  expect_within(state, restored(2), 1e-3, .05, .05);
  state[0].shape = {64, 80};  // the moments keep theirs: the weight has no directions any more
  ASSERT_TRUE(save(3, state, with(Preset::balanced), 1).ok()) << report_.problem;
  EXPECT_TRUE(notes_say("'param.a' stored whole"));
  expect_deviation_bound(state[0].values, restored(3).at("param.a"), 1e-3);
  state = run.state();
  state.erase(state.begin() + 2);
  ASSERT_TRUE(save(4, state, with(Preset::balanced), 1).ok()) << report_.problem;
  ASSERT_TRUE(save(5, run.state(), with(Preset::balanced), 1).ok());
  const auto names = store_.list(report_);
  ASSERT_TRUE(disk_.remove(store_.manifest_path(names->front())).ok());
  EXPECT_FALSE(restore_all(store_, 5, report_).ok());
  EXPECT_NE(std::string(report_.problem).find("checkpoint 1"), std::string::npos) << report_.problem;
}

TEST_F(LossyStore, HostileManifests_GiveAStatus) {
  TrainingRun run;
  run.step();
  ASSERT_TRUE(save(1, run.state(), with(Preset::balanced)).ok());
  run.step();
  ASSERT_TRUE(save(2, run.state(), with(Preset::balanced), 1).ok());
  const Manifest good = manifest(2);
  const std::string path(store_.manifest_path(good.name));
  const auto attempt = [&](const char* what, auto&& change) {
    Manifest bad = good;
    change(bad);
    report_ = {};
    const auto bytes = checkpoint::write_manifest(bad, report_);
    ASSERT_TRUE(bytes.ok());
    disk_.bytes_of(path).assign(bytes->begin(), bytes->end());
    EXPECT_FALSE(restore_all(store_, 2, report_).ok()) << what;
    EXPECT_FALSE(checkpoint::verify_checkpoint(store_, good.name, true, runner_).good) << what;
  };
  const auto at = [](Manifest& bad, std::string_view name) -> ManifestTensor& {
    for (ManifestTensor& one : bad.tensors)
      if (one.name == name) return one;
    throw std::runtime_error("no such tensor");
  };
  ASSERT_TRUE(tensor(good, "param.a").moments && tensor(good, "param.a").base_moments);
  attempt("no companion", [&](Manifest& bad) { at(bad, "exp_avg.a").companion.reset(); });
  attempt("another companion", [&](Manifest& bad) { at(bad, "exp_avg.a").companion = 0; });
  attempt("a companion of another shape", [&](Manifest& bad) { at(bad, "exp_avg.a").companion = 5; });
  attempt("a companion that needs it", [&](Manifest& bad) {
    at(bad, "exp_avg_sq.a").mode = Mode::updq;
    at(bad, "exp_avg_sq.a").companion = 1;
  });
  attempt("a companion beyond the end", [&](Manifest& bad) { at(bad, "exp_avg.a").companion = 1000; });
  attempt("no moments", [&](Manifest& bad) { at(bad, "param.a").moments.reset(); });
  attempt("moments in another order", [&](Manifest& bad) { at(bad, "param.a").moments = {2, 1}; });
  attempt("moments of another shape", [&](Manifest& bad) { at(bad, "param.a").moments = {4, 5}; });
  attempt("moments that are itself", [&](Manifest& bad) { at(bad, "param.a").moments = {0, 2}; });
  attempt("no moments of the base", [&](Manifest& bad) { at(bad, "param.a").base_moments.reset(); });
  attempt("moments of the base in this checkpoint",
          [&](Manifest& bad) { (*at(bad, "param.a").base_moments)[0].checkpoint = 0; });
  attempt("moments of a base that is not listed",
          [&](Manifest& bad) { (*at(bad, "param.a").base_moments)[0].checkpoint = 9; });
  attempt("moments beyond the base's end", [&](Manifest& bad) { (*at(bad, "param.a").base_moments)[1].tensor = 999; });
  attempt("another mode", [&](Manifest& bad) { at(bad, "param.a").mode = Mode::replay; });
  attempt("another hash", [&](Manifest& bad) { at(bad, "exp_avg.a").decoded = checkpoint::ContentHash{1, 2}; });
}

}  // namespace
}  // namespace quern::testing
