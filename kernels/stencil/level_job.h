// A chunk in levels of the stencil codec, taken apart by a host and checked: what remains for the lanes of a device is
// arithmetic on tables of known size. One piece of memory holds a job: its head, tables at the places that the head
// names, and the words of the lanes. Axes are always four, those that a chunk lacks being in front with extent 1.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/element_type.h"
#include "kernels/entropy/context_bin.h"
#include "kernels/entropy/job_streams.h"
#include "kernels/stencil/job_head.h"
#include "kernels/stencil/job_lattice.h"

namespace quern::kernels {

inline constexpr std::uint32_t kLevelAxes = 4;
inline constexpr std::uint32_t kLevelClasses = 16;
inline constexpr std::uint32_t kNoAxis = kLevelAxes;

/// The points of a parity class at a level are an array: rows with a halo of one column before and two behind.
struct LevelView {
  std::uint32_t extents[kLevelAxes] = {0, 0, 0, 0};
  std::uint32_t first = 0;   ///< place, in the level's arrays, of column 0 of row 0
  std::uint32_t stride = 0;  ///< places from row to row
  std::uint32_t rows = 0;    ///< 0: the class does not exist
};
inline constexpr std::uint32_t kLeftHalo = 1;
inline constexpr std::uint32_t kRightHalo = 2;

/// A neighbour of the points of a class: which class it lies in, steps between indices in both, and its weight.
template <class Weight>
struct LevelTap {
  Weight weight = 0;
  std::int8_t step[kLevelAxes] = {0, 0, 0, 0};
  std::uint8_t in_class = 0;
};

/// A feature that is a difference of values: |first + second_factor * second + predicted_factor * prediction| * scale.
struct LevelSpread {
  double second_factor = 0;
  double predicted_factor = 0;
  double scale = 0;
  std::uint32_t weight = 0;
  std::int8_t first_step[kLevelAxes] = {0, 0, 0, 0};
  std::int8_t second_step[kLevelAxes] = {0, 0, 0, 0};
  std::uint8_t first_class = 0;
  std::uint8_t second_class = 0;
};

/// How the points of one class of a level are predicted, in first or in later planes.
struct ClassPlan {
  std::uint32_t taps = 0;  ///< number of the first in the table, and how many
  std::uint32_t tap_count = 0;
  std::uint32_t magnitude_taps = 0;
  std::uint32_t magnitude_tap_count = 0;
  std::uint32_t spreads = 0;
  std::uint32_t spread_count = 0;
  std::uint32_t constant = 0;
  /// Weights of features of the class itself, 0 where it has none: the row before, the columns beside that, and the
  /// plane before, along axes 2 and 1.
  std::uint32_t above = 0;
  std::uint32_t sides = 0;
  std::uint32_t back = 0;

  constexpr bool looks_at_itself() const { return (above | sides | back) != 0; }
};

/// One level: its classes, in the order in which they are coded.
struct LevelStage {
  LevelView views[kLevelClasses];
  std::uint32_t points[kLevelAxes] = {1, 1, 1, 1};
  std::int64_t quantum = 1;  ///< what a residual counts
  std::uint32_t class_count = 0;
  std::uint32_t plans[2] = {0, 0};  ///< number of the first class's plan, in first and in later planes
  std::uint32_t section = 0;        ///< the lanes that hold its residuals
  std::uint8_t classes[kLevelClasses] = {};
  bool opens_section = false;
  bool ends_section = false;
};

struct LevelJob {
  JobHead head;
  Element element = Element::f32;
  bool linear_border = false;  ///< values beyond the grid lie on a line, else they are mirrored
  bool masked = false;         ///< some elements are special
  std::uint8_t top = 0;        ///< coarsest level
  std::uint32_t sequential_axis = kNoAxis;
  std::uint32_t extents[kLevelAxes] = {1, 1, 1, 1};
  std::uint64_t strides[kLevelAxes] = {0, 0, 0, 0};          ///< of elements
  std::uint64_t special_strides[kLevelAxes] = {0, 0, 0, 0};  ///< of their classes
  double base = 0;
  double unit = 0;
  JobLattice lattice;
  std::int64_t low = 0;  ///< what special elements are kept within
  std::int64_t high = 0;
  std::uint32_t weight_bits = 0;
  std::uint32_t table_count = 0;
  std::uint32_t exception_count = 0;
  std::uint8_t serving[kContextBins] = {};  ///< which table serves a context bin
  /// Bytes from the job's begin to its tables.
  std::uint32_t stages = 0;  ///< by level
  std::uint32_t plans = 0;
  std::uint32_t taps = 0;
  std::uint32_t magnitude_taps = 0;
  std::uint32_t spreads = 0;
  std::uint32_t sections = 0;
  std::uint32_t starts = 0;
  std::uint32_t exceptions = 0;
  std::uint32_t words = 0;  ///< 16 bits each, little-endian
  /// The same of the memory that lanes work in: arrays of values and of residuals for even and for odd levels.
  std::uint32_t values[2] = {0, 0};
  std::uint32_t residuals[2] = {0, 0};

  [[gnu::always_inline]] constexpr bool hierarchical(std::uint32_t axis) const { return axis != sequential_axis; }
  [[gnu::always_inline]] constexpr std::uint32_t planes() const {
    return sequential_axis == kNoAxis ? 1 : extents[sequential_axis];
  }
};

}  // namespace quern::kernels
