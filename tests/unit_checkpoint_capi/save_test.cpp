// Saving and restoring through the C interface: what goes in comes back, from any threads, in pieces, against a base.
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "tests/unit_checkpoint_capi/handles.h"

namespace quern::testing {
namespace {

using Extents = std::vector<std::uint64_t>;

TEST(CheckpointSave, DeclaredTypes_AreToldAndChecked) {
  const ScratchFolder folder;
  const StoreHandle store = open_store(folder.store());
  const std::vector<std::uint8_t> codes = {1, 2, 3, 4, 5, 6};
  const std::uint64_t shape[] = {1, 1, 1, 1, 1, 1, 1, 1, 12};
  {
    const WriterHandle writer = begin(store, save_desc(1));
    auto tensor = tensor_of("packed", QUERN_U8, {6}, codes.data());
    tensor.declared_dtype = "F4";
    tensor.declared_extents = shape;
    tensor.declared_rank = 9;
    EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &tensor));
    tensor.name = "new";
    tensor.declared_dtype = "Q3";
    EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &tensor));
    tensor.name = "wrong";
    tensor.declared_dtype = "F6_E2M3";
    EXPECT_EQ(quern_checkpoint_add(writer.get(), &tensor), QUERN_ERROR_INVALID_SHAPE);
    tensor.declared_dtype = "";
    EXPECT_EQ(quern_checkpoint_add(writer.get(), &tensor), QUERN_ERROR_INVALID_ARGUMENT);
    tensor.declared_dtype = "F4";
    tensor.declared_extents = nullptr;
    EXPECT_EQ(quern_checkpoint_add(writer.get(), &tensor), QUERN_ERROR_INVALID_ARGUMENT);
    tensor.declared_extents = shape;
    tensor.rank = 2;
    tensor.extents[1] = 1;
    EXPECT_EQ(quern_checkpoint_add(writer.get(), &tensor), QUERN_ERROR_INVALID_ARGUMENT) << "one axis of bytes";
    ASSERT_QUERN_OK(quern_checkpoint_publish(writer.get(), nullptr));
  }
  const ReaderHandle reader = open_step(store);
  for (const char* name : {"packed", "new"}) {
    std::uint64_t index = 0;
    ASSERT_QUERN_OK(quern_checkpoint_find(reader.get(), name, &index));
    quern_checkpoint_tensor_info info = QUERN_CHECKPOINT_TENSOR_INFO_INIT;
    ASSERT_QUERN_OK(quern_checkpoint_tensor_at(reader.get(), index, &info));
    EXPECT_STREQ(info.declared_dtype, name[0] == 'p' ? "F4" : "Q3");
    EXPECT_EQ(Extents(info.declared_extents, info.declared_extents + info.declared_rank), Extents(shape, shape + 9));
    EXPECT_EQ(info.dtype, QUERN_U8);
    std::vector<std::uint8_t> back(codes.size());
    quern_checkpoint_target target = QUERN_CHECKPOINT_TARGET_INIT;
    target.data = back.data();
    target.bytes = back.size();
    EXPECT_QUERN_OK(quern_checkpoint_read(reader.get(), index, nullptr, nullptr, &target));
    EXPECT_EQ(back, codes);
  }
}

