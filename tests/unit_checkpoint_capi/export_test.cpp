// Exporting through the C interface: what is written, and what is refused.
#include <filesystem>
#include <fstream>

#include "tests/unit_checkpoint_capi/handles.h"

namespace quern::testing {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(CheckpointExport, Weights_AreWrittenRoundedUnderTheirNames) {
  const ScratchFolder folder;
  const StoreHandle store = open_store(folder.store());
  const std::vector<float> values = {1, 2, 3, 1e38F};
  {
    const WriterHandle writer = begin(store, save_desc(1));
    const auto weight = tensor_of("model.w", QUERN_F32, {2, 2}, values.data());
    const auto moment = tensor_of("optim.m", QUERN_F32, {4}, values.data());
    EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &weight));
    EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &moment));
    ASSERT_QUERN_OK(quern_checkpoint_publish(writer.get(), nullptr));
  }
  const std::string out = folder.store() + "-out/model";
  const char* const only[] = {"model.*"};
  const char* const prefix[] = {"model."};
  quern_checkpoint_export_desc desc = QUERN_CHECKPOINT_EXPORT_DESC_INIT;
  desc.dtype = QUERN_BF16;
  desc.only = only;
  desc.only_count = 1;
  desc.strip_prefix = prefix;
  desc.strip_prefix_count = 1;
  quern_checkpoint_exported done = QUERN_CHECKPOINT_EXPORTED_INIT;
  ASSERT_QUERN_OK(quern_checkpoint_export(store.get(), QUERN_CHECKPOINT_NEWEST, out.c_str(), &desc, &done));
  EXPECT_EQ(done.step, 1U);
  EXPECT_EQ(done.files, 1U);
  EXPECT_EQ(done.tensors, 1U);
  EXPECT_EQ(done.cast, 1U);
  const std::string file = text_of(out + "/model.safetensors");
  EXPECT_EQ(file.size(), done.bytes);
  EXPECT_NE(file.find(R"("w":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]})"), std::string::npos);
  EXPECT_EQ(file.substr(file.size() - 8), std::string("\x80\x3F\x00\x40\x40\x40\x96\x7E", 8));

  EXPECT_EQ(quern_checkpoint_export(store.get(), 1, out.c_str(), &desc, nullptr), QUERN_ERROR_INVALID_ARGUMENT)
      << "there is a model already";
  desc.replace = 1;
  EXPECT_QUERN_OK(quern_checkpoint_export(store.get(), 1, out.c_str(), &desc, nullptr));
  desc.dtype = QUERN_I32;
  EXPECT_EQ(quern_checkpoint_export(store.get(), 1, out.c_str(), &desc, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  desc.dtype = 0;
  desc.only = nullptr;
  EXPECT_EQ(quern_checkpoint_export(store.get(), 1, out.c_str(), &desc, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_checkpoint_export(nullptr, 1, out.c_str(), &desc, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_checkpoint_export(store.get(), 1, "", nullptr, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  const std::string all = folder.store() + "-out/all";
  EXPECT_QUERN_OK(quern_checkpoint_export(store.get(), 1, all.c_str(), nullptr, &done));
  EXPECT_EQ(done.tensors, 2U);
  std::filesystem::remove_all(folder.store() + "-out");
}

}  // namespace
}  // namespace quern::testing
