// Tensors in pieces, writers in groups, and boxes that are read.
#include <atomic>
#include <numeric>
#include <thread>

#include "tests/unit_checkpoint_capi/handles.h"

namespace quern::testing {
namespace {

constexpr std::uint64_t kRows = 40, kColumns = 30;

std::vector<float> whole_tensor() {
  std::vector<float> out(kRows * kColumns);
  std::iota(out.begin(), out.end(), 1.0f);
  return out;
}

std::vector<float> box_of(const std::vector<float>& whole, std::uint64_t r0, std::uint64_t r1, std::uint64_t c0,
                          std::uint64_t c1) {
  std::vector<float> out;
  for (std::uint64_t r = r0; r < r1; ++r)
    for (std::uint64_t c = c0; c < c1; ++c) out.push_back(whole[r * kColumns + c]);
  return out;
}

quern_checkpoint_tensor piece(const char* name, const std::vector<float>& values, std::uint64_t r0, std::uint64_t r1,
                              std::uint64_t c0, std::uint64_t c1) {
  auto tensor = tensor_of(name, QUERN_F32, {r1 - r0, c1 - c0}, values.data());
  tensor.is_piece = 1;
  tensor.whole[0] = kRows;
  tensor.whole[1] = kColumns;
  tensor.offset[0] = r0;
  tensor.offset[1] = c0;
  return tensor;
}

void expect_boxes(const ReaderHandle& reader, const std::vector<float>& whole) {
  EXPECT_EQ(read<float>(reader, "w"), whole);
  EXPECT_EQ(read<float>(reader, "w", {3, 5}, {29, 26}), box_of(whole, 3, 29, 5, 26));
  EXPECT_EQ(read<float>(reader, "w", {0, 29}, {40, 30}), box_of(whole, 0, 40, 29, 30));
  EXPECT_EQ(read<float>(reader, "w", {39, 0}, {40, 30}), box_of(whole, 39, 40, 0, 30));
  EXPECT_TRUE(read<float>(reader, "w", {7, 7}, {7, 9}).empty());
}

TEST(CheckpointPieces, OneWriter_ReadersSeeTheWholeAndItsBoxes) {
  const ScratchFolder folder;
  const StoreHandle store = open_store(folder.store());
  const auto whole = whole_tensor();
  {
    const WriterHandle writer = begin(store, save_desc(1));
    const auto a = box_of(whole, 0, 17, 0, 30), b = box_of(whole, 17, 40, 0, 11), c = box_of(whole, 17, 40, 11, 30);
    for (const auto& tensor :
         {piece("w", a, 0, 17, 0, 30), piece("w", b, 17, 40, 0, 11), piece("w", c, 17, 40, 11, 30)})
      EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &tensor));
    ASSERT_QUERN_OK(quern_checkpoint_publish(writer.get(), nullptr));
  }
  const ReaderHandle reader = open_step(store);
  const auto info = info_of(reader, "w");
  EXPECT_EQ(info.pieces, 3u);
  EXPECT_EQ(info.extents[0], kRows);
  EXPECT_EQ(info.raw_bytes, kRows * kColumns * 4);
  expect_boxes(reader, whole);
}

TEST(CheckpointPieces, WholeTensor_BoxesOfAnyRank) {
  const ScratchFolder folder;
  const StoreHandle store = open_store(folder.store());
  const auto whole = whole_tensor();
  {
    const WriterHandle writer = begin(store, save_desc(1));
    const auto w = tensor_of("w", QUERN_F32, {kRows, kColumns}, whole.data());
    const auto deep = tensor_of("deep", QUERN_F32, {2, 5, 4, 30}, whole.data());
    const auto scalar = tensor_of("scalar", QUERN_F32, {}, whole.data());
    for (const auto& tensor : {w, deep, scalar}) EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &tensor));
    ASSERT_QUERN_OK(quern_checkpoint_publish(writer.get(), nullptr));
  }
  const ReaderHandle reader = open_step(store);
  expect_boxes(reader, whole);
  EXPECT_EQ(read<float>(reader, "scalar"), std::vector<float>{1.0f});
  std::vector<float> expected;
  for (std::uint64_t i = 1; i < 2; ++i)
    for (std::uint64_t j = 2; j < 4; ++j)
      for (std::uint64_t k = 0; k < 4; ++k)
        for (std::uint64_t l = 0; l < 30; ++l) expected.push_back(whole[((i * 5 + j) * 4 + k) * 30 + l]);
  EXPECT_EQ(read<float>(reader, "deep", {1, 2, 0, 0}, {2, 4, 4, 30}), expected);
}

