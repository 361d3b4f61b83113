// Physics of the flow solver: against exact solutions, conservation, positivity, symmetry.
#include "datasets/flow/solver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "datasets/flow/riemann.h"
#include "tests/unit_flow/exact_riemann.h"

namespace quern::flow {
namespace {

constexpr test::GasState kSodLeft{1.0, 0.0, 1.0};
constexpr test::GasState kSodRight{0.125, 0.0, 0.1};

/// Runs to `end` with steps of a Courant number of 0.4.
void run_to(Solver& solver, double end) {
  while (solver.time() < end) {
    const double left = end - solver.time();
    const double dt = solver.stable_time_step(0.4);
    ASSERT_TRUE(solver.advance(std::min(dt, left)).ok()) << "step " << solver.step();
    if (dt >= left) break;
  }
}

std::vector<double> field_of(const Solver& solver, Quantity quantity) {
  std::vector<double> values(solver.grid().elems());
  solver.field(quantity, values);
  return values;
}

Quantity velocity_along(std::size_t axis) {
  return axis == 0 ? Quantity::velocity_z : (axis == 1 ? Quantity::velocity_y : Quantity::velocity_x);
}

/// Mean absolute errors of density, velocity and pressure at time 0.2 of a shock tube of `n` cells along `axis`.
test::GasState sod_errors(std::size_t n, std::size_t axis) {
  std::array<std::size_t, kAxes> cells{1, 1, 1};
  cells[axis] = n;
  const Grid grid = Grid::make(cells).value();
  const flow::Setup setup{"sod", 1.4, BoundaryKind::outflow, [axis](const std::array<double, kAxes>& at) {
                            const test::GasState& s = at[axis] < 0.0 ? kSodLeft : kSodRight;
                            return Primitive{s.density, {}, s.pressure};
                          }};
  OutflowBoundary boundary;
  Solver solver = Solver::make(grid, setup, boundary, 1).value();
  run_to(solver, 0.2);
  const auto density = field_of(solver, Quantity::density);
  const auto velocity = field_of(solver, velocity_along(axis));
  const auto pressure = field_of(solver, Quantity::pressure);
  test::GasState error{};
  for (std::size_t i = 0; i < n; ++i) {
    const auto exact = test::exact_riemann(kSodLeft, kSodRight, 1.4, grid.centre(axis, i) / solver.time());
    error.density += std::abs(density[i] - exact.density) / static_cast<double>(n);
    error.velocity += std::abs(velocity[i] - exact.velocity) / static_cast<double>(n);
    error.pressure += std::abs(pressure[i] - exact.pressure) / static_cast<double>(n);
  }
  return error;
}

TEST(ExactRiemann, SodProblem_MatchesPublishedStarValues) {
  const auto before_contact = test::exact_riemann(kSodLeft, kSodRight, 1.4, 0.5);
  EXPECT_NEAR(before_contact.pressure, 0.30313, 1e-5);
  EXPECT_NEAR(before_contact.velocity, 0.92745, 1e-5);
  EXPECT_NEAR(before_contact.density, 0.42632, 1e-5);
  EXPECT_NEAR(test::exact_riemann(kSodLeft, kSodRight, 1.4, 1.2).density, 0.26557, 1e-5);
}

TEST(Solver, SodShockTube_ConvergesToExactSolution) {
  const auto coarse = sod_errors(200, 2);
  const auto fine = sod_errors(400, 2);
  EXPECT_LT(fine.density, 2.0e-3);
  EXPECT_LT(fine.velocity, 3.5e-3);
  EXPECT_LT(fine.pressure, 1.5e-3);
  // First order is the best any scheme reaches in this norm at a shock; the contact spreads and costs a little.
  EXPECT_GT(std::log2(coarse.density / fine.density), 0.75);
  EXPECT_GT(std::log2(coarse.velocity / fine.velocity), 0.75);
  EXPECT_GT(std::log2(coarse.pressure / fine.pressure), 0.75);
}

TEST(Solver, SodShockTube_IsTheSameAlongEveryAxis) {
  const auto along_x = sod_errors(100, 2);
  for (const std::size_t axis : {0u, 1u}) {
    const auto other = sod_errors(100, axis);
    EXPECT_NEAR(other.density, along_x.density, 1e-13) << "axis " << axis;
    EXPECT_NEAR(other.velocity, along_x.velocity, 1e-13) << "axis " << axis;
    EXPECT_NEAR(other.pressure, along_x.pressure, 1e-13) << "axis " << axis;
  }
}

/// Mean error of a density wave that has travelled once through a periodic square, across both axes.
double wave_error(std::size_t n) {
  const auto density_at = [](double x, double y) { return 2.0 + std::sin(2.0 * std::numbers::pi * (x + y)); };
  const Grid grid = Grid::make({1, n, n}).value();
  const flow::Setup setup{"wave", 1.4, BoundaryKind::periodic, [&](const std::array<double, kAxes>& at) {
                            return Primitive{density_at(at[2], at[1]), {0.0, 1.0, 1.0}, 1.0};
                          }};
  PeriodicBoundary boundary;
  Solver solver = Solver::make(grid, setup, boundary, 1).value();
  run_to(solver, 1.0);
  const auto density = field_of(solver, Quantity::density);
  double error = 0.0;
  for (std::size_t y = 0; y < n; ++y)
    for (std::size_t x = 0; x < n; ++x)
      error += std::abs(density[grid.index(0, y, x)] - density_at(grid.centre(2, x), grid.centre(1, y)));
  return error / static_cast<double>(grid.elems());
}

TEST(Solver, SmoothWave_ConvergesWithSecondOrder) {
  const double coarse = wave_error(64);
  const double fine = wave_error(128);
  EXPECT_LT(fine, 0.004);
  EXPECT_GT(std::log2(coarse / fine), 1.7);
}

TEST(Solver, PeriodicFlow_ConservesMassMomentumAndEnergy) {
  const Grid grid = Grid::make({12, 16, 20}).value();
  PeriodicBoundary boundary;
  Solver solver = Solver::make(grid, kelvin_helmholtz(grid, 1), boundary, 2).value();
  const auto before = solver.totals();
  const auto start = field_of(solver, Quantity::density);
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(solver.advance(solver.stable_time_step(0.4)).ok());
  const auto after = solver.totals();
  for (std::size_t c = 0; c < kComponents; ++c)
    EXPECT_NEAR(after[c], before[c], 1e-13 * static_cast<double>(grid.elems())) << "component " << c;
  EXPECT_NE(field_of(solver, Quantity::density), start);
}

TEST(Solver, UniformFlow_StaysUniformToTheLastBit) {
  const Grid grid = Grid::make({6, 7, 8}).value();
  const flow::Setup setup{"uniform", 1.4, BoundaryKind::outflow, [](const auto&) {
                            return Primitive{1.25, {0.5, -0.25, 0.75}, 2.0};
                          }};
  OutflowBoundary boundary;
  Solver solver = Solver::make(grid, setup, boundary, 1).value();
  const auto before = solver.totals();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(solver.advance(solver.stable_time_step(0.4)).ok());
  EXPECT_EQ(solver.totals(), before);
}

TEST(Solver, SedovBlast_StaysPositiveAndSymmetric) {
  const std::size_t n = 24;
  const Grid grid = Grid::make({n, n, n}).value();
  OutflowBoundary boundary;
  Solver solver = Solver::make(grid, sedov(grid), boundary, 2).value();
  run_to(solver, 0.06);
  const auto density = field_of(solver, Quantity::density);
  const auto pressure = field_of(solver, Quantity::pressure);
  const auto velocity = field_of(solver, Quantity::velocity_x);
  EXPECT_GT(*std::min_element(density.begin(), density.end()), 0.0);
  EXPECT_GT(*std::min_element(pressure.begin(), pressure.end()), 0.0);
  const double peak = *std::max_element(density.begin(), density.end());
  EXPECT_GT(peak, 1.5);
  EXPECT_LT(peak, 6.0) << "above the strong-shock limit (gamma + 1) / (gamma - 1)";
  double worst = 0.0;
  for (std::size_t z = 0; z < n; ++z)
    for (std::size_t y = 0; y < n; ++y)
      for (std::size_t x = 0; x < n; ++x) {
        const double here = density[grid.index(z, y, x)];
        const std::size_t mirror = grid.index(z, y, n - 1 - x);
        worst = std::max({worst, std::abs(here - density[mirror]), std::abs(here - density[grid.index(x, y, z)]),
                          std::abs(here - density[grid.index(y, z, x)]),
                          std::abs(velocity[grid.index(z, y, x)] + velocity[mirror])});
      }
  EXPECT_LT(worst, 1e-9);
}

TEST(Solver, SedovBlast_ShockFollowsTheSelfSimilarRadius) {
  const std::size_t n = 40;
  const Grid grid = Grid::make({n, n, n}).value();
  OutflowBoundary boundary;
  Solver solver = Solver::make(grid, sedov(grid), boundary, 2).value();
  run_to(solver, 0.05);
  const auto density = field_of(solver, Quantity::density);
  std::size_t front = n / 2;
  for (std::size_t x = n / 2; x < n; ++x)
    if (density[grid.index(n / 2, n / 2, x)] > density[grid.index(n / 2, n / 2, front)]) front = x;
  // The radius grows with time^(2/5) and the energy of the set-up puts it at 1 at time 1.
  EXPECT_NEAR(grid.centre(2, front), std::pow(0.05, 0.4), 2.5 * grid.spacing);
}

TEST(Solver, TooLongAStep_IsRefusedAndLeavesTheState) {
  const Grid grid = Grid::make({8, 8, 8}).value();
  OutflowBoundary boundary;
  Solver solver = Solver::make(grid, sedov(grid), boundary, 1).value();
  const auto density = field_of(solver, Quantity::density);
  const auto energy = field_of(solver, Quantity::energy);
  EXPECT_EQ(solver.advance(1.0).code(), StatusCode::invalid_argument);
  EXPECT_EQ(solver.step(), 0u);
  EXPECT_EQ(solver.time(), 0.0);
  EXPECT_EQ(field_of(solver, Quantity::density), density);
  EXPECT_EQ(field_of(solver, Quantity::energy), energy);
  EXPECT_TRUE(solver.advance(solver.stable_time_step(0.4)).ok());
}

TEST(Solver, SetupWithoutPressure_IsRefused) {
  const Grid grid = Grid::make({2, 2, 2}).value();
  const flow::Setup setup{"vacuum", 1.4, BoundaryKind::periodic, [](const auto&) { return Primitive{1.0, {}, 0.0}; }};
  PeriodicBoundary boundary;
  EXPECT_EQ(Solver::make(grid, setup, boundary, 1).status().code(), StatusCode::invalid_argument);
}

TEST(HllcFlux, EqualStates_GiveTheirOwnFlux) {
  const FaceState s{1.5, 0.5, -0.25, 2.0, 3.0};
  const FaceFlux f = hllc_flux(s, s, 1.4);
  EXPECT_NEAR(f.mass, 0.75, 1e-14);
  EXPECT_NEAR(f.normal, 0.375 + 3.0, 1e-14);
  EXPECT_NEAR(f.tangent1, 0.75 * -0.25, 1e-14);
  EXPECT_NEAR(f.tangent2, 1.5, 1e-14);
  EXPECT_NEAR(f.energy, (total_energy(s, 1.4) + 3.0) * 0.5, 1e-13);
}

TEST(HllcFlux, ContactAtRest_LetsNothingThrough) {
  const FaceFlux f = hllc_flux({1.0, 0.0, 0.5, 0.0, 1.0}, {4.0, 0.0, -0.5, 0.0, 1.0}, 1.4);
  EXPECT_NEAR(f.mass, 0.0, 1e-15);
  EXPECT_NEAR(f.normal, 1.0, 1e-15);
  EXPECT_NEAR(f.tangent1, 0.0, 1e-15);
  EXPECT_NEAR(f.energy, 0.0, 1e-15);
}

TEST(HllcFlux, MirroredStates_GiveTheMirroredFlux) {
  const FaceState l{1.0, 0.75, 0.5, 0.1, 1.0}, r{0.125, -0.3, 0.2, 0.0, 0.1};
  const auto mirror = [](const FaceState& s) {
    return FaceState{s.density, -s.normal, s.tangent1, s.tangent2, s.pressure};
  };
  const FaceFlux f = hllc_flux(l, r, 1.4), g = hllc_flux(mirror(r), mirror(l), 1.4);
  EXPECT_DOUBLE_EQ(f.mass, -g.mass);
  EXPECT_DOUBLE_EQ(f.normal, g.normal);
  EXPECT_DOUBLE_EQ(f.tangent1, -g.tangent1);
  EXPECT_DOUBLE_EQ(f.energy, -g.energy);
}

TEST(Grid, BadExtents_AreRefused) {
  EXPECT_EQ(Grid::make({0, 4, 4}).status().code(), StatusCode::invalid_shape);
  const std::size_t huge = std::size_t{1} << 40;
  EXPECT_EQ(Grid::make({huge, huge, 4}).status().code(), StatusCode::invalid_shape);
  EXPECT_EQ(Grid::make({std::size_t{0} - 1, 1, 1}).status().code(), StatusCode::invalid_shape);
  const Grid grid = Grid::make({4, 5, 6}).value();
  EXPECT_EQ(grid.part({2, 0, 0}, {3, 5, 6}).status().code(), StatusCode::invalid_shape);
  EXPECT_TRUE(grid.part({2, 0, 0}, {2, 5, 6}).ok());
}

}  // namespace
}  // namespace quern::flow