TEST(CheckpointSave, EveryTypeAndRank_ComesBackBitForBit) {
  const ScratchFolder folder;
  const StoreHandle store = open_store(folder.store());
  struct Case {
    const char* name;
    quern_dtype dtype;
    std::size_t element;
    Extents extents;
  };
  const Case cases[] = {{"f32", QUERN_F32, 4, {33, 65}},
                        {"f64", QUERN_F64, 8, {7, 3, 2}},
                        {"bf16", QUERN_BF16, 2, {1000}},
                        {"f16", QUERN_F16, 2, {2, 2, 2, 2}},
                        {"f8a", QUERN_F8_E4M3, 1, {100}},
                        {"f8b", QUERN_F8_E5M2, 1, {100}},
                        {"bool", QUERN_BOOL, 1, {3, 5}},
                        {"f8c", QUERN_F8_E4M3FNUZ, 1, {100}},
                        {"f8d", QUERN_F8_E5M2FNUZ, 1, {100}},
                        {"f8e", QUERN_F8_E8M0, 1, {100}},
                        {"c64", QUERN_C64, 8, {3, 700}},
                        {"c128", QUERN_C128, 16, {3, 7}},
                        {"i64", QUERN_I64, 8, {}},
                        {"u16", QUERN_U16, 2, {1, 1, 1, 1, 1, 1, 1, 9}},
                        {"none", QUERN_F32, 4, {4, 0, 3}}};
  std::vector<std::vector<std::uint8_t>> values;
  {
    const WriterHandle writer = begin(store, save_desc(1));
    for (const Case& c : cases) {
      std::size_t count = c.element;
      for (const std::uint64_t extent : c.extents) count *= extent;
      const auto floats = weights(count / 4 + 1, static_cast<std::uint32_t>(count));
      std::vector<std::uint8_t> bytes(count);
      if (count != 0) std::memcpy(bytes.data(), floats.data(), count);
      if (c.dtype == QUERN_BOOL)
        for (auto& b : bytes) b &= 1;
      values.push_back(std::move(bytes));
      const auto tensor = tensor_of(c.name, c.dtype, c.extents, values.back().data());
      EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &tensor));
    }
    EXPECT_QUERN_OK(quern_checkpoint_add_blob(writer.get(), "rng", "0123456789", 10));
    EXPECT_QUERN_OK(quern_checkpoint_add_blob(writer.get(), "empty", nullptr, 0));
    quern_checkpoint_result result = QUERN_CHECKPOINT_RESULT_INIT;
    ASSERT_QUERN_OK(quern_checkpoint_publish(writer.get(), &result));
    EXPECT_EQ(result.published, 1u);
    EXPECT_EQ(result.step, 1u);
    EXPECT_EQ(result.tensors, std::size(cases));
    EXPECT_GT(std::strlen(result.id), 0u);
    EXPECT_GT(result.manifest_bytes, 0u);
  }
  const ReaderHandle reader = open_step(store);
  quern_checkpoint_info info = QUERN_CHECKPOINT_INFO_INIT;
  EXPECT_QUERN_OK(quern_checkpoint_inspect(reader.get(), &info));
  EXPECT_EQ(info.tensors, std::size(cases));
  EXPECT_EQ(info.blobs, 2u);
  EXPECT_EQ(info.base, QUERN_CHECKPOINT_NO_BASE);
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    quern_checkpoint_tensor_info tensor = QUERN_CHECKPOINT_TENSOR_INFO_INIT;
    EXPECT_QUERN_OK(quern_checkpoint_tensor_at(reader.get(), i, &tensor));
    EXPECT_STREQ(tensor.name, cases[i].name) << "the order of saving is kept";
    EXPECT_EQ(tensor.dtype, cases[i].dtype);
    EXPECT_EQ(Extents(tensor.extents, tensor.extents + tensor.rank), cases[i].extents);
    EXPECT_EQ(tensor.raw_bytes, values[i].size());
    EXPECT_EQ(tensor.lossless, 1u);
    std::vector<std::uint8_t> back(values[i].size());
    quern_checkpoint_target target = QUERN_CHECKPOINT_TARGET_INIT;
    target.data = back.data();
    target.bytes = back.size();
    EXPECT_QUERN_OK(quern_checkpoint_read(reader.get(), i, nullptr, nullptr, &target));
    EXPECT_EQ(back, values[i]) << cases[i].name;
  }
  const char* name = nullptr;
  std::uint64_t size = 0;
  EXPECT_QUERN_OK(quern_checkpoint_blob_at(reader.get(), 0, &name, &size));
  EXPECT_STREQ(name, "rng");
  ASSERT_EQ(size, 10u);
  char bytes[10];
  EXPECT_QUERN_OK(quern_checkpoint_read_blob(reader.get(), 0, bytes, 10));
  EXPECT_EQ(std::memcmp(bytes, "0123456789", 10), 0);
  EXPECT_QUERN_OK(quern_checkpoint_read_blob(reader.get(), 1, nullptr, 0));
}

