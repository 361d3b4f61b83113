// Group after group, without recursion.
#include "cli/h5/copy/tree.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/h5/file.h"

namespace quern::cli {
namespace {

/// What HDF5 lists of one group.
struct Listing {
  std::vector<std::pair<H5Link, haddr_t>> links;
};

herr_t add_link(hid_t /*group*/, const char* name, const H5L_info_t* info, void* out) {
  H5Link link;
  link.name = name;
  link.type = info->type;
  link.text = info->cset;
  static_cast<Listing*>(out)->links.emplace_back(std::move(link),
                                                 info->type == H5L_TYPE_HARD ? info->u.address : HADDR_UNDEF);
  return 0;
}

Listing list_group(hid_t group) {
  const H5Id list(H5Gget_create_plist(group), H5Pclose);
  unsigned order = 0;
  h5_check(H5Pget_link_creation_order(list.get(), &order), "describe a group");
  const bool kept = (order & H5P_CRT_ORDER_TRACKED) != 0;
  Listing out;
  h5_check(H5Literate(group, kept ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME, H5_ITER_INC, nullptr, add_link, &out),
           "list a group");
  return out;
}

std::size_t add_object(hid_t group, std::size_t parent, const H5Link& link, haddr_t address, H5Tree& tree) {
  const auto known = tree.by_address.find(address);
  if (known != tree.by_address.end()) return known->second;
  H5O_info_t info{};
  h5_check(H5Oget_info_by_name2(group, link.name.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT),
           "describe an object of the file");
  H5Object object;
  object.address = address;
  object.type = info.type;
  object.parent = parent;
  object.name = link.name;
  tree.objects.push_back(std::move(object));
  return tree.by_address[address] = tree.objects.size() - 1;
}

}  // namespace

std::string H5Tree::path(std::size_t object) const {
  std::vector<const std::string*> names;
  std::size_t bytes = 1;
  for (; object != 0; object = objects[object].parent) {
    names.push_back(&objects[object].name);
    bytes += names.back()->size() + 1;
  }
  if (names.empty()) return "/";
  std::string out;
  out.reserve(bytes);
  for (auto name = names.rbegin(); name != names.rend(); ++name) out += "/" + **name;
  return out;
}

std::unordered_map<std::string, std::size_t> H5Tree::dataset_names() const {
  std::unordered_map<std::string, std::size_t> out;
  for (std::size_t group = 0; group < objects.size(); ++group) {
    std::string folder;
    for (const H5Link& link : objects[group].links) {
      if (link.type != H5L_TYPE_HARD || objects[link.object].type != H5O_TYPE_DATASET) continue;
      if (folder.empty()) folder = group == 0 ? "/" : path(group) + "/";
      out.emplace(folder + link.name, link.object);
    }
  }
  return out;
}

H5Tree h5_tree(hid_t file) {
  H5Tree tree;
  H5Object root;
  root.address = h5_address(file);
  root.type = H5O_TYPE_GROUP;
  tree.by_address[root.address] = 0;
  tree.objects.push_back(std::move(root));
  for (std::size_t at = 0; at < tree.objects.size(); ++at) {
    if (tree.objects[at].type != H5O_TYPE_GROUP) continue;
    const H5Id group = h5_open_at(file, tree.objects[at].address);
    Listing listing = list_group(group.get());
    std::vector<H5Link> links;
    links.reserve(listing.links.size());
    for (auto& [link, address] : listing.links) {
      if (link.type == H5L_TYPE_HARD) link.object = add_object(group.get(), at, link, address, tree);
      links.push_back(std::move(link));
    }
    tree.objects[at].links = std::move(links);
  }
  return tree;
}

std::size_t h5_find_dataset(hid_t file, const H5Tree& tree, const std::string& given) {
  const H5Id object(H5Oopen(file, given.c_str(), H5P_DEFAULT), H5Oclose);
  H5O_info_t here{}, there{};
  if (!object.ok() || H5Oget_info2(object.get(), &there, H5O_INFO_BASIC) < 0 || there.type != H5O_TYPE_DATASET)
    fail(Exit::io, fmt::format("{}: the file has no dataset of that name", given));
  h5_check(H5Oget_info2(file, &here, H5O_INFO_BASIC), "describe the file");
  const auto found = tree.by_address.find(there.addr);
  if (here.fileno != there.fileno || found == tree.by_address.end())
    fail(Exit::io, fmt::format("{}: is a link to a dataset of another file; work on that file", given));
  return found->second;
}

}  // namespace quern::cli
