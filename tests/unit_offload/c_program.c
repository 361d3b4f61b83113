/* The C interface from C99: a state in files, some steps, and everything that is refused. Prints what fails. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quern/offload.h>

static int failures = 0;
#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      printf("line %d: " #condition " does not hold: %s\n", __LINE__, quern_offload_last_error()); \
      ++failures;                                                                                  \
    }                                                                                              \
  } while (0)

enum { kValues = 20000 };

static quern_status weights_of(void* user, uint64_t region, uint64_t begin, uint64_t count, float* weights,
                               float* first, float* second) {
  if (user != NULL) return QUERN_ERROR_CANCELLED;
  for (uint64_t i = 0; i < count; ++i) weights[i] = (float)(begin + i) * 0.001f + (float)region;
  return first[0] == 0 && second[0] == 0 ? QUERN_OK : QUERN_ERROR_INTERNAL;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const uint64_t sizes[2] = {kValues, 5};
  const char* folders[1] = {argv[1]};
  quern_offload_desc desc = QUERN_OFFLOAD_DESC_INIT;
  desc.region_values = sizes;
  desc.region_count = 2;
  desc.subgroup_values = 16384;
  desc.folders = folders;
  desc.folder_count = 1;
  desc.durable = 1;
  desc.file_form = 1;
  quern_offload* state = NULL;
  CHECK(quern_offload_open(NULL, &state) == QUERN_ERROR_INVALID_ARGUMENT && state == NULL);
  CHECK(quern_offload_open(&desc, NULL) == QUERN_ERROR_INVALID_ARGUMENT);
  CHECK(quern_offload_open(&desc, &state) == QUERN_OK && state != NULL);
  if (state == NULL) return 1;
  quern_offload* second_holder = NULL;
  CHECK(quern_offload_open(&desc, &second_holder) == QUERN_ERROR_INVALID_ARGUMENT);
  CHECK(strstr(quern_offload_last_error(), argv[1]) != NULL);

  float* gradient = malloc(kValues * sizeof(float));
  float* weights = malloc(kValues * sizeof(float));
  float* moments = malloc(kValues * sizeof(float));
  uint16_t* copy = malloc(kValues * sizeof(uint16_t));
  for (int i = 0; i < kValues; ++i) gradient[i] = i % 2 == 0 ? 0.5f : -0.25f;
  quern_offload_region regions[2] = {QUERN_OFFLOAD_REGION_INIT, QUERN_OFFLOAD_REGION_INIT};
  regions[0].gradient_dtype = regions[1].gradient_dtype = QUERN_F32;
  regions[0].gradient = regions[1].gradient = gradient;
  regions[0].weights = weights;
  regions[0].copy = copy;
  quern_offload_outcome outcome = QUERN_OFFLOAD_OUTCOME_INIT;
  CHECK(quern_offload_step(state, regions, 2, NULL, &outcome) == QUERN_ERROR_INVALID_ARGUMENT);
  CHECK(quern_offload_load(state, 0, weights_of, &outcome) == QUERN_ERROR_CANCELLED);
  CHECK(quern_offload_load(state, 0, weights_of, NULL) == QUERN_OK);
  CHECK(quern_offload_step(state, regions, 2, NULL, &outcome) == QUERN_OK && outcome.skipped == 0);
  CHECK(fabs(outcome.norm - sqrt(kValues / 2 * 0.3125 + 0.75 + 0.125)) < 1e-6);
  /* The first step of Adam goes by the rate against the sign of the gradient. */
  CHECK(fabs(weights[10] - (0.010 - 0.001)) < 1e-6 && fabs(weights[11] - (0.011 + 0.001)) < 1e-6);
  regions[1].gradient_dtype = 0;
  CHECK(quern_offload_step(state, regions, 2, NULL, NULL) == QUERN_ERROR_INVALID_ARGUMENT);
  regions[1].gradient_dtype = QUERN_F32;
  gradient[7] = NAN;
  CHECK(quern_offload_step(state, regions, 2, NULL, &outcome) == QUERN_OK && outcome.skipped == 1);
  quern_offload_step_desc strict = QUERN_OFFLOAD_STEP_DESC_INIT;
  strict.refuse_not_finite = 1;
  CHECK(quern_offload_step(state, regions, 2, &strict, NULL) == QUERN_ERROR_INVALID_ARGUMENT);
  quern_offload_info info = QUERN_OFFLOAD_INFO_INIT;
  CHECK(quern_offload_inspect(state, &info) == QUERN_OK && info.step_count == 1 && info.loaded == 1);
  CHECK(info.bytes_written >= 2 * info.state_bytes && info.memory_bytes > 0);
  quern_offload_destroy(state);

  CHECK(quern_offload_open(&desc, &state) == QUERN_OK);
  memset(weights, 0, kValues * sizeof(float));
  CHECK(quern_offload_read(state, 0, 0, kValues, weights, moments, NULL) == QUERN_OK);
  CHECK(fabs(weights[10] - 0.009) < 1e-6 && fabs(moments[10] - 0.05) < 0.003);
  CHECK(quern_offload_read(state, 2, 0, 1, weights, NULL, NULL) == QUERN_ERROR_INVALID_ARGUMENT);
  quern_offload_destroy(state);
  quern_offload_destroy(NULL);
  /* Goes on in entropy-coded files, with the same numbers. */
  float before = weights[10];
  for (int i = 0; i < kValues; ++i) gradient[i] = 0.5f;
  desc.file_form = 2;
  CHECK(quern_offload_open(&desc, &state) == QUERN_OK);
  CHECK(quern_offload_step(state, regions, 2, NULL, NULL) == QUERN_OK);
  CHECK(quern_offload_read(state, 0, 0, kValues, weights, NULL, NULL) == QUERN_OK && weights[10] != before);
  quern_offload_destroy(state);
  desc.file_form = 3;
  CHECK(quern_offload_open(&desc, &state) == QUERN_ERROR_INVALID_ARGUMENT && state == NULL);
  CHECK(strstr(quern_offload_last_error(), "file_form must be") != NULL);
  desc.file_form = 0;
  desc.bits = 3;
  CHECK(quern_offload_open(&desc, &state) == QUERN_ERROR_INVALID_ARGUMENT && state == NULL);
  free(gradient);
  free(weights);
  free(moments);
  free(copy);
  return failures == 0 ? 0 : 1;
}
