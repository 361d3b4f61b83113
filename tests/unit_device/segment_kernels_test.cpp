// The kernels around the codec's, called directly: more streams and segments than the staged path queues, windows that
// begin anywhere, and tables that say what no stream says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/mask/scan.h"
#include "libcompress/cuda/stream/chunk_layout.cuh"
#include "libcompress/cuda/stream/segment_reader.cuh"
#include "libcompress/cuda/stream/segment_writer.cuh"
#include "libcompress/cuda/stream/stream_end.cuh"
#include "libcompress/device/device_codec.h"
#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/grid/segment.h"
#include "tests/simt/cuda_test.h"

namespace quern::cuda {
namespace {

using quern::testing::DeviceBuffer;
using quern::testing::Stream;

class SegmentKernels : public quern::testing::CudaTest {};

/// Segments of 64 chunks of 16 bytes.
SegmentLayout line_layout(std::uint64_t segments) {
  return SegmentLayout(ChunkGrid{{1, 1, segments * 64 * 16 - 5}, {1, 1, 16}}, DType::u8);
}

/// Tables of streams in device memory.
struct Tables {
  Tables(const std::vector<DeviceStream>& all, std::uint32_t most_segments)
      : segments(most_segments),
        streams(all),
        records(all.size() * most_segments),
        chunks(all.size() * most_segments * kMaxSegmentChunks) {
    records.put(std::vector<SegmentRecord>(records.count()));
    chunks.put(std::vector<ChunkRecord>(chunks.count()));
  }
  StreamTables bind() {
    return {streams.data(), records.data(),    chunks.data(), static_cast<std::uint32_t>(streams.count()),
            segments,       kMaxSegmentChunks, slots};
  }

