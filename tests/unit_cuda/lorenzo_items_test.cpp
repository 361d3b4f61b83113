// Several arrays in one launch: rules, places, outputs and capacities of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/unit_cuda/cuda_grid.h"

namespace quern::kernels {
namespace {

using testing::Content;
using testing::CudaGrid;
using testing::DeviceBuffer;
using testing::DeviceGrid;
using testing::EncodedGrid;
using testing::GridCase;
using testing::Stream;

/// Arrays of one element type, of different tile shapes, quantizers and numbers of chunks.
std::vector<GridCase> make_items() {
  std::mt19937_64 random(testing::kChunkSeed);
  return {testing::make_grid_case(Element::f32, QuantizerKind::absolute, TileShape::plane,
                                  CudaGrid{{1, 70, 75}, {1, 32, 64}}, Content::specials, random),
          testing::make_grid_case(Element::f32, QuantizerKind::pointwise, TileShape::line,
                                  CudaGrid{{1, 3, 3000}, {1, 1, 1024}}, Content::smooth, random),
          testing::make_grid_case(Element::f32, QuantizerKind::exact, TileShape::block,
                                  CudaGrid{{5, 17, 70}, {4, 8, 64}}, Content::specials, random)};
}

class LorenzoItems : public quern::testing::CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    bring_items();
  }
  void TearDown() override {
    drop_items();
    CudaTest::TearDown();
  }
  void bring_items() {
    items_ = make_items();
    expected_.clear();
    for (const GridCase& c : items_) {
      expected_.push_back(cpu_.encode(c));
      elements_.push_back(std::make_unique<DeviceBuffer<std::uint8_t>>(c.elements));
      chunks_ = std::max(chunks_, static_cast<std::uint32_t>(expected_.back().raw.size()));
      slot_bytes_ = std::max(slot_bytes_, DeviceGrid::slot_bytes(c));
    }
    std::vector<CudaChunk> boxes;
    std::vector<ChunkRules> rules;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      auto own = DeviceGrid::boxes(items_[i], elements_[i]->data());
      for (CudaChunk& chunk : own) chunk.slot += static_cast<std::uint32_t>(i * chunks_);
      boxes.insert(boxes.end(), own.begin(), own.end());
      boxes.resize((i + 1) * chunks_);  // places that no chunk has
      rules.push_back(items_[i].rules);
      rules.emplace_back();  // a stride of two rules
    }
    boxes_ = std::make_unique<DeviceBuffer<CudaChunk>>(boxes);
    rules_ = std::make_unique<DeviceBuffer<ChunkRules>>(rules);
  }
  void drop_items() {
    elements_.clear();
    boxes_.reset();
    rules_.reset();
  }

  LorenzoChunks chunks() {
    LorenzoChunks chunks;
    chunks.element = Element::f32;
    chunks.shapes = 7;
    chunks.tiles = 8;
    chunks.items = static_cast<std::uint32_t>(items_.size());
    chunks.chunks = chunks_;
    chunks.rules = reinterpret_cast<const std::uint8_t*>(rules_->data());
    chunks.rules_stride = 2 * sizeof(ChunkRules);
    chunks.at = boxes_->data();
    return chunks;
  }
  std::size_t places() const { return items_.size() * chunks_; }

  testing::CpuGrid cpu_;
  std::vector<GridCase> items_;
  std::vector<EncodedGrid> expected_;
  std::vector<std::unique_ptr<DeviceBuffer<std::uint8_t>>> elements_;
  std::unique_ptr<DeviceBuffer<CudaChunk>> boxes_;
  std::unique_ptr<DeviceBuffer<ChunkRules>> rules_;
  std::uint32_t chunks_ = 0;
  std::size_t slot_bytes_ = 0;
};

TEST_F(LorenzoItems, SlotsAndDecoding_AsEachAlone) {
  DeviceBuffer<std::uint8_t> slots(places() * slot_bytes_);
  DeviceBuffer<std::uint32_t> sizes(std::vector<std::uint32_t>(places(), 7)), damaged(places());
  Stream stream;
  ASSERT_EQ(lorenzo_encode_async(chunks(), {slots.data(), slot_bytes_}, {}, sizes.data(), stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  const auto all_sizes = sizes.get();
  const auto all_slots = slots.get();
  std::vector<StoredChunk> stored(places());
  for (std::size_t i = 0; i < items_.size(); ++i)
    for (std::size_t k = 0; k < chunks_; ++k) {
      const std::size_t q = i * chunks_ + k;
      SCOPED_TRACE("item " + std::to_string(i) + " chunk " + std::to_string(k));
      if (k >= expected_[i].raw.size()) {
        EXPECT_EQ(all_sizes[q], 7u);
        continue;
      }
      if (expected_[i].raw[k]) continue;
      const std::uint64_t begin = expected_[i].offsets[k], end = expected_[i].offsets[k + 1];
      ASSERT_EQ(all_sizes[q], end - begin);
      EXPECT_TRUE(std::equal(expected_[i].bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                             expected_[i].bytes.begin() + static_cast<std::ptrdiff_t>(end),
                             all_slots.begin() + static_cast<std::ptrdiff_t>(q * slot_bytes_)));
      stored[q] = {slots.data() + q * slot_bytes_, all_sizes[q]};
    }
  DeviceBuffer<StoredChunk> device_stored(stored);
  for (std::size_t i = 0; i < items_.size(); ++i)
    elements_[i]->put(std::vector<std::uint8_t>(items_[i].elements.size(), 0xa5));
  DeviceBuffer<std::uint8_t> workspace(lorenzo_decode_workspace_bytes(chunks()));
  ASSERT_EQ(lorenzo_decode_async(chunks(), device_stored.data(), workspace.data(), damaged.data(), stream),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(damaged.get(), std::vector<std::uint32_t>(places(), 0));
  for (std::size_t i = 0; i < items_.size(); ++i) {
    std::vector<std::uint8_t> wanted(items_[i].elements.size(), 0xa5);
    std::vector<std::uint32_t> none;
    cpu_.decode(items_[i], expected_[i], wanted, none);
    EXPECT_EQ(elements_[i]->get(), wanted) << "item " << i;
  }
}

}  // namespace
}  // namespace quern::kernels
