// Writing netCDF-4 variables with their dimensions and attributes.
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "libcompress/io/error.h"
#include "libcompress/io/file_kinds.h"
#include "libcompress/io/netcdf_common.h"
#include "libcompress/io/slabs.h"

namespace quern::io {
namespace {

Status nc_failed(const std::string& doing, int result, std::string& detail) {
  return fail(detail, StatusCode::io_error, "netCDF cannot " + doing + ": " + nc_strerror(result) + ".");
}

// A new file, or one that already holds arrays. Empty files are taken as new: temporary ones begin so.
Result<NcFile> open_for_writing(const std::string& path, std::string& detail) {
  if (path == "-")
    return fail(detail, StatusCode::invalid_argument,
                "netCDF files cannot be written to standard output, they need seeking; name a file.");
  nc_prepare();
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0 && info.st_size > 0;
  int id = -1;
  const int result =
      exists ? nc_open(path.c_str(), NC_WRITE, &id) : nc_create(path.c_str(), NC_NETCDF4 | NC_CLOBBER, &id);
  if (result == NC_ENOTNC)
    return fail(detail, StatusCode::invalid_argument,
                path + " exists and is no netCDF file; remove it or choose another name.");
  if (result != NC_NOERR) return nc_failed("write " + path, result, detail);
  // Classic files must be told that definitions follow; netCDF-4 files are always ready.
  if (exists) nc_redef(id);
  return NcFile(id);
}

Result<int> open_group(int file, const std::string& path, std::string& detail) {
  int at = file;
  std::size_t begin = 0;
  while (begin < path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty()) continue;
    int inner = -1;
    int result = nc_inq_grp_ncid(at, name.c_str(), &inner);
    if (result != NC_NOERR) result = nc_def_grp(at, name.c_str(), &inner);
    if (result != NC_NOERR) return nc_failed("create the group " + name, result, detail);
    at = inner;
  }
  return at;
}

std::vector<Dimension> dimensions_to_write(const ArrayMeta& meta, const FileNotes& notes) {
  std::vector<Dimension> out;
  const bool known = notes.dimensions.size() == meta.shape.rank();
  for (std::size_t a = 0; a < meta.shape.rank(); ++a) {
    const bool parts = has_complex_axis(meta) && a + 1 == meta.shape.rank();
    Dimension d{"complex", meta.shape[a], false};
    if (!parts) d.name = std::string("d").append(std::to_string(a));
    if (known && !notes.dimensions[a].name.empty()) d.name = notes.dimensions[a].name;
    if (known) d.unlimited = notes.dimensions[a].unlimited;
    out.push_back(d);
  }
  return out;
}

// A dimension of that name and size: the one of the file, or a new one. Another size gets a name of its own.
Result<int> open_dimension(int group, const Dimension& wanted, std::string& detail) {
  std::string name = wanted.name;
  for (int attempt = 0; attempt < 2; ++attempt) {
    int id = -1;
    std::size_t size = 0;
    if (nc_inq_dimid(group, name.c_str(), &id) == NC_NOERR) {
      if (nc_inq_dimlen(group, id, &size) == NC_NOERR && (size == wanted.size || (wanted.unlimited && size == 0)))
        return id;
      name = wanted.name + "_" + std::to_string(wanted.size);
      continue;
    }
    const std::size_t length = wanted.unlimited || wanted.size == 0 ? NC_UNLIMITED : wanted.size;
    const int result = nc_def_dim(group, name.c_str(), length, &id);
    if (result != NC_NOERR) return nc_failed("create the dimension " + name, result, detail);
    return id;
  }
  return fail(detail, StatusCode::invalid_argument,
              "The file has dimensions " + wanted.name + " and " + name + " of other sizes; write to a new file.");
}

Status write_attributes(int file, int group, int variable, const FileNotes& notes, const ArrayMeta& meta, DType stored,
                        std::string& detail) {
  for (Attribute a : attributes_to_write(notes, meta)) {
    // netCDF takes a fill value in the variable's own type only.
    if (a.name == "_FillValue" && a.dtype == meta.dtype) a.dtype = stored;
    if (a.name == "_FillValue" && (a.type != Attribute::Type::number || a.dtype != stored || a.bits.size() != 1))
      continue;
    const int result = nc_write_attribute(group, variable, a);
    if (result != NC_NOERR) return nc_failed("write the attribute " + a.name, result, detail);
  }
  for (const Attribute& a : notes.file_attributes) {
    if (nc_inq_att(file, NC_GLOBAL, a.name.c_str(), nullptr, nullptr) == NC_NOERR) continue;
    const int result = nc_write_attribute(file, NC_GLOBAL, a);
    if (result != NC_NOERR) return nc_failed("write the attribute " + a.name, result, detail);
  }
  return {};
}

class NetcdfWriter final : public SlabWriter {
 public:
  NetcdfWriter(std::string path, const ArrayMeta& meta, NcFile file, int group, int variable)
      : SlabWriter(meta.shape, dtype_bytes(meta.dtype)),
        path_(std::move(path)),
        file_(std::move(file)),
        group_(group),
        variable_(variable) {}

