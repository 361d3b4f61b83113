/* clang-format off */
/* Checkpoints without waiting: an engine captures, codes and writes them while training goes on. A part of
 * libquern-checkpoint, in a header of its own; the rules of quern/checkpoint.h hold here too.
 *
 * Order.     begin, add, submit: the tensors are borrowed from submit on. The engine copies them into its ring, or codes
 *            them where they lie, while forward and backward passes only read them. What a pass writes to, as running
 *            statistics, is to be copied by the caller before. A fence before the optimizer writes
 *            waits for what is not captured yet. The store is written by an engine's thread, as any save is.
 * Levels.    CAPTURED: the caller's memory is free. HOST: all is in host memory, or beyond. LOCAL: the store shows the
 *            checkpoint, and it survives a power cut there. DURABLE: the same on the last tier that wants the step; with
 *            no such tier it comes together with LOCAL.
 * Tiers.     Further directories, such as a shared file system, get copies of the store's checkpoints, coded as they
 *            are, in the order of a save: a tier is a store, which every function opens. A tier that is full, slow or gone
 *            fails the levels of saves beyond LOCAL, with a sentence, and is tried again with the next save. What one
 *            engine could not copy the next one does.
 * Threads.   Any may call anything on an engine at once, but close. A pending save belongs to one thread.
 * Waiting.   Times are in seconds, at least 0; INFINITY waits without end. A timeout is no failure: the answer is 0.
 * Memory.    The ring, taken whole when the engine is opened, and at most coding_bytes beside it.
 * Processes. After fork() the child's calls are refused; it opens an engine of its own. At exit() an engine that is open
 *            is drained or dropped, as it was opened: what is borrowed must live until then.
 *
 *   quern_checkpoint_engine* engine; quern_checkpoint_pending* save; uint32_t free;
 *   quern_checkpoint_engine_open("runs/a", NULL, &engine);
 *   quern_checkpoint_engine_begin(engine, &desc, &save);             // desc.step = 500
 *   quern_checkpoint_engine_add(save, &tensor);
 *   quern_checkpoint_engine_submit(save);                            // microseconds; forward and backward follow
 *   quern_checkpoint_engine_fence(engine, NULL, INFINITY, &free);    // then the optimizer may write
 *   quern_checkpoint_engine_close(engine, QUERN_CHECKPOINT_DRAIN, 600);
 */
/* clang-format on */
#ifndef QUERN_CHECKPOINT_ENGINE_H
#define QUERN_CHECKPOINT_ENGINE_H

#include <quern/checkpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quern_checkpoint_engine quern_checkpoint_engine;
typedef struct quern_checkpoint_pending quern_checkpoint_pending;

/** How far a save has come; each level includes those below it. */
typedef int32_t quern_checkpoint_level;
enum {
  QUERN_CHECKPOINT_SUBMITTED = 0,
  QUERN_CHECKPOINT_CAPTURED = 1,
  QUERN_CHECKPOINT_HOST = 2,
  QUERN_CHECKPOINT_LOCAL = 3,
  QUERN_CHECKPOINT_DURABLE = 4
};

/** What happens when the ring has no room. */
typedef int32_t quern_checkpoint_when_full;
enum {
  QUERN_CHECKPOINT_BLOCK = 0,         /**< a fence waits until coding has made room */
  QUERN_CHECKPOINT_SKIP = 1,          /**< a save that earlier saves leave no room for is dropped whole */
  QUERN_CHECKPOINT_COMPRESS_FIRST = 2 /**< what finds no room is coded where it lies */
};

/** What becomes of saves under way when the engine ends. */
typedef int32_t quern_checkpoint_at_end;
enum { QUERN_CHECKPOINT_DRAIN = 0, QUERN_CHECKPOINT_DROP = 1 };

/** A directory behind the store. */
typedef struct quern_checkpoint_tier {
  uint32_t struct_size;
  uint32_t most_waiting; /**< saves that may wait for it; when more do, the oldest is passed over */
  const char* path;      /**< made when it is missing */
  uint64_t every;        /**< it gets steps that are multiples of this, with what they need; at least 1 */
  double write_rate;     /**< most bytes a second that are written to it; 0: no limit */
  double share;          /**< of its measured bandwidth that may be used, above 0 to 1 */
} quern_checkpoint_tier;
#define QUERN_CHECKPOINT_TIER_INIT \
  { sizeof(quern_checkpoint_tier), 16, NULL, 1, 0, 1 }

