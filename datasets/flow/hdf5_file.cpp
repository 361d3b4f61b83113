// HDF5 output through the C interface; the library converts doubles to the stored type.
#include "datasets/flow/hdf5_file.h"

#include <hdf5.h>

#include <array>
#include <utility>

namespace quern::flow {
namespace {

/// Owns one HDF5 identifier.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { reset(); }
  bool valid() const { return id_ >= 0; }
  hid_t get() const { return id_; }
  /// Closes now; false when that fails, as it does when cached bytes do not reach the disk.
  bool reset() {
    const hid_t id = std::exchange(id_, -1);
    return id < 0 || close_(id) >= 0;
  }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

bool write_attribute(hid_t object, const char* name, hid_t stored, hid_t memory, const void* value) {
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  if (!space.valid()) return false;
  const Handle attribute(H5Acreate2(object, name, stored, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  return attribute.valid() && H5Awrite(attribute.get(), memory, value) >= 0;
}

bool write_text(hid_t object, const char* name, std::string_view text) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  const std::string owned(text);
  return type.valid() && H5Tset_size(type.get(), owned.size() + 1) >= 0 &&
         write_attribute(object, name, type.get(), type.get(), owned.c_str());
}

bool write_number(hid_t object, const char* name, double value) {
  return write_attribute(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
}

bool write_step(hid_t object, const Solver& solver) {
  const std::uint64_t step = solver.step();
  return write_number(object, "time", solver.time()) &&
         write_attribute(object, "step", H5T_STD_U64LE, H5T_NATIVE_UINT64, &step);
}

bool write_dataset(hid_t file, const QuantityInfo& info, const Solver& solver, hid_t stored, std::span<double> values) {
  const Grid& grid = solver.grid();
  const std::array<hsize_t, kAxes> extents{grid.cells[0], grid.cells[1], grid.cells[2]};
  const Handle space(H5Screate_simple(static_cast<int>(kAxes), extents.data(), nullptr), H5Sclose);
  if (!space.valid()) return false;
  Handle dataset(
      H5Dcreate2(file, std::string(info.name).c_str(), stored, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
      H5Dclose);
  if (!dataset.valid()) return false;
  solver.field(info.quantity, values);
  return H5Dwrite(dataset.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0 &&
         write_text(dataset.get(), "units", "1") && write_text(dataset.get(), "long_name", info.long_name) &&
         write_step(dataset.get(), solver) && dataset.reset();
}

}  // namespace

Status write_hdf5(const std::string& path, const Solver& solver, const OutputOptions& options, std::span<double> values,
                  std::string& detail) {
  // The reason is reported in one sentence by the caller, not as HDF5's stack on standard error.
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  detail = "cannot write " + path + " as HDF5; is the disk full or the folder not writable?";
  const Status failed(StatusCode::io_error, "cannot write an HDF5 file");
  Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  if (!file.valid()) return failed;
  const hid_t stored = options.type == ElementType::f32 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
  bool good = write_text(file.get(), "setup", options.setup) &&
              write_text(file.get(), "comment", "dimensionless code units; axes are z, y, x, slowest first") &&
              write_number(file.get(), "gamma", solver.gamma()) &&
              write_number(file.get(), "spacing", solver.grid().spacing) && write_step(file.get(), solver);
  for (const QuantityInfo& info : quantities()) good = good && write_dataset(file.get(), info, solver, stored, values);
  if (!good || !file.reset()) return failed;
  detail.clear();
  return {};
}

}  // namespace quern::flow
