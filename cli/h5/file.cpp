// HDF5 calls that several verbs of quern h5 need.
#include "cli/h5/file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <fstream>

#include <fmt/format.h>

#include <quern/hdf5.h>

#include "cli/args/exit_codes.h"
#include "cli/files/file_names.h"

namespace quern::cli {
namespace {

herr_t choose_line(unsigned /*n*/, const H5E_error2_t* error, void* out) {
  auto& text = *static_cast<std::string*>(out);
  std::array<char, 16> name{};
  H5Eget_class_name(error->cls_id, name.data(), name.size());
  const bool ours = std::string(name.data()) == "quern";
  if (error->desc != nullptr && (text.empty() || ours)) text = error->desc;
  return ours ? 1 : 0;
}

constexpr std::array<unsigned char, 3> kClassicStart{'C', 'D', 'F'};

/// The formats that netCDF had before it used HDF5.
bool is_classic_netcdf(const std::string& path) {
  std::array<unsigned char, 4> start{};
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(start.data()), start.size());
  const unsigned version = start[3];
  return file.gcount() == static_cast<std::streamsize>(start.size()) &&
         std::equal(kClassicStart.begin(), kClassicStart.end(), start.begin()) &&
         (version == 1 || version == 2 || version == 5);
}

/// The texts of an attribute whose elements are strings of variable length.
std::string variable_texts(hid_t attribute, hid_t type, hid_t space, std::size_t count) {
  std::vector<char*> texts(count, nullptr);
  if (H5Aread(attribute, type, texts.data()) < 0) return {};
  std::string out;
  for (const char* text : texts)
    if (text != nullptr) out += (out.empty() ? "" : " ") + std::string(text);
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, texts.data());
  return out;
}

std::string fixed_texts(hid_t attribute, hid_t type, std::size_t count) {
  const std::size_t size = H5Tget_size(type);
  std::string bytes(size * count, '\0');
  if (H5Aread(attribute, type, bytes.data()) < 0) return {};
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string text = bytes.substr(i * size, size);
    out += (out.empty() ? "" : " ") + text.substr(0, text.find('\0'));
  }
  return out;
}

}  // namespace

void h5_prepare_command() {
  static const herr_t once = H5dont_atexit();
  static_cast<void>(once);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

std::string h5_reason() {
  std::string text;
  const H5Id stack(H5Eget_current_stack(), H5Eclose_stack);
  H5Ewalk2(stack.get(), H5E_WALK_UPWARD, choose_line, &text);
  return text.empty() ? "HDF5 gives no reason" : text;
}

void h5_fail(const std::string& what) { fail(Exit::io, fmt::format("HDF5 cannot {}: {}", what, h5_reason())); }

H5Id h5_open(const std::string& path) {
  if (access(path.c_str(), R_OK) != 0) fail_errno(path, "be read");
  if (is_classic_netcdf(path))
    fail(Exit::io,
         path + ": is a classic netCDF file, not one over HDF5; convert it first: nccopy -k nc4 " + path + " new.nc");
  // A chunk cache of nothing: whole chunks are read at a time here, and memory stays at what is asked for.
  const H5Id access_list(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_cache(access_list.get(), 0, 1, 0, 1.0);
  H5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access_list.get()), H5Fclose);
  if (!file.ok()) fail(Exit::io, fmt::format("{}: is no HDF5 or netCDF-4 file, or is damaged: {}", path, h5_reason()));
  return file;
}

H5Id h5_open_at(hid_t file, haddr_t address) {
  H5Id object(H5Oopen_by_addr(file, address), H5Oclose);
  if (!object.ok()) h5_fail("open an object of the file");
  return object;
}

haddr_t h5_address(hid_t object) {
  H5O_info_t info{};
  h5_check(H5Oget_info2(object, &info, H5O_INFO_BASIC), "describe an object of the file");
  return info.addr;
}

std::string h5_text(hid_t object, const char* attribute) {
  if (H5Aexists(object, attribute) <= 0) return {};
  const H5Id id(H5Aopen(object, attribute, H5P_DEFAULT), H5Aclose);
  const H5Id type(H5Aget_type(id.get()), H5Tclose);
  const H5Id space(H5Aget_space(id.get()), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  if (H5Tget_class(type.get()) != H5T_STRING || count <= 0) return {};
  const auto texts = static_cast<std::size_t>(count);
  return H5Tis_variable_str(type.get()) > 0 ? variable_texts(id.get(), type.get(), space.get(), texts)
                                            : fixed_texts(id.get(), type.get(), texts);
}

std::optional<double> h5_number(hid_t object, const char* attribute) {
  if (H5Aexists(object, attribute) <= 0) return std::nullopt;
  const H5Id id(H5Aopen(object, attribute, H5P_DEFAULT), H5Aclose);
  const H5Id type(H5Aget_type(id.get()), H5Tclose);
  const H5Id space(H5Aget_space(id.get()), H5Sclose);
  const H5T_class_t kind = H5Tget_class(type.get());
  double value = 0;
  if ((kind != H5T_FLOAT && kind != H5T_INTEGER) || H5Sget_simple_extent_npoints(space.get()) != 1 ||
      H5Aread(id.get(), H5T_NATIVE_DOUBLE, &value) < 0)
    return std::nullopt;
  return value;
}

bool h5_uses_quern(hid_t dcpl) {
  const int count = H5Pget_nfilters(dcpl);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0;
    std::size_t words = 0;
    if (H5Pget_filter2(dcpl, static_cast<unsigned>(i), &flags, &words, nullptr, 0, nullptr, &config) ==
        QUERN_HDF5_FILTER_ID)
      return true;
  }
  return false;
}

std::vector<unsigned> h5_words(hid_t dcpl) {
  std::array<unsigned, 64> words{};
  std::size_t count = words.size();
  unsigned flags = 0, config = 0;
  if (H5Pget_filter_by_id2(dcpl, QUERN_HDF5_FILTER_ID, &flags, &count, words.data(), 0, nullptr, &config) < 0)
    return {};
  return {words.begin(), words.begin() + static_cast<std::ptrdiff_t>(std::min(count, words.size()))};
}

std::string own_plugin_folder() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length <= 0) return {};
  std::string folder(path.data(), static_cast<std::size_t>(length));
  folder.resize(folder.rfind('/'));
  for (const char* place : {"/../plugins/" QUERN_HDF5_FLAVOUR, "/../" QUERN_HDF5_INSTALL_FOLDER})
    if (access((folder + place + "/libh5quern.so").c_str(), R_OK) == 0) {
      std::array<char, PATH_MAX> clean{};
      return realpath((folder + place).c_str(), clean.data()) != nullptr ? clean.data() : folder + place;
    }
  return {};
}

}  // namespace quern::cli
