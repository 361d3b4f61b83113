// Lanes of levels, and the tables they are coded by.
#include "codecs/stencil/levels/sections.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "codecs/stencil/model/token_tables.h"
#include "libcompress/format/writer.h"

namespace quern::codec::stencil {
namespace {

constexpr std::size_t kLaneBlock = 1024;       // elements between two looks at the room that lanes have left
constexpr std::size_t kWordsSpare = 4096;      // more than what a block may take in all lanes together
constexpr std::uint64_t kLaneBytes = 1024;     // payload that makes another lane worth its state
constexpr std::uint64_t kSectionBytes = 1024;  // of a level, that make a section of its own worth its lane

}  // namespace

std::array<std::size_t, kMaxLevels + 1> first_of_levels(const LevelAxes& axes) {
  std::array<std::size_t, kMaxLevels + 1> first{};
  std::size_t at = 0;
  for (unsigned level = axes.top() + 1; level-- > 0;) {
    first[level] = at;
    std::size_t points = 1;
    std::size_t coarser = 1;
    for (std::size_t a = 0; a < axes.rank; ++a) {
      points *= axes.points(a, level);
      coarser *= axes.points(a, level + 1);
    }
    at += level == axes.top() ? points : points - coarser;
  }
  first[kMaxLevels] = at;
  return first;
}

unsigned own_sections(const std::array<std::uint64_t, kMaxLevels>& bits, unsigned top) {
  unsigned own = 0;
  while (own < top && bits[own] / 8 >= kSectionBytes) ++own;
  return own;
}

unsigned section_lane_bits(const LevelAxes& axes, unsigned last, std::uint64_t bits) {
  unsigned lane_bits = 0;
  const std::size_t columns = (axes.points(axes.rank - 1, last) + 1) / 2;
  while (lane_bits < kMaxLaneBits && (std::uint64_t{2} << lane_bits) * kLaneBytes <= bits / 8 &&
         (std::size_t{2} << lane_bits) <= columns)
    ++lane_bits;
  return lane_bits;
}

std::size_t SectionWriter::room(std::size_t raw_bytes) { return raw_bytes / 2 + kWordsSpare; }
std::size_t SectionWriter::spare(std::size_t lanes) { return (kLaneBlock / lanes + 1) * kResidualWords + 2; }

SectionWriter::SectionWriter(Arena& arena, std::uint16_t* words, std::size_t raw_bytes,
                             const kernels::StencilKernels* kernels)
    : kernels_(kernels), entries_(take_entries(arena)), words_count_(room(raw_bytes)), words_(words) {}

void SectionWriter::fill_entries(const ChunkModel& model) { fill_token_entries(model, entries_); }

/// Lanes that share the room for words.
struct SectionWriter::LaneWords {
  kernels::PutLanes lanes;
  std::array<std::uint16_t*, kernels::kMostResidualLanes> begin{};
  std::array<std::uint16_t*, kernels::kMostResidualLanes> end{};

  LaneWords(std::uint16_t* words, std::size_t count, std::size_t lane_count) {
    const std::size_t share = count / lane_count;
    lanes.mask = lane_count - 1;
    for (std::size_t lane = 0; lane < lane_count; ++lane) {
      lanes.states[lane] = kernels::kRansFloor;
      begin[lane] = words + lane * share;
      end[lane] = begin[lane] + share;
      lanes.at[lane] = end[lane];
    }
  }
  std::size_t count(std::size_t lane) const { return static_cast<std::size_t>(end[lane] - lanes.at[lane]); }
  bool has_room(std::size_t elems) const {
    for (std::size_t lane = 0; lane <= lanes.mask; ++lane)
      if (static_cast<std::size_t>(lanes.at[lane] - begin[lane]) < elems * kResidualWords + 2) return false;
    return true;
  }
};

bool SectionWriter::write(const LevelResiduals& residuals, unsigned first, unsigned last, Vector<std::uint8_t>& out,
                          std::size_t most) {
  const LevelAxes& axes = *residuals.axes;
  std::uint64_t bits = 0;
  for (unsigned level = last; level <= first; ++level) bits += residuals.bits[level];
  unsigned lane_bits = section_lane_bits(axes, last, bits);
  std::size_t lanes = std::size_t{1} << lane_bits;
  LaneWords words(words_, words_count_, lanes);
  if (!write_lanes(residuals, first, last, words)) {
    // Lanes of very different sizes: a single one has all the room.
    if (lanes == 1) return false;
    lanes = 1;
    lane_bits = 0;
    words = LaneWords(words_, words_count_, lanes);
    if (!write_lanes(residuals, first, last, words)) return false;
  }
  Writer writer(out);
  writer.u8(static_cast<std::uint8_t>(lane_bits));
  for (std::size_t lane = 0; lane + 1 < lanes; ++lane) writer.varint(words.count(lane));
  std::size_t total = 0;
  for (std::size_t lane = 0; lane < lanes; ++lane) total += words.count(lane);
  std::size_t to = out.size();
  if (to + 2 * total > most) return false;
  out.resize(to + 2 * total);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const std::uint16_t* word = words.lanes.at[lane];
    std::uint8_t* const bytes = out.data() + to;
    const std::size_t count = words.count(lane);
    if constexpr (std::endian::native == std::endian::little) {
      if (count > 0) std::memcpy(bytes, word, 2 * count);
    } else {
      for (std::size_t i = 0; i < count; ++i, ++word) {
        bytes[2 * i] = static_cast<std::uint8_t>(*word);
        bytes[2 * i + 1] = static_cast<std::uint8_t>(*word >> 8);
      }
    }
    to += 2 * count;
  }
  return true;
}

/// Encodes levels from their last element to the first, each into its lane. False when a lane has no room.
bool SectionWriter::write_lanes(const LevelResiduals& residuals, unsigned first, unsigned last,
                                LaneWords& words) const {
  const LevelAxes& axes = *residuals.axes;
  kernels::PutLanes& lanes = words.lanes;
  for (unsigned level = last; level <= first; ++level) {
    const CodedClasses classes(axes, level);
    std::size_t end = residuals.end(level);
    for (std::size_t plane = axes.planes(); plane-- > 0;) {
      for (std::size_t i = classes.count; i-- > 0;) {
        std::size_t count = 1;  // of the class in this plane
        for (std::size_t a = axes.sequential ? 1 : 0; a < axes.rank; ++a)
          count *= axes.class_points(classes.list[i], level, a);
        // Element x of the class is of lane (x modulo lanes), counted over all planes.
        const std::size_t begin = end - count;
        const std::size_t shift = plane * count - begin;
        while (end > begin) {
          const std::size_t here = std::min(kLaneBlock, end - begin);
          if (!words.has_room(here / (lanes.mask + 1) + 1)) return false;
          end -= here;
          kernels_->encode.put_residuals(lanes, entries_, residuals.symbols + end, residuals.codes + end, here,
                                         end + shift);
        }
      }
    }
  }
  if (!words.has_room(0)) return false;
  for (std::size_t lane = 0; lane <= lanes.mask; ++lane) {
    *--lanes.at[lane] = static_cast<std::uint16_t>(lanes.states[lane] >> 16);
    *--lanes.at[lane] = static_cast<std::uint16_t>(lanes.states[lane]);
  }
  return true;
}

}  // namespace quern::codec::stencil
