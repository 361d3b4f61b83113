/* clang-format off */
/* Training checkpoints in a store: a folder that survives crashes. The C interface (C99) of libquern-checkpoint.
 *
 * The rules of quern/quern.h hold here too (status numbers, struct_size, the caller's allocator and threads, nothing printed, no
 * exception out). Beyond them:
 *
 * Errors.    quern_checkpoint_last_error() is the sentence about the last call of this thread that failed; it names file and
 *            tensor. Notes (what was passed over, kept or removed, and why) go to the store's `note`, on the calling thread.
 * Tensors.   Contiguous, slowest axis first, rank 0 to 8, extents may be 0; in host memory or a CUDA device's.
 * Pieces.    A tensor may be saved in pieces that do not overlap, by one writer or several. Readers see it whole.
 * Handles.   A store may be used by several threads at once, with an allocator (and runner) that may be; so may a writer be
 *            given tensors, and a reader be asked, by several at once: calls on a reader wait for each other. The store must
 *            outlive its writers and readers. Handles that run threads of their own do not survive fork().
 * Memory.    All of it comes from the store's allocator, but for some hundred bytes a name that the parser of file headers
 *            takes from the C++ heap while a manifest is read.
 * Safety.    A checkpoint is there wholly or not at all. Failures, crashes and lost power leave earlier ones untouched.
 *
 *   quern_checkpoint_store* store; quern_checkpoint_writer* writer;
 *   quern_checkpoint_store_open("runs/a", &desc, &store);            // desc.mode = QUERN_CHECKPOINT_WRITE
 *   quern_checkpoint_begin(store, &save, &writer);                   // save.step = 500
 *   quern_checkpoint_add(writer, &tensor);                           // borrowed until published
 *   if (quern_checkpoint_publish(writer, NULL)) puts(quern_checkpoint_last_error());
 *   quern_checkpoint_writer_destroy(writer);
 */
/* clang-format on */
#ifndef QUERN_CHECKPOINT_H
#define QUERN_CHECKPOINT_H

#include <quern/quern.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Element types of tensors: those of quern_dtype, and these. Numbers do not change. Values of other types are saved as
 *  bytes (QUERN_U8, one axis) together with the name that files give the type: `declared_dtype`. */
enum {
  QUERN_F8_E4M3 = 5,
  QUERN_F8_E5M2 = 6,
  QUERN_BOOL = 24,
  QUERN_F8_E4M3FNUZ = 25,
  QUERN_F8_E5M2FNUZ = 26,
  QUERN_F8_E8M0 = 27,
  QUERN_C64 = 28, /**< two f32, real part first */
  QUERN_C128 = 29 /**< two f64 */
};

/** In the place of a step: the newest checkpoint that is whole; where a base may be named: none. */
#define QUERN_CHECKPOINT_NEWEST UINT64_MAX
#define QUERN_CHECKPOINT_NO_BASE UINT64_MAX
/** Where a base may be named: the newest checkpoint that has no base itself, until four others were saved against it;
 * then the next one is stored whole. */
#define QUERN_CHECKPOINT_BASE_NEWEST (UINT64_MAX - 1)

/** "" when no call of this thread has failed. Valid until the next call of this thread. */
QUERN_API const char* quern_checkpoint_last_error(void);

/* ---- store ------------------------------------------------------------------------------------------------------ */

typedef struct quern_checkpoint_store quern_checkpoint_store;

typedef int32_t quern_checkpoint_mode;
enum {
  QUERN_CHECKPOINT_READ = 0, /**< the store must be there; nothing is written */
  QUERN_CHECKPOINT_WRITE = 1 /**< made when it is missing */
};