TEST(CheckpointSave, ManyThreadsAdd_AllTensorsAreThere) {
  const ScratchFolder folder;
  quern_checkpoint_store_desc desc = QUERN_CHECKPOINT_STORE_DESC_INIT;
  desc.threads = 2;
  const StoreHandle store = open_store(folder.store(), desc);
  constexpr std::size_t kThreads = 4, kEach = 25;
  std::vector<std::vector<float>> values;
  for (std::uint32_t i = 0; i < kThreads * kEach; ++i) values.push_back(weights(500 + i, i));
  const WriterHandle writer = begin(store, save_desc(7));
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (std::size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = t * kEach; i < (t + 1) * kEach; ++i) {
        const std::string name = "layer." + std::to_string(i) + ".weight";  // its bytes are copied
        const auto tensor = tensor_of(name.c_str(), QUERN_F32, {values[i].size()}, values[i].data());
        if (quern_checkpoint_add(writer.get(), &tensor) != QUERN_OK) ++failures;
        const std::string blob = "state." + std::to_string(i);
        if (quern_checkpoint_add_blob(writer.get(), blob.c_str(), name.data(), name.size()) != QUERN_OK) ++failures;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  ASSERT_QUERN_OK(quern_checkpoint_publish(writer.get(), nullptr));
  const ReaderHandle reader = open_step(store, 7);
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(read<float>(reader, ("layer." + std::to_string(i) + ".weight").c_str()), values[i]);
  // Readers, too, may be asked by several threads.
  threads.clear();
  for (std::size_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < values.size(); i += 2)
        if (read<float>(reader, ("layer." + std::to_string(i) + ".weight").c_str()) != values[i]) ++failures;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

TEST(CheckpointSave, BaseAndEqualTensors_AreStoredOnce) {
  const ScratchFolder folder;
  const StoreHandle store = open_store(folder.store());
  const auto frozen = weights(20000, 1);
  auto trained = weights(20000, 2);
  const auto save = [&](std::uint64_t step, std::uint64_t base) {
    auto desc = save_desc(step);
    desc.base = base;
    const WriterHandle writer = begin(store, desc);
    const auto a = tensor_of("frozen", QUERN_F32, {20000}, frozen.data());
    const auto b = tensor_of("trained", QUERN_F32, {100, 200}, trained.data());
    EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &a));
    EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &b));
    quern_checkpoint_result result = QUERN_CHECKPOINT_RESULT_INIT;
    EXPECT_QUERN_OK(quern_checkpoint_publish(writer.get(), &result));
    return result;
  };
  EXPECT_EQ(save(100, QUERN_CHECKPOINT_NO_BASE).stored_already, 0u);
  const auto before = trained;
  for (std::size_t i = 0; i < trained.size(); ++i) trained[i] += i % 3 == 0 ? 0.0f : trained[i] * 1e-6f;
  const quern_checkpoint_result second = save(200, 100);
  EXPECT_EQ(second.stored_already, 1u);
  EXPECT_EQ(second.differences, 1u);
  EXPECT_LT(second.stored_bytes, second.raw_bytes / 4);

  std::uint64_t steps[4] = {}, count = 0;
  EXPECT_QUERN_OK(quern_checkpoint_steps(store.get(), steps, 4, &count));
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(steps[0], 100u);
  EXPECT_EQ(steps[1], 200u);
  const ReaderHandle reader = open_step(store);
  quern_checkpoint_info info = QUERN_CHECKPOINT_INFO_INIT;
  EXPECT_QUERN_OK(quern_checkpoint_inspect(reader.get(), &info));
  EXPECT_EQ(info.base, 100u);
  EXPECT_EQ(read<float>(reader, "trained"), trained);
  EXPECT_EQ(read<float>(reader, "frozen"), frozen);
  EXPECT_STREQ(info_of(reader, "frozen").mode, "alias");
  EXPECT_EQ(info_of(reader, "frozen").stored_already, 1u);
  EXPECT_EQ(info_of(reader, "trained").depth, 1u);
  EXPECT_EQ(read<float>(open_step(store, 100), "trained"), before);
}

