// Way 1: the filter inside collective writes of parallel HDF5.
#include <quern/hdf5.h>

#include <algorithm>

#include "examples/insitu/writers.h"

namespace {

/// The innermost line of HDF5's error stack, which is the filter's own where the filter failed.
std::string hdf5_reason() {
  std::string reason = "no reason given";
  const auto first_line = [](unsigned depth, const H5E_error2_t* line, void* text) -> herr_t {
    if (depth == 0 && line->desc != nullptr) *static_cast<std::string*>(text) = line->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_line, &reason);
  return reason;
}

template <class Result>
Result check(Result result, const std::string& what) {
  if (result < 0) fail("cannot " + what + ": " + hdf5_reason());
  return result;
}

}  // namespace

Hdf5Series::Hdf5Series(const std::string& path, MPI_Comm ranks, const Block& block, const std::vector<Field>& fields,
                       Bound bound, std::uint64_t chunk_planes)
    : block_(block) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // one sentence from fail(), not a stack from every rank
  MPI_Comm_rank(ranks, &rank_);
  check(quern_hdf5_register(), "register the filter");
  unsigned words[QUERN_HDF5_REQUEST_WORDS];
  check(quern_hdf5_request(bound.kind, bound.value, 0, 0, words), "use this bound");

  const hid_t access = check(H5Pcreate(H5P_FILE_ACCESS), "set up the file");
  check(H5Pset_fapl_mpio(access, ranks, MPI_INFO_NULL), "use MPI for the file");
  file_ = check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access), "create " + path);
  // Filtered chunks can be written collectively only: their sizes and places are agreed on by all ranks.
  transfer_ = check(H5Pcreate(H5P_DATASET_XFER), "set up writing");
  check(H5Pset_dxpl_mpio(transfer_, H5FD_MPIO_COLLECTIVE), "write collectively");

  const auto [nz, ny, nx] = block.global;
  const hsize_t extent[] = {0, nz, ny, nx}, most[] = {H5S_UNLIMITED, nz, ny, nx};
  const hsize_t chunk[] = {1, std::min(chunk_planes, nz), ny, nx};
  const hid_t space = check(H5Screate_simple(4, extent, most), "describe a field");
  const hid_t creation = check(H5Pcreate(H5P_DATASET_CREATE), "set up a field");
  check(H5Pset_chunk(creation, 4, chunk), "set chunks of this size");
  check(H5Pset_filter(creation, QUERN_HDF5_FILTER_ID, H5Z_FLAG_MANDATORY, QUERN_HDF5_REQUEST_WORDS, words),
        "set the filter");
  for (const Field& field : fields)
    // Memory and file have the same type: a conversion would make HDF5 give up the collective write.
    datasets_.push_back(
        check(H5Dcreate2(file_, field.name.c_str(), H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT),
              "create the dataset " + field.name));

  const hsize_t one_extent[] = {0}, one_most[] = {H5S_UNLIMITED}, one_chunk[] = {1024};
  const hid_t line = check(H5Screate_simple(1, one_extent, one_most), "describe the time axis");
  const hid_t plain = check(H5Pcreate(H5P_DATASET_CREATE), "set up the time axis");
  check(H5Pset_chunk(plain, 1, one_chunk), "set up the time axis");
  times_ = check(H5Dcreate2(file_, "time", H5T_NATIVE_DOUBLE, line, H5P_DEFAULT, plain, H5P_DEFAULT), "create time");
  numbers_ = check(H5Dcreate2(file_, "step", H5T_NATIVE_UINT64, line, H5P_DEFAULT, plain, H5P_DEFAULT), "create step");
  for (const hid_t list : {access, creation, plain}) H5Pclose(list);
  for (const hid_t closed : {space, line}) H5Sclose(closed);
}

void Hdf5Series::write(hid_t dataset, hid_t type, const std::vector<hsize_t>& extent, const std::vector<hsize_t>& count,
                       std::uint64_t first, const void* values, const std::string& name) {
  const int rank = static_cast<int>(extent.size());
  std::vector<hsize_t> begin(extent.size(), 0);
  begin[0] = steps_;
  if (rank > 1) begin[1] = first;
  check(H5Dset_extent(dataset, extent.data()), "extend " + name);
  const hid_t there = check(H5Dget_space(dataset), "select from " + name);
  const hid_t here = check(H5Screate_simple(rank, count.data(), nullptr), "describe a block of " + name);
  if (std::find(count.begin(), count.end(), 0) != count.end()) {
    // Nothing to write, but HDF5 waits for every rank.
    H5Sselect_none(there);
    H5Sselect_none(here);
  } else {
    check(H5Sselect_hyperslab(there, H5S_SELECT_SET, begin.data(), nullptr, count.data(), nullptr),
          "select from " + name);
  }
  check(H5Dwrite(dataset, type, here, there, transfer_, values), "write " + name);
  H5Sclose(here);
  H5Sclose(there);
}

void Hdf5Series::append(const Step& step, const std::vector<Field>& fields) {
  const auto [nz, ny, nx] = block_.global;
  for (std::size_t i = 0; i < fields.size(); ++i)
    write(datasets_[i], H5T_NATIVE_DOUBLE, {steps_ + 1, nz, ny, nx}, {1, block_.planes, ny, nx}, block_.first,
          fields[i].values.data(), fields[i].name);
  const hsize_t mine = rank_ == 0 ? 1 : 0;
  write(times_, H5T_NATIVE_DOUBLE, {steps_ + 1}, {mine}, 0, &step.time, "time");
  write(numbers_, H5T_NATIVE_UINT64, {steps_ + 1}, {mine}, 0, &step.number, "step");
  ++steps_;
}

std::uint64_t Hdf5Series::close() {
  std::uint64_t bytes = 0;
  for (const hid_t dataset : datasets_) bytes += H5Dget_storage_size(dataset);
  datasets_.insert(datasets_.end(), {times_, numbers_});
  for (const hid_t dataset : datasets_) check(H5Dclose(dataset), "close a dataset");
  H5Pclose(transfer_);
  check(H5Fclose(file_), "close the file");
  return bytes;
}
