// Links, attributes, properties and stored values of two files side by side.
#include "cli/h5/copy/compare.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/files/memory.h"
#include "cli/h5/boxes.h"
#include "cli/h5/chunks.h"
#include "cli/h5/copy/copy_attributes.h"
#include "cli/h5/copy/copy_dataset.h"
#include "cli/h5/copy/elements.h"
#include "cli/h5/file.h"

namespace quern::cli {
namespace {

[[noreturn]] void differ(const std::string& path, const std::string& what) {
  fail(Exit::io, fmt::format("{}: {} differs in the copy, which was not kept; please report it", path, what));
}

class Comparer {
 public:
  Comparer(hid_t from, const H5Tree& tree, hid_t to, const H5Comparison& comparison, std::uint64_t memory)
      : tree_(tree), other_(h5_tree(to)), comparison_(comparison), memory_(memory) {
    pair_.from = from;
    pair_.to = to;
  }

  void run() {
    compare_structure();
    for (std::size_t i = 0; i < tree_.objects.size(); ++i) compare_object(i);
  }

 private:
  /// Both trees list objects in the same order when files are equal.
  void compare_structure() {
    if (other_.objects.size() != tree_.objects.size()) differ("/", "the number of objects");
    for (std::size_t i = 0; i < tree_.objects.size(); ++i) {
      const H5Object& a = tree_.objects[i];
      const H5Object& b = other_.objects[i];
      if (a.type != b.type || a.parent != b.parent || a.name != b.name) differ(tree_.path(i), "the object");
      pair_.addresses[a.address] = b.address;
    }
    for (std::size_t i = 0; i < tree_.objects.size(); ++i) {
      const auto& a = tree_.objects[i].links;
      const auto& b = other_.objects[i].links;
      const auto equal = [](const H5Link& x, const H5Link& y) {
        return x.name == y.name && x.type == y.type && x.text == y.text && x.object == y.object;
      };
      if (!std::equal(a.begin(), a.end(), b.begin(), b.end(), equal)) differ(tree_.path(i), "a link of the group");
    }
  }

  void compare_object(std::size_t i) {
    const H5Id from = h5_open_at(pair_.from, tree_.objects[i].address);
    const H5Id to = h5_open_at(pair_.to, other_.objects[i].address);
    const bool replaced = tree_.objects[i].type == H5O_TYPE_DATASET && comparison_.is_replaced(i);
    compare_comment(i, from.get(), to.get());
    compare_attributes(i, from.get(), to.get(), replaced);
    switch (tree_.objects[i].type) {
      case H5O_TYPE_GROUP: compare_links(i, from.get(), to.get()); break;
      case H5O_TYPE_NAMED_DATATYPE:
        if (H5Tequal(from.get(), to.get()) <= 0) differ(tree_.path(i), "the datatype");
        break;
      default: compare_dataset(i, from.get(), to.get(), replaced);
    }
  }

  void compare_comment(std::size_t i, hid_t from, hid_t to) const {
    const auto text = [](hid_t object) {
      const ssize_t bytes = H5Oget_comment(object, nullptr, 0);
      std::string out(bytes > 0 ? static_cast<std::size_t>(bytes) + 1 : 0, '\0');
      if (bytes > 0) H5Oget_comment(object, out.data(), out.size());
      return out;
    };
    if (text(from) != text(to)) differ(tree_.path(i), "the comment");
  }

  /// What soft, external and user-defined links say.
  void compare_links(std::size_t i, hid_t from, hid_t to) const {
    const auto value = [](hid_t group, const std::string& name) {
      H5L_info_t info{};
      h5_check(H5Lget_info(group, name.c_str(), &info, H5P_DEFAULT), "describe a link");
      std::string out(info.u.val_size, '\0');
      if (!out.empty()) h5_check(H5Lget_val(group, name.c_str(), out.data(), out.size(), H5P_DEFAULT), "read a link");
      return out;
    };
    for (const H5Link& link : tree_.objects[i].links)
      if (link.type != H5L_TYPE_HARD && value(from, link.name) != value(to, link.name))
        differ(tree_.path(i), "the link " + link.name);
  }

  void compare_attributes(std::size_t i, hid_t from, hid_t to, bool replaced) const {
    std::vector<std::string> names = h5_attribute_names(from);
    std::vector<std::string> copied = h5_attribute_names(to);
    if (replaced) {
      std::erase_if(names, [&](const std::string& name) { return !comparison_.keeps_attribute(i, name); });
      std::erase_if(
          copied, [&](const std::string& name) { return std::find(names.begin(), names.end(), name) == names.end(); });
    }
    if (names != copied) differ(tree_.path(i), "the list of attributes");
    for (const std::string& name : names) compare_attribute(i, from, to, name);
  }

