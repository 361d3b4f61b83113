/* A trainer that saves every 50 steps and goes on from the newest checkpoint when it is started again.
 *   cc train.c $(pkg-config --cflags --libs quern-checkpoint) -lm -o train && ./train runs/a */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quern/checkpoint.h>

enum { kInputs = 4096, kOutputs = 16, kSteps = 100, kSaveEvery = 50 };

typedef struct {
  const char* name;
  float* values;
} state_tensor;

static void must(quern_status status) {
  if (status == QUERN_OK) return;
  fprintf(stderr, "%s\n", quern_checkpoint_last_error());
  exit(1);
}

static void on_note(void* user, const char* sentence) {
  (void)user;
  fprintf(stderr, "note: %s\n", sentence);
}

/* One step of Adam on a made-up problem: weights that follow a target. */
static void train_step(uint64_t step, float* weight, float* mean, float* square) {
  const float rate = 1e-3f * sqrtf(1 - powf(0.999f, (float)step)) / (1 - powf(0.9f, (float)step));
  for (int i = 0; i < kInputs * kOutputs; ++i) {
    const float gradient = weight[i] - sinf(0.01f * (float)i) + 0.01f * cosf((float)step + (float)i);
    mean[i] = 0.9f * mean[i] + 0.1f * gradient;
    square[i] = 0.999f * square[i] + 0.001f * gradient * gradient;
    weight[i] -= rate * mean[i] / (sqrtf(square[i]) + 1e-8f);
  }
}

static void save(quern_checkpoint_store* store, uint64_t step, uint64_t base, const state_tensor* tensors, int count) {
  quern_checkpoint_save_desc desc = QUERN_CHECKPOINT_SAVE_DESC_INIT;
  quern_checkpoint_result result = QUERN_CHECKPOINT_RESULT_INIT;
  quern_checkpoint_writer* writer;
  desc.step = step;
  desc.base = base;
  must(quern_checkpoint_begin(store, &desc, &writer));
  for (int i = 0; i < count; ++i) {
    quern_checkpoint_tensor tensor = QUERN_CHECKPOINT_TENSOR_INIT;
    tensor.name = tensors[i].name;
    tensor.dtype = QUERN_F32;
    tensor.rank = 2;
    tensor.extents[0] = kOutputs;
    tensor.extents[1] = kInputs;
    tensor.data = tensors[i].values;
    must(quern_checkpoint_add(writer, &tensor));
  }
  must(quern_checkpoint_publish(writer, &result));
  quern_checkpoint_writer_destroy(writer);
  printf("step %llu: %llu bytes in %llu\n", (unsigned long long)step, (unsigned long long)result.raw_bytes,
         (unsigned long long)result.stored_bytes);
}

/* Returns the step of the newest checkpoint, or 0 when there is none; the tensors are restored from it. */
static uint64_t restore(quern_checkpoint_store* store, const state_tensor* tensors, int count) {
  quern_checkpoint_info info = QUERN_CHECKPOINT_INFO_INIT;
  quern_checkpoint_reader* reader;
  uint64_t checkpoints;
  must(quern_checkpoint_steps(store, NULL, 0, &checkpoints));
  if (checkpoints == 0) return 0;
  must(quern_checkpoint_open(store, QUERN_CHECKPOINT_NEWEST, &reader));
  must(quern_checkpoint_inspect(reader, &info));
  for (int i = 0; i < count; ++i) {
    quern_checkpoint_target target = QUERN_CHECKPOINT_TARGET_INIT;
    uint64_t index;
    must(quern_checkpoint_find(reader, tensors[i].name, &index));
    target.data = tensors[i].values;
    target.bytes = sizeof(float) * kInputs * kOutputs;
    must(quern_checkpoint_read(reader, index, NULL, NULL, &target));
  }
  quern_checkpoint_reader_destroy(reader);
  return info.step;
}

int main(int argc, char** argv) {
  const size_t elements = (size_t)kInputs * kOutputs;
  state_tensor tensors[3] = {{"layer.weight", calloc(elements, sizeof(float))},
                             {"optimizer.state.layer.weight.exp_avg", calloc(elements, sizeof(float))},
                             {"optimizer.state.layer.weight.exp_avg_sq", calloc(elements, sizeof(float))}};
  quern_checkpoint_store_desc desc = QUERN_CHECKPOINT_STORE_DESC_INIT;
  quern_checkpoint_store* store;
  uint64_t base = QUERN_CHECKPOINT_NO_BASE, first, step;
  if (argc != 2) {
    fprintf(stderr, "usage: train STORE\n");
    return 1;
  }
  for (int i = 0; i < 3; ++i)
    if (tensors[i].values == NULL) return 1;
  desc.mode = QUERN_CHECKPOINT_WRITE;
  desc.threads = 0;
  desc.note = on_note;
  must(quern_checkpoint_store_open(argv[1], &desc, &store));

  first = restore(store, tensors, 3);
  if (first != 0) {
    printf("goes on from step %llu\n", (unsigned long long)first);
    base = first;
  }
  for (step = first + 1; step <= first + kSteps; ++step) {
    train_step(step, tensors[0].values, tensors[1].values, tensors[2].values);
    if (step % kSaveEvery != 0) continue;
    save(store, step, base, tensors, 3);
    base = step;
  }
  quern_checkpoint_store_close(store);
  for (int i = 0; i < 3; ++i) free(tensors[i].values);
  return 0;
}
