// Chunks on the lanes of the emulator: values and results are those of the host's decoder, whatever the bytes.
#include <random>

#include "kernels/interp/warp/code_decode.h"
#include "kernels/interp/warp/tile_decode.h"
#include "tests/emulator/emulated_block.h"
#include "tests/unit_interp/chunk_cases.h"

namespace quern::codec::interp::test {
namespace {

using quern::testing::EmulatedBlock;
using quern::testing::EmulatorState;
using quern::testing::LaneEmulator;

kernels::InterpJob head_of(const Vector<std::uint8_t>& job) {
  kernels::InterpJob head;
  std::memcpy(&head, job.data(), sizeof head);
  return head;
}

/// Whether a section has as many lanes as full chunks have.
bool has_full_section(const Vector<std::uint8_t>& job) {
  const kernels::InterpJob head = head_of(job);
  for (std::uint32_t s = 0; s < (head.starts - head.sections) / sizeof(kernels::InterpSection); ++s) {
    kernels::InterpSection section;
    std::memcpy(&section, job.data() + head.sections + s * sizeof section, sizeof section);
    if (section.lanes.mask == kernels::kMostStreamLanes - 1) return true;
  }
  return false;
}

/// Decodes a job to `out` with memory of exactly its size and full of noise, its tiles by so many slices; whether the
/// lanes ended where they should.
bool decode_on_lanes(const Vector<std::uint8_t>& bytes, void* out, std::uint32_t warps, std::uint32_t slices) {
  const kernels::InterpJob head = head_of(bytes);
  EXPECT_EQ(head.bytes, bytes.size());
  const auto code = quern::testing::job_memory(head.bytes);
  std::memcpy(code.get(), bytes.data(), head.bytes);
  const auto work = quern::testing::job_memory(head.work_bytes);
  quern::testing::fill_with_noise(work.get(), head.work_bytes);
  EmulatorState& state = EmulatorState::instance();
  state.watch(work.get(), head.work_bytes);
  const EmulatedBlock block{warps};
  const kernels::JobTask task{code.get(), work.get(), out, nullptr};
  const auto memory = std::make_unique<kernels::InterpCodeMemory>();
  std::memset(static_cast<void*>(memory.get()), 0xA5, sizeof *memory);
  if (!kernels::decode_interp_codes<LaneEmulator>(block, task, *memory)) return false;
  for (std::uint32_t slice = slices; slice-- > 0;) {
    const auto tiles = std::make_unique<kernels::InterpTileMemory>();
    std::memset(static_cast<void*>(tiles.get()), 0xA5, sizeof *tiles);
    state.watch(tiles.get(), sizeof *tiles);
    kernels::decode_interp_tiles<LaneEmulator>(block, task, slice, slices, *tiles);
  }
  return true;
}

TEST(Interp_OnLanes, EveryCase_ValuesOfTheHost) {
  EmulatorState& state = EmulatorState::instance();
  std::uint32_t number = 0;
  std::size_t exceptions = 0;
  std::size_t wide = 0;
  std::size_t full_sections = 0;
  std::size_t jobs = 0;
  for (const ChunkCase& c : chunk_cases()) {
    SCOPED_TRACE(c.name);
    const CodedChunks coded(c);
    // Many elements take seconds here; the simulator has them.
    if (coded.bytes() > 300000) continue;
    Vector<std::uint8_t> expected(coded.bytes(), 0xA5);
    Vector<std::uint8_t> back(coded.bytes(), 0x5A);
    for (std::uint64_t n = 0; n < coded.count(); ++n) {
      ASSERT_TRUE(coded.decode_on_host(coded.stored[n], coded.box(n, expected.data())).ok());
      const MutableBox3 box = coded.box(n, back.data());
      Vector<std::uint8_t> job;
      if (!coded.append_job(coded.stored[n], box, job)) {
        ASSERT_LT(coded.stored[n][0], 2) << "a coded chunk has no job";
        ASSERT_TRUE(coded.decode_on_host(coded.stored[n], box).ok());
        continue;
      }
      ++jobs;
      exceptions += head_of(job).exception_count > 0 ? 1 : 0;
      wide += head_of(job).wide ? 1 : 0;
      full_sections += has_full_section(job) ? 1 : 0;
      state.reset(++number);
      ASSERT_TRUE(decode_on_lanes(job, box.data, 2 + number % 3, 1 + number % 4));
      ASSERT_EQ(state.poison_reads(), 0u);
      ASSERT_EQ(state.races(), 0u);
    }
    ASSERT_EQ(back, expected);
  }
  EXPECT_GT(jobs, 25u);
  EXPECT_GT(exceptions, 1u);
  EXPECT_GT(wide, 2u);
  EXPECT_GT(full_sections, 0u);
}

TEST(Interp_OnLanes, TilesOfTooManyPoints_AreTheHosts) {
  const CodedChunks coded({"", DType::f32, {5, 6, 700}, 1e-3, "3d:1,2:1,1,10"});
  Vector<std::uint8_t> back(coded.bytes());
  Vector<std::uint8_t> job;
  EXPECT_FALSE(coded.append_job(coded.stored[0], coded.box(0, back.data()), job));
  EXPECT_TRUE(job.empty());
}

TEST(Interp_OnLanes, AlteredBytes_ResultsOfTheHost) {
  std::mt19937 random(7);
  std::size_t refused = 0;
  std::size_t decoded = 0;
  for (const ChunkCase& c : chunk_cases()) {
    const CodedChunks coded(c);
    if (coded.bytes() > 20000 || coded.stored[0][0] < 2) continue;
    SCOPED_TRACE(c.name);
    for (int round = 0; round < 12; ++round) {
      Vector<std::uint8_t> altered = coded.stored[0];
      const std::size_t span = round % 2 == 0 ? altered.size() : std::min<std::size_t>(altered.size(), 90);
      altered[random() % span] ^= static_cast<std::uint8_t>(1 + random() % 255);
      if (round % 5 == 4) altered.resize(random() % altered.size());
      altered.shrink_to_fit();
      Vector<std::uint8_t> expected(coded.bytes(), 0x11);
      Vector<std::uint8_t> back(coded.bytes(), 0x11);
      const bool good = coded.decode_on_host(altered, coded.box(0, expected.data())).ok();
      Vector<std::uint8_t> job;
      if (!coded.append_job(altered, coded.box(0, back.data()), job)) continue;
      EmulatorState::instance().reset(random());
      const bool ended = decode_on_lanes(job, coded.box(0, back.data()).data, 3, 2);
      ASSERT_EQ(ended, good);
      if (!good) {
        ++refused;
        continue;
      }
      ++decoded;
      ASSERT_EQ(back, expected);
    }
  }
  EXPECT_GT(refused, 20u);
  EXPECT_GT(decoded, 5u);
}

}  // namespace
}  // namespace quern::codec::interp::test
