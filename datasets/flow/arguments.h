// The command line of quern-flow: what was asked for, checked.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <variant>

#include "datasets/flow/output.h"

namespace quern::flow {

struct Arguments {
  std::string setup = "kelvin-helmholtz";
  std::array<std::size_t, kAxes> size{64, 64, 64};  ///< slowest axis first
  std::uint64_t steps = std::numeric_limits<std::uint64_t>::max();
  double time = std::numeric_limits<double>::infinity();
  std::uint64_t every = 0;  ///< 0: the last step only
  bool initial = false;     ///< write the state at time 0, too
  double cfl = 0.4;
  std::uint64_t seed = 1;
  std::string out = ".";
  OutputFormat format = OutputFormat::raw;
  ElementType type = ElementType::f32;
  int threads = 1;  ///< 0: all
  bool quiet = false;
};

/// Arguments, or the exit status when there is nothing more to do (help was printed, or what is wrong with the
/// arguments).
std::variant<Arguments, int> parse_arguments(int argc, const char* const* argv);

}  // namespace quern::flow
