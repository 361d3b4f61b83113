// Prediction and bit planes over two execution models: exact inverses, and alike lane for lane.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "kernels/common/cpu/cpu_lanes.h"
#include "kernels/lorenzo/bitplanes.h"
#include "kernels/lorenzo/predict.h"
#include "tests/emulator/lane_emulator.h"

namespace quern::kernels {
namespace {

using quern::testing::EmulatorState;
using quern::testing::LaneEmulator;
struct IsaOfTest;
using Cpu = CpuLanes<IsaOfTest>;

constexpr std::uint64_t kSeed = 20240611;
constexpr TileShape kShapes[] = {TileShape::line, TileShape::plane, TileShape::block};

/// A tile's words by row and lane.
template <class W>
using Tile = std::vector<W>;

enum class Words { random, extreme, ramp, small };

template <class W>
Tile<W> make_tile(Words kind, std::mt19937_64& random) {
  const W extremes[] = {W{0}, W{1}, static_cast<W>(~W{0}), static_cast<W>(~W{0} >> 1),
                        static_cast<W>((~W{0} >> 1) + 1)};
  Tile<W> tile(kTileElems);
  for (std::size_t i = 0; i < kTileElems; ++i) {
    switch (kind) {
      case Words::random: tile[i] = static_cast<W>(random()); break;
      case Words::extreme: tile[i] = extremes[random() % 5]; break;
      case Words::ramp: tile[i] = static_cast<W>(3 * (i % kLanes) + 100 * (i / kLanes)); break;
      case Words::small: tile[i] = static_cast<W>(random() % 7 - 3); break;
    }
  }
  return tile;
}

/// Rows of an execution model, filled and read element by element.
template <class X, class W>
struct Rows {
  std::unique_ptr<typename X::template vec<W>[]> rows { new typename X::template vec<W>[ kRows ] };

