/* clang-format off */
/* quern: error-bounded lossy compression of arrays. The C interface (C99).
 *
 * Rules of this header
 * --------------------
 * Status.    Every function that can fail returns a quern_status; 0 is success. Nothing is written to an output
 *            argument on failure unless its description says so. quern_last_error() gives one line for people.
 *            No function prints, exits, aborts on input, changes global state or lets a C++ exception out.
 * Arrays.    Shapes are in elements, slowest axis first, rank 0 (one element) to 8. Strides are in elements and may be
 *            negative; all zero means contiguous C order. Other layouts are packed into a copy first (counted
 *            against memory_limit); Fortran programs reverse the extents and copy nothing. Data are in host memory or
 *            a CUDA device's, aligned as their element type, and never owned by the library. Of arrays on a device,
 *            one-shot calls make a copy on the host (counted too), after what the device's default stream waits for;
 *            calls on plans work where they lie.
 * Streams.   Bytes that describe themselves: type, shape, bound and codec are inside, every part has a checksum.
 *            Output depends on the data and the parameters alone: not on threads, memory limits or instruction set.
 *            Any bytes may be given to a reading function: it succeeds or returns a status.
 * Bounds.    |x - x'| <= E for every finite element, after rounding to the element type, without tolerance; NaN, Inf,
 *            -0.0 and declared fill values come back bit for bit.
 * Structs.   The first member is struct_size. Start from the QUERN_..._INIT value, then set members; a struct of an older
 *            or newer header is understood, and members this library does not know must be zero. None is kept.
 * Handles.   quern_context: who runs, how much memory, what went wrong last. quern_params: what is wanted. A handle may be
 *            used by one thread at a time; different handles are independent. Destroying NULL does nothing.
 * Memory.    A call takes what it needs from the context's allocator and gives it back before it returns. memory_limit
 *            bounds it: QUERN_ERROR_MEMORY_LIMIT; running out is QUERN_ERROR_OUT_OF_MEMORY, with nothing left behind.
 *            Threads of the library's own take a few hundred bytes each from the C++ heap besides.
 * Threads.   The library starts none of its own unless `threads` says so; with `runner` it starts none at all.
 * Sizes.     Bytes and elements are uint64_t or size_t and never assumed to fit in 32 bits.
 * Numbers.   Enumerators are stored in streams or compared by callers: a value never changes its meaning.
 *
 * A whole program:
 *
 *   #include <stdio.h>
 *   #include <stdlib.h>
 *   #include <quern/quern.h>
 *
 *   static float values[64 * 128 * 128];
 *
 *   int main(void) {
 *     const uint64_t shape[] = {64, 128, 128};
 *     uint64_t room, size;
 *     quern_context* context;
 *     quern_params* params;
 *     quern_array field;
 *     quern_context_create(NULL, &context);
 *     quern_params_create(&params);
 *     quern_params_set_bound(params, QUERN_BOUND_ABS, 1e-3);
 *     quern_array_init(&field, QUERN_F32, 3, shape, values);
 *     quern_compress_bound(&field, params, &room);
 *     void* bytes = malloc(room);
 *     if (quern_compress(context, params, &field, bytes, room, &size, NULL)) puts(quern_last_error(context));
 *     free(bytes);
 *     quern_params_destroy(params);
 *     quern_context_destroy(context);
 *   }
 */
/* clang-format on */
#ifndef QUERN_QUERN_H
#define QUERN_QUERN_H

#include <stddef.h>
#include <stdint.h>

#define QUERN_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* ---- library ---------------------------------------------------------------------------------------------------- */

#define QUERN_VERSION_MAJOR 0
#define QUERN_VERSION_MINOR 1
#define QUERN_VERSION_PATCH 0
/** Grows when a function or a struct member is added; a program asks for at least the one it was compiled with. */
#define QUERN_ABI_VERSION 7

