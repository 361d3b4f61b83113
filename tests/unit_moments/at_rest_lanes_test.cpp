// Steps over moments at rest as warps take them, on the emulator, against those of the CPU.
#include <gtest/gtest.h>

#include <cstring>

#include "codecs/tensor/replay.h"
#include "kernels/tensor/cpu/at_rest/at_rest.h"
#include "kernels/tensor/warp/at_rest_step.h"
#include "tests/emulator/lane_emulator.h"
#include "tests/unit_moments/float_cases.h"

namespace quern::testing {
namespace {

using namespace kernels;
using Lanes = AtRestOnLanes<LaneEmulator>;

/// A tile in words, as devices have it.
struct Tile {
  std::vector<std::uint32_t> headers = std::vector<std::uint32_t>(kAtRestTileBlocks);
  std::vector<std::uint32_t> slots, beside, room;
  std::vector<float> weights;
  std::vector<std::uint16_t> copy;
};

template <class Gradient>
std::size_t step_on_lanes(const AtRestStep& step, std::uint64_t first_block, const std::vector<Gradient>& gradient,
                          Tile& tile) {
  const auto blocks = static_cast<std::uint32_t>((gradient.size() + kAtRestBlock - 1) / kAtRestBlock);
  const std::vector<std::uint32_t> old = tile.headers;
  std::vector<std::uint32_t> made;
  EmulatorState::instance().watch(tile.slots.data(), 4 * tile.slots.size());
  for (std::uint32_t b = 0; b < blocks; ++b) {
    const std::size_t begin = b * kAtRestBlock;
    std::vector<std::uint32_t> room(kAtRestRawBytes / 4);
    AtRestBlock<Gradient> block;
    block.number = first_block + b;
    block.values = static_cast<unsigned>(std::min(kAtRestBlock, gradient.size() - begin));
    block.header = &tile.headers[b];
    block.slot = tile.slots.data() + b * at_rest_slot_bytes(step.form) / 4;
    block.beside = tile.beside.data() + at_rest_beside_before<LaneEmulator>(old.data(), blocks, b);
    block.room = room.data();
    block.gradient = gradient.data() + begin;
    block.weight = tile.weights.data() + begin;
    block.copy = tile.copy.data() + begin;
    Lanes::step(step, block, old[b]);
    EmulatorState::instance().sync();
    made.insert(made.end(), room.begin(),
                room.begin() +
                    static_cast<std::ptrdiff_t>(at_rest_beside_bytes(unpack_at_rest_header(tile.headers[b]).kind) / 4));
  }
  EXPECT_EQ(at_rest_beside_before<LaneEmulator>(tile.headers.data(), blocks, blocks), made.size());
  tile.room = made;
  return 4 * made.size();
}

std::size_t step_on_cpu(const AtRestStep& step, const AtRestTile& tile, const std::vector<float>& gradient, Tile& on) {
  return at_rest_kernels(IsaLevel::baseline)
      .step_f32(step, tile, gradient.data(), on.weights.data(), on.copy.data(),
                reinterpret_cast<std::uint8_t*>(on.room.data()));
}
std::size_t step_on_cpu(const AtRestStep& step, const AtRestTile& tile, const std::vector<std::uint16_t>& gradient,
                        Tile& on) {
  return at_rest_kernels(IsaLevel::baseline)
      .step_bf16(step, tile, gradient.data(), on.weights.data(), on.copy.data(),
                 reinterpret_cast<std::uint8_t*>(on.room.data()));
}

template <class Gradient>
void expect_as_on_cpu(const AtRestStep& step, const FloatCase& values, const std::vector<Gradient>& gradient) {
  const std::size_t elems = values.first.size();
  Tile lanes;
  lanes.slots.resize(kAtRestTileBlocks * at_rest_slot_bytes(step.form) / 4);
  lanes.beside.resize(kAtRestTileBlocks * kAtRestRawBytes / 4);
  lanes.room.resize(lanes.beside.size());
  lanes.copy.resize(elems);
  std::mt19937 random(23);
  for (std::size_t i = 0; i < elems; ++i) lanes.weights.push_back(std::normal_distribution<float>()(random));
  const auto view = [&](Tile& t) {
    return AtRestTile{elems, 11, t.headers.data(), reinterpret_cast<std::uint8_t*>(t.slots.data()),
                      reinterpret_cast<const std::uint8_t*>(t.beside.data())};
  };
  at_rest_kernels(IsaLevel::baseline)
      .encode({step.form, 5, {}}, view(lanes), values.first.data(), values.second.data(),
              reinterpret_cast<std::uint8_t*>(lanes.beside.data()));
  Tile cpu = lanes;
  const std::size_t bytes = step_on_cpu(step, view(cpu), gradient, cpu);
  ASSERT_EQ(step_on_lanes(step, 11, gradient, lanes), bytes) << values.name;
  EXPECT_EQ(lanes.headers, cpu.headers) << values.name;
  EXPECT_EQ(lanes.slots, cpu.slots) << values.name;
  EXPECT_EQ(lanes.copy, cpu.copy) << values.name;
  EXPECT_EQ(std::memcmp(lanes.room.data(), cpu.room.data(), bytes), 0) << values.name;
  EXPECT_EQ(std::memcmp(lanes.weights.data(), cpu.weights.data(), 4 * elems), 0) << values.name;
}

TEST(Lanes_AtRestStep, EveryFormAndKindOfValues_GivesTheBitsOfTheCpu) {
  constexpr std::size_t kElems = 2 * kAtRestBlock + 77;
  std::mt19937 random(19);
  std::normal_distribution<float> normal;
  std::vector<float> wide(kElems);
  std::vector<std::uint16_t> narrow(kElems);
  for (std::size_t i = 0; i < kElems; ++i) {
    wide[i] = 1e-3f * normal(random);
    narrow[i] = static_cast<std::uint16_t>(float_to_bfloat(wide[i]));
  }
  std::uint64_t seed = 0;
  for (const AtRestForm form : {AtRestForm{8, true}, AtRestForm{8, false}, AtRestForm{4, true}, AtRestForm{4, false}})
    for (const FloatCase& values : float_cases(kElems)) {
      EmulatorState::instance().reset(++seed);
      codec::tensor::AdamSettings settings;
      settings.order = seed % 2 == 0 ? AdamOrder::fused : AdamOrder::separate;
      settings.decay_kind = static_cast<AdamDecay>(seed % 3);
      settings.decay = 0.1;
      settings.clip = 0.7f;
      settings.step = seed % 5 + 1;
      const AtRestStep step{form, seed, make_adam_rule(settings)};
      if (seed % 4 < 2)
        expect_as_on_cpu(step, values, wide);
      else
        expect_as_on_cpu(step, values, narrow);
      EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u) << values.name;
      EXPECT_EQ(EmulatorState::instance().races(), 0u) << values.name;
    }
}

}  // namespace
}  // namespace quern::testing
