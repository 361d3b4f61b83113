// CF-1.12, sections 4, 5, 7 and 8.4: lossy compression is not for coordinates and what belongs to them.
#include "cli/h5/fields.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "cli/h5/boxes.h"
#include "cli/h5/file.h"

namespace quern::cli {
namespace {

constexpr std::uint64_t kLeastElements = 1024;
constexpr const char* kCoordinates = "coordinates and what belongs to them";

/// Attributes whose text names other variables. With `keyed`, a word that ends in a colon says what the next ones are.
struct Naming {
  const char* attribute;
  bool keyed;
};
constexpr std::array<Naming, 7> kNaming{{{"bounds", false},
                                         {"climatology", false},
                                         {"coordinates", false},
                                         {"cell_measures", true},
                                         {"formula_terms", true},
                                         {"grid_mapping", false},
                                         {"ancillary_variables", false}}};

std::string parent_of(const std::string& folder) {
  const std::size_t slash = folder.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : folder.substr(0, slash);
}

std::string joined(const std::string& folder, const std::string& name) {
  return folder == "/" ? "/" + name : folder + "/" + name;
}

/// "/a/b" for "../b" in "/a/c".
std::string resolved(std::string folder, const std::string& name) {
  std::istringstream pieces(name);
  if (name.starts_with('/')) folder = "/";
  for (std::string piece; std::getline(pieces, piece, '/');) {
    if (piece == "..") {
      folder = parent_of(folder);
    } else if (!piece.empty() && piece != ".") {
      folder = joined(folder, piece);
    }
  }
  return folder;
}

/// A variable that is not in the group itself is looked for in the groups around it.
std::optional<std::size_t> find_variable(const std::unordered_map<std::string, std::size_t>& names, std::string folder,
                                         const std::string& name) {
  const bool has_path = name.find('/') != std::string::npos;
  while (true) {
    const auto found = names.find(resolved(folder, name));
    if (found != names.end()) return found->second;
    if (has_path || folder == "/") return std::nullopt;
    folder = parent_of(folder);
  }
}

bool is_scaled(hid_t dataset) { return H5Aexists(dataset, "scale_factor") > 0 || H5Aexists(dataset, "add_offset") > 0; }

}  // namespace

bool is_coordinate_unit(const std::string& units) {
  if (units.find(" since ") != std::string::npos) return true;
  if (!units.starts_with("degree")) return false;
  std::string_view rest = std::string_view(units).substr(6);
  if (rest.starts_with('s')) rest.remove_prefix(1);
  if (rest == "N" || rest == "E" || rest == "S" || rest == "W") return true;
  if (!rest.starts_with('_') || rest.size() < 2) return false;
  // degree_Celsius, degrees_F and degree_K are temperatures.
  return std::string_view("CcFfKk").find(rest[1]) == std::string_view::npos;
}

H5FieldRules::H5FieldRules(hid_t file, const H5Tree& tree) {
  const auto names = tree.dataset_names();
  for (std::size_t i = 0; i < tree.objects.size(); ++i) {
    if (tree.objects[i].type == H5O_TYPE_NAMED_DATATYPE) continue;
    const H5Id object = h5_open_at(file, tree.objects[i].address);
    for (const Naming& naming : kNaming) {
      std::istringstream words(h5_text(object.get(), naming.attribute));
      std::string folder;
      for (std::string word; words >> word;) {
        if (word.ends_with(':')) {
          if (naming.keyed) continue;
          word.pop_back();
        }
        if (folder.empty()) folder = tree.path(tree.objects[i].type == H5O_TYPE_GROUP ? i : tree.objects[i].parent);
        const auto found = find_variable(names, folder, word);
        if (found && *found != i)
          named_.emplace(*found, fmt::format("the attribute {} of {}", naming.attribute, tree.path(i)));
      }
    }
  }
}

std::optional<LeftAlone> H5FieldRules::why_no_field(std::size_t object, hid_t dataset) const {
  const H5Id type(H5Dget_type(dataset), H5Tclose);
  const H5Id space(H5Dget_space(dataset), H5Sclose);
  const H5T_class_t kind = H5Tget_class(type.get());
  if (h5_text(dataset, "CLASS") == "DIMENSION_SCALE") return LeftAlone{"a dimension scale", kCoordinates};
  if (kind != H5T_FLOAT && !(kind == H5T_INTEGER && is_scaled(dataset)))
    return LeftAlone{"no floating-point numbers", "without floating-point numbers"};
  if (const auto found = named_.find(object); found != named_.end())
    return LeftAlone{found->second + " names it", kCoordinates};
  if (is_coordinate_unit(h5_text(dataset, "units")))
    return LeftAlone{"its units are those of a coordinate", kCoordinates};
  if (H5Aexists(dataset, "flag_values") > 0 || H5Aexists(dataset, "flag_masks") > 0)
    return LeftAlone{"it holds flags (flag_values, flag_masks)", "with flags"};
  const Extents extents = h5_extents(space.get());
  std::uint64_t elems = 1;
  for (const hsize_t e : extents) elems *= e;
  if (extents.empty() || elems < kLeastElements)
    return LeftAlone{fmt::format("fewer than {} elements", kLeastElements),
                     fmt::format("of fewer than {} elements", kLeastElements)};
  return std::nullopt;
}

}  // namespace quern::cli