typedef struct quern_checkpoint_store_desc {
  uint32_t struct_size;
  quern_checkpoint_mode mode;
  /** Threads that a writer or reader may use: 1 the calling thread alone, 0 one a hardware thread. Not used when
   * runner.run is set. */
  uint32_t threads;
  uint32_t reserved;                              /**< 0 */
  quern_runner runner;                            /**< run NULL: the library's own threads */
  quern_allocator allocator;                      /**< of the store, its writers, its readers and all their calls */
  void (*note)(void* user, const char* sentence); /**< NULL: notes are dropped */
  void* note_user;
} quern_checkpoint_store_desc;
#define QUERN_CHECKPOINT_STORE_DESC_INIT \
  { sizeof(quern_checkpoint_store_desc), 0, 1, 0, {NULL, 0, NULL}, {NULL, NULL, NULL}, NULL, NULL }

/** `desc` may be NULL: for reading, one thread. `*store` is NULL on failure. The path is copied. */
QUERN_API quern_status quern_checkpoint_store_open(const char* path, const quern_checkpoint_store_desc* desc,
                                                   quern_checkpoint_store** store);
/** Writers and readers of the store are destroyed before. */
QUERN_API void quern_checkpoint_store_close(quern_checkpoint_store* store);
/** Steps of the checkpoints in the store, ascending, each once, whether they are whole or not. `*count` is how many
 *  there are; `steps` (may be NULL with 0) gets the first `capacity` of them. */
QUERN_API quern_status quern_checkpoint_steps(quern_checkpoint_store* store, uint64_t* steps, uint64_t capacity,
                                              uint64_t* count);
/** The same steps in the order in which their checkpoints were published, the newest last: after a run was taken up
 * from an older step, the newest is not the largest. */
QUERN_API quern_status quern_checkpoint_history(quern_checkpoint_store* store, uint64_t* steps, uint64_t capacity,
                                                uint64_t* count);
/** The step that QUERN_CHECKPOINT_BASE_NEWEST means now, or QUERN_CHECKPOINT_NO_BASE: for writers of a group, which
 * must all begin with the same base. */
QUERN_API quern_status quern_checkpoint_newest_base(quern_checkpoint_store* store, uint64_t* step);

/* ---- saving ----------------------------------------------------------------------------------------------------- */

typedef struct quern_checkpoint_writer quern_checkpoint_writer;

typedef struct quern_checkpoint_save_desc {
  uint32_t struct_size;
  uint32_t parity_data;  /**< parts that parity protects together; 0: no parity */
  uint32_t parity_files; /**< so many files of parity_data + parity_files may be lost */
  int32_t zstd_level;    /**< 1 to 19: zstd may pack where it is smaller; 0: never */
  uint64_t step;
  /** Step of the checkpoint that tensors may be differences to, or QUERN_CHECKPOINT_BASE_NEWEST, or
   *  QUERN_CHECKPOINT_NO_BASE. What of it is missing, damaged or of another shape is not used, and a note says so. */
  uint64_t base;
  const char* preset; /**< what may be lost: as `quern checkpoint save --preset`; NULL: "exact", nothing */
  /** Several writers make one checkpoint together: each begins with the same group (1 to 64 letters, digits, '-', '_',
   *  never used before in the store) and another number `writer` below `writers`; the last to publish makes it appear.
   *  NULL: one writer. */
  const char* group;
  uint32_t writer;
  uint32_t writers;
  uint32_t replace;        /**< 1: the step may be in the store already; what is there is removed once this is safe */
  uint32_t reserved;       /**< 0 */
  quern_progress progress; /**< counts bytes of tensors; called by publish */
  void* progress_user;
  /** Rules by name, role, type and size that come before the preset's: the JSON text that `quern checkpoint save
   *  --policy` reads from a file (docs/format-checkpoint.md, "Policies"). NULL: none. Copied by begin. */
  const char* policy;
  /** How the optimizer steps, so that a step may be stored as its gradient: the JSON text that --replay reads from a
   *  file (its "optimizer's rule"), with its "lr"; its "step" is this step unless it says another. NULL: never.
   *  Copied by begin. */
  const char* replay;
  /** Names and texts to keep with the checkpoint: metrics, descriptions. Copied. A metric is a number as text ("2.75").
   *  Names have 1 to 255 bytes, each once; texts up to 65535. Of a group the first writer that names a tag counts. */
  const char* const* tag_names;
  const char* const* tag_texts;
  uint64_t tag_count;
} quern_checkpoint_save_desc;
#define QUERN_CHECKPOINT_SAVE_DESC_INIT                                                                           \
  {                                                                                                               \
    sizeof(quern_checkpoint_save_desc), 0, 0, 0, 0, QUERN_CHECKPOINT_NO_BASE, NULL, NULL, 0, 1, 0, 0, NULL, NULL, \
        NULL, NULL, NULL, NULL, 0                                                                                 \
  }

