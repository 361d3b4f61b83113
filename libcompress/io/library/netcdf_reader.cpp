// Reading and listing netCDF variables, classic and netCDF-4.
#include <algorithm>
#include <array>

#include "libcompress/io/conventions.h"
#include "libcompress/io/error.h"
#include "libcompress/io/file_kinds.h"
#include "libcompress/io/library/netcdf_common.h"
#include "libcompress/io/library/slabs.h"
#include "libcompress/io/number.h"
#include "libcompress/io/posix_file.h"

namespace quern::io {
namespace {

constexpr std::size_t kSmallestCache = std::size_t{1} << 20;
constexpr std::size_t kLargestCache = std::size_t{1} << 28;
constexpr std::size_t kCacheSlots = 12421;
constexpr int kMaxGroupDepth = 64;

Result<NcFile> open_file(const std::string& path, std::string& detail) {
  QUERN_RETURN_IF_ERROR(check_library_file(path, "netCDF", detail));
  nc_prepare();
  int id = -1;
  const int result = nc_open(path.c_str(), NC_NOWRITE, &id);
  if (result != NC_NOERR)
    return fail(detail, result == NC_ENOTNC ? StatusCode::bad_magic : StatusCode::io_error,
                "netCDF cannot open " + path + ": " + nc_strerror(result) + ".");
  return NcFile(id);
}

struct Listing {
  std::vector<std::string> all;
  std::vector<std::string> fields;  ///< without coordinate variables, which are named like their dimension
};

bool is_coordinate(int group, int variable, const char* name) {
  int rank = 0;
  int dimension = -1;
  std::array<char, NC_MAX_NAME + 1> dimension_name{};
  return nc_inq_varndims(group, variable, &rank) == NC_NOERR && rank == 1 &&
         nc_inq_vardimid(group, variable, &dimension) == NC_NOERR &&
         nc_inq_dimname(group, dimension, dimension_name.data()) == NC_NOERR &&
         std::string(name) == dimension_name.data();
}

void list_group(int group, const std::string& prefix, int depth, Listing& listing) {
  int count = 0;
  nc_inq_varids(group, &count, nullptr);
  std::vector<int> variables(static_cast<std::size_t>(std::max(count, 0)));
  nc_inq_varids(group, &count, variables.data());
  std::array<char, NC_MAX_NAME + 1> name{};
  for (const int variable : variables) {
    nc_type type = NC_NAT;
    if (nc_inq_varname(group, variable, name.data()) != NC_NOERR ||
        nc_inq_vartype(group, variable, &type) != NC_NOERR || !nc_element(type))
      continue;
    listing.all.push_back(prefix + name.data());
    if (!is_coordinate(group, variable, name.data())) listing.fields.push_back(listing.all.back());
  }
  if (depth == kMaxGroupDepth) return;
  count = 0;
  nc_inq_grps(group, &count, nullptr);
  std::vector<int> groups(static_cast<std::size_t>(std::max(count, 0)));
  nc_inq_grps(group, &count, groups.data());
  for (const int inner : groups)
    if (nc_inq_grpname(inner, name.data()) == NC_NOERR)
      list_group(inner, (prefix.empty() ? "/" : prefix) + name.data() + "/", depth + 1, listing);
}

std::string text_of(int group, int variable, const char* name) {
  nc_type type = NC_NAT;
  std::size_t count = 0;
  if (nc_inq_att(group, variable, name, &type, &count) != NC_NOERR || type != NC_CHAR || count > kMaxAttributeBytes)
    return {};
  std::string text(count, '\0');
  return nc_get_att_text(group, variable, name, text.data()) == NC_NOERR ? text : std::string();
}

void collect_references(int group, int depth, std::vector<Reference>& out) {
  int count = 0;
  nc_inq_nvars(group, &count);
  std::array<char, NC_MAX_NAME + 1> name{};
  for (int variable = 0; variable < count; ++variable) {
    if (nc_inq_varname(group, variable, name.data()) != NC_NOERR) continue;
    for (const char* attribute : kReferringAttributes) {
      std::string text = text_of(group, variable, attribute);
      if (!text.empty()) out.push_back({name.data(), attribute, std::move(text)});
    }
  }
  if (depth == kMaxGroupDepth) return;
  count = 0;
  nc_inq_grps(group, &count, nullptr);
  std::vector<int> groups(static_cast<std::size_t>(std::max(count, 0)));
  nc_inq_grps(group, &count, groups.data());
  for (const int inner : groups) collect_references(inner, depth + 1, out);
}

Listing list_file(int file) {
  Listing listing;
  list_group(file, "", 0, listing);
  return listing;
}

Result<Shape> read_dimensions(const std::string& what, int group, int variable, FileNotes& notes, std::string& detail) {
  int rank = 0;
  nc_inq_varndims(group, variable, &rank);
  if (rank < 0 || rank > static_cast<int>(kMaxRank))
    return fail(
        detail, StatusCode::invalid_shape,
        what + " has " + std::to_string(rank) + " axes; at most " + std::to_string(kMaxRank) + " are possible.");
  std::array<int, kMaxRank> ids{};
  nc_inq_vardimid(group, variable, ids.data());
  // Dimensions of a group may be unlimited in a parent, so each level is asked.
  std::vector<int> unlimited;
  for (int at = group; at >= 0;) {
    int count = 0;
    if (nc_inq_unlimdims(at, &count, nullptr) == NC_NOERR && count > 0) {
      const std::size_t before = unlimited.size();
      unlimited.resize(before + static_cast<std::size_t>(count));
      nc_inq_unlimdims(at, &count, unlimited.data() + before);
    }
    if (nc_inq_grp_parent(at, &at) != NC_NOERR) break;
  }
  std::vector<std::uint64_t> extents;
  for (int a = 0; a < rank; ++a) {
    const int id = ids[static_cast<std::size_t>(a)];
    std::array<char, NC_MAX_NAME + 1> name{};
    std::size_t size = 0;
    const int result = nc_inq_dim(group, id, name.data(), &size);
    if (result != NC_NOERR) return fail(detail, StatusCode::io_error, what + ": " + nc_strerror(result) + ".");
    const bool grows = std::find(unlimited.begin(), unlimited.end(), id) != unlimited.end();
    notes.dimensions.push_back({name.data(), size, grows});
    extents.push_back(size);
  }
  auto shape = Shape::make(extents);
  if (!shape.ok()) return fail(detail, StatusCode::invalid_shape, what + ": " + shape.status().text() + ".");
  return shape;
}

// Slabs cross chunks: without a cache that holds a row of chunks each chunk would be unpacked many times.
void set_cache(int group, int variable, const Shape& shape, std::size_t element_bytes) {
  int storage = NC_CONTIGUOUS;
  std::array<std::size_t, kMaxRank> chunks{};
  if (shape.rank() == 0 || nc_inq_var_chunking(group, variable, &storage, chunks.data()) != NC_NOERR ||
      storage != NC_CHUNKED)
    return;
  std::uint64_t bytes = chunks[0] * element_bytes;
  for (std::size_t a = 1; a < shape.rank() && bytes < kLargestCache; ++a)
    bytes *= (shape[a] + chunks[a] - 1) / chunks[a] * chunks[a];
  nc_set_var_chunk_cache(group, variable, std::clamp<std::size_t>(bytes, kSmallestCache, kLargestCache), kCacheSlots,
                         1.0F);
}

class NetcdfReader final : public SlabReader {
 public:
  NetcdfReader(ArrayMeta meta, NcFile file, int group, int variable)
      : SlabReader(meta, meta.shape, dtype_bytes(meta.dtype)),
        file_(std::move(file)),
        group_(group),
        variable_(variable) {}

