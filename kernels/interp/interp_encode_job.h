// What a device is told to encode a chunk of the interp codec, and what comes back. A host chooses the format of values
// and codes the anchors, of which there is one in a tile; the device codes all other points, finds exceptions, fits
// contexts and counts symbols; from the counts the host makes distributions; the device writes the streams. So a chunk
// travels once, and two jobs follow each other in the same working memory.
#pragma once

#include <cstdint>

#include "kernels/common/encode_task.h"
#include "kernels/entropy/encoded_streams.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/interp/interp_job.h"

namespace quern::kernels {

inline constexpr std::uint32_t kInterpMostSections = 3;

/// The first job: tables of levels and classes as decoders have them, and what only an encoder knows. The elements lie
/// side by side in C order. In `chunk` the tables of sections, distributions, exceptions and words are empty, `anchors`
/// says where the job has the values of the anchors, a class's `section` is its number among all sections, and its
/// context says nothing.
struct InterpEncodeJob {
  InterpJob chunk;
  double bound = 0;
  double inverse = 0;                ///< of the unit
  double most = 0;                   ///< elements of so many units are out of range
  bool masked = false;               ///< some elements are special
  std::uint32_t anchor_count = 0;    ///< of anchors
  std::uint32_t anchor_codes = 0;    ///< bytes from the job's begin: their codes, 32 bits each
  std::uint32_t exception_room = 0;  ///< how many there is room for
  /// Bytes of the working memory from its begin.
  std::uint32_t symbols = 0;         ///< 16 bits each, in the order of coding
  std::uint32_t missed = 0;          ///< a bit for each element, tile by tile: it misses the bound
  std::uint32_t missed_words = 0;    ///< words of such bits in a tile, 32 bits each; those beyond its elements are 0
  std::uint32_t exception_list = 0;  ///< indices in C order, 32 bits each
};

/// The job of a chunk that is encoded, as what works on points has it.
constexpr JobTask interp_chunk_task(const EncodeTask& task) { return {task.job, task.work, nullptr, task.special}; }

/// What comes of it.
struct InterpEncodeResult {
  std::uint32_t left = 0;  ///< 1: there are too many exceptions, and the host has to encode the chunk
  std::uint32_t exceptions = 0;
  std::uint32_t counts[kContextBins][kResidualTokens] = {};         ///< of symbols
  std::uint32_t tokens[kInterpMostSections][kResidualTokens] = {};  ///< of a section and all before it
  InterpContext contexts[kInterpMostClasses] = {};                  ///< by the number of a class in its table
};

/// A section and its streams: code i lies in stream i modulo their number.
struct InterpWriteSection {
  std::uint32_t first = 0;  ///< number of its first code
  std::uint32_t count = 0;
  std::uint32_t mask = 0;                          ///< streams, less one: a power of 2
  std::uint32_t rooms[kMostStreamLanes + 1] = {};  ///< words before the room of each stream, and behind the last
};

/// The second job, followed by its distributions.
struct InterpWriteJob {
  std::uint32_t section_count = 0;
  std::uint32_t table_count = 0;
  std::uint32_t codes = 0;  ///< bytes of the working memory from its begin; so the next ones
  std::uint32_t symbols = 0;
  std::uint32_t words = 0;
  std::uint32_t most_words = 0;  ///< that there is room for where the elements are
  std::uint32_t starts = 0;      ///< bytes from the job's begin
  std::uint8_t serving[kContextBins] = {};
  InterpWriteSection sections[kInterpMostSections];
};

/// And its result: how many words each stream has. They lie one stream after another, section after section, where the
/// elements were, unless they are too many.
struct InterpWriteResult {
  std::uint32_t words[kInterpMostSections][kMostStreamLanes] = {};
};

}  // namespace quern::kernels