/** Opens a checkpoint for writing. Fails when the step is there already (again at publish, when another writer was
 *  faster), the preset is not known, or policy or replay are not what they should be; the sentence names the rule.
 *  `*writer` is NULL on failure. */
QUERN_API quern_status quern_checkpoint_begin(quern_checkpoint_store* store, const quern_checkpoint_save_desc* desc,
                                              quern_checkpoint_writer** writer);

/** A tensor, or a piece of one, to be saved. Name and role are copied; the values are borrowed until the writer has
 *  published, was aborted or destroyed, and must not change meanwhile: when the writer finds that they did, the save
 *  fails with QUERN_ERROR_INVALID_ARGUMENT, and the message names the tensor. */
typedef struct quern_checkpoint_tensor {
  uint32_t struct_size;
  quern_dtype dtype;
  const char* name; /**< 1 to 65535 bytes of UTF-8, once in a checkpoint but for pieces */
  const char* role; /**< "param", "exp_avg", "exp_avg_sq", "momentum", "grad", "step"; NULL: told from the name */
  const void* data; /**< may be NULL when there are no elements */
  quern_memory memory;
  int32_t device; /**< ordinal, of memory that is not the host's: read after what its default stream waits for */
  uint32_t rank;
  uint32_t is_piece;                /**< 1: `whole` and `offset` say of what, and where it begins there */
  uint64_t extents[QUERN_MAX_RANK]; /**< of the values */
  uint64_t whole[QUERN_MAX_RANK];
  uint64_t offset[QUERN_MAX_RANK];
  /** What safetensors files call the values, where that is neither `dtype` nor `extents`: types that have no number
   * here
   *  ("F4", "F6_E2M3", whatever comes), more than 8 axes. NULL: it is. Then `extents` is one axis; no piece. Copied. */
  const char* declared_dtype;
  const uint64_t* declared_extents;
  uint32_t declared_rank;
  uint32_t reserved; /**< 0 */
} quern_checkpoint_tensor;
#define QUERN_CHECKPOINT_TENSOR_INIT \
  { sizeof(quern_checkpoint_tensor), 0, NULL, NULL, NULL, 0, 0, 0, 0, {0}, {0}, {0}, NULL, NULL, 0, 0 }

/** Takes a tensor in; O(1), nothing is read. Any threads, also at once: then the order is that in which they came.
 *  Refuses a name given twice. */
QUERN_API quern_status quern_checkpoint_add(quern_checkpoint_writer* writer, const quern_checkpoint_tensor* tensor);
/** Takes opaque bytes in (states of random generators, of data loaders, descriptions); they are written at once. */
QUERN_API quern_status quern_checkpoint_add_blob(quern_checkpoint_writer* writer, const char* name, const void* bytes,
                                                 uint64_t size);

typedef struct quern_checkpoint_result {
  uint32_t struct_size;
  uint32_t published; /**< 0: other writers of the group have not arrived yet */
  uint64_t step;
  uint64_t raw_bytes;      /**< of this writer's tensors */
  uint64_t stored_bytes;   /**< of this writer's tensors in the parts; parity and manifest come on top */
  uint64_t manifest_bytes; /**< 0 when not published */
  uint64_t tensors;
  uint64_t stored_already; /**< tensors whose bytes the store had */
  uint64_t differences;    /**< tensors that need an earlier checkpoint to be restored */
  char id[72];             /**< the checkpoint's name beside its step, with a 0 behind it */
  uint64_t lossy;          /**< tensors of this writer that come back other than they were; a note says which */
} quern_checkpoint_result;
#define QUERN_CHECKPOINT_RESULT_INIT \
  { sizeof(quern_checkpoint_result), 0, 0, 0, 0, 0, 0, 0, 0, {0}, 0 }