TEST(CheckpointSave, RolesComeFromNamesOrTheCaller) {
  const ScratchFolder folder;
  const StoreHandle store = open_store(folder.store());
  const auto values = weights(64, 3);
  {
    const WriterHandle writer = begin(store, save_desc(0));
    auto named = tensor_of("optimizer.state.0.exp_avg", QUERN_F32, {64}, values.data());
    auto told = tensor_of("v", QUERN_F32, {64}, values.data());
    told.role = "exp_avg_sq";
    EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &named));
    EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &told));
    EXPECT_QUERN_OK(quern_checkpoint_publish(writer.get(), nullptr));
  }
  const ReaderHandle reader = open_step(store);
  EXPECT_STREQ(info_of(reader, "optimizer.state.0.exp_avg").role, "exp_avg");
  EXPECT_STREQ(info_of(reader, "v").role, "exp_avg_sq");
}

TEST(CheckpointSave, Presets_KeepTheirBounds) {
  constexpr std::size_t kRows = 200, kColumns = 300;
  const auto weight = weights(kRows * kColumns, 1), mean = weights(kRows * kColumns, 2);
  const auto table = weights(kRows * kColumns, 4);
  auto square = weights(kRows * kColumns, 3);
  for (float& v : square) v = v * v + 1e-12f;
  double deviation = 0;
  for (const float w : weight) deviation += static_cast<double>(w) * w;
  deviation = std::sqrt(deviation / (kRows * kColumns));
  struct Case {
    const char* preset;
    bool exact_weights, exact_moments;
    double weight_bound, mean_bound, log_bound;  // deviations, roots of exp_avg_sq, log of exp_avg_sq
  };
  for (const Case& c :
       {Case{"exact", true, true, 0, 0, 0}, Case{"moments", true, false, 0, 0.05, 0.05},
        Case{"balanced", false, false, 0.001, 0.05, 0.05}, Case{"archive", false, false, 0.01, 0.2, 0.1}}) {
    SCOPED_TRACE(c.preset);
    const ScratchFolder folder;  // what one store has exactly would be used again
    const StoreHandle store = open_store(folder.store());
    auto desc = save_desc(1);
    desc.preset = c.preset;
    const WriterHandle writer = begin(store, desc);
    const std::vector<std::uint64_t> shape = {kRows, kColumns};
    // The companion comes last: a writer sees all before it codes any.
    auto told = tensor_of("layer.weight", QUERN_F32, shape, weight.data());
    told.role = "param";  // nothing in its name says so
    for (const auto& tensor : {tensor_of("layer.exp_avg", QUERN_F32, shape, mean.data()), told,
                               tensor_of("layer.exp_avg_sq", QUERN_F32, shape, square.data()),
                               tensor_of("cache.table", QUERN_F32, shape, table.data())})
      EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &tensor));
    quern_checkpoint_result result = QUERN_CHECKPOINT_RESULT_INIT;
    ASSERT_QUERN_OK(quern_checkpoint_publish(writer.get(), &result));
    EXPECT_EQ(result.lossy, (c.exact_weights ? 0u : 1u) + (c.exact_moments ? 0u : 2u));
    const ReaderHandle reader = open_step(store);
    quern_checkpoint_tensor_info info = QUERN_CHECKPOINT_TENSOR_INFO_INIT;
    EXPECT_QUERN_OK(quern_checkpoint_tensor_at(reader.get(), 0, &info));
    EXPECT_STREQ(info.name, "layer.exp_avg");
    EXPECT_EQ(info_of(reader, "layer.weight").lossless, c.exact_weights ? 1u : 0u);
    EXPECT_EQ(info.lossless, c.exact_moments ? 1u : 0u);
    const auto w = read<float>(reader, "layer.weight"), m = read<float>(reader, "layer.exp_avg"),
               v = read<float>(reader, "layer.exp_avg_sq");
    std::size_t missed = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      missed += !(std::abs(static_cast<double>(w[i]) - weight[i]) <= c.weight_bound * deviation * 1.01);
      missed += !(std::abs(static_cast<double>(m[i]) - mean[i]) <= c.mean_bound * std::sqrt(square[i]) * 1.2);
      missed += !(std::abs(std::log(std::sqrt(static_cast<double>(v[i]) / square[i]))) <= c.log_bound * 1.01);
    }
    EXPECT_EQ(missed, 0u);
    EXPECT_EQ(read<float>(reader, "cache.table"), table);
  }
}

