// <quern/checkpoint_engine.h>, and that it stores what a save stores.
#include <quern/checkpoint_engine.h>

#include <cmath>
#include <cstring>

#include "tests/unit_checkpoint_capi/handles.h"

namespace quern::testing {
namespace {

struct CloseEngine {
  void operator()(quern_checkpoint_engine* engine) const {
    (void)quern_checkpoint_engine_close(engine, QUERN_CHECKPOINT_DROP, 0);
  }
};
using EngineHandle = std::unique_ptr<quern_checkpoint_engine, CloseEngine>;

EngineHandle open_engine(const std::string& path, quern_checkpoint_engine_desc desc) {
  quern_checkpoint_engine* engine = nullptr;
  EXPECT_QUERN_OK(quern_checkpoint_engine_open(path.c_str(), &desc, &engine));
  return EngineHandle(engine);
}

quern_checkpoint_engine_desc small_engine() {
  quern_checkpoint_engine_desc desc = QUERN_CHECKPOINT_ENGINE_DESC_INIT;
  desc.ring_bytes = 4 << 20;
  return desc;
}

struct AdamState {
  std::vector<float> weight, first, second;
  std::uint64_t side;

  /// Steps of one run: neighbours differ little.
  AdamState(std::uint64_t n, std::uint64_t step) : side(n) {
    weight = weights(n * n, 1);
    first = weights(n * n, 1001);
    second = weights(n * n, 2001);
    for (float& value : second) value = value * value + 1e-12f;
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] += 1e-4f * static_cast<float>(step) * first[i];
  }
  std::vector<quern_checkpoint_tensor> tensors() const {
    return {tensor_of("model.w", QUERN_F32, {side, side}, weight.data()),
            tensor_of("optimizer.state.w.exp_avg", QUERN_F32, {side, side}, first.data()),
            tensor_of("optimizer.state.w.exp_avg_sq", QUERN_F32, {side, side}, second.data())};
  }
};

TEST(EngineCapi, Save_AnyPresetAndBase_SameValuesAsAWriter) {
  ScratchFolder by_writer, by_engine;
  const StoreHandle store = open_store(by_writer.store());
  const EngineHandle engine = open_engine(by_engine.store(), small_engine());
  std::uint32_t flag = 0;
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const AdamState state(500, step);
    quern_checkpoint_save_desc desc = save_desc(step);
    desc.preset = "balanced";
    desc.base = step == 1 ? QUERN_CHECKPOINT_NO_BASE : step - 1;
    const WriterHandle writer = begin(store, desc);
    quern_checkpoint_pending* pending = nullptr;
    ASSERT_QUERN_OK(quern_checkpoint_engine_begin(engine.get(), &desc, &pending));
    for (const quern_checkpoint_tensor& tensor : state.tensors()) {
      ASSERT_QUERN_OK(quern_checkpoint_add(writer.get(), &tensor));
      ASSERT_QUERN_OK(quern_checkpoint_engine_add(pending, &tensor));
    }
    ASSERT_QUERN_OK(quern_checkpoint_engine_add_blob(pending, "note", "abc", 3));
    ASSERT_QUERN_OK(quern_checkpoint_publish(writer.get(), nullptr));
    ASSERT_QUERN_OK(quern_checkpoint_engine_submit(pending));
    ASSERT_QUERN_OK(quern_checkpoint_engine_fence(engine.get(), nullptr, INFINITY, &flag));
    ASSERT_EQ(flag, 1U);
  }
  ASSERT_QUERN_OK(quern_checkpoint_engine_wait(engine.get(), 3, QUERN_CHECKPOINT_DURABLE, 60, &flag));
  ASSERT_EQ(flag, 1U);
  const StoreHandle other = open_store(by_engine.store());
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const ReaderHandle a = open_step(store, step), b = open_step(other, step);
    for (const char* name : {"model.w", "optimizer.state.w.exp_avg", "optimizer.state.w.exp_avg_sq"}) {
      const auto left = read<float>(a, name), right = read<float>(b, name);
      ASSERT_EQ(std::memcmp(left.data(), right.data(), left.size() * sizeof(float)), 0) << name << " of " << step;
      EXPECT_STREQ(info_of(a, name).mode, info_of(b, name).mode) << name << " of " << step;
    }
    char bytes[3];
    ASSERT_QUERN_OK(quern_checkpoint_read_blob(b.get(), 0, bytes, 3));
    EXPECT_EQ(std::memcmp(bytes, "abc", 3), 0);
    EXPECT_QUERN_OK(quern_checkpoint_verify(other.get(), step, 1));
  }
  quern_checkpoint_progress progress = QUERN_CHECKPOINT_PROGRESS_INIT;
  ASSERT_QUERN_OK(quern_checkpoint_engine_poll(engine.get(), 3, &progress));
  EXPECT_EQ(progress.level, QUERN_CHECKPOINT_DURABLE);
  EXPECT_EQ(progress.result.tensors, 3U);
  EXPECT_EQ(progress.result.lossy, 3U);
  EXPECT_GT(progress.result.differences, 0U);
  quern_checkpoint_engine_stats stats = QUERN_CHECKPOINT_ENGINE_STATS_INIT;
  ASSERT_QUERN_OK(quern_checkpoint_engine_measure(engine.get(), &stats));
  EXPECT_EQ(stats.durable, 3U);
  EXPECT_LE(stats.ring_peak, stats.ring_bytes);
}