/** Codes all tensors, one after the other, each on the store's threads, makes them safe on disk and, as the last writer
 *  of a group, visible. Memory: about twice the largest tensor, three times with a base. After it, successful or not,
 *  the writer can only be destroyed; after a failure there is no checkpoint. `result` may be NULL. */
QUERN_API quern_status quern_checkpoint_publish(quern_checkpoint_writer* writer, quern_checkpoint_result* result);
/** Gives the checkpoint up and removes what was written; the writer can only be destroyed then. */
QUERN_API quern_status quern_checkpoint_abort(quern_checkpoint_writer* writer);
/** Aborts what was not published. No other thread may be in a call on the writer. */
QUERN_API void quern_checkpoint_writer_destroy(quern_checkpoint_writer* writer);

/* ---- reading ---------------------------------------------------------------------------------------------------- */

typedef struct quern_checkpoint_reader quern_checkpoint_reader;

/** Opens the checkpoint of that step, or QUERN_CHECKPOINT_NEWEST: the one published last that is whole, with what it
 *  needs of others; why others were passed over becomes a note. Later changes of the store do not show, but collection
 * takes the values away. `*reader` is NULL on failure. */
QUERN_API quern_status quern_checkpoint_open(quern_checkpoint_store* store, uint64_t step,
                                             quern_checkpoint_reader** reader);
QUERN_API void quern_checkpoint_reader_destroy(quern_checkpoint_reader* reader);