  std::uint32_t segments;
  std::uint32_t slots = segments * static_cast<std::uint32_t>(kMaxSegmentChunks);
  DeviceBuffer<DeviceStream> streams;
  DeviceBuffer<SegmentRecord> records;
  DeviceBuffer<ChunkRecord> chunks;
};

TEST_F(SegmentKernels, Layout_BoxesAndPhasesInWindows) {
  const SegmentLayout layout(ChunkGrid{{3, 50, 5000}, {2, 8, 96}}, DType::f32);
  DeviceBuffer<std::uint8_t> values(16);
  std::vector<DeviceStream> streams(3);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    streams[i].layout = layout;
    streams[i].window = values.data();
    streams[i].first_segment = 3 * i;
    streams[i].segments = 4 + i;
    streams[i].window_begin = layout.flat(layout.segment_box(3 * i).begin);
  }
  streams[1].status = StatusCode::corrupt;
  Tables tables(streams, 7);
  DeviceBuffer<kernels::CudaChunk> boxes(3 * 7 * kMaxSegmentChunks);
  Stream stream;
  ASSERT_EQ(start_encoding_async(tables.bind(), boxes.data(), {}, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  const auto got = boxes.get();
  std::vector<bool> used(got.size());
  for (std::size_t i = 0; i < streams.size(); ++i)
    for (std::uint64_t s = 0; s < 7; ++s)
      for (std::uint64_t k = 0; k < kMaxSegmentChunks; ++k) {
        const std::uint64_t segment = streams[i].first_segment + s;
        if (i == 1 || s >= streams[i].segments || k >= layout.segment_chunks(segment)) continue;
        const std::uint64_t slot =
            i * 7 * kMaxSegmentChunks + layout.first_chunk(segment) - layout.first_chunk(streams[i].first_segment) + k;
        const kernels::CudaChunk& chunk = got[slot];
        used[slot] = true;
        const GridBox box = layout.chunk_box(segment, k), whole = layout.segment_box(segment);
        ASSERT_EQ(chunk.slot, slot);
        ASSERT_EQ(chunk.box.extents, box.extents);
        ASSERT_EQ(chunk.box.strides, (std::array<std::uint64_t, 2>{50 * 5000, 5000}));
        ASSERT_EQ(static_cast<std::uint8_t*>(chunk.values) - values.data(),
                  static_cast<std::ptrdiff_t>(4 * (layout.flat(box.begin) - streams[i].window_begin)));
        ASSERT_EQ(chunk.phase, (box.begin[1] - whole.begin[1] + (box.begin[2] - whole.begin[2]) / 32) % 8);
      }
  for (std::size_t slot = 0; slot < got.size(); ++slot) ASSERT_EQ(got[slot].empty(), !used[slot]) << slot;
}

TEST_F(SegmentKernels, Placement_ManyStreamsAndSegments) {
  constexpr std::uint64_t kExtra = 1000;
  // More segments than the CTA has threads; few; one stream that failed before; one with a byte too few.
  const std::uint64_t counts[] = {2100, 40, 3, 1100};
  std::uint32_t state = 1;
  const auto random = [&state](std::uint32_t n) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
  };
  std::vector<DeviceStream> streams(4);
  for (std::size_t i = 0; i < 4; ++i) {
    streams[i].layout = line_layout(counts[i]);
    streams[i].segments = counts[i];
    streams[i].first_offset = 100 * i;
    streams[i].capacity = UINT64_C(1) << 40;
  }
  streams[2].status = StatusCode::corrupt;
  constexpr std::uint32_t kMost = 2100;
  std::vector<SegmentRecord> records(4 * kMost);
  std::vector<ChunkRecord> chunks(4 * kMost * kMaxSegmentChunks);
  std::vector<std::uint32_t> coded(chunks.size());
  std::vector<std::uint64_t> sizes(records.size()), ends(4), index(4);
  std::vector<ChunkForm> forms(chunks.size());
  std::vector<std::uint64_t> stored(chunks.size());
  for (std::size_t i = 0; i < 4; ++i) {
    ends[i] = streams[i].first_offset;
    for (std::uint64_t s = 0; s < counts[i]; ++s) {
      const SegmentLayout& layout = streams[i].layout;
      const std::size_t at = i * kMost + s;
      const std::uint64_t raw = layout.segment_box(s).elems();
      // Some masks take all that coding saves, and then do not pay.
      records[at].mask_bytes = s % 3 == 0 ? 0 : random(400);
      std::uint64_t sum = 0;
      for (std::uint64_t k = 0; k < layout.segment_chunks(s); ++k) {
        const std::size_t q = at * kMaxSegmentChunks + k;
        const std::uint64_t own = layout.chunk_box(s, k).elems();
        coded[q] = 1 + random(20);
        chunks[q].all_masked = records[at].mask_bytes != 0 && random(9) == 0;
        forms[q] = chunks[q].all_masked ? ChunkForm::masked : coded[q] < own ? ChunkForm::coded : ChunkForm::raw;
        stored[q] = chunks[q].all_masked ? 0 : std::min<std::uint64_t>(coded[q], own);
        sum += stored[q];
      }
      std::uint64_t mask = records[at].mask_bytes;
      if (mask + sum > raw) {
        mask = 0;
        sum = raw;
        for (std::uint64_t k = 0; k < layout.segment_chunks(s); ++k) {
          forms[at * kMaxSegmentChunks + k] = ChunkForm::raw;
          stored[at * kMaxSegmentChunks + k] = layout.chunk_box(s, k).elems();
        }
      }
      sizes[at] = segment_bytes(layout, layout.segment_chunks(s), mask, sum);
      ends[i] += sizes[at];
      index[i] += varint_bytes(sizes[at]);
    }
  }
  streams[0].capacity = ends[0] + index[0] + kExtra;
  streams[3].capacity = ends[3] + index[3] + kExtra - 1;
  Tables tables(streams, kMost);
  tables.records.put(records);
  tables.chunks.put(chunks);
  DeviceBuffer<std::uint32_t> device_coded(coded);
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    Stream stream;
    ASSERT_EQ(place_segments_async(tables.bind(), {nullptr, 0, device_coded.data()}, kExtra, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    const auto got = tables.streams.get();
    const auto got_records = tables.records.get();
    const auto got_chunks = tables.chunks.get();
    EXPECT_EQ(got[2].status, StatusCode::corrupt);
    EXPECT_EQ(got[0].status, StatusCode::ok);
    EXPECT_EQ(got[3].status, StatusCode::destination_too_small);
    for (const std::size_t i : {0u, 1u, 3u}) {
      EXPECT_EQ(got[i].end, ends[i]);
      EXPECT_EQ(got[i].index_bytes, index[i]);
      std::uint64_t offset = streams[i].first_offset, indexed = 0;
      for (std::uint64_t s = 0; s < counts[i]; ++s) {
        const std::size_t at = i * kMost + s;
        ASSERT_EQ(got_records[at].offset, offset) << i << " " << s;
        ASSERT_EQ(got_records[at].index_offset, indexed);
        ASSERT_EQ(got_records[at].bytes, sizes[at]);
        std::uint64_t begin = sizes[at] - kSegmentChecksumBytes;
        const std::uint64_t here = streams[i].layout.segment_chunks(s);
        for (std::uint64_t k = here; k-- > 0;) {
          const std::size_t q = at * kMaxSegmentChunks + k;
          begin -= stored[q];
          ASSERT_EQ(got_chunks[q].form, forms[q]);
          ASSERT_EQ(got_chunks[q].stored, stored[q]);
          ASSERT_EQ(got_chunks[q].offset, begin);
        }
        offset += sizes[at];
        indexed += varint_bytes(sizes[at]);
      }
    }
    // Once more on a fresh status: the tables are what they were.
    tables.streams.put(streams);
    tables.records.put(records);
    tables.chunks.put(chunks);
  }
}

/// Raw segments on the host, and what reading them leaves.
class ReadSegments : public SegmentKernels {
 protected:
  static constexpr std::uint32_t kSegments = 45;

  void SetUp() override {
    SegmentKernels::SetUp();
    layout_ = line_layout(kSegments);
    values_.resize(layout_.grid().extents[2]);
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
    for (std::uint64_t s = 0; s < kSegments; ++s) {
      std::vector<ChunkPiece> pieces;
      for (std::uint64_t k = 0; k < layout_.segment_chunks(s); ++k) {
        const GridBox box = layout_.chunk_box(s, k);
        const std::span<const std::uint8_t> own{values_.data() + box.begin[2], static_cast<std::size_t>(box.elems())};
        pieces.push_back({ChunkForm::raw, own, chunk_check(own)});
      }
      Vector<std::uint8_t> segment;
      assemble_segment(layout_, {kChecksum, s}, {}, pieces, segment);
      SegmentRecord record;
      record.offset = bytes_.size();
      record.bytes = segment.size();
      records_.push_back(record);
      bytes_.insert(bytes_.end(), segment.begin(), segment.end());
    }
  }

  /// Reads with these records; chunk `damaged` (if any) is what the codec refuses. Returns the stream's status.
  StatusCode read(const std::vector<SegmentRecord>& records, std::int64_t damaged = -1) {
    DeviceBuffer<std::uint8_t> bytes(bytes_), out(std::vector<std::uint8_t>(values_.size(), 0xa5));
    DeviceStream all;
    all.layout = layout_;
    all.window = out.data();
    all.bytes = bytes.data();
    all.capacity = bytes_.size();
    all.segments = kSegments;
    all.header_checksum = kChecksum;
    Tables tables({all}, kSegments);
    tables.records.put(records);
    DeviceBuffer<kernels::CudaChunk> boxes(kSegments * kMaxSegmentChunks);
    DeviceBuffer<kernels::StoredChunk> stored(boxes.count());
    DeviceBuffer<std::uint32_t> flags(std::vector<std::uint32_t>(boxes.count(), 7));
    ChunkPlaces places;
    places.dtype = layout_.dtype();
    places.streams = tables.streams.data();
    places.count = 1;
    places.chunks = tables.slots;
    places.coded = 40;  // fewer than there are, as where all chunks are plain
    places.at = boxes.data();
    Stream stream;
    DeviceBuffer<kernels::RestoreJob> restores(kSegments);
    DeviceBuffer<kernels::MaskDamage> mask_damage(kSegments);
    EXPECT_EQ(
        read_segments_async(tables.bind(), {boxes.data(), stored.data(), restores.data(), mask_damage.data()}, stream),
        cudaSuccess);
    const ChunkKernels& kernels = *builtin_device_codec("lorenzo").chunks;
    DeviceBuffer<std::uint8_t> workspace(
        kernels.decode_workspace_bytes(places.dtype, places.count, places.chunks, places.coded));
    EXPECT_EQ(kernels.decode(places, stored.data(), workspace.data(), flags.data(), stream), cudaSuccess);
    if (damaged >= 0) {
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      std::vector<std::uint32_t> refused = flags.get();
      EXPECT_EQ(refused[static_cast<std::size_t>(damaged)], 0u);
      refused[static_cast<std::size_t>(damaged)] = 1;
      flags.put(refused);
    }
    EXPECT_EQ(join_statuses_async(tables.bind(), flags.data(), nullptr, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    values_read_ = out.get();
    return tables.streams.get()[0].status;
  }

  static constexpr std::uint64_t kChecksum = 0x123456789abcdef;
  SegmentLayout layout_;
  std::vector<std::uint8_t> values_, bytes_, values_read_;
  std::vector<SegmentRecord> records_;
};

TEST_F(ReadSegments, Whole_ValuesComeBack) {
  EXPECT_EQ(read(records_), StatusCode::ok);
  EXPECT_EQ(values_read_, values_);
}

TEST_F(ReadSegments, PlacesOutsideTheBytes_AreRefusedUnread) {
  using Place = std::pair<std::uint64_t, std::uint64_t>;
  for (const std::size_t s : {std::size_t{0}, std::size_t{33}, std::size_t{kSegments - 1}})
    for (const auto& place : {Place{bytes_.size() + 1, 1},
                              {bytes_.size() - 20, 21},
                              {UINT64_C(1) << 50, 100},
                              {~UINT64_C(0), ~UINT64_C(0)}}) {
      auto records = records_;
      records[s].offset = place.first;
      records[s].bytes = place.second;
      EXPECT_EQ(read(records), StatusCode::truncated) << s;
      EXPECT_EQ(simt::failure(), "");
    }
}

TEST_F(ReadSegments, FirstFailureInOrder_IsTheStreams) {
  // The codec's word on a chunk of a late segment, and before or behind it a segment that is cut off.
  const std::int64_t late = 40 * 64 + 63;
  EXPECT_EQ(read(records_, late), StatusCode::corrupt);
  auto records = records_;
  records[2].bytes = bytes_.size();
  EXPECT_EQ(read(records, late), StatusCode::truncated);
  records = records_;
  records[44].bytes = bytes_.size();
  EXPECT_EQ(read(records, late), StatusCode::corrupt);
}

TEST_F(ReadSegments, AnotherPlaceOrAByteLess_IsRefused) {
  auto records = records_;
  std::swap(records[5].offset, records[6].offset);
  EXPECT_EQ(read(records), StatusCode::checksum_mismatch);
  records = records_;
  --records[37].bytes;
  EXPECT_EQ(read(records), StatusCode::corrupt);
}

TEST_F(ReadSegments, TablesThatDoNotAddUp_AreRefused) {
  // Every check is right; what the table says of chunk 3 is not what is there.
  const std::size_t width = chunk_size_width(layout_);
  const std::size_t entry = segment_size_width(layout_) + 1 + 3 * table_entry_bytes(layout_);
  const std::size_t head = segment_size_width(layout_) + 1 + 64 * table_entry_bytes(layout_);
  const auto whole = bytes_;
  for (const std::size_t s : {std::size_t{0}, std::size_t{40}})
    for (const unsigned size : {0u, 1u, 15u}) {
      bytes_ = whole;
      const std::span<std::uint8_t> segment{bytes_.data() + records_[s].offset,
                                            static_cast<std::size_t>(records_[s].bytes)};
      for (std::size_t i = 0; i < width; ++i) segment[entry + i] = static_cast<std::uint8_t>(i == 0 ? size : 0);
      const auto seal = [&](std::size_t at, std::size_t bytes) {
        const std::uint64_t check = bound_checksum64(kChecksum, s, segment.first(at));
        for (std::size_t i = 0; i < bytes; ++i) segment[at + i] = static_cast<std::uint8_t>(check >> (8 * i));
      };
      seal(head, kHeadCheckBytes);
      seal(segment.size() - kSegmentChecksumBytes, kSegmentChecksumBytes);
      EXPECT_EQ(read(records_), StatusCode::corrupt) << s << " " << size;
    }
}

}  // namespace
}  // namespace quern::cuda
