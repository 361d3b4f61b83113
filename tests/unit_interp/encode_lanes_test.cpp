// Chunks encoded on the lanes of the emulator: the bytes of the host's encoder.
#include <cstring>
#include <memory>

#include "kernels/interp/warp/stream_write.h"
#include "kernels/interp/warp/symbol_encode.h"
#include "kernels/interp/warp/tile_encode.h"
#include "tests/emulator/emulated_block.h"
#include "tests/unit_interp/encode_cases.h"

namespace quern::codec::interp::test {
namespace {

using quern::testing::EmulatedBlock;
using quern::testing::EmulatorState;
using quern::testing::LaneEmulator;

/// Every piece of memory has exactly its size; what is worked on is full of noise, and watched.
class EmulatedRun {
 public:
  EmulatedRun(std::uint32_t warps, std::uint32_t slices) : block_{warps}, slices_(slices) {}

  void open(std::uint32_t work_bytes, const Bytes& elements, const Bytes& special) {
    work_.emplace_back(quern::testing::job_memory(work_bytes));
    quern::testing::fill_with_noise(work_.back().get(), work_bytes);
    work_bytes_ = work_bytes;
    elements_ = elements;
    special_ = special;
  }
  kernels::InterpEncodeResult encode(std::span<const std::uint8_t> job) {
    kernels::InterpEncodeResult result;
    std::memset(static_cast<void*>(&result), 0xA5, sizeof result);
    run(job, &result, [&](const kernels::EncodeTask& task) {
      EmulatorState& state = EmulatorState::instance();
      for (std::uint32_t slice = slices_; slice-- > 0;) {
        const auto tiles = noise_of<kernels::InterpTileMemory>();
        state.watch(tiles.get(), sizeof *tiles);
        kernels::encode_interp_tiles<LaneEmulator>(block_, task, slice, slices_, *tiles);
      }
      const auto symbols = noise_of<kernels::InterpSymbolMemory>();
      state.watch(work_.back().get(), work_bytes_);
      kernels::encode_interp_symbols<LaneEmulator>(block_, task, *symbols);
    });
    return result;
  }
  std::vector<std::uint32_t> list(std::uint32_t at, std::uint32_t count) const {
    std::vector<std::uint32_t> numbers(count);
    if (count > 0) std::memcpy(numbers.data(), work_.back().get() + at, count * sizeof(std::uint32_t));
    exceptions += count;
    return numbers;
  }
  kernels::InterpWriteResult write(std::span<const std::uint8_t> job, std::vector<std::uint16_t>& words) {
    kernels::InterpWriteResult result;
    std::memset(static_cast<void*>(&result), 0xA5, sizeof result);
    run(job, &result, [&](const kernels::EncodeTask& task) {
      const auto memory = noise_of<kernels::InterpWriteMemory>();
      EmulatorState::instance().watch(memory.get(), sizeof *memory);
      kernels::write_interp_streams<LaneEmulator>(block_, task, *memory);
    });
    if (!words.empty()) std::memcpy(words.data(), elements_.data(), words.size() * sizeof(std::uint16_t));
    for (const auto& section : result.words) full_sections += section[kernels::kMostStreamLanes - 1] != 0 ? 1 : 0;
    return result;
  }

  mutable std::size_t exceptions = 0;
  std::size_t full_sections = 0;

 private:
  template <class T>
  static std::unique_ptr<T> noise_of() {
    auto memory = std::make_unique<T>();
    std::memset(static_cast<void*>(memory.get()), 0xA5, sizeof *memory);
    return memory;
  }
  template <class F>
  void run(std::span<const std::uint8_t> job, void* result, const F& f) {
    const auto code = quern::testing::job_memory(job.size());
    std::memcpy(code.get(), job.data(), job.size());
    f(kernels::EncodeTask{code.get(), work_.back().get(), elements_.data(),
                          special_.empty() ? nullptr : special_.data(), result});
  }

  EmulatedBlock block_;
  std::uint32_t slices_;
  std::vector<decltype(quern::testing::job_memory(0))> work_;
  std::uint32_t work_bytes_ = 0;
  Bytes elements_;
  Bytes special_;
};

TEST(Interp_EncodeOnLanes, EveryCase_BytesOfTheHost) {
  EncodeCount count;
  std::size_t exceptions = 0;
  std::size_t full_sections = 0;
  std::uint32_t number = 0;
  for (const ChunkCase& c : encode_cases()) {
    SCOPED_TRACE(c.name);
    const CodedChunks coded(c);
    // Many elements take seconds here; the simulator has them.
    if (coded.bytes() > 150000) continue;
    for (std::uint64_t n = 0; n < coded.count(); ++n) {
      EmulatorState::instance().reset(++number);
      EmulatedRun run(1 + number % 4, 1 + number % 3);
      Vector<std::uint8_t> out;
      const Encoded encoded = encode_with(run, coded, n, out);
      ASSERT_EQ(EmulatorState::instance().poison_reads(), 0u);
      ASSERT_EQ(EmulatorState::instance().races(), 0u);
      count.check(encoded, out, coded, n);
      if (HasFatalFailure()) return;
      exceptions += run.exceptions;
      full_sections += run.full_sections;
    }
  }
  EXPECT_GT(count.coded, 30u);
  EXPECT_GT(count.raw, 0u);
  EXPECT_GT(count.left, 0u);
  EXPECT_GT(count.wide, 3u);
  EXPECT_GE(count.masked, 4u);
  EXPECT_GT(exceptions, 20u);
  EXPECT_GT(full_sections, 0u);
}

}  // namespace
}  // namespace quern::codec::interp::test
