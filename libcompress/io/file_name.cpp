// What the names of files say.
#include <array>
#include <cctype>
#include <string_view>

#include <quern/io.h>

#include "libcompress/io/file_kinds.h"

namespace quern::io {
namespace {

struct Extension {
  std::string_view text;
  FileKind kind;
};
constexpr std::array<Extension, 7> kExtensions{{{".npy", FileKind::npy},
                                                {".h5", FileKind::hdf5},
                                                {".hdf5", FileKind::hdf5},
                                                {".he5", FileKind::hdf5},
                                                {".nc", FileKind::netcdf},
                                                {".nc4", FileKind::netcdf},
                                                {".cdf", FileKind::netcdf}}};

}  // namespace

FileKind file_kind(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  const std::size_t dot = path.find_last_of('.');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) return FileKind::raw;
  std::string extension = path.substr(dot);
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Extension& known : kExtensions)
    if (extension == known.text) return known.kind;
  return FileKind::raw;
}

NameFacts facts_from_name(const std::string& path) {
  NameFacts facts;
  std::string_view name = path;
  if (const std::size_t slash = name.find_last_of('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  const std::size_t dot = name.find_last_of('.');
  if (dot == std::string_view::npos) return facts;
  facts.dtype = parse_dtype(name.substr(dot + 1));
  const std::string_view stem = name.substr(0, dot);
  const std::size_t underscore = stem.find_last_of('_');
  if (underscore == std::string_view::npos) return facts;
  if (auto shape = Shape::parse(stem.substr(underscore + 1)); shape.ok()) facts.shape = *shape;
  return facts;
}

bool name_tells_array(const std::string& path) {
  const NameFacts facts = facts_from_name(path);
  return facts.dtype && facts.shape;
}

}  // namespace quern::io