/** Texts belong to the reader. */
typedef struct quern_checkpoint_info {
  uint32_t struct_size;
  uint32_t parity_data;
  uint32_t parity_files;
  uint32_t reserved;
  uint64_t step;
  uint64_t base;         /**< QUERN_CHECKPOINT_NO_BASE: none */
  uint64_t tensors;      /**< pieces counted once for their tensor */
  uint64_t blobs;        /**< opaque bytes under a name */
  uint64_t raw_bytes;    /**< of all tensors */
  uint64_t stored_bytes; /**< of parts and parity, without the manifest */
  const char* id;
  const char* library; /**< version that wrote it */
} quern_checkpoint_info;
#define QUERN_CHECKPOINT_INFO_INIT \
  { sizeof(quern_checkpoint_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL }

QUERN_API quern_status quern_checkpoint_inspect(quern_checkpoint_reader* reader, quern_checkpoint_info* info);
/** Tag `index`, below `*count`: both texts belong to the reader. Any of the three may be NULL. Past the last tag only
 * the count is written, and the texts are NULL. */
QUERN_API quern_status quern_checkpoint_tag_at(quern_checkpoint_reader* reader, uint64_t index, const char** name,
                                               const char** text, uint64_t* count);

/** A tensor as it was saved. Texts belong to the reader. */
typedef struct quern_checkpoint_tensor_info {
  uint32_t struct_size;
  quern_dtype dtype;
  uint32_t rank;
  uint32_t pieces; /**< it was saved in; 1 for most */
  uint64_t extents[QUERN_MAX_RANK];
  uint64_t raw_bytes;
  uint64_t stored_bytes;   /**< 0 where its bytes were in the store already */
  uint64_t depth;          /**< tensors that are decoded one after the other before it */
  uint64_t stored_already; /**< pieces whose bytes were in the store already */
  double bound;            /**< of modes that lose something, in the mode's own terms; else 0 */
  uint32_t lossless;       /**< 1: every bit comes back */
  uint32_t reserved;
  const char* name;
  const char* role;
  const char* mode; /**< how it is coded, of its first piece: see docs/format-tensor.md; "alias": stored already */
  /** What it was called when it was saved, where that is neither `dtype` nor `extents`; else NULL. */
  const char* declared_dtype;
  const uint64_t* declared_extents;
  uint32_t declared_rank;
  uint32_t reserved2;
} quern_checkpoint_tensor_info;
#define QUERN_CHECKPOINT_TENSOR_INFO_INIT \
  { sizeof(quern_checkpoint_tensor_info), 0, 0, 0, {0}, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, 0, 0 }

/** Tensor `index` of info.tensors, in the order they were saved. */
QUERN_API quern_status quern_checkpoint_tensor_at(quern_checkpoint_reader* reader, uint64_t index,
                                                  quern_checkpoint_tensor_info* info);
/** Where the tensor of that name is; QUERN_ERROR_INVALID_ARGUMENT when there is none. */
QUERN_API quern_status quern_checkpoint_find(quern_checkpoint_reader* reader, const char* name, uint64_t* index);

/** Memory that is read into. */
typedef struct quern_checkpoint_target {
  uint32_t struct_size;
  quern_memory memory;
  int32_t device;    /**< ordinal, of memory that is not the host's: written when the call returns */
  uint32_t reserved; /**< 0 */
  void* data;
  uint64_t bytes; /**< exactly those of the elements asked for */
} quern_checkpoint_target;
#define QUERN_CHECKPOINT_TARGET_INIT \
  { sizeof(quern_checkpoint_target), 0, 0, 0, NULL, 0 }

/** Restores a tensor, or of it the half-open box [begin, end) (both NULL: all), contiguous. Of the box, the chunks of
 *  1 MiB that it meets are decoded, and the same elements of tensors that this one was saved as a difference to; a
 *  tensor that was stored as its gradient is decoded whole. The last 32 chunks are kept for the next call. Each stored
 *  record is checked against its checksum; the hash of all values is checked where a tensor, or a piece it was saved
 *  in, is read whole. On failure the target's content is unspecified. */
QUERN_API quern_status quern_checkpoint_read(quern_checkpoint_reader* reader, uint64_t index, const uint64_t* begin,
                                             const uint64_t* end, const quern_checkpoint_target* target);

/** Blob `index` of info.blobs: its name, which belongs to the reader, and its size; either may be NULL. */
QUERN_API quern_status quern_checkpoint_blob_at(quern_checkpoint_reader* reader, uint64_t index, const char** name,
                                                uint64_t* size);
/** Reads a blob, exactly `size` bytes, checked against its hash. */
QUERN_API quern_status quern_checkpoint_read_blob(quern_checkpoint_reader* reader, uint64_t index, void* bytes,
                                                  uint64_t size);

/* ---- exporting -------------------------------------------------------------------------------------------------- */

/** A model for others to load; texts are copied. */
typedef struct quern_checkpoint_export_desc {
  uint32_t struct_size;
  quern_dtype dtype; /**< QUERN_F32, F16 or BF16: floats of 16 to 64 bits are rounded to it; 0: they stay */
  /** Globs (*, ?) on the tensors' names. None: the model of a state dict that has one (its names then lose the key it
   * is under), else all tensors. */
  const char* const* only;
  uint64_t only_count;
  const char* const* strip_prefix; /**< taken from the names that begin with them, one after the other */
  uint64_t strip_prefix_count;
  uint64_t shard_bytes; /**< most bytes of tensors in a file; 0: 5e9 */
  uint32_t replace;     /**< 1: a model in the folder may be replaced */
  uint32_t reserved;
  quern_progress progress; /**< counts bytes that are written */
  void* progress_user;
} quern_checkpoint_export_desc;
#define QUERN_CHECKPOINT_EXPORT_DESC_INIT \
  { sizeof(quern_checkpoint_export_desc), 0, NULL, 0, NULL, 0, 0, 0, 0, NULL, NULL }

typedef struct quern_checkpoint_exported {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t step;
  uint64_t files;
  uint64_t tensors;
  uint64_t cast;    /**< tensors that were rounded to another type or widened */
  uint64_t inexact; /**< tensors that were saved with loss: within their bound */
  uint64_t tied;    /**< second names of tensors, left out as Hugging Face does; metadata name them */
  uint64_t bytes;   /**< of all files */
} quern_checkpoint_exported;
#define QUERN_CHECKPOINT_EXPORTED_INIT \
  { sizeof(quern_checkpoint_exported), 0, 0, 0, 0, 0, 0, 0, 0 }

/** Writes tensors of the checkpoint as model.safetensors, or as shards with model.safetensors.index.json, into a
 * folder, which is made when it is missing. Files appear when all are written. `desc` and `exported` may be NULL. */
QUERN_API quern_status quern_checkpoint_export(quern_checkpoint_store* store, uint64_t step, const char* folder,
                                               const quern_checkpoint_export_desc* desc,
                                               quern_checkpoint_exported* exported);

/* ---- care ------------------------------------------------------------------------------------------------------- */

/** Is the checkpoint of that step, or the newest, what it was when it was saved? `full` 0: manifest, sizes, headers and
 * indexes of parts; 1: every byte, hash and parity too. QUERN_ERROR_CORRUPT when it is not: the error is the first
 * problem, all become notes. */
QUERN_API quern_status quern_checkpoint_verify(quern_checkpoint_store* store, uint64_t step, int full);
/** Mends what copies and parity allow, bit for bit. `*repaired` (may be NULL) is 1 when something was mended;
 *  QUERN_ERROR_CORRUPT when damage remains. */
QUERN_API quern_status quern_checkpoint_repair(quern_checkpoint_store* store, uint64_t step, int* repaired);
/** Stores the checkpoint anew so that it needs no other, with the desc's parity and zstd level (NULL: none), and
 * removes the old form. Refused when other checkpoints need it. */
QUERN_API quern_status quern_checkpoint_compact(quern_checkpoint_store* store, uint64_t step,
                                                const quern_checkpoint_save_desc* desc);

typedef struct quern_checkpoint_collected {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t removed;         /**< checkpoints */
  uint64_t kept_for_others; /**< were to go, but what stays needs them */
  uint64_t freed_bytes;
} quern_checkpoint_collected;
#define QUERN_CHECKPOINT_COLLECTED_INIT \
  { sizeof(quern_checkpoint_collected), 0, 0, 0, 0 }

/** Removes the checkpoints of the `count` steps, and all but the newest `keep` (UINT64_MAX: all stay), unless others
 *  need them; and what dead writers left. Fails when a save or another collection is under way. `collected` may be
 * NULL. */
QUERN_API quern_status quern_checkpoint_collect(quern_checkpoint_store* store, uint64_t keep, const uint64_t* steps,
                                                uint64_t count, quern_checkpoint_collected* collected);

/** What stays in a store; of the three, one that is set is enough. */
typedef struct quern_checkpoint_retention {
  uint32_t struct_size;
  uint32_t best_is_largest; /**< 1: the largest numbers are best; 0: the smallest */
  uint64_t keep;            /**< the newest of this number that are whole */
  uint64_t keep_every;      /**< steps that are multiples of it; 0: none */
  uint64_t best;            /**< so many with the best numbers under the tag `metric`; 0: none */
  const char* metric;
  uint32_t dry_run; /**< 1: only counts */
  uint32_t reserved;
} quern_checkpoint_retention;
#define QUERN_CHECKPOINT_RETENTION_INIT \
  { sizeof(quern_checkpoint_retention), 0, 0, 0, 0, NULL, 0, 0 }

/** Removes what none of the three keeps, unless a tensor of what stays needs a tensor of it: then it stays on the disk,
 * and as a checkpoint if all of its own tensors are still there. Fails when a save or another collection is under way,
 * and when no checkpoint has a number under the metric. `collected` may be NULL. */
QUERN_API quern_status quern_checkpoint_retain(quern_checkpoint_store* store,
                                               const quern_checkpoint_retention* retention,
                                               quern_checkpoint_collected* collected);

#ifdef __cplusplus
}
#endif
#endif
