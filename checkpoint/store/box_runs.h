// A box of elements as runs of bytes of the contiguous values of another box that contains it.
#pragma once

#include <cstdint>
#include <span>

#include <quern/shape.h>

namespace quern::checkpoint {

/// The box that two boxes of equal rank share; of extent 0 on some axis where they share nothing.
Box intersection(const Box& a, const Box& b);

/// True when two boxes of equal rank have an element in common.
bool overlap(const Box& a, const Box& b);

/// Runs in ascending order; each is as long as the others. `part` lies in `from` and has elements.
class BoxRuns {
 public:
  BoxRuns(std::size_t element, const Box& part, const Box& from);

  std::uint64_t count() const { return count_; }
  std::uint64_t bytes() const { return bytes_; }  ///< of a run
  /// Where run `index` begins.
  std::uint64_t begin(std::uint64_t index) const;
  /// The first run that ends behind `byte`.
  std::uint64_t first_behind(std::uint64_t byte) const;
  /// True when a run has bytes in [begin, end).
  bool meets(std::uint64_t begin, std::uint64_t end) const;

 private:
  std::size_t element_;
  Box part_;
  Box from_;
  std::size_t outer_ = 0;  ///< axes before it number the runs
  std::uint64_t count_ = 1;
  std::uint64_t bytes_ = 0;
};

/// Copies what `values`, bytes of `from` from byte `first` on, have of `part` to its place in `target`, the values of
/// the box `to`.
void copy_runs(std::size_t element, const Box& part, const Box& from, std::uint64_t first,
               std::span<const std::uint8_t> values, const Box& to, std::span<std::uint8_t> target);

}  // namespace quern::checkpoint