typedef struct quern_checkpoint_engine_desc {
  uint32_t struct_size;
  uint32_t threads;    /**< that code: 0 one a hardware thread */
  uint64_t ring_bytes; /**< at least 2097152; rounded up to segments of 2 MiB */
  /** Most that the engine takes beside the ring; a save that needs more fails with QUERN_ERROR_OUT_OF_MEMORY. Coding a
   *  tensor with a base, or with a loss, takes up to four times its size; coding exactly without one, some 16 MiB and
   *  5 MiB a thread. 0: no limit. */
  uint64_t coding_bytes;
  quern_checkpoint_when_full when_full;
  quern_checkpoint_at_end at_exit; /**< of the process, while the engine is open */
  double exit_seconds;             /**< that draining then may take */
  uint32_t check_changes;          /**< 1: for debugging, hash each tensor at submit and when it is captured */
  uint32_t reserved;               /**< 0 */
  void (*note)(void* user, const char* sentence); /**< called by threads of the engine; NULL: notes are dropped */
  void* note_user;
  double write_rate; /**< most bytes a second that are written, so that others can use the disk; 0: no limit */
  /** In the order of their distance. Pointers to structs that are read by the call. */
  const quern_checkpoint_tier* const* tiers;
  uint64_t tier_count;
  /** The newest so many checkpoints stay in the store; others are removed once each tier that wants their step, and at
   *  least one tier, has them whole. What no tier has stays until it is collected. 0: all stay. */
  uint64_t keep_local;
} quern_checkpoint_engine_desc;
#define QUERN_CHECKPOINT_ENGINE_DESC_INIT \
  { sizeof(quern_checkpoint_engine_desc), 1, UINT64_C(268435456), 0, 0, 0, 600, 0, 0, NULL, NULL, 0, NULL, 0, 0 }

/** Opens an engine on a store, which is made when it is missing. `desc` may be NULL. `*engine` is NULL on failure. */
QUERN_API quern_status quern_checkpoint_engine_open(const char* path, const quern_checkpoint_engine_desc* desc,
                                                    quern_checkpoint_engine** engine);
/** Ends the engine, and `engine` with it whatever is returned: waits `seconds` for its saves when `how` is DRAIN, and
 *  drops what is left; a wrong argument drops all. Fails when a save was dropped, or had failed and nobody was told; the
 *  sentence names it. Saves that the caller cancelled, or that SKIP dropped, are no failure. Where
 *  coding or writing does not end within 30 seconds of being dropped, the sentence ends with "must stay as they are":
 *  a thread goes on, so the tensors of saves that were not captured, and `note` with its user, must live and must not
 *  change until the process ends. */
QUERN_API quern_status quern_checkpoint_engine_close(quern_checkpoint_engine* engine, quern_checkpoint_at_end how,
                                                     double seconds);

/** A save to come; `desc` as for quern_checkpoint_begin(), but that progress is not called. Nothing is read or written:
 *  that the step is in the store already shows when the save's turn comes. Refuses a step whose save is under way. */
QUERN_API quern_status quern_checkpoint_engine_begin(quern_checkpoint_engine* engine,
                                                     const quern_checkpoint_save_desc* desc,
                                                     quern_checkpoint_pending** save);
/** As quern_checkpoint_add(), for host memory. */
QUERN_API quern_status quern_checkpoint_engine_add(quern_checkpoint_pending* save,
                                                   const quern_checkpoint_tensor* tensor);
/** Copies the bytes. */
QUERN_API quern_status quern_checkpoint_engine_add_blob(quern_checkpoint_pending* save, const char* name,
                                                        const void* bytes, uint64_t size);
/** Hands the save over; `save` is gone whatever is returned. Reads no tensor, but with check_changes. At most 64 saves
 *  are under way. */
QUERN_API quern_status quern_checkpoint_engine_submit(quern_checkpoint_pending* save);
/** Gives up a save that was not submitted; before its engine is closed. */
QUERN_API void quern_checkpoint_engine_forget(quern_checkpoint_pending* save);

/** Waits until nothing that was submitted is read any more; with a name, no tensor of that name. The calling thread
 *  copies, too. `*free` is 1 then, 0 after `seconds`. A save that failed meanwhile is read no more either. */
QUERN_API quern_status quern_checkpoint_engine_fence(quern_checkpoint_engine* engine, const char* tensor,
                                                     double seconds, uint32_t* free);
/** `*reached` is 1 once the save of that step has the level, 0 after `seconds`. A save that failed, was skipped or
 *  cancelled is an error, with its sentence; what a tier could not take has LOCAL all the same. The outcomes of the last 1024 saves are known. The part of a writer that
 *  is not the last of its group stays at HOST, which is answered at once: the store knows when the others are there. */