  static Rows from(const Tile<W>& tile) {
    Rows out;
    for (std::size_t i = 0; i < kTileElems; ++i) X::set(out.rows[i / kLanes], i % kLanes, tile[i]);
    return out;
  }
  Tile<W> tile() const {
    Tile<W> out(kTileElems);
    for (std::size_t i = 0; i < kTileElems; ++i) out[i] = X::get(rows[i / kLanes], i % kLanes);
    return out;
  }
};

template <class X, class W>
Tile<W> run_predict(TileShape shape, Predictor p, const Tile<W>& codes) {
  const auto q = Rows<X, W>::from(codes);
  Rows<X, W> z;
  switch (shape) {
    case TileShape::line: predict<X, W, TileShape::line>(p, q.rows.get(), codes[0], z.rows.get()); break;
    case TileShape::plane: predict<X, W, TileShape::plane>(p, q.rows.get(), codes[0], z.rows.get()); break;
    case TileShape::block: predict<X, W, TileShape::block>(p, q.rows.get(), codes[0], z.rows.get()); break;
  }
  return z.tile();
}

template <class X, class W>
Tile<W> run_reconstruct(TileShape shape, Predictor p, const Tile<W>& residuals, W seed) {
  const auto z = Rows<X, W>::from(residuals);
  Rows<X, W> q;
  switch (shape) {
    case TileShape::line: reconstruct<X, W, TileShape::line>(p, z.rows.get(), seed, q.rows.get()); break;
    case TileShape::plane: reconstruct<X, W, TileShape::plane>(p, z.rows.get(), seed, q.rows.get()); break;
    case TileShape::block: reconstruct<X, W, TileShape::block>(p, z.rows.get(), seed, q.rows.get()); break;
  }
  return q.tile();
}

template <class W>
void check_prediction() {
  std::mt19937_64 random(kSeed);
  EmulatorState::instance().reset(kSeed);
  for (const TileShape shape : kShapes) {
    for (unsigned p = 0; p < kPredictors; ++p) {
      const auto predictor = static_cast<Predictor>(p);
      if (!predictor_fits(predictor, shape)) continue;
      for (const Words kind : {Words::random, Words::extreme, Words::ramp, Words::small}) {
        SCOPED_TRACE(::testing::Message() << "seed " << kSeed << " shape " << static_cast<int>(shape) << " predictor "
                                          << p << " words " << static_cast<int>(kind));
        const Tile<W> codes = make_tile<W>(kind, random);
        const Tile<W> residuals = run_predict<Cpu, W>(shape, predictor, codes);
        ASSERT_EQ(residuals[0], W{0});
        ASSERT_EQ((run_reconstruct<Cpu, W>(shape, predictor, residuals, codes[0])), codes);
        ASSERT_EQ((run_predict<LaneEmulator, W>(shape, predictor, codes)), residuals);
        ASSERT_EQ((run_reconstruct<LaneEmulator, W>(shape, predictor, residuals, codes[0])), codes);
        // A decoder meets residuals that no encoder wrote.
        const Tile<W> hostile = make_tile<W>(kind, random);
        ASSERT_EQ((run_reconstruct<LaneEmulator, W>(shape, predictor, hostile, codes[0])),
                  (run_reconstruct<Cpu, W>(shape, predictor, hostile, codes[0])));
      }
    }
  }
  EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u);
}

TEST(Predict, Words32_EveryPredictorAndShape_InverseAndModelsAgree) { check_prediction<std::uint32_t>(); }
TEST(Predict, Words64_EveryPredictorAndShape_InverseAndModelsAgree) { check_prediction<std::uint64_t>(); }

TEST(Predict, LinearFields_MatchingPredictor_LeavesNoResiduals) {
  // A product of ramps that each predictor removes entirely, but for the rows and lanes at the tile's rim.
  Tile<std::uint32_t> codes(kTileElems);
  for (std::size_t i = 0; i < kTileElems; ++i) codes[i] = static_cast<std::uint32_t>(5 * (i % 32) + 9 * (i / 32));
  const auto z = run_predict<Cpu, std::uint32_t>(TileShape::plane, Predictor::xy, codes);
  for (std::size_t r = 1; r < kRows; ++r)
    for (std::size_t l = 1; l < kLanes; ++l) ASSERT_EQ(z[r * kLanes + l], 0u) << r << ' ' << l;
}

TEST(Emulator, ReadOfAnUnwrittenLane_IsCounted) {
  EmulatorState::instance().reset(kSeed);
  LaneEmulator::vec<std::uint32_t> a;
  LaneEmulator::set(a, 3, 7u);
  EXPECT_EQ(LaneEmulator::get(a, 3), 7u);
  EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u);
  (void)LaneEmulator::get(a, 4);
  EXPECT_EQ(EmulatorState::instance().poison_reads(), 1u);
}

TEST(Emulator, LanesMeetingInMemoryWithoutSync_AreCounted) {
  using X = LaneEmulator;
  EmulatorState& state = EmulatorState::instance();
  std::uint32_t cells[kLanes] = {};
  const auto races_of = [&](auto f) {
    state.reset(kSeed);
    state.watch(cells, sizeof cells);
    f();
    return state.races();
  };
  EXPECT_EQ(races_of([&] {
              X::store(&cells[1], 1, 7u);
              X::sync();
              EXPECT_EQ(X::load(&cells[1], 2), 7u);
              EXPECT_EQ(X::load_same(&cells[1]), 7u);
              X::sync();
              X::store(&cells[1], 3, 8u);
              EXPECT_EQ(X::load(&cells[1], 3), 8u);
            }),
            0u);
  EXPECT_GT(races_of([&] {
              X::store(&cells[1], 1, 7u);
              (void)X::load(&cells[1], 2);
            }),
            0u);
  EXPECT_GT(races_of([&] {
              (void)X::load(&cells[1], 1);
              (void)X::load(&cells[1], 2);
              X::store(&cells[1], 2, 7u);
            }),
            0u);
  EXPECT_GT(races_of([&] {
              (void)X::load_same(&cells[1]);
              X::store(&cells[1], 2, 7u);
            }),
            0u);
  EXPECT_GT(races_of([&] {
              X::store(&cells[1], 1, 7u);
              X::store(&cells[1], 2, 7u);
            }),
            0u);
}

