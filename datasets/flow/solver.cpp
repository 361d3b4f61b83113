// The solver's loops. Every cell is written by one thread and its terms are added in one order (x, y, then z), which is
// what makes the result independent of the number of threads.
#include "datasets/flow/solver.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <new>
#include <thread>

#include "datasets/flow/reconstruction.h"
#include "datasets/flow/riemann.h"

#ifdef _OPENMP
#include <omp.h>
#endif

// The loop over faces is compiled for several vector widths and chosen when the program starts. Every operation is
// rounded on its own (no contraction), so all of them give the same bits. Thread and address sanitizers do not get
// along with it.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define QUERN_FLOW_VECTOR_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define QUERN_FLOW_VECTOR_CLONES
#endif

namespace quern::flow {
namespace {

constexpr std::array<QuantityInfo, 6> kQuantities{{
    {Quantity::density, "density", "mass per volume"},
    {Quantity::velocity_x, "velocity_x", "velocity along x, the fastest axis"},
    {Quantity::velocity_y, "velocity_y", "velocity along y"},
    {Quantity::velocity_z, "velocity_z", "velocity along z, the slowest axis"},
    {Quantity::pressure, "pressure", "gas pressure"},
    {Quantity::energy, "energy", "internal and kinetic energy per volume"},
}};

int thread_index() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

int usable_threads(int asked) {
  if (!has_threads()) return 1;
  if (asked > 0) return asked;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Component that holds the velocity normal to a face of `axis`, and the two tangential ones.
std::array<std::size_t, 3> face_frame(std::size_t axis) {
  return {kFirstVector + axis, kFirstVector + (axis + 1) % kAxes, kFirstVector + (axis + 2) % kAxes};
}

}  // namespace

std::span<const QuantityInfo> quantities() { return kQuantities; }

bool has_threads() {
#ifdef _OPENMP
  return true;
#else
  return false;
#endif
}

Solver::Solver(const Grid& grid, double gamma, GhostFiller& boundary, int threads)
    : grid_(grid), gamma_(gamma), boundary_(&boundary), threads_(usable_threads(threads)) {}

Result<Solver> Solver::make(const Grid& grid, const Setup& setup, GhostFiller& boundary, int threads) {
  try {
    Solver solver(grid, setup.gamma, boundary, threads);
    for (std::size_t c = 0; c < kComponents; ++c) {
      solver.primitive_[c].assign(grid.padded_elems(), 1.0);
      solver.conserved_[c].resize(grid.elems());
      solver.previous_[c].resize(grid.elems());
      solver.rate_[c].resize(grid.elems());
    }
    // Two rows of faces for each thread.
    solver.scratch_of_thread_ = 2 * kComponents * (grid.cells[2] + 1);
    solver.scratch_.resize(solver.scratch_of_thread_ * static_cast<std::size_t>(solver.threads_));
    QUERN_RETURN_IF_ERROR(solver.set_initial(setup));
    return solver;
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "not enough memory for a grid of {0} cells (160 bytes each)",
                  static_cast<std::int64_t>(grid.elems()));
  }
}

Status Solver::set_initial(const Setup& setup) {
  for (std::size_t z = 0; z < grid_.cells[0]; ++z)
    for (std::size_t y = 0; y < grid_.cells[1]; ++y)
      for (std::size_t x = 0; x < grid_.cells[2]; ++x) {
        const Primitive p = setup.initial({grid_.centre(0, z), grid_.centre(1, y), grid_.centre(2, x)});
        const std::size_t i = grid_.index(z, y, x);
        conserved_[kDensity][i] = p.density;
        double speed2 = 0.0;
        for (std::size_t a = 0; a < kAxes; ++a) {
          conserved_[kFirstVector + a][i] = p.density * p.velocity[a];
          speed2 += p.velocity[a] * p.velocity[a];
        }
        conserved_[kEnergy][i] = p.pressure / (gamma_ - 1.0) + 0.5 * p.density * speed2;
      }
  if (!boundary_->agree(update_primitive()))
    return Status(StatusCode::invalid_argument, "the set-up has a cell without positive density and pressure");
  return {};
}

double Solver::stable_time_step(double cfl) const {
  double fastest = 0.0;
  const auto planes = static_cast<std::ptrdiff_t>(grid_.cells[0]);
#pragma omp parallel for num_threads(threads_) schedule(static) reduction(max : fastest)
  for (std::ptrdiff_t z = 0; z < planes; ++z) {
    for (std::size_t y = 0; y < grid_.cells[1]; ++y) {
      const std::size_t row = grid_.padded_index(static_cast<std::size_t>(z), y, 0);
      for (std::size_t i = row; i < row + grid_.cells[2]; ++i) {
        const double sound = std::sqrt(gamma_ * primitive_[kPressure][i] / primitive_[kDensity][i]);
        double speed = 0.0;
        for (std::size_t a = 0; a < kAxes; ++a)
          if (grid_.active(a)) speed += std::abs(primitive_[kFirstVector + a][i]) + sound;
        fastest = std::max(fastest, speed);
      }
    }
  }
  return fastest > 0.0 ? cfl * grid_.spacing / fastest : std::numeric_limits<double>::infinity();
}

Status Solver::advance(double dt) {
  // Shu and Osher's second-order scheme: u1 = u + dt L(u); u' = u/2 + (u1 + dt L(u1))/2.
  std::swap(previous_, conserved_);
  compute_rate();
  combine(0.0, 1.0, previous_, dt);
  const bool middle_positive = update_primitive();
  compute_rate();
  combine(0.5, 0.5, conserved_, dt);
  const bool end_positive = update_primitive();
  if (!boundary_->agree(middle_positive && end_positive)) {
    std::swap(previous_, conserved_);
    if (!update_primitive()) return Status(StatusCode::internal, "the state before the step is not positive");
    return Status(StatusCode::invalid_argument, "time step too long: density or pressure would not stay positive");
  }
  time_ += dt;
  ++step_;
  return {};
}

/// Fluxes of `faces` neighbouring faces of `axis` in a row along x; `first` is the padded index of the cell after the
/// first.
QUERN_FLOW_VECTOR_CLONES void Solver::flux_row(std::size_t axis, std::size_t first, std::size_t faces,
                                               double* flux) const {
  const std::size_t stride = grid_.padded_stride(axis);
  const auto [n, t1, t2] = face_frame(axis);
  const double* density = primitive_[kDensity].data() + first;
  const double* normal = primitive_[n].data() + first;
  const double* tangent1 = primitive_[t1].data() + first;
  const double* tangent2 = primitive_[t2].data() + first;
  const double* pressure = primitive_[kPressure].data() + first;
  double* mass_out = flux;
  double* normal_out = flux + n * faces;
  double* tangent1_out = flux + t1 * faces;
  double* tangent2_out = flux + t2 * faces;
  double* energy_out = flux + kEnergy * faces;
  const double gamma = gamma_;
#pragma omp simd
  for (std::size_t i = 0; i < faces; ++i) {
    const FaceValues r = reconstruct(density + i, stride);
    const FaceValues u = reconstruct(normal + i, stride);
    const FaceValues v = reconstruct(tangent1 + i, stride);
    const FaceValues w = reconstruct(tangent2 + i, stride);
    const FaceValues p = reconstruct(pressure + i, stride);
    const FaceFlux f =
        hllc_flux({r.left, u.left, v.left, w.left, p.left}, {r.right, u.right, v.right, w.right, p.right}, gamma);
    mass_out[i] = f.mass;
    normal_out[i] = f.normal;
    tangent1_out[i] = f.tangent1;
    tangent2_out[i] = f.tangent2;
    energy_out[i] = f.energy;
  }
}

/// What flows along x and y in one plane. Begins the rate of its cells.
void Solver::rate_of_plane(std::size_t z, double* scratch) {
  const std::size_t nx = grid_.cells[2];
  const double inverse = 1.0 / grid_.spacing;
  double* low = scratch;
  double* high = scratch + kComponents * (nx + 1);
  for (std::size_t y = 0; y < grid_.cells[1]; ++y) {
    const std::size_t row = grid_.index(z, y, 0);
    if (grid_.active(2)) {
      flux_row(2, grid_.padded_index(z, y, 0), nx + 1, low);
      for (std::size_t c = 0; c < kComponents; ++c)
        for (std::size_t x = 0; x < nx; ++x)
          rate_[c][row + x] = inverse * (low[c * (nx + 1) + x] - low[c * (nx + 1) + x + 1]);
    } else {
      for (auto& component : rate_) std::fill_n(component.begin() + static_cast<std::ptrdiff_t>(row), nx, 0.0);
    }
  }
  if (!grid_.active(1)) return;
  flux_row(1, grid_.padded_index(z, 0, 0), nx, low);
  for (std::size_t y = 0; y < grid_.cells[1]; ++y) {
    flux_row(1, grid_.padded_index(z, y, 0) + grid_.padded_stride(1), nx, high);
    const std::size_t row = grid_.index(z, y, 0);
    for (std::size_t c = 0; c < kComponents; ++c)
      for (std::size_t x = 0; x < nx; ++x) rate_[c][row + x] += inverse * (low[c * nx + x] - high[c * nx + x]);
    std::swap(low, high);
  }
}

/// What flows along z, for the rows of one y. Adds to the rate.
void Solver::rate_between_planes(std::size_t y, double* scratch) {
  const std::size_t nx = grid_.cells[2];
  const double inverse = 1.0 / grid_.spacing;
  double* low = scratch;
  double* high = scratch + kComponents * (nx + 1);
  flux_row(0, grid_.padded_index(0, y, 0), nx, low);
  for (std::size_t z = 0; z < grid_.cells[0]; ++z) {
    flux_row(0, grid_.padded_index(z, y, 0) + grid_.padded_stride(0), nx, high);
    const std::size_t row = grid_.index(z, y, 0);
    for (std::size_t c = 0; c < kComponents; ++c)
      for (std::size_t x = 0; x < nx; ++x) rate_[c][row + x] += inverse * (low[c * nx + x] - high[c * nx + x]);
    std::swap(low, high);
  }
}

void Solver::compute_rate() {
  const auto planes = static_cast<std::ptrdiff_t>(grid_.cells[0]);
  const auto rows = static_cast<std::ptrdiff_t>(grid_.cells[1]);
#pragma omp parallel for num_threads(threads_) schedule(static)
  for (std::ptrdiff_t z = 0; z < planes; ++z)
    rate_of_plane(static_cast<std::size_t>(z),
                  scratch_.data() + scratch_of_thread_ * static_cast<std::size_t>(thread_index()));
  if (!grid_.active(0)) return;
#pragma omp parallel for num_threads(threads_) schedule(static)
  for (std::ptrdiff_t y = 0; y < rows; ++y)
    rate_between_planes(static_cast<std::size_t>(y),
                        scratch_.data() + scratch_of_thread_ * static_cast<std::size_t>(thread_index()));
}

/// conserved_ = weight_previous * previous_ + weight_current * (current + dt * rate_)
void Solver::combine(double weight_previous, double weight_current, const Components& current, double dt) {
  const auto n = static_cast<std::ptrdiff_t>(grid_.elems());
  for (std::size_t c = 0; c < kComponents; ++c) {
    double* out = conserved_[c].data();
    const double* previous = previous_[c].data();
    const double* now = current[c].data();
    const double* rate = rate_[c].data();
#pragma omp parallel for simd num_threads(threads_) schedule(static)
    for (std::ptrdiff_t i = 0; i < n; ++i)
      out[i] = weight_previous * previous[i] + weight_current * (now[i] + dt * rate[i]);
  }
}

/// Primitive state with ghosts from the conserved one. False when a cell has no positive density and pressure.
bool Solver::update_primitive() {
  const auto planes = static_cast<std::ptrdiff_t>(grid_.cells[0]);
  int broken = 0;
#pragma omp parallel for num_threads(threads_) schedule(static) reduction(max : broken)
  for (std::ptrdiff_t z = 0; z < planes; ++z) {
    for (std::size_t y = 0; y < grid_.cells[1]; ++y) {
      const std::size_t from = grid_.index(static_cast<std::size_t>(z), y, 0);
      const std::size_t to = grid_.padded_index(static_cast<std::size_t>(z), y, 0);
      for (std::size_t x = 0; x < grid_.cells[2]; ++x) {
        const double density = conserved_[kDensity][from + x];
        double momentum2 = 0.0;
        for (std::size_t a = 0; a < kAxes; ++a) {
          const double momentum = conserved_[kFirstVector + a][from + x];
          primitive_[kFirstVector + a][to + x] = momentum / density;
          momentum2 += momentum * momentum;
        }
        const double pressure = (gamma_ - 1.0) * (conserved_[kEnergy][from + x] - 0.5 * momentum2 / density);
        primitive_[kDensity][to + x] = density;
        primitive_[kPressure][to + x] = pressure;
        const bool sound = density > 0.0 && pressure > 0.0 && std::isfinite(density) && std::isfinite(pressure);
        broken = std::max(broken, static_cast<int>(!sound));
      }
    }
  }
  boundary_->fill(grid_, primitive_);
  return broken == 0;
}

void Solver::field(Quantity quantity, std::span<double> out) const {
  if (quantity == Quantity::energy) {
    std::copy(conserved_[kEnergy].begin(), conserved_[kEnergy].end(), out.begin());
    return;
  }
  std::size_t component = kDensity;
  switch (quantity) {
    case Quantity::density: component = kDensity; break;
    case Quantity::velocity_z: component = kFirstVector + 0; break;
    case Quantity::velocity_y: component = kFirstVector + 1; break;
    case Quantity::velocity_x: component = kFirstVector + 2; break;
    case Quantity::pressure: component = kPressure; break;
    case Quantity::energy: component = kEnergy; break;
  }
  for (std::size_t z = 0; z < grid_.cells[0]; ++z)
    for (std::size_t y = 0; y < grid_.cells[1]; ++y) {
      const double* row = primitive_[component].data() + grid_.padded_index(z, y, 0);
      std::copy_n(row, grid_.cells[2], out.begin() + static_cast<std::ptrdiff_t>(grid_.index(z, y, 0)));
    }
}

std::array<double, kComponents> Solver::totals() const {
  std::array<double, kComponents> sums{};
  for (std::size_t c = 0; c < kComponents; ++c)
    for (const double v : conserved_[c]) sums[c] += v;
  return sums;
}

}  // namespace quern::flow
