// HDF5 calls that several verbs of quern h5 need.
#include "cli/h5_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

#include <fmt/format.h>

#include <quern/hdf5.h>

#include "cli/exit_codes.h"
#include "cli/file_names.h"

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

/// Datasets by their address in the file, in the order they are met.
struct Visit {
  std::vector<std::pair<haddr_t, std::vector<std::string>>> datasets;
};

herr_t add_link(hid_t group, const char* name, const H5L_info_t* link, void* out) {
  if (link->type != H5L_TYPE_HARD) return 0;
  H5O_info_t info{};
  if (H5Oget_info_by_name2(group, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) return -1;
  if (info.type != H5O_TYPE_DATASET) return 0;
  auto& datasets = static_cast<Visit*>(out)->datasets;
  auto found = std::find_if(datasets.begin(), datasets.end(), [&](const auto& d) { return d.first == info.addr; });
  if (found == datasets.end()) found = datasets.insert(datasets.end(), {info.addr, {}});
  found->second.push_back(std::string("/") + name);
  return 0;
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

H5Id h5_open(const std::string& path) {
  if (access(path.c_str(), R_OK) != 0) fail_errno(path, "be read");
  H5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (!file.ok()) fail(Exit::io, fmt::format("{}: is no HDF5 or netCDF-4 file, or is damaged: {}", path, h5_reason()));
  return file;
}

std::vector<std::vector<std::string>> h5_datasets(hid_t file) {
  Visit visit;
  if (H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, add_link, &visit) < 0)
    fail(Exit::io, fmt::format("the objects of the file cannot be listed: {}", h5_reason()));
  std::vector<std::vector<std::string>> out;
  for (auto& dataset : visit.datasets) out.push_back(std::move(dataset.second));
  return out;
}

std::vector<std::vector<std::string>> h5_datasets(hid_t file, const std::vector<std::string>& chosen) {
  auto all = h5_datasets(file);
  if (chosen.empty()) return all;
  std::vector<std::vector<std::string>> out;
  for (const std::string& given : chosen) {
    const std::string name = given.starts_with("/") ? given : "/" + given;
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    });
    if (found == all.end()) fail(Exit::io, fmt::format("--dataset {}: the file has no dataset of that name", given));
    if (std::find(out.begin(), out.end(), *found) == out.end()) out.push_back(*found);
  }
  return out;
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
