/* A program over netCDF's C interface: a variable with quern as its filter, written, closed, read and compared. */
#include <math.h>
#include <netcdf.h>
#include <netcdf_filter.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define FILTER 443
#define ROWS 40
#define COLUMNS 70

static int failures;

static int check(int status, const char* what) {
  if (status != NC_NOERR) {
    fprintf(stderr, "%s: %s\n", what, nc_strerror(status));
    ++failures;
  }
  return status;
}

static void expect(int condition, const char* what) {
  if (!condition) {
    fprintf(stderr, "not so: %s\n", what);
    ++failures;
  }
}

static void make_words(unsigned kind, double value, unsigned words[6]) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  words[0] = 1;
  words[1] = 0;
  words[2] = kind;
  words[3] = (unsigned)(bits >> 32);
  words[4] = (unsigned)(bits & 0xFFFFFFFF);
  words[5] = 0;
}

static void write_file(const char* path, float values[ROWS][COLUMNS], const unsigned words[6]) {
  int file, dimensions[2], variable;
  const size_t chunk[2] = {16, 32};
  check(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &file), "nc_create");
  check(nc_def_dim(file, "y", ROWS, &dimensions[0]), "nc_def_dim");
  check(nc_def_dim(file, "x", COLUMNS, &dimensions[1]), "nc_def_dim");
  check(nc_def_var(file, "T", NC_FLOAT, 2, dimensions, &variable), "nc_def_var");
  check(nc_def_var_chunking(file, variable, NC_CHUNKED, chunk), "nc_def_var_chunking");
  check(nc_def_var_filter(file, variable, FILTER, 6, words), "nc_def_var_filter");
  check(nc_put_var_float(file, variable, &values[0][0]), "nc_put_var_float");
  check(nc_close(file), "nc_close");
}

static void read_file(const char* path, float values[ROWS][COLUMNS], double bound) {
  static float back[ROWS][COLUMNS];
  int file, variable;
  unsigned id = 0;
  size_t count = 0, i, k;
  unsigned words[64];
  if (check(nc_open(path, NC_NOWRITE, &file), "nc_open") != NC_NOERR) return;
  check(nc_inq_varid(file, "T", &variable), "nc_inq_varid");
  check(nc_inq_var_filter(file, variable, &id, &count, NULL), "nc_inq_var_filter");
  expect(id == FILTER && count == 18, "the file says filter and 18 words");
  if (count <= 64) check(nc_inq_var_filter(file, variable, &id, &count, words), "nc_inq_var_filter");
  expect(words[7] == 2 && words[8] == 16 && words[9] == 32, "the words hold the chunks' shape");
  check(nc_get_var_float(file, variable, &back[0][0]), "nc_get_var_float");
  for (i = 0; i < ROWS; ++i)
    for (k = 0; k < COLUMNS; ++k)
      if (!(fabs((double)values[i][k] - (double)back[i][k]) <= bound)) ++failures;
  check(nc_close(file), "nc_close");
}

int main(int argc, char** argv) {
  static float values[ROWS][COLUMNS];
  unsigned words[6];
  int i, k;
  if (argc != 2) {
    fprintf(stderr, "usage: netcdf_filter FILE\n");
    return 1;
  }
  for (i = 0; i < ROWS; ++i)
    for (k = 0; k < COLUMNS; ++k) values[i][k] = (float)(50 * sin(i * 0.1) + k * 0.25);
  make_words(1, 0.01, words);
  write_file(argv[1], values, words);
  read_file(argv[1], values, 0.01);
  remove(argv[1]);
  return failures == 0 ? 0 : 1;
}
