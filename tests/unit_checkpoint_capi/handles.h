// Handles of <quern/checkpoint.h> that clean up after themselves, a folder for a store, and tensors to put there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <stdlib.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <quern/checkpoint.h>

namespace quern::testing {

struct CloseStore {
  void operator()(quern_checkpoint_store* store) const { quern_checkpoint_store_close(store); }
};
struct DestroyWriter {
  void operator()(quern_checkpoint_writer* writer) const { quern_checkpoint_writer_destroy(writer); }
};
struct DestroyReader {
  void operator()(quern_checkpoint_reader* reader) const { quern_checkpoint_reader_destroy(reader); }
};
using StoreHandle = std::unique_ptr<quern_checkpoint_store, CloseStore>;
using WriterHandle = std::unique_ptr<quern_checkpoint_writer, DestroyWriter>;
using ReaderHandle = std::unique_ptr<quern_checkpoint_reader, DestroyReader>;

#define EXPECT_QUERN_OK(call) EXPECT_EQ((call), QUERN_OK) << quern_checkpoint_last_error()
#define ASSERT_QUERN_OK(call) ASSERT_EQ((call), QUERN_OK) << quern_checkpoint_last_error()

/// An empty folder that goes with the object.
class ScratchFolder {
 public:
  ScratchFolder() {
    // In memory where there is such a folder: what is tested syncs its files hundreds of times.
    const std::filesystem::path shared_memory = "/dev/shm";
    const bool in_memory = access(shared_memory.c_str(), W_OK) == 0;
    std::string pattern =
        ((in_memory ? shared_memory : std::filesystem::temp_directory_path()) / "quern-checkpoint-XXXXXX").string();
    path_ = mkdtemp(pattern.data()) != nullptr ? pattern : std::string();
    EXPECT_FALSE(path_.empty());
  }
  ~ScratchFolder() {
    if (!path_.empty()) std::filesystem::remove_all(path_);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string store() const { return path_ + "/store"; }

 private:
  std::string path_;
};

inline StoreHandle open_store(const std::string& path,
                              quern_checkpoint_store_desc desc = QUERN_CHECKPOINT_STORE_DESC_INIT) {
  desc.mode = QUERN_CHECKPOINT_WRITE;
  quern_checkpoint_store* store = nullptr;
  EXPECT_QUERN_OK(quern_checkpoint_store_open(path.c_str(), &desc, &store));
  return StoreHandle(store);
}

inline quern_checkpoint_save_desc save_desc(std::uint64_t step) {
  quern_checkpoint_save_desc desc = QUERN_CHECKPOINT_SAVE_DESC_INIT;
  desc.step = step;
  return desc;
}

inline WriterHandle begin(const StoreHandle& store, const quern_checkpoint_save_desc& desc) {
  quern_checkpoint_writer* writer = nullptr;
  EXPECT_QUERN_OK(quern_checkpoint_begin(store.get(), &desc, &writer));
  return WriterHandle(writer);
}

inline ReaderHandle open_step(const StoreHandle& store, std::uint64_t step = QUERN_CHECKPOINT_NEWEST) {
  quern_checkpoint_reader* reader = nullptr;
  EXPECT_QUERN_OK(quern_checkpoint_open(store.get(), step, &reader));
  return ReaderHandle(reader);
}

/// Values that look like weights: small, of both signs, every bit used. The same for the same seed.
inline std::vector<float> weights(std::size_t count, std::uint32_t seed) {
  std::vector<float> out(count);
  std::uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
  for (float& value : out) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    value = (static_cast<float>(state >> 40) / static_cast<float>(1 << 24) - 0.5f) * 0.1f;
  }
  return out;
}

inline quern_checkpoint_tensor tensor_of(const char* name, quern_dtype dtype, const std::vector<std::uint64_t>& extents,
                                         const void* data) {
  quern_checkpoint_tensor tensor = QUERN_CHECKPOINT_TENSOR_INIT;
  tensor.name = name;
  tensor.dtype = dtype;
  tensor.rank = static_cast<std::uint32_t>(extents.size());
  for (std::size_t a = 0; a < extents.size(); ++a) tensor.extents[a] = extents[a];
  tensor.data = data;
  return tensor;
}

inline quern_checkpoint_tensor_info info_of(const ReaderHandle& reader, const char* name) {
  quern_checkpoint_tensor_info info = QUERN_CHECKPOINT_TENSOR_INFO_INIT;
  std::uint64_t index = 0;
  EXPECT_QUERN_OK(quern_checkpoint_find(reader.get(), name, &index));
  EXPECT_QUERN_OK(quern_checkpoint_tensor_at(reader.get(), index, &info));
  return info;
}

/// A tensor, or a box of it, as it comes back.
template <class T>
std::vector<T> read(const ReaderHandle& reader, const char* name, const std::vector<std::uint64_t>& begin = {},
                    const std::vector<std::uint64_t>& end = {}) {
  const quern_checkpoint_tensor_info info = info_of(reader, name);
  std::uint64_t index = 0, count = 1;
  EXPECT_QUERN_OK(quern_checkpoint_find(reader.get(), name, &index));
  for (std::size_t a = 0; a < info.rank; ++a) count *= begin.empty() ? info.extents[a] : end[a] - begin[a];
  std::vector<T> out(count);
  quern_checkpoint_target target = QUERN_CHECKPOINT_TARGET_INIT;
  target.data = out.data();
  target.bytes = count * sizeof(T);
  EXPECT_QUERN_OK(quern_checkpoint_read(reader.get(), index, begin.empty() ? nullptr : begin.data(),
                                        end.empty() ? nullptr : end.data(), &target));
  return out;
}

}  // namespace quern::testing