TEST(EngineCapi, TwoEnginesOnOneStore_BothSave_OneStepOnce) {
  ScratchFolder folder;
  const EngineHandle a = open_engine(folder.store(), small_engine()), b = open_engine(folder.store(), small_engine());
  const std::vector<float> values = weights(20000, 1);
  const quern_checkpoint_tensor tensor = tensor_of("w", QUERN_F32, {20000}, values.data());
  std::uint32_t flag = 0;
  const auto save = [&](const EngineHandle& engine, std::uint64_t step) {
    quern_checkpoint_pending* pending = nullptr;
    const quern_checkpoint_save_desc desc = save_desc(step);
    ASSERT_QUERN_OK(quern_checkpoint_engine_begin(engine.get(), &desc, &pending));
    ASSERT_QUERN_OK(quern_checkpoint_engine_add(pending, &tensor));
    ASSERT_QUERN_OK(quern_checkpoint_engine_submit(pending));
  };
  for (std::uint64_t step = 1; step <= 6; step += 2) {
    save(a, step);
    save(b, step + 1);
  }
  save(a, 9);
  save(b, 9);
  const quern_status of_a = quern_checkpoint_engine_wait(a.get(), 9, QUERN_CHECKPOINT_DURABLE, 60, &flag);
  const quern_status of_b = quern_checkpoint_engine_wait(b.get(), 9, QUERN_CHECKPOINT_DURABLE, 60, &flag);
  EXPECT_TRUE((of_a == QUERN_OK) != (of_b == QUERN_OK)) << of_a << " " << of_b;
  const StoreHandle store = open_store(folder.store());
  std::uint64_t count = 0;
  ASSERT_QUERN_OK(quern_checkpoint_steps(store.get(), nullptr, 0, &count));
  EXPECT_EQ(count, 7U);
  for (const std::uint64_t step : {1, 2, 3, 4, 5, 6, 9}) EXPECT_QUERN_OK(quern_checkpoint_verify(store.get(), step, 1));
}