TEST(CheckpointPieces, ThatOverlapOrLeaveGaps_AreRefused) {
  const ScratchFolder folder;
  const StoreHandle store = open_store(folder.store());
  const auto whole = whole_tensor();
  const auto half = box_of(whole, 0, 20, 0, 30);
  const auto tried = [&](const std::vector<quern_checkpoint_tensor>& tensors) {
    const WriterHandle writer = begin(store, save_desc(1));
    for (const auto& tensor : tensors) EXPECT_QUERN_OK(quern_checkpoint_add(writer.get(), &tensor));
    return quern_checkpoint_publish(writer.get(), nullptr);
  };
  EXPECT_EQ(tried({piece("w", half, 0, 20, 0, 30), piece("w", half, 19, 39, 0, 30)}), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(quern_checkpoint_last_error(), "tensor 'w': its pieces overlap");
  EXPECT_EQ(tried({piece("w", half, 0, 20, 0, 30)}), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(quern_checkpoint_last_error(), "tensor 'w': its pieces do not fill it");
  auto other = piece("w", half, 20, 40, 0, 30);
  other.dtype = QUERN_I32;
  EXPECT_EQ(tried({piece("w", half, 0, 20, 0, 30), other}), QUERN_ERROR_INVALID_ARGUMENT);
  const WriterHandle writer = begin(store, save_desc(1));
  auto beyond = piece("w", half, 0, 20, 0, 30);
  beyond.offset[0] = 21;
  EXPECT_EQ(quern_checkpoint_add(writer.get(), &beyond), QUERN_ERROR_INVALID_SHAPE);
}

TEST(CheckpointPieces, Group_TheLastWriterPublishes) {
  const ScratchFolder folder;
  const auto whole = whole_tensor();
  const StoreHandle store = open_store(folder.store());
  std::atomic<int> published{0}, failures{0};
  std::vector<std::thread> threads;
  for (std::uint32_t w = 0; w < 4; ++w)
    threads.emplace_back([&, w] {
      auto desc = save_desc(12);
      desc.group = "run-12";
      desc.writer = w;
      desc.writers = 4;
      quern_checkpoint_writer* raw = nullptr;
      if (quern_checkpoint_begin(store.get(), &desc, &raw) != QUERN_OK) ++failures;
      const WriterHandle writer(raw);
      const auto values = box_of(whole, w * 10, w * 10 + 10, 0, 30);
      const auto tensor = piece("w", values, w * 10, w * 10 + 10, 0, 30);
      if (quern_checkpoint_add(writer.get(), &tensor) != QUERN_OK) ++failures;
      quern_checkpoint_result result = QUERN_CHECKPOINT_RESULT_INIT;
      if (quern_checkpoint_publish(writer.get(), &result) != QUERN_OK) ++failures;
      if (result.published != 0) ++published;
    });
  for (auto& thread : threads) thread.join();
  ASSERT_EQ(failures, 0);
  EXPECT_EQ(published, 1);
  const ReaderHandle reader = open_step(store, 12);
  EXPECT_EQ(info_of(reader, "w").pieces, 4u);
  expect_boxes(reader, whole);
}

}  // namespace
}  // namespace quern::testing
