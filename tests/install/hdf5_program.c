/* Linked with the filter: no plugin path, a dataset written and read past HDF5's pipeline, then through it. */
#include <stdio.h>

#include <quern/hdf5.h>

enum { kRows = 50, kColumns = 70 };
static double values[kRows][kColumns], direct[kRows][kColumns], filtered[kRows][kColumns];

int main(int argc, char** argv) {
  const hsize_t extents[2] = {kRows, kColumns}, chunk[2] = {16, 32};
  unsigned words[QUERN_HDF5_REQUEST_WORDS];
  hid_t file, space, list, dataset;
  int y, x, failed;
  if (argc != 2) return 2;
  for (y = 0; y < kRows; ++y)
    for (x = 0; x < kColumns; ++x) values[y][x] = 0.25 * y - 0.5 * x + 0.001 * (y * x % 17);
  failed = quern_hdf5_register() < 0 || quern_hdf5_request(QUERN_BOUND_ABS, 1e-4, 0, 0, words) < 0;
  file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  space = H5Screate_simple(2, extents, NULL);
  list = H5Pcreate(H5P_DATASET_CREATE);
  failed = failed || H5Pset_chunk(list, 2, chunk) < 0 ||
           H5Pset_filter(list, QUERN_HDF5_FILTER_ID, H5Z_FLAG_MANDATORY, QUERN_HDF5_REQUEST_WORDS, words) < 0;
  dataset = H5Dcreate2(file, "x", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, list, H5P_DEFAULT);
  failed = failed || quern_hdf5_write(dataset, QUERN_F64, values, 2) < 0;
  failed = failed || quern_hdf5_read(dataset, QUERN_F64, direct, 2) < 0;
  failed = failed || H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, filtered) < 0;
  for (y = 0; y < kRows && !failed; ++y)
    for (x = 0; x < kColumns; ++x) {
      const double error = direct[y][x] - values[y][x];
      if (error > 1e-4 || error < -1e-4 || direct[y][x] != filtered[y][x]) failed = 1;
    }
  H5Dclose(dataset);
  H5Pclose(list);
  H5Sclose(space);
  H5Fclose(file);
  puts(failed ? "failed" : "written and read");
  return failed;
}
