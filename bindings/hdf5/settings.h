// The filter's `cd_values`: what is asked for, and what the chunks are. docs/hdf5.md has the table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <quern/quern.h>

namespace quern::hdf5 {

inline constexpr std::size_t kRequestWords = 6;
/// Words of a dataset: with the pair of one fill or missing value, and with as many as there may be.
inline constexpr std::size_t kWords = 18;
inline constexpr std::size_t kMostMissing = 8;  ///< as many as a stream may declare
inline constexpr std::size_t kMostWords = kWords - 2 + 2 * kMostMissing;
using Words = std::vector<unsigned>;

/// What the filter does with values that it may have decoded a moment ago (docs/adr/020).
enum class Rewriting {
  idempotent,  ///< prequantizes: what was written comes back bit for bit, in whatever mixture with new values
  exact,       ///< the dataset's chunks were written once, whole: whatever comes after that is kept bit for bit
};

/// Words 0 to 5, and declared missing values: what the user asks for.
struct Request {
  std::uint32_t codec_id = 0;  ///< 0: chosen by the library
  quern_bound_kind kind = QUERN_BOUND_LOSSLESS;
  double value = 0;
  std::uint32_t options = 0;  ///< goal in bits 0 to 3; bit 4: do not look for repeated values; bits 8 to 11: effort
  Rewriting rewriting = Rewriting::idempotent;
  /// A dataset that cannot be served is an error, even where the list calls the filter optional. Not kept in files.
  bool mandatory = false;
  /// Bits of values that mark missing data, beside the fill value: pairs of words from 16 on, or behind its pair.
  std::vector<std::uint64_t> missing;
};

/// Words 6 to 17 and the flags in word 0: what the dataset's chunks are.
struct ChunkLayout {
  quern_dtype dtype = 0;
  std::uint32_t rank = 0;                               ///< 0: not known
  std::array<std::uint64_t, QUERN_MAX_RANK> extents{};  ///< slowest axis first
  bool big_endian = false;                              ///< as stored; the machine's own order inside quern
  std::optional<std::uint64_t> fill;                    ///< bits of the fill value

  bool known() const { return rank != 0; }
  std::uint64_t elems() const;
  std::uint64_t bytes() const;
  /// "f32 50x100x100".
  std::string text() const;
};

/// Most bytes a chunk may have, raw or as a stream: HDF5 counts them in 32 bits.
inline constexpr std::uint64_t kMaxChunkBytes = UINT64_C(0xFFFFFFFF);

/// Throws Problem(request) for words this version does not understand or that contradict themselves.
Request parse_request(const unsigned* words, std::size_t count);
/// The fill value that words of a dataset of this element type name; whatever else they hold.
std::optional<std::uint64_t> named_fill(const Words& words, quern_dtype dtype);
/// The chunks' half; not known() when nothing was filled in, or when there are no words at all (settings that were
/// lost).
ChunkLayout parse_layout(const unsigned* words, std::size_t count);
/// The other way, kWords or more; a layout that is not known gives zeros.
Words make_words(const Request& request, const ChunkLayout& layout);

}  // namespace quern::hdf5
