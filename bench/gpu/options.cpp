// Parsing the command line.
#include "bench/gpu/options.h"

#include <charconv>
#include <stdexcept>
#include <string_view>

namespace quern::bench {

const char kUsage[] =
    "usage: bench_gpu [OPTION]...\n"
    "Times the kernels of quern on a CUDA device and writes lines of JSON.\n"
    "  --out FILE          bench_gpu.jsonl\n"
    "  --bytes N,...       sizes of the arrays: 25920000,536870912,4294967296\n"
    "  --types T,...       f32,f64\n"
    "  --tiles T,...       line, plane, block: how arrays are cut\n"
    "  --subjects S,...    range, lorenzo, mask, interp, stencil, arrays, batches; not named: all,\n"
    "                      interp and stencil on 512 MiB of f32 blocks\n"
    "  --field FILE        a file of raw values in place of generated fields, with --shape AxBxC, one of --types, and\n"
    "  --bound E           its absolute bound; repeated along the first axis up to each size\n"
    "  --repeats N         repetitions of a measurement, at least: 10\n"
    "  --seconds-each S    and until so many seconds have passed: 0.2\n"
    "  --seconds S         no further array is begun after so many seconds: 420\n"
    "  --device N          ordinal: 0\n";

namespace {

template <class T>
T number(std::string_view text, std::string_view option) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < T{})
    throw std::invalid_argument(std::string(option) + ": " + std::string(text) + " is no such number");
  return value;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

kernels::Element element_named(const std::string& name) {
  if (name == "f32") return kernels::Element::f32;
  if (name == "f64") return kernels::Element::f64;
  throw std::invalid_argument("--types: there is no " + name + " here, but f32 and f64");
}

kernels::TileShape tile_named(const std::string& name) {
  if (name == "line") return kernels::TileShape::line;
  if (name == "plane") return kernels::TileShape::plane;
  if (name == "block") return kernels::TileShape::block;
  throw std::invalid_argument("--tiles: there is no " + name + ", but line, plane and block");
}

template <class T, class Parse>
std::vector<T> list(std::string_view text, char separator, Parse&& parse) {
  std::vector<T> values;
  for (const std::string& part : split(text, separator)) values.push_back(parse(part));
  return values;
}

}  // namespace

Options parse_options(int argc, const char* const* argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (i + 1 == argc) throw std::invalid_argument(std::string(name) + " needs a value; --help tells more");
    const std::string value = argv[i + 1];
    const auto count = [&](const std::string& text) { return number<std::uint64_t>(text, name); };
    if (name == "--out") {
      options.out = value;
    } else if (name == "--bytes") {
      options.bytes = list<std::uint64_t>(value, ',', count);
    } else if (name == "--types") {
      options.elements = list<kernels::Element>(value, ',', element_named);
    } else if (name == "--tiles") {
      options.tiles = list<kernels::TileShape>(value, ',', tile_named);
    } else if (name == "--subjects") {
      options.subjects = split(value, ',');
    } else if (name == "--field") {
      options.field = value;
    } else if (name == "--shape") {
      options.shape = list<std::uint64_t>(value, 'x', count);
    } else if (name == "--bound") {
      options.bound = number<double>(value, name);
    } else if (name == "--repeats") {
      options.repeats = count(value);
    } else if (name == "--seconds-each") {
      options.seconds_each = number<double>(value, name);
    } else if (name == "--seconds") {
      options.seconds = number<double>(value, name);
    } else if (name == "--device") {
      options.device = number<int>(value, name);
    } else {
      throw std::invalid_argument("unknown option " + std::string(name) + "; --help tells more");
    }
  }
  if (!options.field.empty() &&
      (options.shape.empty() || options.shape.size() > 3 || options.elements.size() != 1 || !(options.bound > 0)))
    throw std::invalid_argument("--field needs --shape with up to three extents, one of --types, and --bound");
  return options;
}

}  // namespace quern::bench
