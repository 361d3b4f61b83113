// Residuals of levels as sections of interleaved streams: the payload of a chunk in levels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <quern/memory.h>

#include "codecs/stencil/levels/axes.h"
#include "coding/stream_writer.h"
#include "coding/token_tables.h"
#include "kernels/stencil/cpu/stencil.h"
#include "libcompress/core/arena.h"

namespace quern::codec::stencil {

/// Element of each level in the order of coding, coarsest level first; the last one is how many there are.
std::array<std::size_t, kMaxLevels + 1> first_of_levels(const LevelAxes& axes);

/// Residuals of all levels in the order of coding.
struct LevelResiduals {
  const LevelAxes* axes = nullptr;
  std::size_t elems = 0;
  std::array<std::size_t, kMaxLevels + 1> first{};  ///< each level's first
  std::array<std::uint64_t, kMaxLevels> bits{};     ///< about what each level takes
  const std::int32_t* codes = nullptr;
  const std::uint16_t* symbols = nullptr;  ///< context bin * kernels::kTokenStride + token, or kernels::kNoSymbol

  std::size_t end(unsigned level) const { return level == 0 ? elems : first[level - 1]; }
};

/// How many of the finest levels get sections of their own; those above them share the first.
unsigned own_sections(const std::array<std::uint64_t, kMaxLevels>& bits, unsigned top);
/// Streams of a section whose finest level is `last`, as bits of their number.
unsigned section_stream_bits(const LevelAxes& axes, unsigned last, std::uint64_t bits);

class SectionWriter {
 public:
  /// Words that all streams of a section share.
  static std::size_t room(std::size_t raw_bytes);

  /// `words`: room() of them, which may have held something else until residuals are written.
  SectionWriter(Arena& arena, std::uint16_t* words, std::size_t raw_bytes, const kernels::StencilKernels* kernels);

  /// To be called when the distributions are final.
  void fill_entries(const coding::Distributions& distributions);
  /// Appends the streams of levels `first` down to `last`; false when there is no room, or `out` would have more than
  /// `most` bytes. May throw std::bad_alloc.
  bool write(const LevelResiduals& residuals, unsigned first, unsigned last, Vector<std::uint8_t>& out,
             std::size_t most);

 private:
  bool encode_levels(const LevelResiduals& residuals, unsigned first, unsigned last,
                     coding::StreamWriter& streams) const;

  const kernels::StencilKernels* kernels_;
  kernels::ResidualEntries entries_;
  std::size_t words_count_;
  std::uint16_t* words_;
};

}  // namespace quern::codec::stencil
