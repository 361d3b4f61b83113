// The same bits for any number of threads, and for a box of the domain whose ghosts come from elsewhere.
#include <gtest/gtest.h>

#include "datasets/flow/solver.h"

namespace quern::flow {
namespace {

std::vector<double> run_steps(std::string_view name, int threads, std::uint64_t seed) {
  const Grid grid = Grid::make({11, 14, 17}).value();
  const flow::Setup setup = make_setup(name, grid, seed).value();
  const auto boundary = make_boundary(setup.boundary);
  Solver solver = Solver::make(grid, setup, *boundary, threads).value();
  EXPECT_EQ(solver.threads(), has_threads() ? threads : 1);
  for (int i = 0; i < 25; ++i) EXPECT_TRUE(solver.advance(solver.stable_time_step(0.4)).ok());
  std::vector<double> all;
  std::vector<double> one(grid.elems());
  for (const QuantityInfo& info : quantities()) {
    solver.field(info.quantity, one);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

TEST(Reproducibility, AnyNumberOfThreads_GivesTheSameBits) {
  for (const std::string_view name : setup_names()) {
    const auto one = run_steps(name, 1, 1);
    for (const int threads : {2, 3, 8}) EXPECT_TRUE(run_steps(name, threads, 1) == one) << name << ", " << threads;
  }
}

TEST(Reproducibility, Seed_ChangesKelvinHelmholtzAlone) {
  EXPECT_FALSE(run_steps("kelvin-helmholtz", 1, 1) == run_steps("kelvin-helmholtz", 1, 2));
  EXPECT_TRUE(run_steps("sedov", 1, 1) == run_steps("sedov", 1, 2));
}

/// Keeps every state of a run over the whole domain, as neighbours would send it.
class RecordingBoundary final : public GhostFiller {
 public:
  void fill(const Grid& grid, Components& primitive) override {
    periodic_.fill(grid, primitive);
    states.push_back(primitive);
  }
  std::vector<Components> states;

 private:
  PeriodicBoundary periodic_;
};

/// Stands in for an exchange between ranks: fills the ghosts of a box from the recorded states of the whole.
class ReplayingBoundary final : public GhostFiller {
 public:
  ReplayingBoundary(const Grid& whole, const std::vector<Components>& states) : whole_(whole), states_(states) {}
  void fill(const Grid& grid, Components& primitive) override {
    const Components& from = states_.at(next_++);
    for (std::size_t z = 0; z < grid.padded(0); ++z)
      for (std::size_t y = 0; y < grid.padded(1); ++y)
        for (std::size_t x = 0; x < grid.padded(2); ++x) {
          if (is_inner(grid, 0, z) && is_inner(grid, 1, y) && is_inner(grid, 2, x)) continue;
          const std::size_t to = (z * grid.padded(1) + y) * grid.padded(2) + x;
          const std::size_t row = (z + grid.origin[0]) * whole_.padded(1) + y + grid.origin[1];
          for (std::size_t c = 0; c < kComponents; ++c)
            primitive[c][to] = from[c][row * whole_.padded(2) + x + grid.origin[2]];
        }
  }

 private:
  static bool is_inner(const Grid& grid, std::size_t axis, std::size_t at) {
    return at >= grid.ghosts(axis) && at < grid.ghosts(axis) + grid.cells[axis];
  }
  const Grid& whole_;
  const std::vector<Components>& states_;
  std::size_t next_ = 0;
};

TEST(Reproducibility, BoxOfADomain_ComputesWhatTheWholeDoes) {
  const Grid whole = Grid::make({8, 12, 10}).value();
  const flow::Setup setup = kelvin_helmholtz(whole, 3);
  RecordingBoundary recording;
  Solver reference = Solver::make(whole, setup, recording, 1).value();
  std::vector<double> steps;
  for (int i = 0; i < 10; ++i) {
    steps.push_back(reference.stable_time_step(0.4));
    ASSERT_TRUE(reference.advance(steps.back()).ok());
  }
  std::vector<double> expected(whole.elems());
  reference.field(Quantity::energy, expected);

  const Grid box = whole.part({3, 5, 2}, {4, 6, 7}).value();
  ReplayingBoundary replaying(whole, recording.states);
  Solver solver = Solver::make(box, setup, replaying, 1).value();
  for (const double dt : steps) ASSERT_TRUE(solver.advance(dt).ok());
  std::vector<double> got(box.elems());
  solver.field(Quantity::energy, got);
  for (std::size_t z = 0; z < box.cells[0]; ++z)
    for (std::size_t y = 0; y < box.cells[1]; ++y)
      for (std::size_t x = 0; x < box.cells[2]; ++x)
        ASSERT_EQ(got[box.index(z, y, x)], expected[whole.index(z + 3, y + 5, x + 2)]) << z << " " << y << " " << x;
}

}  // namespace
}  // namespace quern::flow
