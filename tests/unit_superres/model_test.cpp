// Files of models for levels: what is written comes back, and what no trainer writes is refused.
#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "codecs/stencil/networks/input_taps.h"
#include "codecs/stencil/networks/level_networks.h"
#include "codecs/stencil/networks/point_rules.h"
#include "models/model_reference.h"
#include "tests/unit_models/level_models.h"

namespace quern::models {
namespace {

using test::larger_model;
using test::larger_of_two;
using test::random_level_model;

StatusCode read_back(const LevelModel& model) { return read_level_model(write_level_model(model)).status().code(); }

TEST(LevelModel, File_ComesBackAndKeepsItsIdWithoutTheRecord) {
  for (const LevelModel& model : {larger_model(), random_level_model(2, 1), random_level_model(3, 2)}) {
    const auto back = read_level_model(write_level_model(model));
    ASSERT_TRUE(back.ok()) << back.status().text();
    EXPECT_EQ(write_level_model(*back), write_level_model(model));
    EXPECT_EQ(back->record, model.record);
    const auto known = read_known_model(write_level_model(model));
    ASSERT_TRUE(known.ok());
    EXPECT_EQ(known->id, model_id(model));
    EXPECT_EQ(known->id, model_id(without_record(model)));
    EXPECT_EQ(known->decoding, write_level_model(without_record(model)));
  }
}

TEST(LevelModel, EveryBitAndEveryCut_IsNoticed) {
  const Vector<std::uint8_t> file = write_level_model(larger_model());
  for (std::size_t i = 0; i < file.size(); ++i) {
    Vector<std::uint8_t> damaged = file;
    damaged[i] ^= 4;
    EXPECT_FALSE(read_level_model(damaged).ok()) << i;
    EXPECT_FALSE(read_level_model(std::span(file).first(i)).ok()) << i;
  }
}

TEST(LevelModel, NetworksThatNobodyTrains_AreRefused) {
  const auto with = [](const std::function<void(LevelModel&)>& change) {
    LevelModel model = larger_model();
    change(model);
    return read_back(model);
  };
  EXPECT_EQ(with([](LevelModel&) {}), StatusCode::ok);
  EXPECT_EQ(with([](LevelModel& m) { m.classes = {}; }), StatusCode::corrupt);
  EXPECT_EQ(with([](LevelModel& m) { m.classes[1]->layers[0].width = {1, 3, 1}; }), StatusCode::corrupt);
  EXPECT_EQ(with([](LevelModel& m) { m.classes[1]->layers[0].kind = kernels::LayerKind::dense; }), StatusCode::corrupt);
  EXPECT_EQ(with([](LevelModel& m) { m.classes[1]->layers.pop_back(); }), StatusCode::corrupt);  // two outputs
  EXPECT_EQ(with([](LevelModel& m) { m.classes[1]->in.extents = {1, 1, 2}; }), StatusCode::corrupt);
  EXPECT_EQ(with([](LevelModel& m) { m.classes[1]->layers[0].bias[0] = INT32_MAX; }), StatusCode::corrupt);
  const auto wide = [](std::uint32_t channels) {
    return [channels](LevelModel& m) {
      kernels::NetworkLayer& first = m.classes[1]->layers[0];
      first.out.channels = channels;
      first.weights.assign(3 * channels, 1);
      first.bias.assign(channels, 0);
      first.multipliers.assign(channels, 1);
      m.classes[1]->layers[1].weights.assign(channels, 1);
    };
  };
  EXPECT_EQ(with(wide(500)), StatusCode::ok);
  EXPECT_EQ(with(wide(510)), StatusCode::corrupt);
}

TEST(LevelModel, NetworkThatWantsMorePointsThanAreKnown_IsRefused) {
  const kernels::NetworkKernels& kernels = kernels::network_kernels(kernels::best_isa());
  LevelModel model = larger_model();
  EXPECT_TRUE(codec::stencil::LevelNetworks::make(model, kernels).ok());
  const auto with_taps = [&](std::size_t parity_class, std::uint32_t taps) {
    LevelModel other = model;
    kernels::Network network;
    network.in.channels = taps + 1;
    network.layers = {test::point_layer(1)};
    network.layers[0].weights.assign(taps + 1, 1);
    network.layers[0].bias = {0};
    network.layers[0].multipliers = {1};
    kernels::check_network(network);
    other.classes[parity_class] = network;
    return codec::stencil::LevelNetworks::make(other, kernels).status().code();
  };
  const auto known = static_cast<std::uint32_t>(codec::stencil::network_taps(2, 2).size());
  EXPECT_EQ(with_taps(2, known), StatusCode::ok);
  EXPECT_EQ(with_taps(2, known + 1), StatusCode::corrupt);
  EXPECT_EQ(with_taps(3, 3), StatusCode::corrupt);  // fewer than lie at a distance of 1
}

TEST(NetworkTaps, AreKnownPointsByDistance_NearestFirst) {
  using codec::stencil::Offset;
  for (const std::size_t rank : {2, 3})
    for (std::size_t c = 1; c < std::size_t{1} << rank; ++c) {
      const Vector<Offset> taps = codec::stencil::network_taps(rank, c);
      const std::size_t nearest = 2 * static_cast<std::size_t>(std::popcount(c));
      ASSERT_GE(taps.size(), nearest + 8);
      const auto square = [](const Offset& o) { return o[0] * o[0] + o[1] * o[1] + o[2] * o[2] + o[3] * o[3]; };
      for (std::size_t t = 0; t < taps.size(); ++t) {
        EXPECT_EQ(square(taps[t]) == 1, t < nearest) << c << " " << t;
        if (t > 0) {
          EXPECT_LE(square(taps[t - 1]), square(taps[t]));
        }
        std::size_t odd = 0;
        for (std::size_t a = 0; a < rank; ++a) odd = odd << 1 | (static_cast<unsigned>(taps[t][a]) & 1);
        EXPECT_TRUE(codec::stencil::class_before(c ^ odd, c));
      }
    }
}

TEST(NetworkNumbers, StayInRangeAtTheirEnds) {
  using namespace codec::stencil;
  EXPECT_EQ(network_base(-7, 2), -4);
  EXPECT_EQ(network_base(7, 6), 1);
  EXPECT_EQ(network_base(-1, 6), -1);
  EXPECT_EQ(network_base(-6, 6), -1);
  constexpr std::uint64_t kMostSum = 64 * 2 * static_cast<std::uint64_t>(kMostNetworkValue);
  const unsigned scale = network_scale(kMostSum, 64);
  EXPECT_LE(scale, 46U);
  EXPECT_EQ(network_input(2 * kMostNetworkValue, 0), 32767);
  EXPECT_EQ(network_input(-2 * kMostNetworkValue, 0), -32767);
  EXPECT_LT(network_value(0, 32767, scale), std::int64_t{1} << 53);
  EXPECT_EQ(network_value(5, 0, 30), 5);
  EXPECT_EQ(network_value(0, -16384, 1), -1);
  EXPECT_GE(network_scale_input(0, 10), -32767);
}

}  // namespace
}  // namespace quern::models