/** What a call came to. Values are grouped with gaps and never reused. */
typedef int32_t quern_status;
enum {
  QUERN_OK = 0,
  /* usage: the caller can mend it */
  QUERN_ERROR_INVALID_ARGUMENT = 1,
  QUERN_ERROR_INVALID_SHAPE = 2,
  QUERN_ERROR_INVALID_BOUND = 3,
  QUERN_ERROR_UNKNOWN_SETTING = 4,
  QUERN_ERROR_BOUND_NOT_MET = 5,
  /* stream: the bytes are not what they should be */
  QUERN_ERROR_BAD_MAGIC = 20,
  QUERN_ERROR_TRUNCATED = 21,
  QUERN_ERROR_CORRUPT = 22,
  QUERN_ERROR_CHECKSUM_MISMATCH = 23,
  QUERN_ERROR_UNSUPPORTED_VERSION = 24,
  QUERN_ERROR_TRAILING_DATA = 25,
  QUERN_ERROR_REFERENCE_MISSING = 26, /* an array that the stream was predicted from; the error names its hash */
  /* capability: right, but not what this build or codec does */
  QUERN_ERROR_UNSUPPORTED = 40,
  QUERN_ERROR_UNKNOWN_CODEC = 41,
  QUERN_ERROR_MISSING_MODEL = 43,
  /* resource */
  QUERN_ERROR_OUT_OF_MEMORY = 60,
  QUERN_ERROR_MEMORY_LIMIT = 61,
  QUERN_ERROR_IO = 62,
  QUERN_ERROR_CANCELLED = 63,
  QUERN_ERROR_DESTINATION_TOO_SMALL = 64,
  /* device */
  QUERN_ERROR_HARDWARE_FAULT = 65,
  QUERN_ERROR_DEVICE_UNAVAILABLE = 80,
  QUERN_ERROR_DEVICE = 81,
  /* a defect of the library */
  QUERN_ERROR_INTERNAL = 100
};

/** major * 10000 + minor * 100 + patch of the library that runs. */
QUERN_API uint32_t quern_version(void);
QUERN_API const char* quern_version_string(void);
QUERN_API uint32_t quern_abi_version(void);
/** Short stable name, "checksum_mismatch"; "unknown" for a number that is no status. */
QUERN_API const char* quern_status_name(quern_status status);
/** One line for people: version, compiler, options, libraries. */
QUERN_API const char* quern_build_info(void);

/* ---- context ---------------------------------------------------------------------------------------------------- */

typedef struct quern_context quern_context;

/** Runs tasks on the caller's threads. */
typedef struct quern_runner {
  /** Calls body(argument, i) once for every i below tasks, in any order, on any threads; returns when all returned. */
  void (*run)(void* user, size_t tasks, void (*body)(void* argument, size_t index), void* argument);
  /** How many calls may be under way at once, at least 1. */
  size_t width;
  void* user;
} quern_runner;

/** Where memory comes from. Both functions may be called from several threads at once when the calls are allowed
 * several, and do not call back into the library. */
typedef struct quern_allocator {
  /** `bytes` bytes at a multiple of `alignment` (a power of two), or NULL when there are none. NULL itself: malloc. */
  void* (*allocate)(void* user, size_t bytes, size_t alignment);
  /** Takes back what allocate gave, with the same bytes and alignment. */
  void (*release)(void* user, void* memory, size_t bytes, size_t alignment);
  void* user;
} quern_allocator;

/** Called between parts of long work, from the calling thread. Return 0 to cancel: QUERN_ERROR_CANCELLED. */
typedef int (*quern_progress)(void* user, uint64_t elements_done, uint64_t elements_total);

typedef int32_t quern_memory;
enum { QUERN_MEMORY_HOST = 0, QUERN_MEMORY_CUDA = 1 };

typedef struct quern_context_desc {
  uint32_t struct_size;
  /** Threads a call may use: 1 the calling thread alone, 0 one a hardware thread. Not used when runner.run is set. */
  uint32_t threads;
  quern_runner runner;     /**< run NULL: the library's own threads */
  uint64_t memory_limit;   /**< bytes a call may allocate; 0: no limit */
  quern_progress progress; /**< NULL: none */
  void* progress_user;
  quern_allocator allocator; /**< of the context and of every call on it */
  /** Where arrays in host memory are encoded and decoded. QUERN_MEMORY_CUDA: on a CUDA device, through page-locked
   *  buffers, where the codec has kernels; bytes and values are the same. */
  quern_memory runs_on;
  int32_t device; /**< ordinal of that device */
} quern_context_desc;
#define QUERN_CONTEXT_DESC_INIT \
  { sizeof(quern_context_desc), 1, {NULL, 0, NULL}, 0, NULL, NULL, {NULL, NULL, NULL}, 0, 0 }

