// quern-insitu: a compressible flow cut into slabs over MPI ranks, which writes its fields compressed while it runs.
// The simulation does not depend on the number of ranks. Start reading at simulate(); the writing is in write_*.cpp.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "datasets/flow/slab_boundary.h"
#include "datasets/flow/solver.h"
#include "examples/insitu/writers.h"

namespace flow = quern::flow;

namespace {

constexpr const char* kUsage =
    "usage: mpirun -n RANKS quern-insitu --way hdf5|streams --out PATH (--abs E | --lossless)\n"
    "         [--setup kelvin-helmholtz|sedov] [--size ZxYxX] [--steps N] [--every K] [--chunk-planes P]\n"
    "  hdf5     writes PATH, an HDF5 file with time as the first axis of every field\n"
    "  streams  writes PATH_000010.qns and so on, a file a step (read_streams.py reads them)";

struct Arguments {
  std::string way, out, setup = "kelvin-helmholtz";
  Bound bound{-1, 0.0};
  std::array<std::size_t, 3> size{64, 64, 64};
  std::uint64_t steps = 40, every = 10, chunk_planes = 16;
};

std::uint64_t whole_number(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text.c_str(), &end, 10);
  if (text.find_first_not_of("0123456789") != std::string::npos || end == text.c_str() || value == 0)
    fail(option + " " + text + ": give a whole number from 1\n" + kUsage);
  return value;
}

Arguments parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--lossless") {
      a.bound = {QUERN_BOUND_LOSSLESS, 0.0};
      continue;
    }
    if (++i == argc) fail(option + " needs a value\n" + kUsage);
    const std::string value = argv[i];
    char* end = nullptr;
    if (option == "--way" && (value == "hdf5" || value == "streams")) {
      a.way = value;
    } else if (option == "--out") {
      a.out = value;
    } else if (option == "--setup") {
      a.setup = value;
    } else if (option == "--abs") {
      a.bound = {QUERN_BOUND_ABS, std::strtod(value.c_str(), &end)};
      if (end == value.c_str() || *end != '\0') fail("--abs " + value + ": give a number");
    } else if (option == "--size") {
      const std::size_t y = value.find('x'), x = value.find('x', y + 1);
      if (y == std::string::npos || x == std::string::npos)
        fail("--size " + value + ": give three extents, slowest first, such as 64x128x128");
      a.size = {whole_number(option, value.substr(0, y)), whole_number(option, value.substr(y + 1, x - y - 1)),
                whole_number(option, value.substr(x + 1))};
    } else if (option == "--steps") {
      a.steps = whole_number(option, value);
    } else if (option == "--every") {
      a.every = whole_number(option, value);
    } else if (option == "--chunk-planes") {
      a.chunk_planes = whole_number(option, value);
    } else {
      fail(option + " " + value + ": not understood\n" + kUsage);
    }
  }
  if (a.way.empty() || a.out.empty() || a.bound.kind < 0)
    fail(std::string("--way, --out and a bound are needed\n") + kUsage);
  return a;
}

template <class T>
T value_or_fail(quern::Result<T> result) {
  if (!result.ok()) fail(result.status().text());
  return std::move(result).value();
}

