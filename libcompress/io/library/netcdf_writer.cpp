// Writing netCDF-4 variables with their dimensions and attributes.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <map>

#include "libcompress/io/conventions.h"
#include "libcompress/io/error.h"
#include "libcompress/io/file_kinds.h"
#include "libcompress/io/library/netcdf_common.h"
#include "libcompress/io/library/slabs.h"

namespace quern::io {
namespace {

Status nc_failed(const std::string& doing, int result, std::string& detail) {
  return fail(detail, StatusCode::io_error, "netCDF cannot " + doing + ": " + nc_strerror(result) + ".");
}

// A new file, or one that already holds arrays. Empty files are taken as new: temporary ones begin so.
Result<NcFile> open_for_writing(const std::string& path, bool to_define, std::string& detail) {
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
  if (exists && to_define) nc_redef(id);
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

/// Sizes that dimensions which may grow will have when the data are there, by name.
using Growing = std::map<std::string, std::uint64_t>;

// A dimension of that name and size: the one of the file, or a new one. Another size gets a name of its own.
Result<int> open_dimension(int group, const Dimension& wanted, Growing& growing, std::string& detail) {
  std::string name = wanted.name;
  for (int attempt = 0; attempt < 2; ++attempt) {
    int id = -1;
    std::size_t size = 0;
    if (nc_inq_dimid(group, name.c_str(), &id) == NC_NOERR) {
      const auto later = growing.find(std::to_string(group) + "/" + name);
      const bool fits = later != growing.end() ? later->second == wanted.size
                                               : nc_inq_dimlen(group, id, &size) == NC_NOERR &&
                                                     (size == wanted.size || (wanted.unlimited && size == 0));
      if (fits) return id;
      name = wanted.name + "_" + std::to_string(wanted.size);
      continue;
    }
    const std::size_t length = wanted.unlimited || wanted.size == 0 ? NC_UNLIMITED : wanted.size;
    const int result = nc_def_dim(group, name.c_str(), length, &id);
    if (result != NC_NOERR) return nc_failed("create the dimension " + name, result, detail);
    if (length == NC_UNLIMITED) growing[std::to_string(group) + "/" + name] = wanted.size;
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

struct Place {
  int group = -1;
  int variable = -1;
};

std::string name_to_write(const std::string& dataset, const FileNotes& notes) {
  return !dataset.empty() ? dataset : !notes.dataset.empty() ? notes.dataset : "data";
}

Result<Place> define_variable(const NcFile& file, const std::string& path, const ArrayMeta& meta,
                              const FileNotes& notes, const std::string& name, Growing& growing, std::string& detail) {
  const bool as_signed = says_unsigned(notes.attributes) && is_integer(meta.dtype);
  const DType stored = as_signed ? with_sign(meta.dtype, true) : meta.dtype;
  const auto type = nc_type_of(stored);
  if (!type)
    return fail(detail, StatusCode::unsupported,
                path + ": netCDF has no type for " + dtype_name(meta.dtype) + "; write raw, .npy or HDF5 instead.");
  const NcName parts = nc_split(name);
  Place place;
  QUERN_ASSIGN_OR_RETURN(place.group, open_group(file.id(), parts.group, detail));
  std::array<int, kMaxRank> ids{};
  const std::vector<Dimension> dimensions = dimensions_to_write(meta, notes);
  for (std::size_t a = 0; a < dimensions.size(); ++a) {
    QUERN_ASSIGN_OR_RETURN(ids[a], open_dimension(place.group, dimensions[a], growing, detail));
  }
  const int result = nc_def_var(place.group, parts.variable.c_str(), *type, static_cast<int>(dimensions.size()),
                                ids.data(), &place.variable);
  if (result == NC_ENAMEINUSE)
    return fail(detail, StatusCode::invalid_argument,
                path + " already holds a variable " + name + "; choose another name.");
  if (result != NC_NOERR) return nc_failed("create the variable " + name + " in " + path, result, detail);
  QUERN_RETURN_IF_ERROR(write_attributes(file.id(), place.group, place.variable, notes, meta, stored, detail));
  return place;
}

Status end_definitions(const NcFile& file, const std::string& path, std::string& detail) {
  const int result = nc_enddef(file.id());
  if (result == NC_NOERR || result == NC_ENOTINDEFINE) return {};
  return nc_failed("write the definitions to " + path, result, detail);
}

Result<Place> find_place(const NcFile& file, const std::string& path, const std::string& name, std::string& detail) {
  const NcName parts = nc_split(name);
  Place place{file.id(), -1};
  int result =
      parts.group.empty() ? NC_NOERR : nc_inq_grp_full_ncid(file.id(), ("/" + parts.group).c_str(), &place.group);
  if (result == NC_NOERR) result = nc_inq_varid(place.group, parts.variable.c_str(), &place.variable);
  if (result != NC_NOERR) return nc_failed("find the variable " + name + " in " + path, result, detail);
  return place;
}

}  // namespace

Result<std::unique_ptr<ArrayWriter>> create_netcdf(const std::string& path, const ArrayMeta& meta,
                                                   const std::string& dataset, std::string& detail, bool defined) {
  QUERN_ASSIGN_OR_RETURN(const FileNotes notes, notes_from_json(meta.attributes_json, detail));
  const std::string name = name_to_write(dataset, notes);
  QUERN_ASSIGN_OR_RETURN(NcFile file, open_for_writing(path, !defined, detail));
  Place place;
  if (defined) {
    QUERN_ASSIGN_OR_RETURN(place, find_place(file, path, name, detail));
  } else {
    Growing growing;
    QUERN_ASSIGN_OR_RETURN(place, define_variable(file, path, meta, notes, name, growing, detail));
    QUERN_RETURN_IF_ERROR(end_definitions(file, path, detail));
  }
  return std::unique_ptr<ArrayWriter>(
      std::make_unique<NetcdfWriter>(path, meta, std::move(file), place.group, place.variable));
}

Status define_netcdf(const std::string& path, const std::vector<ArrayToWrite>& arrays, std::string& detail) {
  struct Definition {
    const ArrayToWrite* array;
    FileNotes notes;
    std::string name;
  };
  std::vector<Definition> definitions;
  for (const ArrayToWrite& array : arrays) {
    QUERN_ASSIGN_OR_RETURN(FileNotes notes, notes_from_json(array.meta.attributes_json, detail));
    std::string name = name_to_write(array.dataset, notes);
    definitions.push_back({&array, std::move(notes), std::move(name)});
  }
  // Coordinate variables first: a dimension learns then of its variable before others refer to it.
  std::stable_partition(definitions.begin(), definitions.end(), [](const Definition& d) {
    return d.notes.dimensions.size() == 1 && d.notes.dimensions[0].name == nc_split(d.name).variable;
  });
  QUERN_ASSIGN_OR_RETURN(NcFile file, open_for_writing(path, true, detail));
  Growing growing;
  for (const Definition& d : definitions)
    QUERN_RETURN_IF_ERROR(define_variable(file, path, d.array->meta, d.notes, d.name, growing, detail).status());
  QUERN_RETURN_IF_ERROR(end_definitions(file, path, detail));
  const int result = file.close();
  return result == NC_NOERR ? Status() : nc_failed("finish the definitions of " + path, result, detail);
}

}  // namespace quern::io