TEST(CheckpointSave, Policy_DecidesBeforeThePreset) {
  const ScratchFolder folder;
  const StoreHandle store = open_store(folder.store());
  const auto table = weights(100 * 100, 1), weight = weights(100 * 100, 2);
  auto desc = save_desc(1);
  desc.preset = "balanced";
  std::string policy = R"({"roles":[{"name":"mine","role":"param"}],
      "rules":[{"name":"*.keep","mode":"exact"},{"role":"param","mode":"ebq","bound":0.25,"unit":"absolute"}]})";
  desc.policy = policy.c_str();
  const WriterHandle writer = begin(store, desc);
  policy.assign(policy.size(), 'x');  // begin has its own copy
  for (const auto& tensor : {tensor_of("mine", QUERN_F32, {100, 100}, table.data()),
                             tensor_of("model.keep", QUERN_F32, {100, 100}, weight.data())})
    EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &tensor));
  ASSERT_QUERN_OK(quern_checkpoint_publish(writer.get(), nullptr));
  const ReaderHandle reader = open_step(store);
  EXPECT_EQ(info_of(reader, "mine").bound, 0.25);
  EXPECT_EQ(info_of(reader, "model.keep").lossless, 1u);
  EXPECT_EQ(read<float>(reader, "model.keep"), weight);
}

TEST(CheckpointSave, Replay_StoresAStepAsItsGradient) {
  constexpr std::size_t kCount = 5000;
  const ScratchFolder folder;
  const StoreHandle store = open_store(folder.store());
  auto w = weights(kCount, 1), m = weights(kCount, 2), v = weights(kCount, 3);
  for (float& x : v) x = x * x;
  std::vector<std::uint16_t> gradient(kCount);
  const auto save = [&](std::uint64_t step) {
    auto desc = save_desc(step);
    if (step > 1) desc.base = step - 1;
    desc.replay = R"({"optimizer":"adamw","betas":[0.5,0.75],"eps":0,"lr":0.25})";
    const WriterHandle writer = begin(store, desc);
    for (const auto& tensor :
         {tensor_of("model.w", QUERN_F32, {kCount}, w.data()), tensor_of("exp_avg.w", QUERN_F32, {kCount}, m.data()),
          tensor_of("exp_avg_sq.w", QUERN_F32, {kCount}, v.data()),
          tensor_of("grad.w", QUERN_BF16, {kCount}, gradient.data())})
      EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &tensor));
    EXPECT_QUERN_OK(quern_checkpoint_publish(writer.get(), nullptr));
  };
  save(1);
  // The second step, with a gradient of 0, in the order that format-tensor-moments.md calls fused.
  for (std::size_t i = 0; i < kCount; ++i) {
    m[i] *= 0.5F;
    v[i] *= 0.75F;
    w[i] = w[i] + (-0.25F * (m[i] / 0.75F)) / std::sqrt(v[i] / 0.4375F);
  }
  save(2);
  const ReaderHandle reader = open_step(store, 2);
  EXPECT_STREQ(info_of(reader, "exp_avg_sq.w").mode, "replay") << "the store tried the rule";
  EXPECT_EQ(read<float>(reader, "model.w"), w);
  EXPECT_EQ(read<float>(reader, "exp_avg.w"), m);
  EXPECT_EQ(read<float>(reader, "exp_avg_sq.w"), v);
}

