// Arrays through the lorenzo kernels on a device, with memory for each call of exactly the size it needs.
#pragma once

#include <vector>

#include "tests/simt/cuda_test.h"
#include "tests/unit_cuda/grid_cases.h"

namespace quern::kernels::testing {

using quern::testing::DeviceBuffer;
using quern::testing::Stream;

/// Most that the chunks of a grid take.
inline std::size_t largest_encoding(const GridCase& c) {
  return chunk_count(c.grid) * max_lorenzo_chunk_bytes(c.rules.element, chunk_tiles(c.grid, c.rules.tile));
}

inline EncodedGrid encode_on_device(const GridCase& c, std::uint64_t capacity) {
  Stream stream;
  std::size_t workspace_bytes = 0;
  EXPECT_EQ(lorenzo_encode_workspace(c.rules, c.grid, workspace_bytes), cudaSuccess);
  DeviceBuffer<std::uint8_t> in(c.elements), workspace(workspace_bytes), out(capacity);
  DeviceBuffer<std::uint64_t> offsets(chunk_count(c.grid) + 1);
  EXPECT_EQ(lorenzo_encode_async(c.rules, c.grid, in.data(), out.data(), capacity, offsets.data(), workspace.data(),
                                 workspace_bytes, stream),
            cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EncodedGrid encoded;
  encoded.offsets = offsets.get();
  encoded.bytes = out.get(std::min(capacity, encoded.offsets.back()));
  return encoded;
}

/// `elements` is what the array holds before and after.
inline void decode_on_device(const GridCase& c, const EncodedGrid& in, std::vector<std::uint8_t>& elements,
                             std::vector<std::uint32_t>& damaged) {
  Stream stream;
  DeviceBuffer<std::uint8_t> bytes(in.bytes), out(elements);
  DeviceBuffer<std::uint64_t> offsets(in.offsets);
  DeviceBuffer<std::uint32_t> flags(in.offsets.size() - 1);
  EXPECT_EQ(lorenzo_decode_async(c.rules, c.grid, bytes.data(), in.bytes.size(), offsets.data(), out.data(),
                                 flags.data(), stream),
            cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  elements = out.get();
  damaged = flags.get();
}

}  // namespace quern::kernels::testing
