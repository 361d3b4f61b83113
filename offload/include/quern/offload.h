/* clang-format off */
/* Adam whose weights in binary32 and moments do not lie where training runs: in host memory under a limit, or in files
 * of one or several folders. Moments are kept as codes of 8 or 4 bits. The C interface (C99) of libquern-offload.
 *
 * The rules of quern/quern.h hold here too (status numbers, struct_size, the caller's allocator, nothing printed, no
 * exception out). Beyond them:
 *
 * Errors.    quern_offload_last_error() is the sentence about the last call of this thread that failed; it names file or
 *            option.
 * Regions.   Parameters with settings of their own. A region is a flat array: shape (values), contiguous, in host memory.
 * Bound.     8 bits: a second moment v > 0 becomes v' with v / 1.25 < v' < 1.25 v, a first moment moves by less than
 *            0.1 sqrt(v'). 4 bits: a factor of 4, 0.5 sqrt(v'). Rounding has no bias. Zeros stay; what codes cannot hold
 *            (NaN, infinities, denormal second moments) is kept bit for bit. Weights are exact.
 * Numbers.   Depend on parameters, gradients, seed and number of the step alone: not on folders, memory or threads.
 * Failure.   With folders, a step that fails or a process that dies leaves the state before the step; what the step wrote
 *            to the caller's copies is of no use then, and quern_offload_read() gives the weights. In memory alone, a step
 *            that runs out of memory half-way needs a load.
 * Handles.   One thread at a time may use a handle. After fork() the child's calls are refused; it may destroy the
 *            handle.
 *
 *   quern_offload* state; quern_offload_desc desc = QUERN_OFFLOAD_DESC_INIT;
 *   const char* folders[] = {"/nvme0/a", "/nvme1/a"};
 *   desc.region_values = sizes; desc.region_count = 2; desc.folders = folders; desc.folder_count = 2;
 *   desc.memory_limit = UINT64_C(8) << 30;
 *   quern_offload_open(&desc, &state);
 *   quern_offload_load(state, 0, give_weights, &model);        // once; a state that is there goes on
 *   quern_offload_step(state, regions, 2, NULL, &outcome);     // each step
 *   quern_offload_destroy(state);
 */
/* clang-format on */
#ifndef QUERN_OFFLOAD_H
#define QUERN_OFFLOAD_H

#include <quern/quern.h>

