/* quern in HDF5: the filter's number, its registration without a plugin path, and whole datasets on many threads. C99.
 *
 * Programs that only read or write through HDF5 need none of this: the plugin libh5quern.so does it. Every function
 * returns a negative number on failure and leaves the reason on the HDF5 error stack of the calling thread; none prints
 * or exits. HDF5 is called from the calling thread alone, so builds of HDF5 without thread safety serve as well.
 */
#ifndef QUERN_HDF5_H
#define QUERN_HDF5_H

#include <hdf5.h>

#include <quern/quern.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The number the filter has in files. From the range HDF5 leaves to tests (256 to 511) until one is assigned. */
#define QUERN_HDF5_FILTER_ID 443
/** Words of `cd_values` a user gives; the filter adds the others when a dataset is created. */
#define QUERN_HDF5_REQUEST_WORDS 6

/** Makes the filter known to the HDF5 this program is linked with; calling it again does nothing new. */
QUERN_API herr_t quern_hdf5_register(void);

/** Writes the words for H5Pset_filter: how large the error may be (QUERN_BOUND_LOSSLESS, _ABS or _PWREL), the codec's
 * id (0: chosen by the library) and the option word (see docs/hdf5.md; 0: defaults; 32: chunks are written once, by
 * quern_hdf5_write(), as the smallest streams of all codecs: what the filter is handed later comes back bit for bit).
 */
QUERN_API herr_t quern_hdf5_request(quern_bound_kind kind, double value, uint32_t codec_id, uint32_t options,
                                    unsigned words[QUERN_HDF5_REQUEST_WORDS]);

/** Writes a whole dataset, chunk by chunk past HDF5's own pipeline: each chunk's bytes are those the filter would have
 *  given, or under option 32 the smallest. `dataset` was created with quern as its only filter; `values` are its
 * elements in C order and the machine's byte order, of type `dtype`, which must be the dataset's. `threads`: 0 one a
 * hardware thread, 1 the calling one alone. Takes memory for at most 3 chunks a thread. On failure some chunks may have
 * been written. */
QUERN_API herr_t quern_hdf5_write(hid_t dataset, quern_dtype dtype, const void* values, uint32_t threads);

/** The reverse: reads a whole dataset written through the filter or by quern_hdf5_write() into `values`. Chunks that
 * were never written give the fill value. On failure the content of `values` is unspecified. */
QUERN_API herr_t quern_hdf5_read(hid_t dataset, quern_dtype dtype, void* values, uint32_t threads);

/** The same two with more to say of who works: desc->threads workers, each with a context of its own that runs on
 *  desc->runs_on and desc->device (a CUDA device, for instance) and takes memory from desc->allocator, which is then
 *  called by several threads at once. desc->runner and desc->progress must be NULL. `desc` may be NULL: one thread. */
QUERN_API herr_t quern_hdf5_write_with(hid_t dataset, quern_dtype dtype, const void* values,
                                       const quern_context_desc* desc);
QUERN_API herr_t quern_hdf5_read_with(hid_t dataset, quern_dtype dtype, void* values, const quern_context_desc* desc);

#ifdef __cplusplus
}
#endif
#endif