 protected:
  Status write_slab(const Slab& slab, const void* data) override {
    std::array<std::size_t, kMaxRank> start{};
    std::array<std::size_t, kMaxRank> count{};
    std::copy(slab.start.begin(), slab.start.end(), start.begin());
    std::copy(slab.count.begin(), slab.count.end(), count.begin());
    const int result = nc_put_vara(group_, variable_, start.data(), count.data(), data);
    if (result == NC_NOERR) return {};
    return {StatusCode::io_error, "netCDF cannot write the variable from row {0} on (error {1}); the disk may be full",
            static_cast<std::int64_t>(slab.start[0]), result};
  }

  Status close_file() override {
    const int synced = nc_sync(file_.id());
    const int closed = file_.close();
    if (synced != NC_NOERR || closed != NC_NOERR)
      return {StatusCode::io_error, "netCDF cannot finish the file (error {0}); the disk may be full",
              synced != NC_NOERR ? synced : closed};
    return sync_file(path_);
  }

 private:
  std::string path_;
  NcFile file_;
  int group_;
  int variable_;
};

}  // namespace

Result<std::unique_ptr<ArrayWriter>> create_netcdf(const std::string& path, const ArrayMeta& meta,
                                                   const std::string& dataset, std::string& detail) {
  QUERN_ASSIGN_OR_RETURN(const FileNotes notes, notes_from_json(meta.attributes_json, detail));
  const std::string name = !dataset.empty() ? dataset : !notes.dataset.empty() ? notes.dataset : "data";
  const bool as_signed = nc_says_unsigned(notes.attributes) && is_integer(meta.dtype);
  const DType stored = as_signed ? with_sign(meta.dtype, true) : meta.dtype;
  const auto type = nc_type_of(stored);
  if (!type)
    return fail(detail, StatusCode::unsupported,
                path + ": netCDF has no type for " + dtype_name(meta.dtype) + "; write raw, .npy or HDF5 instead.");
  QUERN_ASSIGN_OR_RETURN(NcFile file, open_for_writing(path, detail));
  const NcName parts = nc_split(name);
  QUERN_ASSIGN_OR_RETURN(const int group, open_group(file.id(), parts.group, detail));

  std::array<int, kMaxRank> ids{};
  const std::vector<Dimension> dimensions = dimensions_to_write(meta, notes);
  for (std::size_t a = 0; a < dimensions.size(); ++a) {
    QUERN_ASSIGN_OR_RETURN(ids[a], open_dimension(group, dimensions[a], detail));
  }
  int variable = -1;
  int result =
      nc_def_var(group, parts.variable.c_str(), *type, static_cast<int>(dimensions.size()), ids.data(), &variable);
  if (result == NC_ENAMEINUSE)
    return fail(detail, StatusCode::invalid_argument,
                path + " already holds a variable " + name + "; choose another name.");
  if (result != NC_NOERR) return nc_failed("create the variable " + name + " in " + path, result, detail);
  QUERN_RETURN_IF_ERROR(write_attributes(file.id(), group, variable, notes, meta, stored, detail));
  result = nc_enddef(file.id());
  if (result != NC_NOERR && result != NC_ENOTINDEFINE)
    return nc_failed("write the definitions to " + path, result, detail);
  return std::unique_ptr<ArrayWriter>(std::make_unique<NetcdfWriter>(path, meta, std::move(file), group, variable));
}

}  // namespace quern::io
