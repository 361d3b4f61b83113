/* What the Python package calls in the plugin: chunks compressed side by side, outside HDF5 and its lock. C99. */
#ifndef QUERN_HDF5_ANY_ENCODE_H
#define QUERN_HDF5_ANY_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include <quern/quern.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The stream that the filter makes of one chunk of a dataset, to be written with H5Dwrite_chunk. `words`: the
 *  dataset's cd_values, complete. `elements`: the whole chunk, padding included, in C order and the machine's byte
 *  order, `bytes` bytes. `stream` has room for `capacity` bytes; QUERN_HDF5_CHUNK_ROOM(bytes) always suffice. `*size`
 *  is what was written. Returns 0, or -1 with one line for people in `text` (room for `text_bytes`, its 0 included).
 *  Any number of threads may call at once; each compresses on its own. No HDF5 function is called. O(bytes). */
QUERN_API int quern_hdf5_any_encode(const unsigned* words, size_t count, const void* elements, uint64_t bytes,
                                    void* stream, uint64_t capacity, uint64_t* size, char* text, size_t text_bytes);
#define QUERN_HDF5_CHUNK_ROOM(bytes) ((bytes) + (bytes) / 1000 + 1024)

#ifdef __cplusplus
}
#endif
#endif
