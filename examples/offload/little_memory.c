/* Trains a model whose optimizer state is larger than the memory that the process may take.
 *
 *   little_memory FOLDER
 *
 * The model is a table of 8 Mi weights in bfloat16 (16 MiB) that learns a function of the index from noisy samples. Its
 * gradients take 16 MiB, the state of Adam 96 MiB in binary32. The process limits itself to 120 MiB of address space, of
 * which the state cannot have 96 MiB; quern keeps it in FOLDER, with 12 MiB of it in memory. */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <quern/offload.h>

enum { kValues = 1 << 23, kSteps = 12 };

static float from_bfloat(uint16_t half) {
  const uint32_t bits = (uint32_t)half << 16;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static uint16_t to_bfloat(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

/* What the table is to learn, between -0.05 and 0.05. */
static float target(uint32_t i) { return (float)((i * 2654435761u) >> 16) * (0.1f / 65536) - 0.05f; }

static float noise(uint32_t i, uint32_t step) {
  uint32_t x = i * 0x9E3779B1u + step * 0x85EBCA77u;
  x = (x ^ x >> 15) * 0x2C1B3C6Du;
  return (float)(x >> 16) * (0.02f / 65536) - 0.01f;
}

/* The mean squared error, and its gradient for each weight. */
static double backward(const uint16_t* weights, uint16_t* gradient, uint32_t step) {
  double loss = 0;
  for (uint32_t i = 0; i < kValues; ++i) {
    const float off = from_bfloat(weights[i]) - target(i);
    loss += (double)off * off;
    gradient[i] = to_bfloat(off + noise(i, step));
  }
  return loss / kValues;
}

static int failed(const char* what) {
  fprintf(stderr, "little_memory: %s: %s\n", what, quern_offload_last_error());
  return 1;
}

static quern_status zeros(void* user, uint64_t region, uint64_t begin, uint64_t count, float* weights, float* first,
                          float* second) {
  (void)user, (void)region, (void)begin, (void)first, (void)second;
  memset(weights, 0, count * sizeof(float));
  return QUERN_OK;
}

/* The weights of a state that an earlier run left, rounded as the optimizer does. */
static quern_status read_weights(quern_offload* state, uint16_t* weights) {
  enum { kPart = 1 << 16 };
  static float part[kPart];
  for (uint32_t begin = 0; begin < kValues; begin += kPart) {
    const quern_status status = quern_offload_read(state, 0, begin, kPart, part, NULL, NULL);
    if (status != QUERN_OK) return status;
    for (uint32_t i = 0; i < kPart; ++i) weights[begin + i] = to_bfloat(part[i]);
  }
  return QUERN_OK;
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: little_memory FOLDER\n"), 2;
  const struct rlimit limit = {UINT64_C(120) << 20, UINT64_C(120) << 20};
  mallopt(M_ARENA_MAX, 1); /* address space that threads would reserve counts, too */
  if (setrlimit(RLIMIT_AS, &limit) != 0) return perror("setrlimit"), 1;
  uint16_t* const weights = calloc(kValues, sizeof(uint16_t));
  uint16_t* const gradient = malloc(kValues * sizeof(uint16_t));
  if (weights == NULL || gradient == NULL) return fprintf(stderr, "no memory for the model\n"), 1;
  void* const whole = malloc((size_t)kValues * 12);
  printf("96 MiB for the state of Adam in binary32: %s\n", whole == NULL ? "refused" : "granted");
  if (whole != NULL) return 1;

  const uint64_t sizes[1] = {kValues};
  const char* folders[1] = {argv[1]};
  quern_offload_desc desc = QUERN_OFFLOAD_DESC_INIT;
  desc.region_values = sizes;
  desc.region_count = 1;
  desc.folders = folders;
  desc.folder_count = 1;
  desc.subgroup_values = 1 << 19;
  desc.memory_limit = UINT64_C(12) << 20;
  quern_offload* state = NULL;
  if (quern_offload_open(&desc, &state) != QUERN_OK) return failed("cannot open the state");
  quern_offload_info info = QUERN_OFFLOAD_INFO_INIT;
  if (quern_offload_inspect(state, &info) != QUERN_OK) return failed("cannot inspect the state");
  const int goes_on = info.loaded != 0;
  if (goes_on && read_weights(state, weights) != QUERN_OK) return failed("cannot read the weights");
  if (!goes_on && quern_offload_load(state, 0, zeros, NULL) != QUERN_OK) return failed("cannot load weights");
  quern_offload_region region = QUERN_OFFLOAD_REGION_INIT;
  region.gradient_dtype = QUERN_BF16;
  region.gradient = gradient;
  region.copy = weights;
  region.rate = 0.008;
  double first = 0, last = 0;
  for (uint32_t step = 0; step < kSteps; ++step) {
    last = backward(weights, gradient, step);
    if (step == 0) first = last;
    if (quern_offload_step(state, &region, 1, NULL, NULL) != QUERN_OK) return failed("a step failed");
  }
  if (quern_offload_inspect(state, &info) != QUERN_OK) return failed("cannot inspect the state");
  printf("loss %.2e before training, %.2e after; state %llu MiB, of which at most %llu MiB were in memory\n", first,
         last, (unsigned long long)(info.state_bytes >> 20), (unsigned long long)(info.memory_bytes >> 20));
  quern_offload_destroy(state);
  free(gradient);
  free(weights);
  return goes_on || last < first / 5 ? 0 : 1; /* a run that goes on begins near the target */
}
