// What the simulation hands to a writer, and the two ways of writing. Every function here is collective: all ranks call
// it, in the same order, a rank without cells too.
#pragma once

#include <hdf5.h>
#include <mpi.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <quern/quern.h>

/// The planes of a global array (nz, ny, nx) that this rank holds: `planes` from `first` on; there may be none.
struct Block {
  std::array<std::uint64_t, 3> global;
  std::uint64_t first;
  std::uint64_t planes;
};

struct Field {
  std::string name;
  std::vector<double> values;  ///< of this rank's block, C order
};

struct Step {
  std::uint64_t number;
  double time;
};

struct Bound {
  quern_bound_kind kind;
  double value;
};

/// Says what is wrong and ends all ranks. A rank that only returned would leave the others waiting in a collective
/// call.
[[noreturn]] void fail(const std::string& what);

/// Way 1: one HDF5 file for the run, a dataset for each field with time as its first axis, compressed by the filter
/// inside collective writes. The file's chunks are the same bytes for any number of ranks.
class Hdf5Series {
 public:
  /// `chunk_planes`: planes of a chunk. Where blocks end at multiples of it no rank sends cells to another.
  Hdf5Series(const std::string& path, MPI_Comm ranks, const Block& block, const std::vector<Field>& fields, Bound bound,
             std::uint64_t chunk_planes);
  void append(const Step& step, const std::vector<Field>& fields);
  /// Bytes of all ranks' compressed chunks. Nothing may be appended after it.
  std::uint64_t close();

 private:
  void write(hid_t dataset, hid_t type, const std::vector<hsize_t>& extent, const std::vector<hsize_t>& count,
             std::uint64_t first, const void* values, const std::string& name);

  Block block_;
  int rank_ = 0;
  hsize_t steps_ = 0;
  hid_t file_, transfer_, times_, numbers_;
  std::vector<hid_t> datasets_;
};

struct StreamsWritten {
  std::uint64_t bytes;      ///< of all ranks' streams
  double compress_seconds;  ///< of this rank
};

/// Way 2: each rank compresses its block with the C interface, and all write their streams side by side into one file
/// a step. Its last 21 bytes are, as text, where the index (JSON) begins; read_streams.py reads it. A field's step is
/// predicted from the one that was written before, where that makes it smaller; each 16th step at least stands alone.
class StreamSeries {
 public:
  StreamSeries(MPI_Comm ranks, const Block& block, Bound bound);
  ~StreamSeries();
  StreamSeries(const StreamSeries&) = delete;
  StreamsWritten write(const std::string& path, const Step& step, const std::vector<Field>& fields);

 private:
  /// Appends one stream for each field to `bytes` and its size to `sizes`.
  void compress(const std::vector<Field>& fields, std::vector<unsigned char>& bytes, std::vector<std::uint64_t>& sizes);

  MPI_Comm ranks_;
  Block block_;
  quern_context* context_ = nullptr;  ///< one thread: the other cores have ranks of their own
  quern_params* params_ = nullptr;
  std::vector<quern_session*> sessions_;  ///< of each field
};