 protected:
  Status read_slab(const Slab& slab, void* out) override {
    const std::array<std::size_t, kMaxRank> start = to_sizes(slab.start);
    const std::array<std::size_t, kMaxRank> count = to_sizes(slab.count);
    const int result = nc_get_vara(group_, variable_, start.data(), count.data(), out);
    if (result == NC_NOERR) return {};
    return {StatusCode::io_error,
            "netCDF cannot read the variable from row {0} on (error {1}); the file may be damaged",
            static_cast<std::int64_t>(slab.start[0]), result};
  }

 private:
  static std::array<std::size_t, kMaxRank> to_sizes(const std::array<std::uint64_t, kMaxRank>& in) {
    std::array<std::size_t, kMaxRank> out{};
    std::copy(in.begin(), in.end(), out.begin());
    return out;
  }

  NcFile file_;
  int group_;
  int variable_;
};

struct Found {
  int group = -1;
  int variable = -1;
  DType stored = DType::f32;
};

// Elements that nobody wrote hold netCDF's default, about 1e37 in floats, which no range should include.
void add_default_fill(const Found& found, const FileNotes& notes, ArrayMeta& meta) {
  int no_fill = 0;
  if (find_attribute(notes.attributes, "_FillValue") != nullptr ||
      nc_inq_var_fill(found.group, found.variable, &no_fill, nullptr) != NC_NOERR || no_fill != 0)
    return;
  if (const auto bits = netcdf_default_fill(meta.dtype)) add_fill_bits(*bits, meta);
}

Result<Found> find_variable(const std::string& path, int file, const std::string& name, std::string& detail) {
  const NcName parts = nc_split(name);
  Found found;
  found.group = file;
  int result = parts.group.empty() ? NC_NOERR : nc_inq_grp_full_ncid(file, ("/" + parts.group).c_str(), &found.group);
  if (result == NC_NOERR) result = nc_inq_varid(found.group, parts.variable.c_str(), &found.variable);
  if (result != NC_NOERR)
    return fail(detail, StatusCode::invalid_argument,
                path + " has no variable " + name + " (" + nc_strerror(result) + "); list its arrays first.");
  nc_type type = NC_NAT;
  nc_inq_vartype(found.group, found.variable, &type);
  const auto dtype = nc_element(type);
  if (!dtype)
    return fail(detail, StatusCode::unsupported,
                path + ": the variable " + name + " holds no plain numbers; choose a numeric one.");
  found.stored = *dtype;
  return found;
}

}  // namespace

Result<std::vector<std::string>> list_netcdf(const std::string& path, std::string& detail) {
  QUERN_ASSIGN_OR_RETURN(const NcFile file, open_file(path, detail));
  return list_file(file.id()).all;
}

Result<std::unique_ptr<ArrayReader>> open_netcdf(const std::string& path, const OpenOptions& options,
                                                 std::string& detail) {
  QUERN_ASSIGN_OR_RETURN(NcFile file, open_file(path, detail));
  std::string name = options.dataset;
  if (name.empty()) {
    const Listing listing = list_file(file.id());
    QUERN_ASSIGN_OR_RETURN(name, only_name(path, listing.fields.empty() ? listing.all : listing.fields, detail));
  }
  QUERN_ASSIGN_OR_RETURN(const Found found, find_variable(path, file.id(), name, detail));
  const std::string what = path + ": the variable " + name;

  FileNotes notes;
  notes.kind = "netcdf";
  notes.dataset = name;
  ArrayMeta meta;
  QUERN_ASSIGN_OR_RETURN(meta.shape, read_dimensions(what, found.group, found.variable, notes, detail));
  nc_read_attributes(found.group, found.variable, notes.attributes, notes.skipped);
  nc_read_attributes(file.id(), NC_GLOBAL, notes.file_attributes, notes.skipped);
  // Fill values are declared in the stored type; the same bits mean the same value when it is read as unsigned.
  meta.dtype = found.stored;
  add_fill_attributes(notes.attributes, meta);
  add_default_fill(found, notes, meta);
  if (says_unsigned(notes.attributes)) {
    meta.dtype = with_sign(found.stored, false);
    meta.unsigned_in_signed = meta.dtype != found.stored;
  }
  read_conventions(notes.attributes, meta);
  std::vector<Reference> references;
  collect_references(file.id(), 0, references);
  meta.role = role_of(name, is_coordinate(found.group, found.variable, nc_split(name).variable.c_str()),
                      notes.attributes, references);
  if (!notes.dimensions.empty() && notes.dimensions.back().size == 2) {
    const std::string& last = notes.dimensions.back().name;
    meta.is_complex = last == "complex" || last == "ri";
  }
  meta.attributes_json = to_json(notes);
  QUERN_RETURN_IF_ERROR(check_asked(what, meta, options, detail));
  set_cache(found.group, found.variable, meta.shape, dtype_bytes(meta.dtype));
  return std::unique_ptr<ArrayReader>(
      std::make_unique<NetcdfReader>(std::move(meta), std::move(file), found.group, found.variable));
}

}  // namespace quern::io
