/* clang-format off */
/* LiDAR scans under a bound on distance, and drives: files of many scans. The C interface (C99) of libquern-lidar.
 *
 * The rules of quern/quern.h hold here too (status numbers, struct_size, the caller's allocator and threads, nothing printed, no
 * exception out). Beyond them:
 *
 * Errors.    quern_lidar_last_error() is the sentence about the last call of this thread that failed; it names file and frame.
 * Clouds.    Coordinates are three a point, points one after another: shape (points, 3), contiguous, in host memory. Columns
 *            are attributes, one element of a type for each point, in native byte order.
 * Bound.     A distance that holds in both directions: each point of the scan has a decoded one within it, and each decoded one
 *            has a point of the scan within it. Points with NaN or infinity: mode set drops them, the others keep their bits.
 * Handles.   One thread at a time may use a writer; a drive, a cloud and a history may be used by several at once, with an
 *            allocator (and runner) that may be. Clouds outlive their drive; a history outlives what uses it.
 * Safety.    A drive appears whole under its name or not at all: it is written to a temporary file beside it, synced, renamed.
 *
 *   quern_lidar_writer* writer; quern_lidar_writer_desc desc = QUERN_LIDAR_WRITER_DESC_INIT;
 *   desc.mode = QUERN_LIDAR_SET; desc.max_error = 0.15;              // metres
 *   quern_lidar_writer_open("drive.qnl", &desc, NULL, &writer);
 *   quern_lidar_cloud_desc scan = QUERN_LIDAR_CLOUD_DESC_INIT;
 *   scan.points = n; scan.xyz = xyz;                                 // float xyz[n][3]
 *   quern_lidar_writer_add(writer, &scan, NULL);
 *   if (quern_lidar_writer_finish(writer, NULL)) puts(quern_lidar_last_error());
 *   quern_lidar_writer_destroy(writer);
 */
/* clang-format on */
#ifndef QUERN_LIDAR_H
#define QUERN_LIDAR_H

#include <quern/quern.h>

