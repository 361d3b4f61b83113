// Verifying, repairing, compacting and collecting; what is refused, and with which sentence.
#include <cstddef>
#include <cstring>
#include <fstream>

#include "tests/unit_checkpoint_capi/handles.h"

namespace quern::testing {
namespace {

void save(const StoreHandle& store, const quern_checkpoint_save_desc& desc, const std::vector<float>& values) {
  const WriterHandle writer = begin(store, desc);
  const auto tensor = tensor_of("w", QUERN_F32, {values.size()}, values.data());
  EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &tensor));
  EXPECT_QUERN_OK(quern_checkpoint_publish(writer.get(), nullptr));
}

std::vector<std::uint64_t> steps(const StoreHandle& store) {
  std::uint64_t count = 0;
  EXPECT_QUERN_OK(quern_checkpoint_steps(store.get(), nullptr, 0, &count));
  std::vector<std::uint64_t> out(count);
  EXPECT_QUERN_OK(quern_checkpoint_steps(store.get(), out.data(), count, &count));
  return out;
}

/// Flips a bit in the middle of the first file of that name under the store's data.
void damage(const ScratchFolder& folder, const std::string& file_name) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.store() + "/data")) {
    if (entry.path().filename() != file_name) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    const auto middle = static_cast<std::streamoff>(std::filesystem::file_size(entry.path()) / 2);
    file.seekg(middle);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(middle);
    file.put(byte);
    return;
  }
  ADD_FAILURE() << "no file " << file_name;
}

TEST(CheckpointCare, Damage_IsFoundNamedAndMended) {
  const ScratchFolder folder;
  std::vector<std::string> notes;
  quern_checkpoint_store_desc store_desc = QUERN_CHECKPOINT_STORE_DESC_INIT;
  store_desc.note = [](void* user, const char* text) { static_cast<std::vector<std::string>*>(user)->push_back(text); };
  store_desc.note_user = &notes;
  const StoreHandle store = open_store(folder.store(), store_desc);
  const auto values = weights(300000, 1);
  auto desc = save_desc(1);
  desc.parity_data = 2;
  desc.parity_files = 1;
  {
    quern_checkpoint_writer* probe = nullptr;
    if (quern_checkpoint_begin(store.get(), &desc, &probe) == QUERN_ERROR_UNSUPPORTED)
      GTEST_SKIP() << "this build has no parity (ISA-L)";
    quern_checkpoint_writer_destroy(probe);
  }
  save(store, desc, values);
  EXPECT_QUERN_OK(quern_checkpoint_verify(store.get(), 1, 1));
  damage(folder, "part-0000");
  EXPECT_EQ(quern_checkpoint_verify(store.get(), QUERN_CHECKPOINT_NEWEST, 1), QUERN_ERROR_CORRUPT);
  EXPECT_NE(std::strstr(quern_checkpoint_last_error(), "part-0000"), nullptr) << quern_checkpoint_last_error();
  EXPECT_FALSE(notes.empty());
  {
    const ReaderHandle reader = open_step(store);
    std::vector<float> back(values.size());
    quern_checkpoint_target target = QUERN_CHECKPOINT_TARGET_INIT;
    target.data = back.data();
    target.bytes = back.size() * 4;
    EXPECT_EQ(quern_checkpoint_read(reader.get(), 0, nullptr, nullptr, &target), QUERN_ERROR_CHECKSUM_MISMATCH);
    EXPECT_NE(std::strstr(quern_checkpoint_last_error(), "tensor 'w'"), nullptr) << quern_checkpoint_last_error();
  }
  int repaired = 0;
  EXPECT_QUERN_OK(quern_checkpoint_repair(store.get(), 1, &repaired));
  EXPECT_EQ(repaired, 1);
  EXPECT_QUERN_OK(quern_checkpoint_verify(store.get(), 1, 1));
  EXPECT_EQ(read<float>(open_step(store), "w"), values);
}

