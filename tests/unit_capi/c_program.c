/* The C interface used from C99 alone: compress, inspect, decompress, a region, verify, and what errors look like. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quern/quern.h>

static int failures;

#define CHECK(condition)                                     \
  do {                                                       \
    if (!(condition)) {                                      \
      printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                            \
    }                                                        \
  } while (0)

static void round_trip(void) {
  enum { kPlanes = 17, kRows = 33, kColumns = 65, kElements = kPlanes * kRows * kColumns };
  const uint64_t extents[3] = {kPlanes, kRows, kColumns};
  float* values = malloc(sizeof(float) * kElements);
  float* back = malloc(sizeof(float) * kElements);
  for (int i = 0; i < kElements; ++i) values[i] = sinf(0.01f * (float)i) + 0.001f * (float)(i % kColumns);

  quern_context_desc desc = QUERN_CONTEXT_DESC_INIT;
  desc.threads = 2;
  quern_context* context = NULL;
  quern_params* params = NULL;
  CHECK(quern_context_create(&desc, &context) == QUERN_OK);
  CHECK(quern_params_create(&params) == QUERN_OK);
  CHECK(quern_params_set_bound(params, QUERN_BOUND_ABS, 1e-3) == QUERN_OK);
  CHECK(quern_params_set(params, "codec", "lorenzo") == QUERN_OK);

  quern_array array;
  CHECK(quern_array_init(&array, QUERN_F32, 3, extents, values) == QUERN_OK);
  uint64_t room = 0, size = 0;
  CHECK(quern_compress_bound(&array, params, &room) == QUERN_OK);
  CHECK(room >= sizeof(float) * kElements);
  unsigned char* stream = malloc((size_t)room);
  quern_report report = QUERN_REPORT_INIT;
  CHECK(quern_compress(context, params, &array, stream, room, &size, &report) == QUERN_OK);
  CHECK(size > 0 && size < room && report.output_bytes == size);
  CHECK(report.enforced_kind == QUERN_BOUND_ABS && report.enforced_value == 1e-3);

  quern_stream_info info = QUERN_STREAM_INFO_INIT;
  CHECK(quern_inspect(stream, size, &info) == QUERN_OK);
  CHECK(info.dtype == QUERN_F32 && info.rank == 3 && info.extents[2] == kColumns && info.enforced_value == 1e-3);

  CHECK(quern_array_init(&array, QUERN_F32, 3, extents, back) == QUERN_OK);
  CHECK(quern_decompress(context, stream, size, &array) == QUERN_OK);
  int missed = 0;
  for (int i = 0; i < kElements; ++i) missed += !(fabs((double)values[i] - (double)back[i]) <= 1e-3);
  CHECK(missed == 0);

  float box[2 * 3 * 4];
  const uint64_t begin[3] = {5, 6, 7}, end[3] = {7, 9, 11}, box_extents[3] = {2, 3, 4};
  CHECK(quern_array_init(&array, QUERN_F32, 3, box_extents, box) == QUERN_OK);
  CHECK(quern_decompress_region(context, stream, size, begin, end, &array) == QUERN_OK);
  for (int z = 0; z < 2; ++z)
    for (int y = 0; y < 3; ++y)
      CHECK(memcmp(box + (z * 3 + y) * 4, back + ((5 + z) * kRows + 6 + y) * kColumns + 7, 4 * sizeof(float)) == 0);

  uint32_t levels = 9;
  CHECK(quern_level_extents(context, stream, size, 0, &levels, NULL) == QUERN_OK && levels == 0);
  CHECK(quern_level_extents(context, stream, size, 1, &levels, NULL) == QUERN_ERROR_UNSUPPORTED);
  CHECK(quern_decompress_level(context, stream, size, 1, &array) == QUERN_ERROR_UNSUPPORTED);

  CHECK(quern_array_init(&array, QUERN_F32, 3, extents, values) == QUERN_OK);
  quern_verdict verdict = QUERN_VERDICT_INIT;
  CHECK(quern_verify(context, &array, stream, size, &verdict) == QUERN_OK && verdict.violations == 0);
  values[1234] += 1.0f;
  CHECK(quern_verify(context, &array, stream, size, &verdict) == QUERN_ERROR_BOUND_NOT_MET);
  CHECK(verdict.violations == 1 && verdict.first_index == 1234);
  CHECK(strstr(quern_last_error(context), "1234") != NULL);

  stream[size / 2] ^= 1;
  CHECK(quern_decompress(context, stream, size, &array) == QUERN_ERROR_CHECKSUM_MISMATCH);
  CHECK(quern_last_error(context)[0] != '\0');

  free(stream);
  free(back);
  free(values);
  quern_params_destroy(params);
  quern_context_destroy(context);
}

int main(void) {
  CHECK(quern_abi_version() == QUERN_ABI_VERSION);
  CHECK(strcmp(quern_status_name(QUERN_ERROR_CORRUPT), "corrupt") == 0);
  CHECK(strcmp(quern_status_name(12345), "unknown") == 0);
  quern_context_destroy(NULL);
  quern_params_destroy(NULL);
  round_trip();
  if (failures == 0) puts("the C interface works from C");
  return failures != 0;
}