#ifdef __cplusplus
extern "C" {
#endif

/** "" when no call of this thread has failed. Valid until the next call of this thread. */
QUERN_API const char* quern_lidar_last_error(void);

/** Beside the numbers of quern.h: an epoch or a tile of a history is missing or damaged, or no history was given, and a
 *  frame cannot be read without it. `quern lidar` turns it into exit code 6. */
enum { QUERN_LIDAR_ERROR_NO_HISTORY = 42 };

/* ---- clouds ----------------------------------------------------------------------------------------------------- */

typedef int32_t quern_lidar_coordinates;
enum {
  QUERN_LIDAR_F32 = 0,    /**< float metres, any bit pattern */
  QUERN_LIDAR_SCALED = 1, /**< int32_t; a coordinate is offset + number * scale, as in LAS files */
  QUERN_LIDAR_F64 = 2     /**< double metres, any bit pattern */
};

/** One attribute. */
typedef struct quern_lidar_column {
  uint32_t struct_size;
  quern_dtype dtype;
  const char* name;   /**< at most 255 bytes of UTF-8 */
  const void* values; /**< one element a point */
} quern_lidar_column;
#define QUERN_LIDAR_COLUMN_INIT \
  { sizeof(quern_lidar_column), 0, NULL, NULL }

/** A cloud in somebody's memory: of a scan that is given, the caller's, which is not kept beyond the call; of a cloud
 *  that is read, the handle's. */
typedef struct quern_lidar_cloud_desc {
  uint32_t struct_size;
  quern_lidar_coordinates coordinates;
  uint64_t points;                          /**< at most 2^28 */
  const void* xyz;                          /**< (points, 3); may be NULL without points */
  const quern_lidar_column* const* columns; /**< pointers to column_count columns */
  uint64_t column_count;                    /**< at most 64; of F64 61 */
  double scale[3];                          /**< of SCALED: x, y, z */
  double offset[3];
} quern_lidar_cloud_desc;
#define QUERN_LIDAR_CLOUD_DESC_INIT                                             \
  {                                                                             \
    sizeof(quern_lidar_cloud_desc), 0, 0, NULL, NULL, 0, {1, 1, 1}, { 0, 0, 0 } \
  }

typedef struct quern_lidar_cloud quern_lidar_cloud;

/** What the cloud holds; pointers are valid until it is destroyed. */
QUERN_API quern_status quern_lidar_cloud_get(const quern_lidar_cloud* cloud, quern_lidar_cloud_desc* desc);
QUERN_API void quern_lidar_cloud_destroy(quern_lidar_cloud* cloud);

/** Where calls take memory and threads from. */
typedef struct quern_lidar_execution {
  uint32_t struct_size;
  uint32_t threads;    /**< 1: the calling thread alone, 0: one a hardware thread; not used when runner.run is set */
  quern_runner runner; /**< run NULL: the library's own threads */
  quern_allocator allocator; /**< of the handle and all its calls */
  uint64_t memory_limit;     /**< bytes; decoding takes about 256 a point. 0: no limit */
} quern_lidar_execution;
#define QUERN_LIDAR_EXECUTION_INIT \
  { sizeof(quern_lidar_execution), 1, {NULL, 0, NULL}, {NULL, NULL, NULL}, 0 }

/** Reads .bin .pcd .ply .npy .las. `bin_columns`: numbers of a point of .bin files, 4 or 5; 0: told from the file.
 *  `execution` may be NULL. `*cloud` is NULL on failure. */
QUERN_API quern_status quern_lidar_cloud_read_file(const char* path, uint32_t bin_columns,
                                                   const quern_lidar_execution* execution, quern_lidar_cloud** cloud);
/** Writes a file of the format that its name ends in. Nothing is moved: fails with QUERN_ERROR_UNSUPPORTED where the
 *  format cannot hold the coordinates. `*columns_left_out` (may be NULL) is how many columns had no place. */
QUERN_API quern_status quern_lidar_cloud_write_file(const quern_lidar_cloud* cloud, const char* path, uint32_t replace,
                                                    uint32_t* columns_left_out);

/* ---- histories -------------------------------------------------------------------------------------------------- */

/** A folder of what earlier drives saw, from which frames are predicted (docs/lidar.md, "Drives that repeat"). */
typedef struct quern_lidar_history quern_lidar_history;

typedef struct quern_lidar_history_desc {
  uint32_t struct_size;
  uint32_t reserved; /**< 0 */
  double resolution; /**< metres, a side of a cell: a whole number of 0.1 mm */
  uint64_t max_size; /**< bytes of an epoch's tiles; 0: no limit */
} quern_lidar_history_desc;
#define QUERN_LIDAR_HISTORY_DESC_INIT \
  { sizeof(quern_lidar_history_desc), 0, 0.02, 0 }

/** Makes an empty history in a folder that is not there, or empty. `desc` may be NULL. */
QUERN_API quern_status quern_lidar_history_create(const char* folder, const quern_lidar_history_desc* desc);

/** Opens a history, or a bundle of one, for reading and additions. A quarter of the execution's memory_limit, or of
 *  1 GiB, keeps tiles; each writer of frames without poses keeps at most an eighth of known places, and passes over files
 *  of places that are damaged or do not fit. `execution` may be NULL. `*history` is NULL on failure; QUERN_ERROR_IO where
 *  there is none. */
QUERN_API quern_status quern_lidar_history_open(const char* folder, const quern_lidar_execution* execution,
                                                quern_lidar_history** history);
/** After the writers and drives that use it. */
QUERN_API void quern_lidar_history_destroy(quern_lidar_history* history);

/* ---- writing drives --------------------------------------------------------------------------------------------- */

typedef int32_t quern_lidar_mode;
enum {
  QUERN_LIDAR_SET = 0,    /**< a set of points under the bound; their number is the codec's choice */
  QUERN_LIDAR_POINTS = 1, /**< every point under the bound, in order */
  QUERN_LIDAR_EXACT = 2   /**< every bit */
};

typedef struct quern_lidar_writer quern_lidar_writer;

typedef struct quern_lidar_writer_desc {
  uint32_t struct_size;
  quern_lidar_mode mode;
  double max_error;  /**< metres, at most 104; a decimal number of nine places means itself. Not used by EXACT */
  uint32_t replace;  /**< 1: an existing file may be replaced */
  uint32_t reserved; /**< 0 */
  /** Frames are predicted from its newest epoch, too, and reading the drive needs it. Where frames come without poses,
   *  each of 32-bit coordinates in metres finds its place in the history; one that finds none is coded as without a
   *  history. NULL: none. */
  quern_lidar_history* history;
  uint32_t key_frames; /**< with poses: each so many-th frame is predicted by no other; 1 to 64 */
  uint32_t reserved2;  /**< 0 */
} quern_lidar_writer_desc;
#define QUERN_LIDAR_WRITER_DESC_INIT \
  { sizeof(quern_lidar_writer_desc), QUERN_LIDAR_EXACT, 0, 0, 0, NULL, 16, 0 }

/** `desc` may be NULL: mode EXACT; so may `execution`: one thread. The path is copied. `*writer` is NULL on failure. */
QUERN_API quern_status quern_lidar_writer_open(const char* path, const quern_lidar_writer_desc* desc,
                                               const quern_lidar_execution* execution, quern_lidar_writer** writer);

typedef struct quern_lidar_frame {
  uint32_t struct_size;
  uint32_t has_time;
  int64_t time_ns;  /**< nanoseconds, of the caller's epoch */
  const char* name; /**< 1 to 200 bytes of UTF-8 that could be a file's name; NULL: the frame's number */
  /** From the sensor to the world, shape (3, 4), metres, rows one after another, as KITTI writes poses; NULL: not
   *  known. All frames of a drive are given one, or none is. Frames with poses are predicted from those before them. */
  const double* pose;
} quern_lidar_frame;
#define QUERN_LIDAR_FRAME_INIT \
  { sizeof(quern_lidar_frame), 0, 0, NULL, NULL }

/** Codes a scan as the next frame and holds its bytes. O(points log points); about 300 bytes a point meanwhile. `frame`
 *  may be NULL. After a failure the writer is as it was before, but that a scan that found its place in a history
 *  counts as the one before the next. */
QUERN_API quern_status quern_lidar_writer_add(quern_lidar_writer* writer, const quern_lidar_cloud_desc* scan,
                                              const quern_lidar_frame* frame);
/** The pose of frame `index` (from 0) of those added: given, or found in the history, rounded as it is stored. Poses
 *  that were found, for all frames, make the same drive where they are given with the same scans. `pose` gets 12
 *  numbers, as in quern_lidar_frame, where `*has_pose` becomes 1, and stays as it is where it becomes 0. */
QUERN_API quern_status quern_lidar_writer_pose(const quern_lidar_writer* writer, uint64_t index, double* pose,
                                               uint32_t* has_pose);

typedef struct quern_lidar_result {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t frames;
  uint64_t points;
  uint64_t dropped_points; /**< of mode SET: NaN or infinity */
  uint64_t file_bytes;
  double achieved_error;   /**< metres, rounded up */
  uint64_t located_frames; /**< that found their place in the history */
} quern_lidar_result;
#define QUERN_LIDAR_RESULT_INIT \
  { sizeof(quern_lidar_result), 0, 0, 0, 0, 0, 0, 0 }

/** Makes the drive appear; it needs a frame at least. After it, successful or not, the writer can only be destroyed.
 *  `result` may be NULL. */
QUERN_API quern_status quern_lidar_writer_finish(quern_lidar_writer* writer, quern_lidar_result* result);
/** Leaves nothing behind where finish was not called. */
QUERN_API void quern_lidar_writer_destroy(quern_lidar_writer* writer);

/* ---- reading drives --------------------------------------------------------------------------------------------- */

typedef struct quern_lidar_drive quern_lidar_drive;

/** Opens a drive and reads its index. `execution` may be NULL. `*drive` is NULL on failure. */
QUERN_API quern_status quern_lidar_drive_open(const char* path, const quern_lidar_execution* execution,
                                              quern_lidar_drive** drive);
QUERN_API void quern_lidar_drive_destroy(quern_lidar_drive* drive);
QUERN_API uint64_t quern_lidar_drive_frames(const quern_lidar_drive* drive);

typedef struct quern_lidar_frame_info {
  uint32_t struct_size;
  quern_lidar_mode mode;
  uint64_t points;        /**< that decoding gives */
  uint64_t source_points; /**< of the scan */
  uint64_t stored_bytes;
  double bound;          /**< metres; 0 for EXACT */
  double achieved_error; /**< metres, rounded up */
  int64_t time_ns;
  uint32_t has_time;
  uint32_t columns;
  char name[208];  /**< with a 0 behind it */
  double pose[12]; /**< as in quern_lidar_frame, where has_pose is 1: given or found */
  uint32_t has_pose;
  uint32_t reserved;
} quern_lidar_frame_info;
#define QUERN_LIDAR_FRAME_INFO_INIT \
  { sizeof(quern_lidar_frame_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}, {0}, 0, 0 }

/** What frame `index` (from 0) is. Reads this frame's bytes alone and decodes nothing. */
QUERN_API quern_status quern_lidar_drive_inspect(quern_lidar_drive* drive, uint64_t index,
                                                 quern_lidar_frame_info* info);
/** Where the drive's frames find what predicted them; NULL: nowhere. The history outlives the drive or is unset. */
QUERN_API quern_status quern_lidar_drive_set_history(quern_lidar_drive* drive, quern_lidar_history* history);
/** Decodes one frame; the others are not read, unless they predict it. QUERN_LIDAR_ERROR_NO_HISTORY where a history of
 *  earlier drives predicted it and is not set, or a tile of it is missing or damaged, which the sentence names.
 *  `*cloud` is NULL on failure. */
QUERN_API quern_status quern_lidar_drive_read(quern_lidar_drive* drive, uint64_t index, quern_lidar_cloud** cloud);
/** Checks all checksums. */
QUERN_API quern_status quern_lidar_drive_verify(quern_lidar_drive* drive);

/* ---- adding to histories ---------------------------------------------------------------------------------------- */

typedef struct quern_lidar_addition {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t epoch; /**< number of the new epoch, from 1 */
  uint64_t frames;
  uint64_t new_cells;
  uint64_t tiles;         /**< of the new epoch */
  uint64_t evicted_tiles; /**< left out because of max_size */
  char root[40];          /**< its hash, 32 digits, with a 0 behind them */
} quern_lidar_addition;
#define QUERN_LIDAR_ADDITION_INIT                         \
  {                                                       \
    sizeof(quern_lidar_addition), 0, 0, 0, 0, 0, 0, { 0 } \
  }

/** Decodes the frames of a drive and adds what they saw as the history's newest epoch; a crash leaves the epochs that
 *  were there. All frames have poses, and 32-bit coordinates: QUERN_ERROR_INVALID_ARGUMENT. One process adds at a time:
 *  a second one fails with QUERN_ERROR_IO. `addition` may be NULL. */
QUERN_API quern_status quern_lidar_history_add_drive(quern_lidar_history* history, quern_lidar_drive* drive,
                                                     quern_lidar_addition* addition);

/* ---- parity of histories ---------------------------------------------------------------------------------------- */

typedef struct quern_lidar_parity {
  uint32_t struct_size;
  uint32_t data_files;   /**< of a full set */
  uint32_t parity_files; /**< over them */
  uint32_t reserved;
  uint64_t guarded_files;
  uint64_t made_sets;    /**< by this call */
  uint64_t parity_bytes; /**< of all parity files */
} quern_lidar_parity;
#define QUERN_LIDAR_PARITY_INIT \
  { sizeof(quern_lidar_parity), 0, 0, 0, 0, 0, 0 }

/** Guards all files of a history that have no parity yet: of a set of `data_files` files as many may be lost or damaged
 *  as it has `parity_files`; at most 64 together. Both 0: as the history has it, else 8 and 2. `parity` may be NULL.
 *  QUERN_ERROR_CORRUPT where a file is damaged or missing: repair first. QUERN_ERROR_UNSUPPORTED in a build without
 *  ISA-L. QUERN_ERROR_INVALID_ARGUMENT for a bundle. QUERN_ERROR_IO while another process changes the history, and where
 *  its folder cannot be written. */
QUERN_API quern_status quern_lidar_history_make_parity(quern_lidar_history* history, uint32_t data_files,
                                                       uint32_t parity_files, quern_lidar_parity* parity);
/** Removes all parity. `*removed_sets` (may be NULL) is how many sets there were. QUERN_ERROR_INVALID_ARGUMENT and
 *  QUERN_ERROR_IO as above. */
QUERN_API quern_status quern_lidar_history_drop_parity(quern_lidar_history* history, uint64_t* removed_sets);

typedef struct quern_lidar_repair {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t sets;            /**< of files with parity */
  uint64_t guarded_files;   /**< that have parity */
  uint64_t unguarded_files; /**< that have none, where others have; what is damaged of them is not seen */
  uint64_t mended_files;    /**< that came back, bit for bit */
  /** What stays damaged: each such file; a set whose parity files all have damaged headers counts as one. Without
   *  parity: each damaged file, and each part of a tile that is damaged or missing. */
  uint64_t damaged_files;
} quern_lidar_repair;
#define QUERN_LIDAR_REPAIR_INIT \
  { sizeof(quern_lidar_repair), 0, 0, 0, 0, 0, 0 }

/** Brings damaged and missing files back wherever parity suffices; a history without parity is only checked.
 *  QUERN_ERROR_CORRUPT where something stays damaged: the sentence names the first, and `repair` is filled in, too.
 *  `repair` may be NULL. QUERN_ERROR_INVALID_ARGUMENT, QUERN_ERROR_UNSUPPORTED and QUERN_ERROR_IO as above; a folder
 *  that cannot be written fails without parity, too. */
QUERN_API quern_status quern_lidar_history_repair(quern_lidar_history* history, quern_lidar_repair* repair);

/* ---- measuring -------------------------------------------------------------------------------------------------- */

/** Distances to the nearest point of the other cloud, in metres, over finite points. */
typedef struct quern_lidar_distances {
  uint32_t struct_size;
  uint32_t reserved;
  double max_forward; /**< from A to B; infinity where B has no finite point */
  double max_backward;
  double mean_forward;
  double mean_backward;
  double rms_forward;
  double rms_backward;
  double chamfer;    /**< mean of both means */
  double d1_psnr_db; /**< MPEG's D1; infinity without error */
} quern_lidar_distances;
#define QUERN_LIDAR_DISTANCES_INIT \
  { sizeof(quern_lidar_distances), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** By a kd-tree that shares nothing with the codec. O(n log n). `execution` may be NULL. */
QUERN_API quern_status quern_lidar_measure(const quern_lidar_cloud_desc* a, const quern_lidar_cloud_desc* b,
                                           const quern_lidar_execution* execution, quern_lidar_distances* distances);

#ifdef __cplusplus
}
#endif

#endif
