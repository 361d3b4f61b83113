// Chunks through the stencil kernels on a device, with memory of exactly the size it needs.
#pragma once

#include <cstring>
#include <vector>

#include "kernels/stencil/cuda/decode_entry_points.h"
#include "kernels/stencil/job_head.h"
#include "tests/simt/cuda_test.h"
#include "tests/unit_stencil/program_cases.h"

namespace quern::codec::stencil::test {

/// Chunks of an array, decoded in one launch over what `back` holds; whether each was good. Chunks that the host has to
/// decode are not allowed.
inline std::vector<bool> decode_on_device(const Coding& coding, const std::vector<Bytes>& stored, Bytes& back) {
  using quern::testing::DeviceBuffer;
  std::vector<std::unique_ptr<DeviceBuffer<std::uint8_t>>> memory;
  const auto upload = [&](const std::uint8_t* from, std::size_t bytes) {
    memory.push_back(std::make_unique<DeviceBuffer<std::uint8_t>>(std::vector<std::uint8_t>(from, from + bytes)));
    return memory.back()->data();
  };
  std::uint8_t* const values = upload(back.data(), back.size());
  const std::uint8_t* const special =
      coding.special().empty() ? nullptr : upload(coding.special().data(), coding.special().size());
  std::vector<kernels::ProgramTask> tasks;
  for (std::uint64_t chunk = 0; chunk < stored.size(); ++chunk) {
    const MutableBox3 box = coding.box(chunk, back.data());
    Vector<std::uint8_t> program;
    EXPECT_TRUE(append_program(coding, stored[chunk], box, program));
    kernels::ProgramHead head;
    std::memcpy(&head, program.data(), sizeof head);
    kernels::ProgramTask task;
    task.program = upload(program.data(), program.size());
    memory.push_back(std::make_unique<DeviceBuffer<std::uint8_t>>(head.work_bytes));
    task.work = memory.back()->data();
    task.out = values + (static_cast<std::uint8_t*>(box.data) - back.data());
    if (special != nullptr) task.special = special + (box.special - coding.special().data());
    tasks.push_back(task);
  }
  DeviceBuffer<kernels::ProgramTask> device_tasks(tasks);
  DeviceBuffer<std::uint32_t> damaged(tasks.size());
  quern::testing::Stream stream;
  EXPECT_EQ(kernels::stencil_levels_decode_async(device_tasks.data(), static_cast<std::uint32_t>(tasks.size()),
                                                 damaged.data(), stream),
            cudaSuccess);
  EXPECT_EQ(kernels::stencil_raster_decode_async(device_tasks.data(), static_cast<std::uint32_t>(tasks.size()),
                                                 damaged.data(), stream),
            cudaSuccess);
  EXPECT_EQ(kernels::stencil_wavelet_decode_async(device_tasks.data(), static_cast<std::uint32_t>(tasks.size()),
                                                  damaged.data(), stream),
            cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess) << simt::failure();
  EXPECT_EQ(cudaMemcpy(back.data(), values, back.size(), cudaMemcpyDeviceToHost), cudaSuccess);
  std::vector<bool> good;
  for (const std::uint32_t d : damaged.get()) good.push_back(d == 0);
  return good;
}

inline std::vector<Bytes> encode_chunks(const Coding& coding) {
  std::vector<Bytes> stored;
  for (std::uint64_t chunk = 0; chunk < coding.chunks(); ++chunk) stored.push_back(coding.encode(chunk));
  return stored;
}

}  // namespace quern::codec::stencil::test
