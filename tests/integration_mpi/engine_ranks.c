/* Ranks that save one checkpoint a step together, each its rows through an engine of its own.
 * usage: engine_ranks STORE TIER STEPS [VICTIM KILL_STEP]
 * Goes on from the newest checkpoint that the store or the tier has whole. In step KILL_STEP, rank VICTIM is killed while
 * its share is under way. Rank 0 prints the step it began at. Exit 1: what came back is not what was saved. */
#include <math.h>
#include <mpi.h>
#include <quern/checkpoint_engine.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kRows = 512, kColumns = 300 }; /* of each rank */

static double value(uint64_t step, uint64_t row, uint64_t column) {
  return sin((double)(row * kColumns + column)) + 1e-3 * (double)step;
}

static void check(quern_status status, const char* what) {
  if (status == QUERN_OK) return;
  fprintf(stderr, "%s: %s\n", what, quern_checkpoint_last_error());
  MPI_Abort(MPI_COMM_WORLD, 2);
}

/* The step that all ranks go on from; 0: none. Each rank compares its rows. */
static uint64_t restore(const char* store_path, const char* tier_path, int rank, double* rows) {
  uint64_t found[2] = {0, 0}; /* place, step */
  const char* paths[2];
  paths[0] = store_path;
  paths[1] = tier_path;
  if (rank == 0 && quern_checkpoint_newest_of(paths, 2, &found[0], &found[1]) != QUERN_OK) found[1] = 0;
  MPI_Bcast(found, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (found[1] == 0) return 0;
  quern_checkpoint_store* store;
  quern_checkpoint_reader* reader;
  check(quern_checkpoint_store_open(paths[found[0]], NULL, &store), "open the store");
  check(quern_checkpoint_open(store, found[1], &reader), "open the checkpoint");
  uint64_t index;
  check(quern_checkpoint_find(reader, "w", &index), "find");
  const uint64_t begin[2] = {(uint64_t)rank * kRows, 0}, end[2] = {((uint64_t)rank + 1) * kRows, kColumns};
  quern_checkpoint_target target = QUERN_CHECKPOINT_TARGET_INIT;
  target.data = rows;
  target.bytes = sizeof(double) * kRows * kColumns;
  check(quern_checkpoint_read(reader, index, begin, end, &target), "read");
  for (uint64_t r = 0; r < kRows; ++r)
    for (uint64_t c = 0; c < kColumns; ++c) {
      const double expected = value(found[1], begin[0] + r, c);
      if (memcmp(&rows[r * kColumns + c], &expected, sizeof(double)) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    }
  quern_checkpoint_reader_destroy(reader);
  quern_checkpoint_store_close(store);
  return found[1];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 4 && argc != 6) MPI_Abort(MPI_COMM_WORLD, 3);
  const uint64_t steps = strtoull(argv[3], NULL, 10);
  const int victim = argc == 6 ? atoi(argv[4]) : -1;
  const uint64_t kill_step = argc == 6 ? strtoull(argv[5], NULL, 10) : 0;
  double* rows = malloc(sizeof(double) * kRows * kColumns);
  const uint64_t first = restore(argv[1], argv[2], rank, rows) + 1;
  if (rank == 0) {
    printf("%llu\n", (unsigned long long)first);
    fflush(stdout);
  }

  quern_checkpoint_tier tier = QUERN_CHECKPOINT_TIER_INIT;
  tier.path = argv[2];
  const quern_checkpoint_tier* tiers[1];
  tiers[0] = &tier;
  quern_checkpoint_engine_desc desc = QUERN_CHECKPOINT_ENGINE_DESC_INIT;
  desc.threads = 1;
  desc.ring_bytes = 2u << 20;
  desc.tiers = tiers;
  desc.tier_count = 1;
  quern_checkpoint_engine* engine;
  check(quern_checkpoint_engine_open(argv[1], &desc, &engine), "open the engine");
  int run = (int)getpid(); /* groups are never used again, also not by a run that goes on */
  MPI_Bcast(&run, 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (uint64_t step = first; step <= steps; ++step) {
    uint32_t done;
    check(quern_checkpoint_engine_fence(engine, NULL, 60, &done), "fence");
    if (!done) MPI_Abort(MPI_COMM_WORLD, 4);
    for (uint64_t r = 0; r < kRows; ++r)
      for (uint64_t c = 0; c < kColumns; ++c) rows[r * kColumns + c] = value(step, (uint64_t)rank * kRows + r, c);
    char group[64];
    snprintf(group, sizeof(group), "step%llu-%d", (unsigned long long)step, run);
    quern_checkpoint_save_desc save = QUERN_CHECKPOINT_SAVE_DESC_INIT;
    save.step = step;
    save.group = group;
    save.writer = (uint32_t)rank;
    save.writers = (uint32_t)ranks;
    quern_checkpoint_pending* pending;
    check(quern_checkpoint_engine_begin(engine, &save, &pending), "begin");
    quern_checkpoint_tensor tensor = QUERN_CHECKPOINT_TENSOR_INIT;
    tensor.dtype = QUERN_F64;
    tensor.name = "w";
    tensor.data = rows;
    tensor.rank = 2;
    tensor.is_piece = 1;
    tensor.extents[0] = kRows;
    tensor.whole[0] = (uint64_t)ranks * kRows;
    tensor.offset[0] = (uint64_t)rank * kRows;
    tensor.extents[1] = tensor.whole[1] = kColumns;
    check(quern_checkpoint_engine_add(pending, &tensor), "add");
    check(quern_checkpoint_engine_submit(pending), "submit");
    if (rank == victim && step == kill_step) raise(SIGKILL);
    /* A share that does not complete the checkpoint is done at HOST. */
    quern_checkpoint_progress progress = QUERN_CHECKPOINT_PROGRESS_INIT;
    for (int i = 0; i < 6000; ++i) {
      check(quern_checkpoint_engine_poll(engine, step, &progress), "poll");
      if (progress.finished) break;
      usleep(10000);
    }
    if (!progress.finished || progress.error != QUERN_OK) MPI_Abort(MPI_COMM_WORLD, 5);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  check(quern_checkpoint_engine_close(engine, QUERN_CHECKPOINT_DRAIN, 60), "close");
  free(rows);
  MPI_Finalize();
  return 0;
}