/// One step of all ranks. `solver` is NULL on a rank without cells, which only takes part in choosing the step.
void advance(flow::Solver* solver, Step& step) {
  double dt = solver != nullptr ? solver->stable_time_step(0.4) : std::numeric_limits<double>::infinity();
  MPI_Allreduce(MPI_IN_PLACE, &dt, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  ++step.number;
  if (solver == nullptr) return;
  quern::Status status;
  for (int attempt = 0; attempt < 10; ++attempt) {
    status = solver->advance(dt);  // the same answer on every rank
    if (status.ok()) break;
    dt *= 0.5;
  }
  if (!status.ok()) fail("the simulation broke down: " + status.text());
  step.time = solver->time();
}

struct Seconds {
  double simulate = 0.0, compress = 0.0, output = 0.0;  ///< output includes compress
};

void report(const Arguments& a, const Block& block, std::uint64_t raw, std::uint64_t stored, Seconds mine) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::array<double, 3> slowest{mine.simulate, mine.compress, mine.output};
  MPI_Allreduce(MPI_IN_PLACE, slowest.data(), 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (rank != 0) return;
  const auto [simulate, compress, output] = slowest;
  std::printf("%s, %d ranks, %llux%llux%llu: %.1f MB of fields in %.1f MB (ratio %.2f)\n", a.way.c_str(), ranks,
              static_cast<unsigned long long>(block.global[0]), static_cast<unsigned long long>(block.global[1]),
              static_cast<unsigned long long>(block.global[2]), 1e-6 * static_cast<double>(raw),
              1e-6 * static_cast<double>(stored), static_cast<double>(raw) / static_cast<double>(stored));
  std::printf("simulation %.2f s, output %.2f s (%.0f MB/s, %.1f %% of the run)", simulate, output,
              1e-6 * static_cast<double>(raw) / output, 100.0 * output / (simulate + output));
  if (compress > 0.0)
    std::printf(", of it compression %.2f s (%.0f MB/s)", compress, 1e-6 * static_cast<double>(raw) / compress);
  std::printf("\n");
}

void simulate(const Arguments& a) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const flow::Grid domain = value_or_fail(flow::Grid::make(a.size));
  const flow::Setup setup = value_or_fail(flow::make_setup(a.setup, domain, 1));

  // This rank's slab. With more ranks than the domain can be cut into, the last ones have no cells.
  const int workers = flow::slabs(domain.cells[0], ranks);
  MPI_Comm working = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank < workers ? 0 : MPI_UNDEFINED, rank, &working);
  Block block{{domain.cells[0], domain.cells[1], domain.cells[2]}, domain.cells[0], 0};
  std::unique_ptr<flow::SlabBoundary> boundary;
  std::optional<flow::Solver> solver;
  if (rank < workers) {
    const flow::Grid grid = value_or_fail(flow::slab(domain, rank, workers));
    boundary = std::make_unique<flow::SlabBoundary>(setup.boundary, working);
    solver.emplace(value_or_fail(flow::Solver::make(grid, setup, *boundary, 1)));
    block.first = grid.origin[0];
    block.planes = grid.cells[0];
  }
  std::vector<Field> fields;
  for (const flow::QuantityInfo& info : flow::quantities())
    fields.push_back({std::string(info.name), std::vector<double>(block.planes * a.size[1] * a.size[2])});

  std::optional<Hdf5Series> series;
  if (a.way == "hdf5") series.emplace(a.out, MPI_COMM_WORLD, block, fields, a.bound, a.chunk_planes);
  std::optional<StreamSeries> streams;
  if (a.way == "streams") streams.emplace(MPI_COMM_WORLD, block, a.bound);
  Step step{0, 0.0};
  Seconds seconds;
  std::uint64_t raw = 0, stored = 0;
  while (step.number < a.steps) {
    const double start = MPI_Wtime();
    advance(solver ? &*solver : nullptr, step);
    MPI_Barrier(MPI_COMM_WORLD);  // or the wait for a slower rank would count as output
    const double advanced = MPI_Wtime();
    seconds.simulate += advanced - start;
    if (step.number % a.every != 0 && step.number != a.steps) continue;
    if (solver)
      for (std::size_t i = 0; i < fields.size(); ++i) solver->field(flow::quantities()[i].quantity, fields[i].values);
    if (series) {
      series->append(step, fields);
    } else {
      char name[32];
      std::snprintf(name, sizeof name, "_%06llu.qns", static_cast<unsigned long long>(step.number));
      const StreamsWritten written = streams->write(a.out + name, step, fields);
      stored += written.bytes;
      seconds.compress += written.compress_seconds;
    }
    raw += fields.size() * domain.elems() * sizeof(double);
    MPI_Barrier(MPI_COMM_WORLD);
    seconds.output += MPI_Wtime() - advanced;
  }
  const double start = MPI_Wtime();
  if (series) stored = series->close();
  seconds.output += MPI_Wtime() - start;
  report(a, block, raw, stored, seconds);
  solver.reset();
  if (working != MPI_COMM_NULL) MPI_Comm_free(&working);
}

}  // namespace

void fail(const std::string& what) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::fprintf(stderr, "quern-insitu, rank %d: %s\n", rank, what.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  simulate(parse(argc, argv));
  MPI_Finalize();
  return 0;
}
