// The command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/common/element_type.h"
#include "kernels/lorenzo/tile.h"

namespace quern::bench {

struct Options {
  std::string out = "bench_gpu.jsonl";
  std::vector<std::uint64_t> bytes{25'920'000, UINT64_C(512) << 20, UINT64_C(4) << 30};
  std::vector<kernels::Element> elements{kernels::Element::f32, kernels::Element::f64};
  std::vector<kernels::TileShape> tiles;  ///< empty: planes for arrays below 100 MB, else blocks; lines for 512 MB too
  std::vector<std::string> subjects;      ///< empty: all
  std::string field;                      ///< a file of raw values to be repeated; empty: generated fields
  std::vector<std::uint64_t> shape;       ///< of the file's array, up to three extents
  double bound = 0;                       ///< for the file
  std::uint64_t repeats = 10;             ///< of a measurement, at least
  double seconds_each = 0.2;              ///< of a measurement, at least
  double seconds = 420;                   ///< no further array is begun after that
  int device = 0;
};

/// Throws std::invalid_argument that says what is wrong.
Options parse_options(int argc, const char* const* argv);

/// What `--help` prints.
extern const char kUsage[];

}  // namespace quern::bench