/** `desc` may be NULL: one thread, no limit. `*context` is NULL on failure. */
QUERN_API quern_status quern_context_create(const quern_context_desc* desc, quern_context** context);
QUERN_API void quern_context_destroy(quern_context* context);
/** Copies the bytes of a model file (.qmodel, docs/format-model.md) of a learned codec into the context, whose calls find
 *  it from then on: by the setting model=<id> when compressing with codec=autoencoder or codec=stencil, each with models
 *  of its own kind, and for streams that name a model outside of them. `id` (may be NULL) has room for QUERN_MODEL_ID_SIZE characters and gets the model's id as text. A
 *  model that is there already is not added again. Fails with QUERN_ERROR_BAD_MAGIC or _UNSUPPORTED for other files,
 *  with QUERN_ERROR_UNSUPPORTED_VERSION, _CHECKSUM_MISMATCH, _TRUNCATED or _CORRUPT for newer and for damaged ones. */
#define QUERN_MODEL_ID_SIZE 33
QUERN_API quern_status quern_context_add_model(quern_context* context, const void* file, uint64_t bytes, char* id);
/** What went wrong in the last call on this context that failed, else ""; with NULL, in the last call of this thread
 * that failed and had no context. Valid until the next call on it. */
QUERN_API const char* quern_last_error(const quern_context* context);

/* ---- element types and bounds ----------------------------------------------------------------------------------- */

typedef int32_t quern_dtype;
enum {
  QUERN_F16 = 1,
  QUERN_BF16 = 2,
  QUERN_F32 = 3,
  QUERN_F64 = 4,
  QUERN_I8 = 8,
  QUERN_I16 = 9,
  QUERN_I32 = 10,
  QUERN_I64 = 11,
  QUERN_U8 = 16,
  QUERN_U16 = 17,
  QUERN_U32 = 18,
  QUERN_U64 = 19
};

typedef int32_t quern_bound_kind;
enum {
  QUERN_BOUND_LOSSLESS = 0, /**< every bit comes back; the value is ignored */
  QUERN_BOUND_ABS = 1,      /**< |x - x'| <= value */
  QUERN_BOUND_REL = 2,      /**< |x - x'| <= value * (max - min) over valid values */
  QUERN_BOUND_PWREL = 3,    /**< |x - x'| <= value * |x|; floating point, value < 1 */
  QUERN_BOUND_PSNR = 4,     /**< measured PSNR >= value dB */
  QUERN_BOUND_RATIO = 5     /**< raw bytes / stream bytes >= value, by search */
};

/* ---- codecs ----------------------------------------------------------------------------------------------------- */

typedef struct quern_codec_info {
  uint32_t struct_size;
  uint16_t id;      /**< stored in streams */
  uint16_t version; /**< of the codec's stored form */
  const char* name;
  const char* summary;
  uint32_t idempotent; /**< 1: makes streams under idempotent=1 */
} quern_codec_info;
#define QUERN_CODEC_INFO_INIT \
  { sizeof(quern_codec_info), 0, 0, NULL, NULL, 0 }

QUERN_API size_t quern_codec_count(void);
QUERN_API quern_status quern_codec_get(size_t index, quern_codec_info* info);

/** `*yes` is 1 when the codec takes arrays of that type under that kind of bound, whatever its value. Of lossless, abs
 *  and pwrel: the others become one of these when an array is compressed. */
QUERN_API quern_status quern_codec_supports(size_t index, quern_dtype dtype, quern_bound_kind kind, int* yes);

/* ---- what is wanted --------------------------------------------------------------------------------------------- */

typedef struct quern_params quern_params;

