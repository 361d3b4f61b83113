/* Writes datasets through the plugin from several MPI ranks, in the shapes that parallel HDF5 finds hard. It knows
 * quern only by its number and its words, as any program does that was written before.
 *
 * usage: mpirun -n N collective_write OUT.h5 [independent|convert]
 *
 * independent, convert: the two things that parallel HDF5 does not do with filters; they must end with an error. */
#include <hdf5.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kFilter = 443, kAbs = 1 };
static int rank, ranks;
static hid_t file, originals, transfer;
static int convert; /* memory and file have different types */

/* A condition that must hold; otherwise all ranks end, for the others would wait for ever. */
static void must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "collective_write, rank %d: %s\n", rank, what);
  H5Eprint2(H5E_DEFAULT, stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static double value_at(uint64_t step, uint64_t row, uint64_t column) {
  const double r = (double)row, c = (double)column, t = (double)step;
  return 100.0 * sin(0.11 * r + 0.3 * t) * cos(0.07 * c) + (double)((row * 2654435761u + column * 40503u) % 97) * 1e-3;
}

/* Who writes what of the rows and columns of a dataset. */
enum share { BY_ROWS, BY_COLUMNS, LAST_RANK_EMPTY, FIRST_RANK_ALL };

static void my_box(enum share share, const hsize_t extent[2], hsize_t begin[2], hsize_t count[2]) {
  const uint64_t n = (uint64_t)(share == LAST_RANK_EMPTY && ranks > 1 ? ranks - 1 : ranks);
  const uint64_t me = (uint64_t)rank;
  const int axis = share == BY_COLUMNS ? 1 : 0;
  begin[0] = begin[1] = 0;
  count[0] = extent[0], count[1] = extent[1];
  if (share == FIRST_RANK_ALL) {
    if (rank != 0) count[0] = 0;
    return;
  }
  /* Uneven on purpose: shares grow with the rank. */
  begin[axis] = extent[axis] * me * (me + 1) / (n * (n + 1));
  count[axis] = extent[axis] * (me + 1) * (me + 2) / (n * (n + 1)) - begin[axis];
  if (me >= n) begin[axis] = count[axis] = 0;
}

/* A dataset through the filter and its original without, in the group "original". */
struct pair {
  hid_t packed, original, type;
  int axes;
};

static hid_t filtered_list(double bound, int axes, const hsize_t* chunk) {
  uint64_t bits;
  memcpy(&bits, &bound, 8);
  const unsigned words[6] = {1, 0, kAbs, (unsigned)(bits >> 32), (unsigned)(bits & 0xffffffffu), 0};
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  must(H5Pset_chunk(list, axes, chunk) >= 0 && H5Pset_filter(list, kFilter, H5Z_FLAG_MANDATORY, 6, words) >= 0,
       "cannot set the filter");
  return list;
}

static struct pair create(const char* name, hid_t type, int axes, const hsize_t* extent, const hsize_t* most,
                          const hsize_t* chunk) {
  struct pair made = {-1, -1, type, axes};
  const hid_t list = filtered_list(0.01, axes, chunk), space = H5Screate_simple(axes, extent, most);
  made.packed = H5Dcreate2(file, name, convert ? H5T_IEEE_F32LE : type, space, H5P_DEFAULT, list, H5P_DEFAULT);
  must(made.packed >= 0, "cannot create a dataset");
  H5Premove_filter(list, kFilter);
  made.original = H5Dcreate2(originals, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
  must(made.original >= 0, "cannot create an original");
  H5Sclose(space);
  H5Pclose(list);
  return made;
}

static void close_pair(struct pair both) {
  must(H5Dclose(both.packed) >= 0 && H5Dclose(both.original) >= 0, "cannot close a dataset");
}

/* One collective write of this rank's box at `step` to both. */
static void write_box(struct pair both, uint64_t step, const hsize_t begin[2], const hsize_t count[2]) {
  const hsize_t cells = count[0] * count[1];
  const int is_float = both.type == H5T_NATIVE_FLOAT;
  void* values = malloc((size_t)cells * (is_float ? 4 : 8) + 1);
  must(values != NULL, "no memory");
  for (hsize_t i = 0; i < cells; ++i) {
    const double v = value_at(step, begin[0] + i / count[1], begin[1] + i % count[1]);
    if (is_float)
      ((float*)values)[i] = (float)v;
    else
      ((double*)values)[i] = v;
  }
  const hsize_t at[3] = {step, begin[0], begin[1]}, many[3] = {1, count[0], count[1]};
  const int first = 3 - both.axes;
  const hid_t here = H5Screate_simple(both.axes, many + first, NULL);
  const hid_t there = H5Dget_space(both.packed);
  must(there >= 0 && here >= 0, "no dataspace");
  if (cells == 0)
    must(H5Sselect_none(there) >= 0 && H5Sselect_none(here) >= 0, "cannot select nothing");
  else
    must(H5Sselect_hyperslab(there, H5S_SELECT_SET, at + first, NULL, many + first, NULL) >= 0, "cannot select");
  must(H5Dwrite(both.packed, both.type, here, there, transfer, values) >= 0, "cannot write");
  must(H5Dwrite(both.original, both.type, here, there, transfer, values) >= 0, "cannot write an original");
  H5Sclose(here);
  H5Sclose(there);
  free(values);
}

static void flat(const char* name, hid_t type, enum share share, hsize_t rows, hsize_t columns, hsize_t chunk_rows,
                 hsize_t chunk_columns) {
  const hsize_t extent[2] = {rows, columns}, chunk[2] = {chunk_rows, chunk_columns};
  hsize_t begin[2], count[2];
  my_box(share, extent, begin, count);
  const struct pair both = create(name, type, 2, extent, extent, chunk);
  write_box(both, 0, begin, count);
  close_pair(both);
}

/* A step at a time along an unlimited axis, then the middle one once more: chunks that exist already are replaced. */
static void growing(const char* name, enum share share) {
  const hsize_t most[3] = {H5S_UNLIMITED, 30, 41}, chunk[3] = {1, 8, 41};
  hsize_t extent[3] = {0, 30, 41}, begin[2], count[2];
  my_box(share, extent + 1, begin, count);
  const struct pair both = create(name, H5T_NATIVE_DOUBLE, 3, extent, most, chunk);
  for (uint64_t step = 0; step < 4; ++step) {
    extent[0] = step + 1;
    must(H5Dset_extent(both.packed, extent) >= 0 && H5Dset_extent(both.original, extent) >= 0, "cannot extend");
    write_box(both, step, begin, count);
  }
  write_box(both, 1, begin, count);
  close_pair(both);
}

/* Reads this rank's box at `step` from the packed dataset and writes the very values back. */
static void rewrite_box(struct pair both, uint64_t step, const hsize_t begin[2], const hsize_t count[2]) {
  const hsize_t cells = count[0] * count[1];
  double* values = malloc((size_t)cells * sizeof *values + 1);
  must(values != NULL, "no memory");
  const hsize_t at[3] = {step, begin[0], begin[1]}, many[3] = {1, count[0], count[1]};
  const hid_t here = H5Screate_simple(3, many, NULL), there = H5Dget_space(both.packed);
  if (cells == 0)
    must(H5Sselect_none(there) >= 0 && H5Sselect_none(here) >= 0, "cannot select nothing");
  else
    must(H5Sselect_hyperslab(there, H5S_SELECT_SET, at, NULL, many, NULL) >= 0, "cannot select");
  must(H5Dread(both.packed, both.type, here, there, transfer, values) >= 0, "cannot read own values");
  must(H5Dwrite(both.packed, both.type, here, there, transfer, values) >= 0, "cannot write own values");
  H5Sclose(here);
  H5Sclose(there);
  free(values);
}

/* Steps one by one into chunks of three, and after each all steps so far once more with their own values: every chunk
 * is decoded and encoded many times, by one rank for several. */
static void rewritten(const char* name, enum share share) {
  const hsize_t most[3] = {H5S_UNLIMITED, 30, 41}, chunk[3] = {3, 8, 41};
  hsize_t extent[3] = {0, 30, 41}, begin[2], count[2];
  my_box(share, extent + 1, begin, count);
  const struct pair both = create(name, H5T_NATIVE_DOUBLE, 3, extent, most, chunk);
  for (uint64_t step = 0; step < 5; ++step) {
    extent[0] = step + 1;
    must(H5Dset_extent(both.packed, extent) >= 0 && H5Dset_extent(both.original, extent) >= 0, "cannot extend");
    write_box(both, step, begin, count);
    for (uint64_t old = 0; old <= step; ++old) rewrite_box(both, old, begin, count);
  }
  close_pair(both);
}

/* Every rank reads all of a dataset, as after a restart on another number of ranks, and checks the bound. */
static void read_all(const char* name, int columns, int rows, hid_t list) {
  const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  double* values = malloc((size_t)rows * (size_t)columns * sizeof *values);
  must(dataset >= 0 && values != NULL, "cannot open a dataset again");
  must(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, list, values) >= 0, "cannot read");
  for (int i = 0; i < rows * columns; ++i)
    must(fabs(values[i] - value_at(0, (uint64_t)(i / columns), (uint64_t)(i % columns))) <= 0.01, "bound missed");
  free(values);
  H5Dclose(dataset);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  must(argc == 2 || argc == 3, "usage: mpirun -n N collective_write OUT.h5 [independent|convert]");
  const int independent = argc == 3 && strcmp(argv[2], "independent") == 0;
  convert = argc == 3 && strcmp(argv[2], "convert") == 0;
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  must(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0, "no MPI in this HDF5");
  file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
  must(file >= 0, "cannot create the file");
  originals = H5Gcreate2(file, "original", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  must(originals >= 0, "cannot create a group");
  transfer = H5Pcreate(H5P_DATASET_XFER);
  must(H5Pset_dxpl_mpio(transfer, independent ? H5FD_MPIO_INDEPENDENT : H5FD_MPIO_COLLECTIVE) >= 0,
       "cannot set the transfer");

  if (argc == 3) flat("refused", H5T_NATIVE_DOUBLE, BY_ROWS, 64, 40, 16, 40);
  flat("even", H5T_NATIVE_FLOAT, BY_ROWS, 64, 40, 16, 40);
  flat("edges", H5T_NATIVE_FLOAT, BY_ROWS, 61, 43, 8, 20);
  flat("shared", H5T_NATIVE_DOUBLE, BY_COLUMNS, 50, 47, 16, 47);
  flat("empty_rank", H5T_NATIVE_DOUBLE, LAST_RANK_EMPTY, 40, 33, 8, 33);
  flat("one_rank", H5T_NATIVE_FLOAT, FIRST_RANK_ALL, 40, 33, 8, 33);
  flat("one_chunk", H5T_NATIVE_FLOAT, BY_ROWS, 30, 30, 30, 30);
  flat("two_chunks", H5T_NATIVE_DOUBLE, BY_ROWS, 30, 30, 16, 30);
  growing("steps", BY_ROWS);
  growing("steps_shared", BY_COLUMNS);
  rewritten("rewritten", BY_ROWS);
  rewritten("rewritten_shared", BY_COLUMNS);
  H5Gclose(originals);
  must(H5Fclose(file) >= 0, "cannot close the file");

  file = H5Fopen(argv[1], H5F_ACC_RDONLY, access);
  must(file >= 0, "cannot open the file again");
  read_all("shared", 47, 50, transfer);
  read_all("empty_rank", 33, 40, H5P_DEFAULT);
  must(H5Fclose(file) >= 0, "cannot close the file");
  H5Pclose(transfer);
  H5Pclose(access);
  MPI_Finalize();
  return 0;
}
