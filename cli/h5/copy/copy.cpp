// Groups are made in the order of the tree; what refers to other objects is written when all are there.
#include "cli/h5/copy/copy.h"

#include <utility>
#include <vector>

#include "cli/args/exit_codes.h"
#include "cli/h5/copy/copy_attributes.h"
#include "cli/h5/copy/copy_dataset.h"
#include "cli/h5/copy/copy_types.h"
#include "cli/h5/copy/elements.h"

namespace quern::cli {
namespace {

void copy_comment(hid_t from, hid_t to) {
  const ssize_t bytes = H5Oget_comment(from, nullptr, 0);
  if (bytes <= 0) return;
  std::vector<char> text(static_cast<std::size_t>(bytes) + 1);
  H5Oget_comment(from, text.data(), text.size());
  h5_check(H5Oset_comment(to, text.data()), "write a comment");
}

H5Id link_list(const H5Link& link) {
  H5Id list(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  h5_check(H5Pset_char_encoding(list.get(), link.text), "describe a link");
  return list;
}

class FileCopy {
 public:
  FileCopy(hid_t from, hid_t to, const H5Tree& tree, const H5Changes& changes, std::uint64_t memory)
      : tree_(tree),
        changes_(changes),
        memory_(memory),
        types_(to, [this](hid_t source, hid_t made) { copy_small_parts(source, made); }) {
    pair_.from = from;
    pair_.to = to;
    pair_.addresses[tree.objects.front().address] = h5_address(to);
  }

  void run() {
    for (std::size_t object = 0; object < tree_.objects.size(); ++object)
      if (tree_.objects[object].type == H5O_TYPE_GROUP) fill_group(object);
    for (const auto& [from_address, to_address, attribute] : waiting_attributes_) {
      const H5Id source = h5_open_at(pair_.from, from_address);
      const H5Id made = h5_open_at(pair_.to, to_address);
      h5_write_references(pair_, source.get(), made.get(), attribute);
    }
    for (const auto& [from_address, to_address] : waiting_datasets_) {
      const H5Id source = h5_open_at(pair_.from, from_address);
      const H5Id made = h5_open_at(pair_.to, to_address);
      h5_write_dataset_references(pair_, source.get(), made.get(), memory_);
    }
  }

 private:
  struct WaitingAttribute {
    haddr_t from = HADDR_UNDEF;
    haddr_t to = HADDR_UNDEF;
    std::string name;
  };
  static constexpr std::size_t kNotReplaced = SIZE_MAX;

  void fill_group(std::size_t object) {
    const haddr_t address = tree_.objects[object].address;
    const H5Id source = h5_open_at(pair_.from, address);
    const H5Id made = h5_open_at(pair_.to, pair_.addresses.at(address));
    if (object == 0) copy_small_parts(source.get(), made.get());
    for (const H5Link& link : tree_.objects[object].links) copy_link(link, source.get(), made.get());
  }

  void copy_link(const H5Link& link, hid_t from, hid_t to) {
    const H5Id list = link_list(link);
    if (link.type != H5L_TYPE_HARD) {
      copy_value_link(link, from, to, list.get());
      return;
    }
    const H5Object& object = tree_.objects[link.object];
    const auto known = pair_.addresses.find(object.address);
    if (known != pair_.addresses.end()) {
      const H5Id target = h5_open_at(pair_.to, known->second);
      h5_check(H5Olink(target.get(), to, link.name.c_str(), list.get(), H5P_DEFAULT), "make a hard link");
      return;
    }
    const H5Id source = h5_open_at(pair_.from, object.address);
    switch (object.type) {
      case H5O_TYPE_GROUP: make_group(source.get(), to, link.name, list.get()); break;
      case H5O_TYPE_NAMED_DATATYPE:
        h5_check(H5Olink(types_.type_for(source.get()), to, link.name.c_str(), list.get(), H5P_DEFAULT),
                 "link a datatype");
        break;
      case H5O_TYPE_DATASET: make_dataset(link.object, source.get(), to, link.name, list.get()); break;
      default: fail(Exit::io, link.name + ": is an object of a kind that this HDF5 does not know");
    }
    const H5Id made(H5Oopen(to, link.name.c_str(), H5P_DEFAULT), H5Oclose);
    pair_.addresses[object.address] = h5_address(made.get());
  }

  /// Soft, external and user-defined links: what they say is copied, whether it leads anywhere or not.
  static void copy_value_link(const H5Link& link, hid_t from, hid_t to, hid_t list) {
    const char* name = link.name.c_str();
    if (link.type >= H5L_TYPE_UD_MIN && link.type != H5L_TYPE_EXTERNAL) h5_know_link_class(link.type);
    H5L_info_t info{};
    h5_check(H5Lget_info(from, name, &info, H5P_DEFAULT), "describe a link");
    std::vector<char> value(info.u.val_size + 1, '\0');
    if (info.u.val_size != 0)
      h5_check(H5Lget_val(from, name, value.data(), info.u.val_size, H5P_DEFAULT), "read a link");
    if (link.type == H5L_TYPE_SOFT) {
      h5_check(H5Lcreate_soft(value.data(), to, name, list, H5P_DEFAULT), "make a soft link");
    } else if (link.type == H5L_TYPE_EXTERNAL) {
      unsigned flags = 0;
      const char* file = nullptr;
      const char* object = nullptr;
      h5_check(H5Lunpack_elink_val(value.data(), info.u.val_size, &flags, &file, &object), "read an external link");
      h5_check(H5Lcreate_external(file, object, to, name, list, H5P_DEFAULT), "make an external link");
    } else {
      h5_check(H5Lcreate_ud(to, name, link.type, value.data(), info.u.val_size, list, H5P_DEFAULT),
               "make a user-defined link");
    }
  }

  void make_group(hid_t source, hid_t to, const std::string& name, hid_t list) {
    const H5Id properties(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
    h5_copy_group_properties(source, properties.get());
    const H5Id made(H5Gcreate2(to, name.c_str(), list, properties.get(), H5P_DEFAULT), H5Gclose);
    if (!made.ok()) h5_fail("make the group " + name);
    copy_small_parts(source, made.get());
  }

  void make_dataset(std::size_t object, hid_t source, hid_t to, const std::string& name, hid_t list) {
    const H5Id type(H5Dget_type(source), H5Tclose);
    const H5Id replaced = changes_.replace(object, source, pair_.to, types_.type_for(type.get()));
    if (replaced.ok()) {
      h5_check(H5Olink(replaced.get(), to, name.c_str(), list, H5P_DEFAULT), "link a dataset");
      copy_small_parts(source, replaced.get(), object);
      changes_.add_attributes(object, replaced.get());
      return;
    }
    h5_copy_dataset(source, to, name, list, types_, memory_);
    const H5Id made(H5Dopen2(to, name.c_str(), H5P_DEFAULT), H5Dclose);
    copy_small_parts(source, made.get());
    if (h5_has_references(type.get()))
      waiting_datasets_.emplace_back(tree_.objects[object].address, h5_address(made.get()));
  }

  /// The comment and the attributes.
  void copy_small_parts(hid_t source, hid_t made, std::size_t replaced = kNotReplaced) {
    copy_comment(source, made);
    for (const std::string& name : h5_attribute_names(source)) {
      if (replaced != kNotReplaced && !changes_.keeps_attribute(replaced, name)) continue;
      if (!h5_copy_attribute(source, made, name, types_))
        waiting_attributes_.push_back({h5_address(source), h5_address(made), name});
    }
  }

  const H5Tree& tree_;
  const H5Changes& changes_;
  std::uint64_t memory_;
  H5TypeCopies types_;
  H5Pair pair_;
  std::vector<WaitingAttribute> waiting_attributes_;
  std::vector<std::pair<haddr_t, haddr_t>> waiting_datasets_;
};

}  // namespace

void h5_copy_objects(hid_t from, hid_t to, const H5Tree& tree, const H5Changes& changes, std::uint64_t memory) {
  FileCopy(from, to, tree, changes, memory).run();
}

}  // namespace quern::cli