/** Starts as: lossless, codec auto, goal ratio. */
QUERN_API quern_status quern_params_create(quern_params** params);
/** The same in memory of the caller's choice, which is used whenever the parameters change; NULL: malloc. */
QUERN_API quern_status quern_params_create_with_allocator(const quern_allocator* allocator, quern_params** params);
QUERN_API void quern_params_destroy(quern_params* params);
QUERN_API quern_status quern_params_set_bound(quern_params* params, quern_bound_kind kind, double value);
/** Keys: codec (a name or auto), goal (ratio: the smallest stream of all codecs, the slow ones too; psnr: the most
 * quality for its size; speed: fast codecs alone, or the fast choices of one that is named), effort (1 to 9, 6 at
 * first: how much time is spent on finding what makes a small stream; the goal speed stands for 1), mask_search (0, 1),
 * range (MIN:MAX, for rel and psnr when it is known), idempotent (0, 1: decoded values come back bit for bit when they
 * are compressed again under the same parameters, in whatever mixture with others; for lossless, abs and pwrel, and rel
 * with a range; needs a copy of the array), mask (1, 2: masks coded by levels, for arrays in host memory), and the
 * codec's own settings, which are checked when an array is compressed: verify=fault of codec lorenzo fails with
 * QUERN_ERROR_HARDWARE_FAULT rather than store what a bit that flipped in a register or in memory has changed. Setting
 * a key twice keeps the last value. */
QUERN_API quern_status quern_params_set(quern_params* params, const char* key, const char* value);
/** Copies the value of `key`, with its 0, into `value` (room for `capacity` bytes; may be NULL with 0) and the bytes it
 *  needs into `*needed` (may be NULL). QUERN_ERROR_UNKNOWN_SETTING for a key that is not set. */
QUERN_API quern_status quern_params_get(const quern_params* params, const char* key, char* value, size_t capacity,
                                        size_t* needed);
/** Many at once, all or nothing: "abs=1e-3 codec=lorenzo"; items are parted by spaces or commas
 *  (quern_params_set takes values that hold one), the bound is one of
 *  lossless, abs=E, rel=R, pwrel=R, psnr=DB, ratio=R. */
QUERN_API quern_status quern_params_parse(quern_params* params, const char* text);
/** Declares a value that marks missing data: an element of the arrays' type, compared by value. At most 255. */
QUERN_API quern_status quern_params_add_fill(quern_params* params, quern_dtype dtype, const void* element);
/** Bytes kept in the stream for its readers, at most 1 MiB; they are copied. */
QUERN_API quern_status quern_params_set_metadata(quern_params* params, const void* bytes, size_t size);

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

#define QUERN_MAX_RANK 8

typedef struct quern_array {
  uint32_t struct_size;
  quern_dtype dtype;
  quern_memory memory;
  int32_t device; /**< ordinal, for memory that is not the host's */
  uint32_t rank;
  uint32_t reserved;                /**< 0 */
  uint64_t extents[QUERN_MAX_RANK]; /**< slowest axis first */
  int64_t strides[QUERN_MAX_RANK];  /**< elements; all 0: contiguous C order */
  void* data;                       /**< first element; only read by functions that take a const quern_array* */
} quern_array;

/** Fills in a contiguous host array. */
QUERN_API quern_status quern_array_init(quern_array* array, quern_dtype dtype, uint32_t rank, const uint64_t* extents,
                                        void* data);
/** Borrows the memory of a DLPack tensor (a `DLTensor*`, as in `DLManagedTensor.dl_tensor`), which must outlive the
 *  array's use. Types: float 16, 32, 64, bfloat 16, int and uint 8 to 64, one lane; complex 64 and 128 become an extra
 *  last axis of 2. */
QUERN_API quern_status quern_array_from_dlpack(const void* dl_tensor, quern_array* array);

/* ---- one shot --------------------------------------------------------------------------------------------------- */

/** A size that no stream of this array exceeds: raw + 256 + raw/1000 + metadata. Data is not looked at. O(1). */
QUERN_API quern_status quern_compress_bound(const quern_array* array, const quern_params* params, uint64_t* bytes);

/** Why a codec wrote a stream. */
enum {
  QUERN_REASON_ASKED_FOR = 0,    /**< by name */
  QUERN_REASON_ONLY_ONE = 1,     /**< no other takes this type under this bound */
  QUERN_REASON_EXACT = 2,        /**< every bit had to come back */
  QUERN_REASON_FASTEST = 3,      /**< the goal is speed */
  QUERN_REASON_SMALLEST = 4,     /**< its stream is the smallest of those tried */
  QUERN_REASON_LEAST_BOUND = 5,  /**< it reaches the ratio under the smallest bound of those tried */
  QUERN_REASON_BEST_QUALITY = 6, /**< of those tried it has the most PSNR for its size */
  QUERN_REASON_EXPECTED_BEST = 7 /**< others are expected to do worse than it did, and were not tried */
};