TEST(CheckpointSave, BadRules_AreRefusedByBegin) {
  const ScratchFolder folder;
  const StoreHandle store = open_store(folder.store());
  const auto says = [&](const char* policy, const char* replay, const char* part) {
    auto desc = save_desc(1);
    desc.policy = policy;
    desc.replay = replay;
    quern_checkpoint_writer* writer = nullptr;
    EXPECT_EQ(quern_checkpoint_begin(store.get(), &desc, &writer), QUERN_ERROR_INVALID_ARGUMENT) << part;
    EXPECT_EQ(writer, nullptr);
    EXPECT_NE(std::string(quern_checkpoint_last_error()).find(part), std::string::npos)
        << quern_checkpoint_last_error();
  };
  says("", nullptr, "policy: ");
  says(R"({"rules":[{"mode":"exact"},{"mode":"zip"}]})", nullptr, "policy: rule 2: 'mode' must be exact");
  says(R"({"rules":[{"mode":"ebq","bound":0.1,"unit":"rate"}]})", nullptr, "give it as 'lr' of replay");
  says(nullptr, "{}", "replay: 'betas' is missing");
  says(nullptr, R"({"betas":[0.9,0.9]})", "replay: 'lr'");
  std::uint64_t count = 9;
  EXPECT_QUERN_OK(quern_checkpoint_steps(store.get(), nullptr, 0, &count));
  EXPECT_EQ(count, 0u);
  EXPECT_TRUE(std::filesystem::is_empty(folder.store() + "/tmp"));
}

TEST(CheckpointSave, Abort_LeavesNothing) {
  const ScratchFolder folder;
  const StoreHandle store = open_store(folder.store());
  const auto values = weights(1000, 4);
  const auto tensor = tensor_of("w", QUERN_F32, {1000}, values.data());
  {
    const WriterHandle writer = begin(store, save_desc(5));
    EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &tensor));
    EXPECT_QUERN_OK(quern_checkpoint_abort(writer.get()));
    EXPECT_EQ(quern_checkpoint_add(writer.get(), &tensor), QUERN_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(quern_checkpoint_publish(writer.get(), nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  }
  { const WriterHandle forgotten = begin(store, save_desc(6)); }
  std::uint64_t count = 9;
  EXPECT_QUERN_OK(quern_checkpoint_steps(store.get(), nullptr, 0, &count));
  EXPECT_EQ(count, 0u);
  EXPECT_TRUE(std::filesystem::is_empty(folder.store() + "/tmp"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.store() + "/data"));
}

TEST(CheckpointSave, CancelledByProgress_LeavesNothing) {
  const ScratchFolder folder;
  const StoreHandle store = open_store(folder.store());
  const auto values = weights(1000, 4);
  auto desc = save_desc(5);
  std::uint64_t seen[2] = {};
  desc.progress = [](void* user, std::uint64_t done, std::uint64_t total) {
    static_cast<std::uint64_t*>(user)[0] = done;
    static_cast<std::uint64_t*>(user)[1] = total;
    return 0;
  };
  desc.progress_user = seen;
  const WriterHandle writer = begin(store, desc);
  for (const char* name : {"a", "b"}) {
    const auto tensor = tensor_of(name, QUERN_F32, {1000}, values.data());
    EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &tensor));
  }
  EXPECT_EQ(quern_checkpoint_publish(writer.get(), nullptr), QUERN_ERROR_CANCELLED);
  EXPECT_EQ(seen[0], 4000u);
  EXPECT_EQ(seen[1], 8000u);
  EXPECT_TRUE(std::filesystem::is_empty(folder.store() + "/tmp"));
}

}  // namespace
}  // namespace quern::testing
