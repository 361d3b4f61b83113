/* Saves the state of an offloaded optimizer as one checkpoint, as it lies, and goes on from it in another optimizer: no
 * moment is decoded in between. Usage: checkpoint FOLDER. Exit status 0: the steps that follow give the same weights. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quern/checkpoint.h>
#include <quern/offload.h>

enum { kValues = 50000, kSubgroup = 16384 };

static void check(quern_status status, const char* what, const char* why) {
  if (status == QUERN_OK) return;
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}
#define OFFLOAD(call) check(call, #call, quern_offload_last_error())
#define CHECKPOINT(call) check(call, #call, quern_checkpoint_last_error())

static quern_status give_weights(void* user, uint64_t region, uint64_t begin, uint64_t count, float* weights,
                                 float* first, float* second) {
  (void)user, (void)region, (void)first, (void)second;
  for (uint64_t i = 0; i < count; ++i) weights[i] = (float)((begin + i) % 1000) * 0.001f;
  return QUERN_OK;
}

static void train(quern_offload* state, int steps, float* weights) {
  float* const gradient = malloc(kValues * sizeof(float));
  if (gradient == NULL) exit(1);
  for (int s = 0; s < steps; ++s) {
    quern_offload_info info = QUERN_OFFLOAD_INFO_INIT;
    OFFLOAD(quern_offload_inspect(state, &info));
    for (int i = 0; i < kValues; ++i) gradient[i] = (float)((i * 7 + (int)info.step_count * 13) % 101 - 50) * 1e-4f;
    quern_offload_region region = QUERN_OFFLOAD_REGION_INIT;
    region.gradient_dtype = QUERN_F32;
    region.gradient = gradient;
    region.weights = weights;
    OFFLOAD(quern_offload_step(state, &region, 1, NULL, NULL));
  }
  free(gradient);
}

static quern_offload* open_state(const char* folder) {
  const uint64_t values = kValues;
  const char* folders[1] = {folder};
  quern_offload_desc desc = QUERN_OFFLOAD_DESC_INIT;
  desc.region_values = &values;
  desc.region_count = 1;
  desc.subgroup_values = kSubgroup;
  desc.folders = folders;
  desc.folder_count = folder == NULL ? 0 : 1;
  quern_offload* state = NULL;
  OFFLOAD(quern_offload_open(&desc, &state));
  return state;
}

/* A blob that says what the state is, and for each subgroup a tensor of its weights and one of its moments. Large states
 * are saved by several writers of one group, one after the other, so that few subgroups are in memory at once. */
static void save(quern_offload* state, quern_checkpoint_store* store, uint64_t step) {
  quern_checkpoint_save_desc desc = QUERN_CHECKPOINT_SAVE_DESC_INIT;
  desc.step = step;
  quern_checkpoint_writer* writer = NULL;
  CHECKPOINT(quern_checkpoint_begin(store, &desc, &writer));
  uint64_t size = 0;
  OFFLOAD(quern_offload_describe(state, NULL, 0, &size));
  char* const description = malloc(size);
  if (description == NULL) exit(1);
  OFFLOAD(quern_offload_describe(state, description, size, &size));
  CHECKPOINT(quern_checkpoint_add_blob(writer, "optimizer", description, size));
  free(description);
  quern_offload_info info = QUERN_OFFLOAD_INFO_INIT;
  OFFLOAD(quern_offload_inspect(state, &info));
  char** const bytes = calloc(info.subgroups, sizeof(char*));
  if (bytes == NULL) exit(1);
  for (uint64_t g = 0; g < info.subgroups; ++g) {
    uint64_t count = 0;
    char name[64];
    OFFLOAD(quern_offload_subgroup_size(state, g, &size, &count));
    bytes[g] = malloc(size);
    if (bytes[g] == NULL) exit(1);
    OFFLOAD(quern_offload_read_at_rest(state, g, 0, size, bytes[g]));
    quern_checkpoint_tensor tensor = QUERN_CHECKPOINT_TENSOR_INIT;
    tensor.name = name;
    tensor.rank = 1;
    tensor.dtype = QUERN_F32;
    tensor.data = bytes[g];
    tensor.extents[0] = count;
    snprintf(name, sizeof(name), "optimizer.%llu.weights", (unsigned long long)g);
    CHECKPOINT(quern_checkpoint_add(writer, &tensor));
    tensor.dtype = QUERN_U8;
    tensor.data = bytes[g] + 4 * count;
    tensor.extents[0] = size - 4 * count;
    snprintf(name, sizeof(name), "optimizer.%llu.moments", (unsigned long long)g);
    CHECKPOINT(quern_checkpoint_add(writer, &tensor));
  }
  quern_checkpoint_result result = QUERN_CHECKPOINT_RESULT_INIT;
  CHECKPOINT(quern_checkpoint_publish(writer, &result));
  quern_checkpoint_writer_destroy(writer);
  for (uint64_t g = 0; g < info.subgroups; ++g) free(bytes[g]);
  free(bytes);
  printf("%llu bytes of state, %llu stored\n", (unsigned long long)result.raw_bytes,
         (unsigned long long)result.stored_bytes);
}

