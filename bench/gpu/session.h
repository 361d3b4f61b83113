// What the subjects of a run share: options, device, watch, report, and the array they work on.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "bench/gpu/cuda.h"
#include "bench/gpu/fields.h"
#include "bench/gpu/options.h"
#include "bench/gpu/report.h"
#include "bench/gpu/timing.h"
#include "kernels/common/element_type.h"
#include "kernels/lorenzo/tile.h"

namespace quern::bench {

/// The array at hand, in device memory.
struct BenchArray {
  kernels::Element element = kernels::Element::f32;
  kernels::TileShape tile = kernels::TileShape::block;
  std::array<std::uint64_t, 3> extents{1, 1, 1};
  std::string field;
  double bound = 0;
  const void* values = nullptr;

  std::uint64_t elems() const { return extents[0] * extents[1] * extents[2]; }
  std::uint64_t bytes() const { return elems() * kernels::element_bytes(element); }
};

/// What a step did beside taking time.
struct StepBytes {
  std::uint64_t input = 0;   ///< uncompressed bytes that it stands for
  std::uint64_t stored = 0;  ///< compressed bytes; 0: it compresses nothing
  std::uint64_t moved = 0;   ///< that it must read and write at least, as it is built
};

class Session {
 public:
  explicit Session(const Options& options);

  const Options& options() const { return options_; }
  const Machine& machine() const { return machine_; }
  Report& report() { return report_; }
  bool wants(std::string_view subject) const;
  bool out_of_time() const;
  double seconds() const;
  /// Whether the device has room for that many bytes more.
  bool has_room(std::uint64_t bytes) const;

  /// Times a copy of so many bytes from one place of the device to another; the fastest is the roofline.
  void time_copy(std::uint64_t bytes);
  /// Times a step on an array and writes a line. Where the array may lie in the L2 cache it is timed with the cache
  /// emptied, with what the cache kept, and that as a graph; else once.
  void time_step(const BenchArray& array, std::string_view subject, std::string_view step, const StepBytes& bytes,
                 const Work& work);
  /// Writes a line of what was found out besides time.
  void tell(const BenchArray& array, std::string_view subject, const Members& members);

 private:
  static Members describe(const BenchArray& array);

  Options options_;
  Machine machine_;
  Report report_;
  Stopwatch stopwatch_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double copy_rate_ = 0;  ///< GB/s, read and written
};

std::string_view element_name(kernels::Element element);
std::string_view tile_name(kernels::TileShape tile);

}  // namespace quern::bench