TEST(Emulator, CollectiveOperations_MatchPlainLoops) {
  std::mt19937_64 random(kSeed);
  EmulatorState::instance().reset(kSeed);
  using X = LaneEmulator;
  for (int round = 0; round < 50; ++round) {
    std::uint32_t values[kLanes];
    X::vec<std::uint32_t> a, next;
    X::vec<bool> odd;
    for (std::size_t l = 0; l < kLanes; ++l) {
      values[l] = static_cast<std::uint32_t>(random());
      X::set(a, l, values[l]);
      X::set(odd, l, (values[l] & 1) != 0);
    }
    std::uint32_t sum = 0, all = 0, mask = 0;
    X::vec<std::uint32_t> scanned = a;
    X::exclusive_scan(scanned);
    X::shift_down(next, a);
    for (std::size_t l = 0; l < kLanes; ++l) {
      ASSERT_EQ(X::get(scanned, l), sum) << "seed " << kSeed;
      ASSERT_EQ(X::get(next, l), values[l + 1 < kLanes ? l + 1 : l]);
      sum += values[l];
      all |= values[l];
      mask |= (values[l] & 1) << l;
    }
    ASSERT_EQ(X::reduce_add(a), sum);
    ASSERT_EQ(X::reduce_or(a), all);
    ASSERT_EQ(X::ballot(odd), mask);
    ASSERT_EQ(X::any(odd), mask != 0);
    ASSERT_EQ(X::broadcast(a, 17), values[17]);
  }
  EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u);
}

/// Plane words bit by bit.
template <class W>
std::vector<std::uint32_t> naive_planes(const Tile<W>& tile, unsigned byte) {
  std::vector<std::uint32_t> planes(8 * kLanes, 0u);
  for (std::size_t p = 0; p < 8; ++p)
    for (std::size_t l = 0; l < kLanes; ++l)
      for (std::size_t r = 0; r < kRows; ++r)
        planes[p * kLanes + l] |= static_cast<std::uint32_t>(tile[r * kLanes + l] >> (8 * byte + p) & 1) << r;
  return planes;
}

template <class X, class W>
void check_planes() {
  std::mt19937_64 random(kSeed);
  EmulatorState::instance().reset(kSeed);
  for (const Words kind : {Words::random, Words::extreme, Words::small}) {
    const Tile<W> tile = make_tile<W>(kind, random);
    const auto z = Rows<X, W>::from(tile);
    Rows<X, W> back;
    for (unsigned b = 0; b < sizeof(W); ++b) {
      typename X::template vec<std::uint32_t> planes[8];
      byte_to_planes<X, W>(z.rows.get(), b, planes);
      const auto expected = naive_planes(tile, b);
      for (std::size_t i = 0; i < 8 * kLanes; ++i)
        ASSERT_EQ(X::get(planes[i / kLanes], i % kLanes), expected[i]) << "seed " << kSeed << " byte " << b;
      planes_to_byte<X, W>(planes, b, b == 0, back.rows.get());
    }
    ASSERT_EQ(back.tile(), tile);
  }
  EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u);
}

TEST(BitPlanes, Cpu32_MatchBitLoopAndInvert) { check_planes<Cpu, std::uint32_t>(); }
TEST(BitPlanes, Cpu64_MatchBitLoopAndInvert) { check_planes<Cpu, std::uint64_t>(); }
TEST(BitPlanes, Emulator32_MatchBitLoopAndInvert) { check_planes<LaneEmulator, std::uint32_t>(); }
TEST(BitPlanes, Emulator64_MatchBitLoopAndInvert) { check_planes<LaneEmulator, std::uint64_t>(); }

}  // namespace
}  // namespace quern::kernels