  void compare_attribute(std::size_t i, hid_t from, hid_t to, const std::string& name) const {
    const H5Id a(H5Aopen(from, name.c_str(), H5P_DEFAULT), H5Aclose);
    const H5Id b(H5Aopen(to, name.c_str(), H5P_DEFAULT), H5Aclose);
    H5AttributeValues first(a.get());
    H5AttributeValues second(b.get());
    if (!types_equal(first.type(), second.type()) || H5Sextent_equal(first.space(), second.space()) <= 0 ||
        !h5_equal(pair_, first.type(), first.data(), second.data(), first.count()))
      differ(tree_.path(i), "the attribute " + name);
  }

  /// Equal types; of committed ones the copy of the same object.
  bool types_equal(hid_t from, hid_t to) const {
    const bool committed = H5Tcommitted(from) > 0;
    if (H5Tequal(from, to) <= 0 || committed != (H5Tcommitted(to) > 0)) return false;
    if (!committed) return true;
    const auto found = pair_.addresses.find(h5_address(from));
    return found == pair_.addresses.end() || found->second == h5_address(to);
  }

  void compare_dataset(std::size_t i, hid_t from, hid_t to, bool replaced) const {
    const H5Id type(H5Dget_type(from), H5Tclose);
    const H5Id other_type(H5Dget_type(to), H5Tclose);
    const H5Id space(H5Dget_space(from), H5Sclose);
    const H5Id other_space(H5Dget_space(to), H5Sclose);
    if (!types_equal(type.get(), other_type.get())) differ(tree_.path(i), "the type");
    if (H5Sextent_equal(space.get(), other_space.get()) <= 0) differ(tree_.path(i), "the shape");
    if (replaced) {
      comparison_.check_replaced(i, from, to);
      return;
    }
    const H5Id dcpl(H5Dget_create_plist(from), H5Pclose);
    const H5Id other_dcpl(H5Dget_create_plist(to), H5Pclose);
    if (H5Pequal(dcpl.get(), other_dcpl.get()) <= 0) differ(tree_.path(i), "a creation property");
    if (H5Sget_simple_extent_type(space.get()) == H5S_NULL || h5_values_elsewhere(dcpl.get())) return;
    if (H5Pget_layout(dcpl.get()) == H5D_CHUNKED && h5_is_movable(type.get())) {
      compare_chunks(i, from, to);
    } else {
      compare_values(i, from, to, type.get(), space.get(), h5_chunk(dcpl.get()));
    }
  }

  void compare_chunks(std::size_t i, hid_t from, hid_t to) const {
    hsize_t count = 0, other_count = 0;
    const H5Id space(H5Dget_space(from), H5Sclose);
    const H5Id other_space(H5Dget_space(to), H5Sclose);
    h5_check(H5Dget_num_chunks(from, space.get(), &count), "count the chunks of a dataset");
    h5_check(H5Dget_num_chunks(to, other_space.get(), &other_count), "count the chunks of a dataset");
    if (count != other_count) differ(tree_.path(i), "the number of chunks");
    H5StoredChunk a, b;
    h5_for_chunks(from, [&](const Extents& origin, std::uint64_t bytes) {
      h5_read_chunk(from, origin, bytes, a);
      if (h5_chunk_bytes(to, origin) != bytes) differ(tree_.path(i), "the size of a chunk");
      h5_read_chunk(to, origin, bytes, b);
      if (a.bytes != b.bytes || a.skipped_filters != b.skipped_filters) differ(tree_.path(i), "a chunk");
      return true;
    });
  }

  void compare_values(std::size_t i, hid_t from, hid_t to, hid_t type, hid_t space, const Extents& grid) const {
    const std::size_t width = H5Tget_size(type);
    H5Boxes boxes(h5_extents(space), grid, width, memory_ / 2);
    H5Box box;
    if (!boxes.next(box)) return;
    Buffer a(boxes.largest_elems() * width, "a part of a dataset");
    Buffer b(boxes.largest_elems() * width, "a part of a dataset");
    do {
      h5_read_box(from, type, box, a.data());
      const H5Reclaim free_a(type, box.elems(), a.data());
      h5_read_box(to, type, box, b.data());
      const H5Reclaim free_b(type, box.elems(), b.data());
      if (!h5_equal(pair_, type, a.data(), b.data(), static_cast<std::size_t>(box.elems())))
        differ(tree_.path(i), "a value");
    } while (boxes.next(box));
  }

  const H5Tree& tree_;
  H5Tree other_;
  const H5Comparison& comparison_;
  std::uint64_t memory_;
  H5Pair pair_;
};

}  // namespace

void h5_compare(hid_t from, const H5Tree& tree, hid_t to, const H5Comparison& comparison, std::uint64_t memory) {
  Comparer(from, tree, to, comparison, memory).run();
}

}  // namespace quern::cli