typedef struct quern_report {
  uint32_t struct_size;
  quern_bound_kind enforced_kind; /**< abs, pwrel or lossless, after rel, psnr and ratio were worked out */
  double enforced_value;
  uint64_t input_bytes;
  uint64_t output_bytes;
  uint64_t masked_elements; /**< special values carried in the mask */
  uint64_t chunks;
  uint64_t raw_chunks;   /**< stored as they are */
  double psnr_db;        /**< where it was measured: for QUERN_BOUND_PSNR and under goal psnr; else NaN */
  quern_memory ran_on;   /**< QUERN_MEMORY_CUDA when a device did the work */
  uint16_t codec_id;     /**< of the codec that wrote the stream (quern_codec_info); 0: stored as it is */
  uint16_t codec_reason; /**< QUERN_REASON_... */
} quern_report;
#define QUERN_REPORT_INIT \
  { sizeof(quern_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Compresses into `stream` (room for `capacity` bytes); `*size` is what was written. Fails with
 *  QUERN_ERROR_DESTINATION_TOO_SMALL when it does not fit; quern_compress_bound() always does. `report` may be NULL. */
QUERN_API quern_status quern_compress(quern_context* context, const quern_params* params, const quern_array* array,
                                      void* stream, uint64_t capacity, uint64_t* size, quern_report* report);
/** Decodes the whole stream into `array`, whose type and extents must be the stream's. On failure the array's content
 * is unspecified. */
QUERN_API quern_status quern_decompress(quern_context* context, const void* stream, uint64_t size, quern_array* array);
/** As quern_decompress(), and looks for hardware faults: a chunk is decoded once more and compared, on the host, or the
 *  whole stream is, in device memory. What a bit that flipped in a register or in memory has changed is decoded anew; when
 *  that comes out wrong too, the call fails with QUERN_ERROR_HARDWARE_FAULT. Takes about half as many instructions again
 *  on the host, twice the time on a device. QUERN_ERROR_UNSUPPORTED for streams of other codecs than lorenzo. Encoding is
 *  checked by the parameter verify=fault. */
QUERN_API quern_status quern_decompress_checked(quern_context* context, const void* stream, uint64_t size,
                                                quern_array* array);
/** Decodes the half-open box [begin, end) alone; `array` has the box's extents. Reads only the parts that meet it. */
QUERN_API quern_status quern_decompress_region(quern_context* context, const void* stream, uint64_t size,
                                               const uint64_t* begin, const uint64_t* end, quern_array* array);

/** Coarse levels, for previews: level k has of every axis all places, or those whose numbers are multiples of 2^k;
 * level 0 is the array. Streams of some codecs have them (codec=stencil layout=levels, planes or wavelet; with the
 * last, places are counted from the beginning of each chunk). `*levels` (may be NULL) is how many there are beside
 * level 0; `extents` (may be NULL, room for QUERN_MAX_RANK) are those of `level`. QUERN_ERROR_UNSUPPORTED when the
 * stream does not have that level. `size` may be less than the whole stream: the header is read. */
QUERN_API quern_status quern_level_extents(quern_context* context, const void* stream, uint64_t size, uint32_t level,
                                           uint32_t* levels, uint64_t* extents);
/** Decodes a level into `array`, which has the level's extents: the values of the whole array at these places, bit for
 *  bit. Looks at the bytes that the level needs, a fraction of the stream, and checks these. With layout=wavelet the
 *  values are local means around these places (docs/format-stencil.md), and all of the stream is read and checked. */
QUERN_API quern_status quern_decompress_level(quern_context* context, const void* stream, uint64_t size, uint32_t level,
                                              quern_array* array);

/* ---- sessions --------------------------------------------------------------------------------------------------- */

/** Time steps: arrays of one type and extents, in order. Each is predicted from what the step before decodes to where
 *  that makes it smaller (codec stencil, bounds abs and rel), or stands alone: a key step. One session writes, another
 *  reads. It keeps the values of one step, and for writing that step's stream, in the memory of its own allocator, from
 *  which calls on it take all that they need; a memory limit does not count what the session keeps. Streams are those of
 *  quern_compress; key steps need no session to be read. */
typedef struct quern_session quern_session;

/** At least each `key_every`-th step, from 1 to 256, is a key step; 0 means 16. `allocator`: NULL for malloc.
 *  `*session` is NULL on failure. */
QUERN_API quern_status quern_session_create(const quern_allocator* allocator, uint32_t key_every,
                                            quern_session** session);
QUERN_API void quern_session_destroy(quern_session* session);
/** quern_compress of the next step. After a failure the next one is a key step. Takes about twice as long. */
QUERN_API quern_status quern_session_compress(quern_context* context, quern_session* session,
                                              const quern_params* params, const quern_array* array, void* stream,
                                              uint64_t capacity, uint64_t* size, quern_report* report);
/** quern_decompress of the step after the one that the session decoded last, or of a key step. Fails with
 *  QUERN_ERROR_REFERENCE_MISSING where the stream was predicted from another array. After a refusal of `stream` or
 *  `array` the same step may be asked for again. */
QUERN_API quern_status quern_session_decompress(quern_context* context, quern_session* session, const void* stream,
                                                uint64_t size, quern_array* array);
/** The session goes on writing after a step that is there already: `stream`, and what it decodes to, which is copied.
 *  The next step is predicted from it, or is a key step where the chain is as long as `key_every` allows. */
QUERN_API quern_status quern_session_resume(quern_context* context, quern_session* session, const void* stream,
                                            uint64_t size, const quern_array* values);

/** The hash that streams name an array by: of its values' bytes in C order; type and extents are not part of it.
 *  O(bytes). */
QUERN_API quern_status quern_hash_values(const quern_array* array, uint64_t* hash);
/** What a stream was predicted from: the array whose values have this hash. `steps_to_key`: how many streams have to be
 *  decoded before it, from a key step on; 0, and the hash 0, of a stream that stands alone. Needs the header alone. */
QUERN_API quern_status quern_stream_reference(const void* stream, uint64_t size, uint64_t* hash,
                                              uint32_t* steps_to_key);
/** quern_decompress of a stream that was predicted from `reference`, of the same type and extents; NULL: there is none.
 *  Fails with QUERN_ERROR_REFERENCE_MISSING where it was predicted from another array. */
QUERN_API quern_status quern_decompress_beside(quern_context* context, const void* stream, uint64_t size,
                                               const quern_array* reference, quern_array* array);

/* ---- plan and queue --------------------------------------------------------------------------------------------- */

/** What will be done to arrays of one type, extents and memory space, with a copy of the parameters: for many arrays in
 *  turn, and for work that is queued. */
typedef struct quern_plan quern_plan;

/** `array` gives type, extents and memory space; its data is not looked at. The plan takes its memory from the
 * context's allocator. `*plan` is NULL on failure. */
QUERN_API quern_status quern_plan_create(quern_context* context, const quern_params* params, const quern_array* array,
                                         quern_plan** plan);
QUERN_API void quern_plan_destroy(quern_plan* plan);
/** A size that no stream made with this plan exceeds. */
QUERN_API quern_status quern_plan_bound(const quern_plan* plan, uint64_t* bytes);
/** Bytes of memory, in the arrays' memory space, that a queued call with this plan works in: exactly, for compressing
 * and for decompressing. 0 for host memory: the work is done at once, in memory from the context's allocator. */
QUERN_API quern_status quern_plan_workspace(const quern_plan* plan, uint64_t* bytes);
/** The same for decompressing alone; `array` gives type, extents and memory space. */
QUERN_API quern_status quern_decompress_workspace(const quern_array* array, uint64_t* bytes);

/** What became of queued work, once the queue has passed it: at the start of the workspace, one for each array. */
typedef struct quern_outcome {
  quern_status status; /**< of the work; what a call returns is about its arguments */
  int32_t reserved;
  uint64_t bytes; /**< of the stream, or of the array that was decoded; 0 when it failed */
} quern_outcome;

/** Queues a compression and returns. Nothing is allocated in the array's memory space, nothing is waited for, and
 * workspace, stream, `*size` and array belong to the call until the queue has passed it.
 *
 * Arrays in device memory: `queue` is a cudaStream_t of that device (also one that is being captured into a graph: plan
 * and memory must live as long as the graph). The array is contiguous; workspace (an address that 256 divides) and
 * stream are memory of the device; up to 7 bytes around the stream are read. `size` may be NULL, or point to memory
 * that the device writes, its own or page-locked. A quern_outcome is left in the workspace. The plan's codec must have
 * kernels: name it (codec=lorenzo); bounds of kind psnr and ratio, and shapes whose chunks are too small, are refused
 * with QUERN_ERROR_UNSUPPORTED when the plan is made.
 *
 * Host memory: `queue` is NULL, the workspace may be NULL, and everything is done when the call returns. */
QUERN_API quern_status quern_compress_async(quern_context* context, const quern_plan* plan, const quern_array* array,
                                            void* workspace, uint64_t workspace_bytes, void* stream, uint64_t capacity,
                                            uint64_t* size, void* queue);
/** The same for a decompression. On a device: streams of codec lorenzo, of exactly `size` bytes, which may be anything;
 * the outcome tells. It is QUERN_ERROR_UNSUPPORTED for streams of other codecs (stencil, lossless), whose models a host
 * has to read: copy such a stream to host memory and call quern_decompress(), which takes the array where it is. */
QUERN_API quern_status quern_decompress_async(quern_context* context, const void* stream, uint64_t size,
                                              quern_array* array, void* workspace, uint64_t workspace_bytes,
                                              void* queue);

/** Many arrays of the plan's type and extents in one call, for memory of a device: tables of `count` pointers and sizes
 *  that lie there too. Bytes of workspace that such a call works in. */
QUERN_API quern_status quern_batch_workspace(const quern_plan* plan, uint32_t count, uint64_t* bytes);
/** Stream i has room for capacities[i] bytes. `sizes` and `statuses` may be NULL; the workspace begins with `count`
 *  outcomes. An array that fails leaves the others alone. Otherwise as quern_compress_async. */
QUERN_API quern_status quern_batch_compress_async(quern_context* context, const quern_plan* plan,
                                                  const void* const* arrays, uint32_t count, void* workspace,
                                                  uint64_t workspace_bytes, void* const* streams,
                                                  const uint64_t* capacities, uint64_t* sizes, quern_status* statuses,
                                                  void* queue);
/** Stream i has sizes[i] bytes. */
QUERN_API quern_status quern_batch_decompress_async(quern_context* context, const quern_plan* plan,
                                                    const void* const* streams, const uint64_t* sizes, uint32_t count,
                                                    void* workspace, uint64_t workspace_bytes, void* const* arrays,
                                                    quern_status* statuses, void* queue);

/* ---- look first ------------------------------------------------------------------------------------------------- */

typedef struct quern_stream_info {
  uint32_t struct_size;
  quern_dtype dtype;
  uint32_t rank;
  uint16_t codec_id;
  uint16_t codec_version;
  uint64_t extents[QUERN_MAX_RANK];
  quern_bound_kind requested_kind;
  quern_bound_kind enforced_kind;
  double requested_value;
  double enforced_value;
  uint64_t header_bytes;
  uint64_t chunks;
  uint64_t metadata_bytes;
  uint32_t fills;
  uint8_t format_major;
  uint8_t format_minor;
  uint16_t reserved;
} quern_stream_info;
#define QUERN_STREAM_INFO_INIT \
  { sizeof(quern_stream_info), 0, 0, 0, 0, {0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Reads the header; `size` may be less than the whole stream. QUERN_ERROR_TRUNCATED when the header is not all there.
 */
QUERN_API quern_status quern_inspect(const void* stream, uint64_t size, quern_stream_info* info);

/** Copies the stream's metadata into `bytes` (room for `capacity` bytes; may be NULL with 0) and their number, at most
 *  1 MiB, into `*needed` (may be NULL; written when there is too little room, too). `size` may be less than the whole
 *  stream: the header is read. QUERN_ERROR_DESTINATION_TOO_SMALL when they do not fit, QUERN_ERROR_CORRUPT when they do
 *  not unpack. Time and memory: O(metadata). */
QUERN_API quern_status quern_stream_metadata(const void* stream, uint64_t size, void* bytes, uint64_t capacity,
                                             uint64_t* needed);
/** Copies declared fill value number `index`, below quern_stream_info.fills, into `element`: one element of the
 *  stream's type, in the machine's byte order. `size` may be less than the whole stream. */
QUERN_API quern_status quern_stream_fill(const void* stream, uint64_t size, uint32_t index, void* element);

/* ---- streams that are not in memory ---------------------------------------------------------------------------- */

/** One stream in a file, or behind a connection, that is read in parts at any place. */
typedef struct quern_source {
  uint32_t struct_size;
  uint32_t reserved; /**< 0 */
  uint64_t size;     /**< bytes of the stream */
  /** Copies the `size` bytes from byte `offset` of the stream on into `bytes`. Returns 0, or another number when it
   *  cannot: QUERN_ERROR_IO. Called from the calling thread, one call at a time, within the stream's size. */
  int (*read)(void* user, uint64_t offset, void* bytes, uint64_t size);
  void* user;
} quern_source;
#define QUERN_SOURCE_INIT \
  { sizeof(quern_source), 0, 0, NULL, NULL }

/** quern_decompress_region() of a source: reads the header, the table of segments and those that meet the box. The
 *  whole array is the box from 0 to its extents. */
QUERN_API quern_status quern_source_region(quern_context* context, const quern_source* source, const uint64_t* begin,
                                           const uint64_t* end, quern_array* array);
/** quern_decompress_level() of a source: reads the bytes that the level needs. */
QUERN_API quern_status quern_source_level(quern_context* context, const quern_source* source, uint32_t level,
                                          quern_array* array);
/** Where the streams of a file lie that follow one another, time steps: read from their ends. Writes the first
 *  `capacity` offsets and sizes, in bytes; `*count` is how many there are, which may be more. */
QUERN_API quern_status quern_source_streams(const quern_source* source, uint64_t* offsets, uint64_t* sizes,
                                            uint64_t capacity, uint64_t* count);
/** quern_source_region() of the last of 1 to 256 sources: a key step, and the steps that were predicted each from the
 *  one before. Reads the chunks of each that meet the box. Fails with QUERN_ERROR_REFERENCE_MISSING where one is not
 *  what the next one was predicted from. */
QUERN_API quern_status quern_chain_region(quern_context* context, const quern_source* const* steps, size_t count,
                                          const uint64_t* begin, const uint64_t* end, quern_array* array);

/* ---- quality ---------------------------------------------------------------------------------------------------- */

typedef struct quern_verdict {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t violations;    /**< elements that miss the bound, special values that changed among them */
  uint64_t specials_lost; /**< NaN, Inf, fill values and signs of zero that did not come back bit for bit */
  uint64_t first_index;   /**< C-order index of the first violation */
  double first_error;
} quern_verdict;
#define QUERN_VERDICT_INIT \
  { sizeof(quern_verdict), 0, 0, 0, 0, 0 }

/** Decodes the stream and compares every element with `original` under the bound the stream states, in arithmetic that
 *  shares nothing with the encoder. QUERN_ERROR_BOUND_NOT_MET when there is a violation (`verdict`, which may be NULL,
 * is filled then too). An array in device memory is checked there where the device decodes the stream: codec lorenzo.
 */
QUERN_API quern_status quern_verify(quern_context* context, const quern_array* original, const void* stream,
                                    uint64_t size, quern_verdict* verdict);

typedef struct quern_quality {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t elements;
  uint64_t valid;
  uint64_t specials_lost;
  double min; /**< of the original's valid values */
  double max;
  double max_error;
  double max_pointwise_rel;
  double mse;
  double psnr_db; /**< infinity when the error is 0, NaN when there is no valid value */
  double nrmse;   /**< NaN when the range is 0 */
  double ssim;    /**< NaN when it does not apply */
  uint64_t max_ulp;
} quern_quality;
#define QUERN_QUALITY_INIT \
  { sizeof(quern_quality), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Two arrays of equal type and extents; the params' fill values do not count (`params` may be NULL). Arrays in the
 * memory of one device are measured there: sums are formed in another order than on the host, so that mse and nrmse may
 * differ by 1e-12 of their value, psnr_db by 1e-10, ssim by 1e-9. */
QUERN_API quern_status quern_compare(quern_context* context, const quern_params* params, const quern_array* original,
                                     const quern_array* reconstructed, quern_quality* quality);

#ifdef __cplusplus
}
#endif

/* Questions about an array before it is compressed: bounds from digits, quality without compressing. */
#include <quern/quern_estimate.h>
#endif