QUERN_API quern_status quern_checkpoint_engine_wait(quern_checkpoint_engine* engine, uint64_t step,
                                                    quern_checkpoint_level level, double seconds, uint32_t* reached);
/** `*reached` is 1 once no save is under way, or on its way to a tier. */
QUERN_API quern_status quern_checkpoint_engine_wait_all(quern_checkpoint_engine* engine, double seconds,
                                                        uint32_t* reached);

typedef struct quern_checkpoint_progress {
  uint32_t struct_size;
  quern_checkpoint_level level;
  uint32_t finished;  /**< 1: durable, written as a part of a group that others publish, or failed */
  quern_status error; /**< of a save that failed; quern_checkpoint_engine_wait() has its sentence */
  uint64_t raw_bytes;
  uint64_t captured_bytes; /**< the caller may write to again */
  uint64_t copied_tensors; /**< into the ring */
  uint64_t coded_first;    /**< tensors that were coded where they lie */
  double submit_seconds;   /**< since the engine was opened, as the two that follow */
  double captured_seconds;
  double durable_seconds;
  quern_checkpoint_result result; /**< its struct_size is set; empty before the save is LOCAL, or has failed before */
  double local_seconds;
} quern_checkpoint_progress;
#define QUERN_CHECKPOINT_PROGRESS_INIT \
  { sizeof(quern_checkpoint_progress), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, QUERN_CHECKPOINT_RESULT_INIT, 0 }

/** Never waits. */
QUERN_API quern_status quern_checkpoint_engine_poll(quern_checkpoint_engine* engine, uint64_t step,
                                                    quern_checkpoint_progress* progress);
/** Drops a save that is not in the store yet; does not wait. Its tensors are still read until the next fence. */
QUERN_API quern_status quern_checkpoint_engine_cancel(quern_checkpoint_engine* engine, uint64_t step);

typedef struct quern_checkpoint_engine_stats {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t submitted, durable, failed, skipped, cancelled; /**< saves */
  uint64_t under_way;
  uint64_t copied_tensors, copied_bytes; /**< into the ring */
  uint64_t first_by_rate;                /**< tensors coded where they lie, because that frees them sooner */
  uint64_t first_for_room;               /**< because the ring was full */
  uint64_t first_for_size;               /**< because they are larger than the ring */
  uint64_t first_bytes;                  /**< of the three */
  double copy_rate, code_rate;           /**< bytes a second, moving averages; 0: not measured */
  double fence_seconds, longest_fence;   /**< that callers waited */
  double submit_inside;                  /**< seconds in submit */
  uint64_t fences;
  uint64_t ring_bytes, ring_peak; /**< taken, used at most */
  uint64_t coding_peak;           /**< beside the ring, at most */
  uint64_t written_bytes;
} quern_checkpoint_engine_stats;
#define QUERN_CHECKPOINT_ENGINE_STATS_INIT \
  { sizeof(quern_checkpoint_engine_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

QUERN_API quern_status quern_checkpoint_engine_measure(quern_checkpoint_engine* engine,
                                                       quern_checkpoint_engine_stats* stats);

/** Of one tier, by its place in the desc. */
typedef struct quern_checkpoint_tier_stats {
  uint32_t struct_size;
  uint32_t depth;       /**< blocks of 1 MiB that are written at once, learnt from a probe and from use */
  uint64_t checkpoints; /**< copied, those that others need included */
  uint64_t bytes;
  uint64_t waiting, failed, passed_over; /**< saves */
  double rate;       /**< bytes a second, a moving average that begins with the probe; 0: not measured */
  char problem[512]; /**< of the last attempt, cut off where it is longer; empty: it went well */
} quern_checkpoint_tier_stats;
#define QUERN_CHECKPOINT_TIER_STATS_INIT \
  { sizeof(quern_checkpoint_tier_stats), 0, 0, 0, 0, 0, 0, 0, "" }

QUERN_API quern_status quern_checkpoint_engine_measure_tier(quern_checkpoint_engine* engine, uint64_t tier,
                                                            quern_checkpoint_tier_stats* stats);

/** The newest checkpoint that any of `count` stores has whole, for a restart: the store and its tiers, nearest first.
 *  Every byte and value is compared with its hash, so this takes as long as a restore. Stores that are missing, and
 *  checkpoints that are damaged, are passed over. `*place` is where in `paths`, and `*step` which step: open that store.
 *  QUERN_ERROR_IO when there is none. */
QUERN_API quern_status quern_checkpoint_newest_of(const char* const* paths, uint64_t count, uint64_t* place,
                                                  uint64_t* step);

#ifdef __cplusplus
}
#endif
#endif
