// A chunk of the interp codec, taken apart by a host and checked: what remains for a device is arithmetic on tables of
// known size. One piece of memory holds a job: its head, tables at the places that the head names, and the words of the
// lanes. Another one holds what the device works on: codes in the order of coding, anchors, and magnitudes of coarse
// points.
#pragma once

#include <cstdint>

#include "kernels/common/element_type.h"
#include "kernels/common/job_task.h"
#include "kernels/entropy/context_bin.h"
#include "kernels/entropy/job_streams.h"
#include "kernels/interp/geometry.h"
#include "kernels/interp/predict.h"

namespace quern::kernels {

inline constexpr std::uint32_t kInterpAxes = 3;
inline constexpr std::uint32_t kInterpMostLevels = kInterpMaxTileLog + 1;  ///< anchors are one
/// Classes of all levels: tiles of 16^3 have the most. Anchors are one, too.
inline constexpr std::uint32_t kInterpMostClasses = 4 * kInterpClasses + 1;
/// Points of a tile, with its ends along the axes that it is longer than 1 along: a device keeps them in shared memory.
/// Tiles of 4096 along one, two or three axes of equal length have 4097, 65^2 and 17^3. A few other shapes have more.
inline constexpr std::uint32_t kInterpMostTilePoints = 17 * 17 * 17;

/// A level that adds points to the one above; the first are the anchors. All counts are those of the chunk.
struct InterpLevelPlan {
  std::uint32_t points[kInterpAxes] = {1, 1, 1};
  std::uint32_t coarse[kInterpAxes] = {1, 1, 1};  ///< points of the level above
  std::uint32_t first[kInterpClasses + 1] = {};   ///< number of the first code of each class
  std::uint32_t class_begin = 0;                  ///< its classes in the table of classes
  std::uint32_t class_end = 0;
  std::uint8_t level = 0;
  std::uint8_t halved = 0;  ///< bit a: even and odd places along axis a are points of different classes
};

/// A class that has points, or the anchors; in the order of coding.
struct InterpClassPlan {
  std::uint32_t extents[kInterpAxes] = {1, 1, 1};
  std::uint32_t first = 0;  ///< number of its first code
  std::uint32_t count = 0;
  InterpContext context;
  InterpPredictor predictor;
  std::uint8_t point_class = 0;
  std::uint8_t level = 0;    ///< number in the table of levels
  std::uint8_t section = 0;  ///< number in the table of sections
};

/// Codes [first, end) and the lanes that hold them; not empty.
struct InterpSection {
  StreamSection lanes;
  std::uint32_t first = 0;
  std::uint32_t end = 0;
};

struct InterpJob {
  std::uint32_t bytes = 0;       ///< of the job
  std::uint32_t work_bytes = 0;  ///< of the memory to work in
  Element element = Element::f32;
  bool wide = false;  ///< values have 64 bits, else 32
  std::uint8_t fraction_bits = 0;
  std::uint8_t tile_logs[kInterpAxes] = {};
  std::uint32_t extents[kInterpAxes] = {1, 1, 1};
  std::uint64_t strides[kInterpAxes - 1] = {0, 0};  ///< of elements; those of a row lie side by side
  double base = 0;
  double unit = 0;
  std::uint32_t level_count = 0;
  std::uint32_t class_count = 0;
  std::uint32_t table_count = 0;
  std::uint32_t exception_count = 0;
  std::uint8_t serving[kContextBins] = {};  ///< which table serves a context bin
  /// Bytes from the job's begin to its tables.
  std::uint32_t levels = 0;
  std::uint32_t classes = 0;
  std::uint32_t sections = 0;
  std::uint32_t starts = 0;
  std::uint32_t exceptions = 0;
  std::uint32_t words = 0;  ///< 16 bits each, little-endian
  /// The same of the memory to work in: codes (32 bits each), anchors (values), and magnitudes (16 bits each) of the
  /// coarse points of levels with an even and with an odd number.
  std::uint32_t codes = 0;
  std::uint32_t anchors = 0;
  std::uint32_t magnitudes[2] = {0, 0};
};

/// A job and the memory it is worked on in. The same in all lanes.
struct InterpView {
  const JobTask* task = nullptr;
  const InterpJob* job = nullptr;
  const InterpLevelPlan* levels = nullptr;
  const InterpClassPlan* classes = nullptr;
  std::int32_t* codes = nullptr;

  /// A template, as constexpr functions else may not cast bytes.
  template <class Task>
  explicit constexpr InterpView(const Task& of)
      : task(&of),
        job(reinterpret_cast<const InterpJob*>(of.job)),
        levels(table<InterpLevelPlan>(job->levels)),
        classes(table<InterpClassPlan>(job->classes)),
        codes(work<std::int32_t>(job->codes)) {}

  template <class T>
  [[gnu::always_inline]] constexpr const T* table(std::uint32_t offset) const {
    return reinterpret_cast<const T*>(task->job + offset);
  }
  template <class T>
  [[gnu::always_inline]] constexpr T* work(std::uint32_t offset) const {
    return reinterpret_cast<T*>(task->work + offset);
  }
};

}  // namespace quern::kernels
