// The flow solver cut into slabs: the bits of the whole domain on any number of ranks, and a step taken back on all
// ranks when one refuses it. Runs under mpirun; exit code 1 and a line for each rank that found a difference.
#include <cstdio>

#include "datasets/flow/slab_boundary.h"
#include "datasets/flow/solver.h"

namespace flow = quern::flow;

namespace {

int rank_of(MPI_Comm ranks) {
  int rank = 0;
  MPI_Comm_rank(ranks, &rank);
  return rank;
}

/// The step every rank can take. Refused once on purpose where `too_long` says so, which must change nothing.
bool advance(flow::Solver& solver, MPI_Comm ranks, bool too_long) {
  double dt = solver.stable_time_step(0.4);
  MPI_Allreduce(MPI_IN_PLACE, &dt, 1, MPI_DOUBLE, MPI_MIN, ranks);
  if (too_long && solver.advance(dt * 1e3).ok()) return false;
  return solver.advance(dt).ok();
}

/// True when the slabs of `size` on these ranks hold what one solver of the whole domain does, after every step.
bool agrees(std::string_view name, const std::array<std::size_t, 3>& size, MPI_Comm ranks, bool too_long) {
  int count = 0;
  MPI_Comm_size(ranks, &count);
  const flow::Grid domain = flow::Grid::make(size).value();
  const flow::Setup setup = flow::make_setup(name, domain, 5).value();
  const auto whole_boundary = flow::make_boundary(setup.boundary);
  flow::Solver whole = flow::Solver::make(domain, setup, *whole_boundary, 1).value();

  const flow::Grid grid = flow::slab(domain, rank_of(ranks), count).value();
  flow::SlabBoundary boundary(setup.boundary, ranks);
  flow::Solver part = flow::Solver::make(grid, setup, boundary, 1).value();
  std::vector<double> expected(domain.elems()), got(grid.elems());
  for (int step = 0; step < 12; ++step) {
    if (!whole.advance(whole.stable_time_step(0.4)).ok() || !advance(part, ranks, too_long)) return false;
    for (const flow::QuantityInfo& info : flow::quantities()) {
      whole.field(info.quantity, expected);
      part.field(info.quantity, got);
      for (std::size_t i = 0; i < got.size(); ++i)
        if (got[i] != expected[domain.index(grid.origin[0], 0, 0) + i]) return false;
    }
  }
  return true;
}

/// Every plane belongs to one slab, and no slab is too thin to lend its neighbour ghosts.
bool covers(std::size_t planes, int ranks) {
  const flow::Grid domain = flow::Grid::make({planes, 3, 3}).value();
  const int count = flow::slabs(planes, ranks);
  std::size_t next = 0;
  for (int i = 0; i < count; ++i) {
    const flow::Grid grid = flow::slab(domain, i, count).value();
    if (grid.origin[0] != next || (count > 1 && grid.cells[0] < flow::kGhostLayers)) return false;
    next += grid.cells[0];
  }
  return count >= 1 && count <= ranks && next == planes;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int bad = 0;
  const auto expect = [&](bool good, const char* what) {
    if (good) return;
    std::fprintf(stderr, "rank %d: %s\n", rank_of(MPI_COMM_WORLD), what);
    bad = 1;
  };
  for (std::size_t planes = 1; planes < 20; ++planes)
    for (const int ranks : {1, 2, 3, 7, 30}) expect(covers(planes, ranks), "slabs do not cover the domain");

  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (const std::size_t planes : {std::size_t{2}, std::size_t{9}, std::size_t{16}}) {
    const int count = flow::slabs(planes, ranks);
    const int rank = rank_of(MPI_COMM_WORLD);
    MPI_Comm working = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank < count ? 0 : MPI_UNDEFINED, rank, &working);
    if (working == MPI_COMM_NULL) continue;
    for (const std::string_view name : flow::setup_names())
      expect(agrees(name, {planes, 10, 13}, working, false), "a slab differs from the whole domain");
    // The blast is in the middle: the ranks at the ends would go on happily.
    expect(agrees("sedov", {planes, 10, 13}, working, true), "a refused step was not taken back everywhere");
    MPI_Comm_free(&working);
  }
  MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return bad;
}
