// Sections of levels, and the tables they are coded by.
#include "codecs/stencil/levels/sections.h"

#include "libcompress/format/writer.h"

namespace quern::codec::stencil {
namespace {

constexpr std::size_t kWordsSpare = 4096;      // more than what a block may take in all streams together
constexpr std::uint64_t kSectionBytes = 1024;  // of a level, that make a section of its own worth its stream

}  // namespace

std::array<std::size_t, kMaxLevels + 1> first_of_levels(const LevelAxes& axes) {
  std::array<std::size_t, kMaxLevels + 1> first{};
  std::size_t at = 0;
  for (unsigned level = axes.top() + 1; level-- > 0;) {
    first[level] = at;
    std::size_t points = 1;
    std::size_t coarser = 1;
    for (std::size_t a = 0; a < axes.rank; ++a) {
      const std::size_t given = a == 0 ? axes.given : 0;
      points *= axes.points(a, level) - given;
      coarser *= axes.points(a, level + 1) - given;
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

unsigned section_stream_bits(const LevelAxes& axes, unsigned last, std::uint64_t bits) {
  return coding::choose_stream_bits(bits / 8, (axes.points(axes.rank - 1, last) + 1) / 2);
}

std::size_t SectionWriter::room(std::size_t raw_bytes) { return raw_bytes / 2 + kWordsSpare; }

SectionWriter::SectionWriter(Arena& arena, std::uint16_t* words, std::size_t raw_bytes,
                             const kernels::StencilKernels* kernels)
    : kernels_(kernels), entries_(coding::take_entries(arena)), words_count_(room(raw_bytes)), words_(words) {}

void SectionWriter::fill_entries(const coding::Distributions& distributions) {
  coding::fill_token_entries(distributions, entries_);
}

bool SectionWriter::write(const LevelResiduals& residuals, unsigned first, unsigned last, Vector<std::uint8_t>& out,
                          std::size_t most) {
  std::uint64_t bits = 0;
  for (unsigned level = last; level <= first; ++level) bits += residuals.bits[level];
  unsigned stream_bits = section_stream_bits(*residuals.axes, last, bits);
  coding::StreamWriter streams({words_, words_count_}, stream_bits);
  if (!encode_levels(residuals, first, last, streams)) {
    // Streams of very different sizes: a single one has all the room.
    if (stream_bits == 0) return false;
    stream_bits = 0;
    streams = coding::StreamWriter({words_, words_count_}, stream_bits);
    if (!encode_levels(residuals, first, last, streams)) return false;
  }
  Writer writer(out);
  writer.u8(static_cast<std::uint8_t>(stream_bits));
  streams.append_sizes(writer);
  if (out.size() + streams.bytes() > most) return false;
  streams.append_words(out);
  return true;
}

/// Encodes levels from their last element to the first. False when a stream has no room.
bool SectionWriter::encode_levels(const LevelResiduals& residuals, unsigned first, unsigned last,
                                  coding::StreamWriter& streams) const {
  const LevelAxes& axes = *residuals.axes;
  for (unsigned level = last; level <= first; ++level) {
    const CodedClasses classes(axes, level);
    std::size_t begin = residuals.end(level);
    for (std::size_t plane = axes.planes() - axes.given; plane-- > 0;) {
      for (std::size_t i = classes.count; i-- > 0;) {
        std::size_t count = 1;  // of the class in this plane
        for (std::size_t a = axes.sequential ? 1 : 0; a < axes.rank; ++a)
          count *= axes.class_points(classes.list[i], level, a);
        begin -= count;
        // Element x of the class is of stream (x modulo streams), counted over all planes that are coded.
        if (!streams.encode(kernels_->residuals, entries_, residuals.symbols + begin, residuals.codes + begin, count,
                            plane * count))
          return false;
      }
    }
  }
  return streams.finish();
}

}  // namespace quern::codec::stencil