#ifdef __cplusplus
extern "C" {
#endif

/** "" when no call of this thread has failed. Valid until the next call of this thread. */
QUERN_API const char* quern_offload_last_error(void);

typedef struct quern_offload quern_offload;

typedef struct quern_offload_desc {
  uint32_t struct_size;
  uint32_t threads;              /**< that update; 0: one a hardware thread */
  const uint64_t* region_values; /**< values of each region */
  uint64_t region_count;
  uint64_t subgroup_values;   /**< values that are read, updated and written at once; a multiple of 16384 */
  uint32_t bits;              /**< of a code of a moment: 8 or 4 */
  uint32_t coarsest;          /**< 1: always the coarsest steps, for files that are packed afterwards */
  uint64_t seed;              /**< of the rounding, of a new state */
  const char* const* folders; /**< of a state always the same, in one order; none: everything stays in memory */
  uint64_t folder_count;
  const char* turn_file; /**< processes that name the same file read and write in turns; NULL: nobody waits */
  uint64_t memory_limit; /**< bytes of subgroups in memory, at least two of them; 0: no limit */
  uint32_t durable;      /**< 1: a step survives a power cut; 0: the death of the process */
  /** Of files; what a state holds does not depend on it. 0: entropy coded in folders that measure as so slow that
   *  coding pays; 1: as they lie in memory; 2: entropy coded. Coding takes 4 MiB of memory_limit for each folder, and
   *  more than that where many blocks do not fit their codes. */
  uint32_t file_form;
  quern_allocator allocator;
} quern_offload_desc;
#define QUERN_OFFLOAD_DESC_INIT                                                                                       \
  {                                                                                                                   \
    sizeof(quern_offload_desc), 1, NULL, 0, UINT64_C(16777216), 8, 0, 0, NULL, 0, NULL, 0, 0, 0, { NULL, NULL, NULL } \
  }

/** Opens the state that the folders hold, which must have this shape, or begins one, which must be loaded before its
 *  first step. `*state` is NULL on failure: QUERN_ERROR_INVALID_ARGUMENT where members do not fit each other or the
 *  state, or another optimizer holds a folder; QUERN_ERROR_MEMORY_LIMIT; QUERN_ERROR_IO. */
QUERN_API quern_status quern_offload_open(const quern_offload_desc* desc, quern_offload** state);
/** NULL is fine. What is in files stays. */
QUERN_API void quern_offload_destroy(quern_offload* state);

typedef struct quern_offload_info {
  uint32_t struct_size;
  uint32_t loaded;       /**< 0: the state is new and has no weights */
  uint64_t step_count;   /**< steps done */
  uint64_t state_bytes;  /**< weights and moments as they are stored */
  uint64_t memory_bytes; /**< most that subgroups took in memory so far */
  uint64_t bytes_read;   /**< from all folders, by this handle */
  uint64_t bytes_written;
  uint64_t cached_reads; /**< subgroups that a step found in memory */
  uint64_t subgroups;
} quern_offload_info;
#define QUERN_OFFLOAD_INFO_INIT \
  { sizeof(quern_offload_info), 0, 0, 0, 0, 0, 0, 0, 0 }

QUERN_API quern_status quern_offload_inspect(const quern_offload* state, quern_offload_info* info);

/** Fills in `count` values of a region from `begin` on: the weights, and both moments, which are zeros before. Not 0:
 *  the load fails with that status. */
typedef quern_status (*quern_offload_source)(void* user, uint64_t region, uint64_t begin, uint64_t count,
                                             float* weights, float* first, float* second);
/** Replaces the whole state, after so many steps. */
QUERN_API quern_status quern_offload_load(quern_offload* state, uint64_t step_count, quern_offload_source source,
                                          void* user);
/** Gives `count` values of a region from `begin` on; moments as their codes stand for. NULL: not wanted. */
QUERN_API quern_status quern_offload_read(quern_offload* state, uint64_t region, uint64_t begin, uint64_t count,
                                          float* weights, float* first, float* second);

/* ---- the state as it lies, for checkpoints ---- */

/** What the state is: shape, form, seed, steps, and size and hash of each subgroup, for quern_offload_restore(). `*size`
 *  is how many bytes it has; `bytes` (may be NULL with 0) gets them where `capacity` is enough, else nothing. The same
 *  bytes wherever the state lies. Without folders it hashes the whole state. */
QUERN_API quern_status quern_offload_describe(quern_offload* state, void* bytes, uint64_t capacity, uint64_t* size);
/** Bytes of a subgroup, below info.subgroups, and how many values it has: 4 bytes of weight (binary32, little-endian) a
 *  value come first, then its moments. Steps change sizes. Either may be NULL. */
QUERN_API quern_status quern_offload_subgroup_size(quern_offload* state, uint64_t subgroup, uint64_t* bytes,
                                                   uint64_t* values);
/** `count` bytes of a subgroup from byte `begin` on, as they lie at rest: no value is decoded. */
QUERN_API quern_status quern_offload_read_at_rest(quern_offload* state, uint64_t subgroup, uint64_t begin,
                                                  uint64_t count, void* bytes);
/** Fills in `count` bytes of a subgroup from byte `begin` on. Not 0: the restore fails with that status. */
typedef quern_status (*quern_offload_bytes_source)(void* user, uint64_t subgroup, uint64_t begin, uint64_t count,
                                                   void* bytes);
/** Replaces the whole state, bit for bit, by the one that was described: steps go on with the same numbers, seed
 *  included. The handle must have the same regions, subgroup_values, bits and coarsest; folders and memory may differ.
 *  QUERN_ERROR_CHECKSUM_MISMATCH where bytes are not those that were described; with folders the state is then the one
 *  before. */
QUERN_API quern_status quern_offload_restore(quern_offload* state, const void* description, uint64_t size,
                                             quern_offload_bytes_source source, void* user);

/** What a region gets in a step. Arrays of as many elements as the region has values. */
typedef struct quern_offload_region {
  uint32_t struct_size;
  quern_dtype gradient_dtype; /**< QUERN_BF16 or QUERN_F32 */
  const void* gradient;
  uint16_t* copy; /**< gets the weights in bfloat16, unless NULL */
  float* weights; /**< gets the weights, unless NULL */
  double rate;
  double beta1;
  double beta2;
  double epsilon;
  double decay;
  uint32_t coupled_decay;  /**< 1: Adam with L2; 0: AdamW */
  uint32_t separate_order; /**< 0: PyTorch's fused kernels' order of operations; 1: that of its loops over tensors */
} quern_offload_region;
#define QUERN_OFFLOAD_REGION_INIT \
  { sizeof(quern_offload_region), 0, NULL, NULL, NULL, 1e-3, 0.9, 0.999, 1e-8, 0, 0, 0 }

typedef struct quern_offload_step_desc {
  uint32_t struct_size;
  uint32_t
      refuse_not_finite; /**< 1: a gradient with NaN or infinity is an error; 0: the step is skipped, not counted */
  double loss_scale;     /**< gradients are this times too large */
  double max_norm;       /**< of all gradients together; 0: no clipping */
} quern_offload_step_desc;
#define QUERN_OFFLOAD_STEP_DESC_INIT \
  { sizeof(quern_offload_step_desc), 0, 1, 0 }

typedef struct quern_offload_outcome {
  uint32_t struct_size;
  uint32_t skipped;
  double norm; /**< of all gradients, before clipping */
} quern_offload_outcome;
#define QUERN_OFFLOAD_OUTCOME_INIT \
  { sizeof(quern_offload_outcome), 0, 0 }

/** One step, with one entry a region. `desc` and `outcome` may be NULL. */
QUERN_API quern_status quern_offload_step(quern_offload* state, const quern_offload_region* regions, uint64_t count,
                                          const quern_offload_step_desc* desc, quern_offload_outcome* outcome);

#ifdef __cplusplus
}
#endif

#endif
