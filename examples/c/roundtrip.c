/* Compresses a field under an error bound, brings it back and has the library check every value.
 *   cc roundtrip.c $(pkg-config --cflags --libs quern) -lm -o roundtrip */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <quern/quern.h>

static void must(quern_status status, const quern_context* context) {
  if (status == QUERN_OK) return;
  fprintf(stderr, "%s: %s\n", quern_status_name(status), quern_last_error(context));
  exit(1);
}

int main(void) {
  const uint64_t extents[3] = {32, 48, 64}; /* slowest axis first */
  const size_t elements = 32 * 48 * 64;
  float* values = malloc(elements * sizeof(float));
  float* back = malloc(elements * sizeof(float));
  if (values == NULL || back == NULL) return 1;
  for (size_t i = 0; i < elements; ++i) values[i] = sinf(0.01f * (float)(i % 3072)) + 0.1f * cosf(0.002f * (float)i);

  quern_context* context;
  quern_params* params;
  must(quern_context_create(NULL, &context), NULL);
  must(quern_params_create(&params), NULL);
  must(quern_params_set_bound(params, QUERN_BOUND_ABS, 1e-3), NULL);

  quern_array field;
  uint64_t room, size;
  must(quern_array_init(&field, QUERN_F32, 3, extents, values), NULL);
  must(quern_compress_bound(&field, params, &room), NULL);
  void* stream = malloc(room);
  if (stream == NULL) return 1;
  must(quern_compress(context, params, &field, stream, room, &size, NULL), context);

  quern_array result;
  must(quern_array_init(&result, QUERN_F32, 3, extents, back), NULL);
  must(quern_decompress(context, stream, size, &result), context);
  must(quern_verify(context, &field, stream, size, NULL), context);
  printf("quern %s: %zu bytes in %llu, value 1000 was %g and is %g\n", quern_version_string(), elements * sizeof(float),
         (unsigned long long)size, values[1000], back[1000]);

  free(stream);
  free(back);
  free(values);
  quern_params_destroy(params);
  quern_context_destroy(context);
  return 0;
}