/* Bytes of a subgroup lie in one of its two tensors. */
static quern_status read_bytes(void* user, uint64_t subgroup, uint64_t begin, uint64_t count, void* out) {
  quern_checkpoint_reader* const reader = user;
  char name[64];
  uint64_t index = 0;
  quern_checkpoint_tensor_info weights = QUERN_CHECKPOINT_TENSOR_INFO_INIT;
  snprintf(name, sizeof(name), "optimizer.%llu.weights", (unsigned long long)subgroup);
  quern_status status = quern_checkpoint_find(reader, name, &index);
  if (status == QUERN_OK) status = quern_checkpoint_tensor_at(reader, index, &weights);
  quern_checkpoint_target target = QUERN_CHECKPOINT_TARGET_INIT;
  target.data = out;
  target.bytes = count;
  if (status != QUERN_OK || begin == 0)
    return status != QUERN_OK ? status : quern_checkpoint_read(reader, index, NULL, NULL, &target);
  snprintf(name, sizeof(name), "optimizer.%llu.moments", (unsigned long long)subgroup);
  const uint64_t first = begin - weights.raw_bytes;
  const uint64_t end = first + count;
  status = quern_checkpoint_find(reader, name, &index);
  return status == QUERN_OK ? quern_checkpoint_read(reader, index, &first, &end, &target) : status;
}

static void restore(quern_offload* state, quern_checkpoint_store* store) {
  quern_checkpoint_reader* reader = NULL;
  CHECKPOINT(quern_checkpoint_open(store, QUERN_CHECKPOINT_NEWEST, &reader));
  uint64_t size = 0;
  CHECKPOINT(quern_checkpoint_blob_at(reader, 0, NULL, &size));
  char* const description = malloc(size);
  if (description == NULL) exit(1);
  CHECKPOINT(quern_checkpoint_read_blob(reader, 0, description, size));
  OFFLOAD(quern_offload_restore(state, description, size, read_bytes, reader));
  free(description);
  quern_checkpoint_reader_destroy(reader);
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: checkpoint FOLDER\n"), 2;
  char folder[4096], checkpoints[4096];
  snprintf(folder, sizeof(folder), "%s/state", argv[1]);
  snprintf(checkpoints, sizeof(checkpoints), "%s/checkpoints", argv[1]);
  static float weights[kValues], resumed[kValues];
  quern_checkpoint_store_desc desc = QUERN_CHECKPOINT_STORE_DESC_INIT;
  desc.mode = QUERN_CHECKPOINT_WRITE;
  quern_checkpoint_store* store = NULL;
  CHECKPOINT(quern_checkpoint_store_open(checkpoints, &desc, &store));
  quern_offload* state = open_state(folder);
  OFFLOAD(quern_offload_load(state, 0, give_weights, NULL));
  train(state, 3, weights);
  save(state, store, 3);
  train(state, 4, weights);
  quern_offload* const other = open_state(NULL);
  restore(other, store);
  train(other, 4, resumed);
  quern_offload_destroy(state);
  quern_offload_destroy(other);
  quern_checkpoint_store_close(store);
  const int same = memcmp(weights, resumed, sizeof(weights)) == 0;
  puts(same ? "the same weights, bit for bit" : "other weights");
  return same ? 0 : 1;
}