TEST(EngineCapi, Tiers_GetCopies_NewestOfFindsThem) {
  ScratchFolder near, far;
  quern_checkpoint_tier tier = QUERN_CHECKPOINT_TIER_INIT;
  const std::string far_path = far.store(), near_path = near.store();
  tier.path = far_path.c_str();
  tier.every = 2;
  const quern_checkpoint_tier* const tiers[] = {&tier};
  quern_checkpoint_engine_desc desc = small_engine();
  desc.tiers = tiers;
  desc.tier_count = 1;
  desc.keep_local = 1;
  {
    const EngineHandle engine = open_engine(near_path, desc);
    std::uint32_t flag = 0;
    for (std::uint64_t step = 1; step <= 4; ++step) {
      const std::vector<float> values = weights(20000, static_cast<std::uint32_t>(step));
      const quern_checkpoint_tensor tensor = tensor_of("w", QUERN_F32, {20000}, values.data());
      quern_checkpoint_pending* pending = nullptr;
      const quern_checkpoint_save_desc save = save_desc(step);
      ASSERT_QUERN_OK(quern_checkpoint_engine_begin(engine.get(), &save, &pending));
      ASSERT_QUERN_OK(quern_checkpoint_engine_add(pending, &tensor));
      ASSERT_QUERN_OK(quern_checkpoint_engine_submit(pending));
      ASSERT_QUERN_OK(quern_checkpoint_engine_wait(engine.get(), step, QUERN_CHECKPOINT_DURABLE, 60, &flag));
      EXPECT_EQ(flag, 1U);
    }
    quern_checkpoint_tier_stats stats = QUERN_CHECKPOINT_TIER_STATS_INIT;
    ASSERT_QUERN_OK(quern_checkpoint_engine_measure_tier(engine.get(), 0, &stats));
    EXPECT_EQ(stats.checkpoints, 2U);
    EXPECT_GT(stats.rate, 0);
    EXPECT_STREQ(stats.problem, "");
    EXPECT_EQ(quern_checkpoint_engine_measure_tier(engine.get(), 1, &stats), QUERN_ERROR_INVALID_ARGUMENT);
    quern_checkpoint_progress progress = QUERN_CHECKPOINT_PROGRESS_INIT;
    ASSERT_QUERN_OK(quern_checkpoint_engine_poll(engine.get(), 4, &progress));
    EXPECT_LE(progress.local_seconds, progress.durable_seconds);
  }
  const StoreHandle store = open_store(far_path);
  EXPECT_QUERN_OK(quern_checkpoint_verify(store.get(), 2, 1));
  EXPECT_QUERN_OK(quern_checkpoint_verify(store.get(), 4, 1));
  std::filesystem::remove_all(near_path);
  const char* const paths[] = {near_path.c_str(), far_path.c_str()};
  std::uint64_t place = 9, step = 9;
  ASSERT_QUERN_OK(quern_checkpoint_newest_of(paths, 2, &place, &step));
  EXPECT_EQ(place, 1U);
  EXPECT_EQ(step, 4U);
  EXPECT_EQ(quern_checkpoint_newest_of(paths, 1, &place, &step), QUERN_ERROR_IO);
  EXPECT_EQ(quern_checkpoint_newest_of(paths, 0, &place, &step), QUERN_ERROR_INVALID_ARGUMENT);

  quern_checkpoint_engine* none = nullptr;
  tier.share = 0;
  EXPECT_EQ(quern_checkpoint_engine_open(near_path.c_str(), &desc, &none), QUERN_ERROR_INVALID_ARGUMENT);
  tier.share = 1;
  tier.path = nullptr;
  EXPECT_EQ(quern_checkpoint_engine_open(near_path.c_str(), &desc, &none), QUERN_ERROR_INVALID_ARGUMENT);
  desc.tier_count = 0;
  EXPECT_EQ(quern_checkpoint_engine_open(near_path.c_str(), &desc, &none), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(quern_checkpoint_last_error()).find("keep_local"), std::string::npos);
}

TEST(EngineCapi, WrongArguments_RefusedWithASentence) {
  ScratchFolder folder;
  quern_checkpoint_engine* none = nullptr;
  quern_checkpoint_engine_desc desc = small_engine();
  EXPECT_EQ(quern_checkpoint_engine_open(nullptr, &desc, &none), QUERN_ERROR_INVALID_ARGUMENT);
  desc.ring_bytes = 1000;
  EXPECT_EQ(quern_checkpoint_engine_open(folder.store().c_str(), &desc, &none), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(quern_checkpoint_last_error()).find("2097152"), std::string::npos);
  desc = small_engine();
  desc.when_full = 9;
  EXPECT_EQ(quern_checkpoint_engine_open(folder.store().c_str(), &desc, &none), QUERN_ERROR_INVALID_ARGUMENT);
  desc = small_engine();
  EXPECT_NE(quern_checkpoint_engine_open("/proc/no/such", &desc, &none), QUERN_OK);
  EXPECT_EQ(none, nullptr);

  const EngineHandle engine = open_engine(folder.store(), small_engine());
  quern_checkpoint_pending* pending = nullptr;
  quern_checkpoint_save_desc save = save_desc(1);
  save.preset = "no such";
  EXPECT_NE(quern_checkpoint_engine_begin(engine.get(), &save, &pending), QUERN_OK);
  EXPECT_EQ(pending, nullptr);
  save = save_desc(1);
  ASSERT_QUERN_OK(quern_checkpoint_engine_begin(engine.get(), &save, &pending));
  quern_checkpoint_tensor tensor = tensor_of("w", QUERN_F32, {10}, nullptr);
  EXPECT_EQ(quern_checkpoint_engine_add(pending, &tensor), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(quern_checkpoint_last_error()).find("'w'"), std::string::npos);
  quern_checkpoint_engine_forget(pending);
  std::uint32_t flag = 7;
  EXPECT_EQ(quern_checkpoint_engine_wait(engine.get(), 1, 99, 0, &flag), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_checkpoint_engine_fence(engine.get(), nullptr, NAN, &flag), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_QUERN_OK(quern_checkpoint_engine_fence(engine.get(), nullptr, 0, &flag));
  EXPECT_EQ(flag, 1U);
  EXPECT_EQ(quern_checkpoint_engine_cancel(engine.get(), 1), QUERN_ERROR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace quern::testing