TEST(CheckpointCare, CompactAndCollect_KeepWhatIsNeeded) {
  const ScratchFolder folder;
  const StoreHandle store = open_store(folder.store());
  auto values = weights(5000, 2);
  save(store, save_desc(1), values);
  for (std::uint64_t step = 2; step <= 3; ++step) {
    for (float& v : values) v *= 1.000001f;
    auto desc = save_desc(step);
    desc.base = step - 1;
    save(store, desc, values);
  }
  quern_checkpoint_collected collected = QUERN_CHECKPOINT_COLLECTED_INIT;
  EXPECT_QUERN_OK(quern_checkpoint_collect(store.get(), 1, nullptr, 0, &collected));
  EXPECT_EQ(collected.removed, 0u);
  EXPECT_EQ(collected.kept_for_others, 2u);
  EXPECT_EQ(quern_checkpoint_compact(store.get(), 2, nullptr), QUERN_ERROR_INVALID_ARGUMENT) << "step 3 needs it";
  EXPECT_QUERN_OK(quern_checkpoint_compact(store.get(), 3, nullptr));
  const std::uint64_t remove[] = {2};
  EXPECT_QUERN_OK(quern_checkpoint_collect(store.get(), UINT64_MAX, remove, 1, &collected));
  EXPECT_EQ(collected.removed, 1u);
  EXPECT_EQ(steps(store), (std::vector<std::uint64_t>{1, 3}));
  EXPECT_QUERN_OK(quern_checkpoint_collect(store.get(), 1, nullptr, 0, nullptr));
  EXPECT_EQ(steps(store), std::vector<std::uint64_t>{3});
  EXPECT_EQ(read<float>(open_step(store), "w"), values);
  const std::uint64_t absent[] = {99};
  EXPECT_EQ(quern_checkpoint_collect(store.get(), UINT64_MAX, absent, 1, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
}

TEST(CheckpointErrors, Stores) {
  const ScratchFolder folder;
  quern_checkpoint_store* store = nullptr;
  EXPECT_EQ(quern_checkpoint_store_open(folder.store().c_str(), nullptr, &store), QUERN_ERROR_IO);
  EXPECT_EQ(store, nullptr);
  EXPECT_NE(std::strstr(quern_checkpoint_last_error(), "no checkpoint store is here"), nullptr);
  EXPECT_EQ(quern_checkpoint_store_open(nullptr, nullptr, &store), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_checkpoint_store_open("", nullptr, &store), QUERN_ERROR_INVALID_ARGUMENT);
  quern_checkpoint_store_desc desc = QUERN_CHECKPOINT_STORE_DESC_INIT;
  desc.mode = 7;
  EXPECT_EQ(quern_checkpoint_store_open("x", &desc, &store), QUERN_ERROR_INVALID_ARGUMENT);
  open_store(folder.store());
  ASSERT_QUERN_OK(quern_checkpoint_store_open((folder.store() + "//").c_str(), nullptr, &store));
  const StoreHandle reading(store);
  const auto save = save_desc(1);
  quern_checkpoint_writer* writer = nullptr;
  EXPECT_EQ(quern_checkpoint_begin(store, &save, &writer), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(writer, nullptr);
  quern_checkpoint_reader* reader = nullptr;
  EXPECT_EQ(quern_checkpoint_open(store, QUERN_CHECKPOINT_NEWEST, &reader), QUERN_ERROR_IO);
  EXPECT_EQ(quern_checkpoint_verify(store, QUERN_CHECKPOINT_NEWEST, 0), QUERN_ERROR_IO);
  EXPECT_EQ(quern_checkpoint_collect(store, 1, nullptr, 0, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  quern_checkpoint_store_close(nullptr);
  quern_checkpoint_writer_destroy(nullptr);
  quern_checkpoint_reader_destroy(nullptr);
}

std::vector<std::uint64_t> history(const StoreHandle& store) {
  std::uint64_t count = 0;
  EXPECT_QUERN_OK(quern_checkpoint_history(store.get(), nullptr, 0, &count));
  std::vector<std::uint64_t> out(count);
  EXPECT_QUERN_OK(quern_checkpoint_history(store.get(), out.data(), count, &count));
  return out;
}

TEST(CheckpointCare, OrderTagsAndRetention) {
  const ScratchFolder folder;
  const StoreHandle store = open_store(folder.store());
  std::uint64_t base = 0;
  EXPECT_QUERN_OK(quern_checkpoint_newest_base(store.get(), &base));
  EXPECT_EQ(base, QUERN_CHECKPOINT_NO_BASE);
  const char* const names[] = {"loss", "note"};
  for (const std::uint64_t step : {100, 200, 300, 400, 250}) {
    auto desc = save_desc(step);
    desc.base = QUERN_CHECKPOINT_BASE_NEWEST;
    const std::string loss = std::to_string(step == 200 ? 1.5 : 3.0 + static_cast<double>(step));
    const char* const texts[] = {loss.c_str(), "of a run"};
    desc.tag_names = names;
    desc.tag_texts = texts;
    desc.tag_count = 2;
    save(store, desc, weights(30000, static_cast<unsigned>(step)));
  }
  EXPECT_EQ(steps(store), (std::vector<std::uint64_t>{100, 200, 250, 300, 400}));
  EXPECT_EQ(history(store), (std::vector<std::uint64_t>{100, 200, 300, 400, 250}));
  EXPECT_QUERN_OK(quern_checkpoint_newest_base(store.get(), &base));
  EXPECT_EQ(base, QUERN_CHECKPOINT_NO_BASE) << "four were saved against step 100: the next is whole";
  {
    const ReaderHandle reader = open_step(store);
    quern_checkpoint_info info = QUERN_CHECKPOINT_INFO_INIT;
    EXPECT_QUERN_OK(quern_checkpoint_inspect(reader.get(), &info));
    EXPECT_EQ(info.step, 250U);
    EXPECT_EQ(info.base, 100U);
    const char *name = nullptr, *text = nullptr;
    std::uint64_t count = 0;
    EXPECT_QUERN_OK(quern_checkpoint_tag_at(reader.get(), 1, &name, &text, &count));
    EXPECT_EQ(std::string(name) + "=" + text, "note=of a run");
    EXPECT_EQ(count, 2U);
    EXPECT_QUERN_OK(quern_checkpoint_tag_at(reader.get(), 2, &name, &text, nullptr));
    EXPECT_EQ(name, nullptr);
  }
  quern_checkpoint_retention retention = QUERN_CHECKPOINT_RETENTION_INIT;
  EXPECT_EQ(quern_checkpoint_retain(store.get(), &retention, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  retention.keep = 1;
  retention.keep_every = 300;
  retention.best = 1;
  EXPECT_EQ(quern_checkpoint_retain(store.get(), &retention, nullptr), QUERN_ERROR_INVALID_ARGUMENT) << "no metric";
  retention.metric = "loss";
  retention.dry_run = 1;
  quern_checkpoint_collected collected = QUERN_CHECKPOINT_COLLECTED_INIT;
  EXPECT_QUERN_OK(quern_checkpoint_retain(store.get(), &retention, &collected));
  EXPECT_EQ(collected.removed + collected.kept_for_others, 2U);
  EXPECT_EQ(steps(store).size(), 5U);
  retention.dry_run = 0;
  EXPECT_QUERN_OK(quern_checkpoint_retain(store.get(), &retention, nullptr));
  for (const std::uint64_t step : {200, 250, 300}) EXPECT_QUERN_OK(quern_checkpoint_verify(store.get(), step, 1));
  EXPECT_EQ(history(store).back(), 250U);
  auto twice = save_desc(7);
  const char* const same[] = {"a", "a"};
  twice.tag_names = twice.tag_texts = same;
  twice.tag_count = 2;
  quern_checkpoint_writer* writer = nullptr;
  EXPECT_EQ(quern_checkpoint_begin(store.get(), &twice, &writer), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(quern_checkpoint_last_error()).find("given twice"), std::string::npos);
}

TEST(CheckpointErrors, Writers) {
  const ScratchFolder folder;
  const StoreHandle store = open_store(folder.store());
  save(store, save_desc(1), weights(10, 1));
  const auto begun = [&](const quern_checkpoint_save_desc& desc) {
    quern_checkpoint_writer* writer = nullptr;
    const quern_status status = quern_checkpoint_begin(store.get(), &desc, &writer);
    quern_checkpoint_writer_destroy(writer);
    return status;
  };
  EXPECT_EQ(begun(save_desc(1)), QUERN_ERROR_INVALID_ARGUMENT) << "the step is there";
  auto desc = save_desc(1);
  desc.replace = 1;
  EXPECT_EQ(begun(desc), QUERN_OK);
  desc = save_desc(2);
  desc.base = 77;
  EXPECT_EQ(begun(desc), QUERN_OK) << "a base that is not there means no base, and a note";
  desc = save_desc(2);
  desc.preset = "no such preset";
  EXPECT_EQ(begun(desc), QUERN_ERROR_UNKNOWN_SETTING);
  desc.preset = "exact";
  EXPECT_EQ(begun(desc), QUERN_OK);
  desc.writers = 2;
  EXPECT_EQ(begun(desc), QUERN_ERROR_INVALID_ARGUMENT) << "a group needs a name";
  EXPECT_EQ(begun(save_desc(QUERN_CHECKPOINT_NEWEST)), QUERN_ERROR_INVALID_ARGUMENT);

  const WriterHandle writer = begin(store, save_desc(3));
  const float value = 1;
  const auto added = [&](const quern_checkpoint_tensor& tensor) { return quern_checkpoint_add(writer.get(), &tensor); };
  EXPECT_EQ(added(tensor_of("a", QUERN_F32, {1}, &value)), QUERN_OK);
  EXPECT_EQ(added(tensor_of("a", QUERN_F32, {1}, &value)), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(quern_checkpoint_last_error(), "tensor 'a': the name is given twice");
  EXPECT_EQ(added(tensor_of("", QUERN_F32, {1}, &value)), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(added(tensor_of(nullptr, QUERN_F32, {1}, &value)), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(added(tensor_of("b", 99, {1}, &value)), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(added(tensor_of("b", QUERN_F32, {1}, nullptr)), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(added(tensor_of("b", QUERN_F32, {UINT64_C(1) << 40, UINT64_C(1) << 40}, &value)),
            QUERN_ERROR_INVALID_SHAPE);
  auto deep = tensor_of("b", QUERN_F32, {1}, &value);
  deep.rank = 9;
  EXPECT_EQ(added(deep), QUERN_ERROR_INVALID_SHAPE);
  EXPECT_EQ(quern_checkpoint_add_blob(writer.get(), "b", nullptr, 3), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_QUERN_OK(quern_checkpoint_add_blob(writer.get(), "b", &value, 4));
  EXPECT_EQ(quern_checkpoint_add_blob(writer.get(), "b", &value, 4), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_QUERN_OK(quern_checkpoint_publish(writer.get(), nullptr)) << "what was refused left no trace";
}

TEST(CheckpointErrors, Readers) {
  const ScratchFolder folder;
  const StoreHandle store = open_store(folder.store());
  save(store, save_desc(1), weights(10, 1));
  const ReaderHandle reader = open_step(store, 1);
  std::uint64_t index = 0;
  EXPECT_EQ(quern_checkpoint_find(reader.get(), "v", &index), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(quern_checkpoint_last_error(), "step 1 has no tensor 'v'");
  float back[10];
  quern_checkpoint_target target = QUERN_CHECKPOINT_TARGET_INIT;
  target.data = back;
  target.bytes = sizeof(back);
  const std::uint64_t begin[] = {3}, end[] = {11}, early[] = {2};
  EXPECT_EQ(quern_checkpoint_read(reader.get(), 1, nullptr, nullptr, &target), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_checkpoint_read(reader.get(), 0, begin, nullptr, &target), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_checkpoint_read(reader.get(), 0, begin, end, &target), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_checkpoint_read(reader.get(), 0, begin, early, &target), QUERN_ERROR_INVALID_ARGUMENT);
  target.bytes = 36;
  EXPECT_EQ(quern_checkpoint_read(reader.get(), 0, nullptr, nullptr, &target), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(quern_checkpoint_last_error(), "tensor 'w': the target has 36 bytes, the values take 40");
  EXPECT_EQ(quern_checkpoint_blob_at(reader.get(), 0, nullptr, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  quern_checkpoint_reader* none = nullptr;
  EXPECT_EQ(quern_checkpoint_open(store.get(), 2, &none), QUERN_ERROR_INVALID_ARGUMENT);
}

TEST(CheckpointStructs, OfOlderAndNewerPrograms) {
  const ScratchFolder folder;
  const StoreHandle store = open_store(folder.store());
  // Older: a program that knows nothing behind `base`.
  auto desc = save_desc(4);
  desc.struct_size = offsetof(quern_checkpoint_save_desc, preset);
  desc.preset = reinterpret_cast<const char*>(8);  // not its own
  const WriterHandle writer = begin(store, desc);
  ASSERT_NE(writer, nullptr);
  const auto values = weights(10, 1);
  struct {
    quern_checkpoint_tensor tensor;
    std::uint64_t later;
  } newer{tensor_of("w", QUERN_F32, {10}, values.data()), 1};
  newer.tensor.struct_size = sizeof(newer);
  EXPECT_EQ(quern_checkpoint_add(writer.get(), &newer.tensor), QUERN_ERROR_UNSUPPORTED);
  newer.later = 0;
  EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &newer.tensor));
  newer.tensor.struct_size = 0;
  EXPECT_EQ(quern_checkpoint_add(writer.get(), &newer.tensor), QUERN_ERROR_INVALID_ARGUMENT);
  quern_checkpoint_result result = QUERN_CHECKPOINT_RESULT_INIT;
  result.struct_size = offsetof(quern_checkpoint_result, raw_bytes);
  result.raw_bytes = 42;
  ASSERT_QUERN_OK(quern_checkpoint_publish(writer.get(), &result));
  EXPECT_EQ(result.step, 4u);
  EXPECT_EQ(result.raw_bytes, 42u);
}

}  // namespace
}  // namespace quern::testing
