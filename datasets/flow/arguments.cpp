// Parsing with CLI11. All wording a user sees about arguments is here.
#include "datasets/flow/arguments.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <map>

#include "datasets/flow/exit_codes.h"

namespace quern::flow {
namespace {

constexpr const char* kDescription =
    "Simulates a compressible flow in three dimensions and writes its fields: density, velocity_x, velocity_y,\n"
    "velocity_z, pressure and energy. The same arguments give the same bytes for any number of threads.";

constexpr const char* kFooter =
    "Set-ups:\n"
    "  kelvin-helmholtz  two shear layers that roll up and break up; periodic. Waves by time 1, rolls by 2, then "
    "turbulence.\n"
    "  sedov             a blast from a point in a cold gas; outflow. The shock reaches the edge of a cube near 0.17.\n"
    "\n"
    "Files: density_t0010_64x64x128.f32 (raw, little endian, shape slowest first, without header) and\n"
    "flow_t0010_64x64x128.h5 (all fields, with units, time and step as attributes).\n"
    "\n"
    "Example:\n"
    "  quern-flow --setup kelvin-helmholtz --size 64x128x128 --time 2 --every 50 --out fields -T 4\n"
    "\n"
    "Exit status: 0 done, 1 wrong arguments, 2 a file could not be written, 4 the simulation broke down,\n"
    "5 not enough memory, 130 interrupted.";

/// "64x64x128" into three extents; empty text when it is good, else what is wrong.
std::string parse_size(const std::string& text, std::array<std::size_t, kAxes>& size) {
  const std::string wrong =
      "'" + text + "' is not a size: give three extents of at least 1, slowest first, such as 64x64x128";
  std::size_t at = 0;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    const std::size_t end = axis + 1 < kAxes ? text.find('x', at) : text.size();
    // Nine digits are more than any machine holds along one axis, and cannot overflow.
    if (end == std::string::npos || end == at || end - at > 9) return wrong;
    std::size_t value = 0;
    for (std::size_t i = at; i < end; ++i) {
      if (text[i] < '0' || text[i] > '9') return wrong;
      value = value * 10 + static_cast<std::size_t>(text[i] - '0');
    }
    if (value == 0) return wrong;
    size[axis] = value;
    at = end + 1;
  }
  return {};
}

/// The value that goes with `text` among `choices`; otherwise a parse error that lists them.
template <class T>
T choose(const char* option, const std::string& text, const std::map<std::string, T>& choices) {
  if (const auto found = choices.find(text); found != choices.end()) return found->second;
  std::string known;
  for (const auto& [name, value] : choices) known += (known.empty() ? "" : ", ") + name;
  throw CLI::ValidationError(option, "'" + text + "' is none of " + known);
}

/// Refuses a sign: CLI11 reads "-3" into an unsigned number as one close to 2^64.
std::string check_unsigned(const std::string& text) {
  return text.find_first_not_of("0123456789") == std::string::npos ? "" : "'" + text + "' is not a whole number from 0";
}

/// What the types of the options cannot say; empty when all is well.
std::string check(const Arguments& a, bool has_steps, bool has_time) {
  if (!has_steps && !has_time) return "say how long to run: --steps N, --time T, or both (whichever comes first)";
  if (has_steps && a.steps == 0) return "--steps must be at least 1";
  if (has_time && !(a.time > 0.0 && std::isfinite(a.time))) return "--time must be a positive number";
  if (!(a.cfl > 0.0 && a.cfl <= 1.0)) return "--cfl must be above 0 and at most 1";
  if (a.format != OutputFormat::raw && !has_hdf5())
    return "this build writes raw files only: HDF5 was not found when it was configured. Use --format raw";
  return {};
}

void add_options(CLI::App& app, Arguments& a) {
  const std::map<std::string, OutputFormat> formats{
      {"raw", OutputFormat::raw}, {"hdf5", OutputFormat::hdf5}, {"both", OutputFormat::both}};
  const std::map<std::string, ElementType> types{{"f32", ElementType::f32}, {"f64", ElementType::f64}};
  std::map<std::string, std::string> setups;
  for (const std::string_view name : setup_names()) setups.emplace(name, name);

  app.add_option_function<std::string>(
         "--setup", [&a, setups](const std::string& text) { a.setup = choose("--setup", text, setups); },
         "What to simulate: kelvin-helmholtz or sedov [kelvin-helmholtz]")
      ->type_name("NAME");
  app.add_option_function<std::string>(
         "--size",
         [&a](const std::string& text) {
           if (const std::string wrong = parse_size(text, a.size); !wrong.empty())
             throw CLI::ValidationError("--size", wrong);
         },
         "Cells along z, y and x, slowest axis first [64x64x64]; an axis of 1 is left out")
      ->type_name("NZxNYxNX");
  app.add_option("--out,-o", a.out, "Folder for the files; made when it does not exist")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--steps", a.steps, "Stop after this many steps")->type_name("N")->check(check_unsigned);
  app.add_option("--time", a.time, "Stop at this time")->type_name("T");
  app.add_option("--every", a.every, "Write each K-th step; the last is always written, and alone when K is 0")
      ->type_name("K")
      ->check(check_unsigned)
      ->capture_default_str();
  app.add_flag("--initial", a.initial, "Write the state at time 0, too");
  app.add_option_function<std::string>(
         "--format", [&a, formats](const std::string& text) { a.format = choose("--format", text, formats); },
         has_hdf5() ? "raw, hdf5 or both [raw]" : "raw (this build has no HDF5) [raw]")
      ->type_name("FORMAT");
  app.add_option_function<std::string>(
         "--type", [&a, types](const std::string& text) { a.type = choose("--type", text, types); },
         "Element type of the files: f32 or f64 [f32]")
      ->type_name("TYPE");
  app.add_option("--seed", a.seed, "Phases of the perturbation of kelvin-helmholtz")
      ->type_name("N")
      ->check(check_unsigned)
      ->capture_default_str();
  app.add_option("--cfl", a.cfl, "Courant number of the time step, at most 1")->type_name("C")->capture_default_str();
  app.add_option("--threads,-T", a.threads,
                 has_threads() ? "Threads; 0 takes all" : "Threads; this build has no OpenMP and always uses 1")
      ->type_name("N")
      ->check(CLI::Range(0, 4096).description(""))
      ->capture_default_str();
  app.add_flag("--quiet,-q", a.quiet, "No progress and no summary");
}

}  // namespace

std::variant<Arguments, int> parse_arguments(int argc, const char* const* argv) {
  Arguments arguments;
  CLI::App app(kDescription, "quern-flow");
  app.footer(kFooter);
  add_options(app, arguments);
  try {
    app.parse(argc, argv);
    const std::string wrong = check(arguments, app.count("--steps") > 0, app.count("--time") > 0);
    if (!wrong.empty()) throw CLI::ValidationError(wrong);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    std::cerr << "quern-flow: " << error.what() << "\nSee quern-flow --help.\n";
    return kExitUsage;
  }
  return arguments;
}

}  // namespace quern::flow
