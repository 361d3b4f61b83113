// The filter's `cd_values`: what is asked for, and what the chunks are. docs/hdf5.md has the table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <quern/quern.h>

namespace quern::hdf5 {

inline constexpr std::size_t kRequestWords = 6;
inline constexpr std::size_t kWords = 18;
using Words = std::array<unsigned, kWords>;

/// Words 0 to 5, and a declared missing value: what the user asks for.
struct Request {
  std::uint32_t codec_id = 0;  ///< 0: chosen by the library
  quern_bound_kind kind = QUERN_BOUND_LOSSLESS;
  double value = 0;
  std::uint32_t options = 0;  ///< goal in bits 0 to 3; bit 4: do not look for repeated values
  /// Bits of a value that marks missing data, declared by the user in words 16 and 17 in place of the fill value.
  std::optional<std::uint64_t> missing;
};

/// Words 6 to 17 and the flags in word 0: what the dataset's chunks are.
struct ChunkLayout {
  quern_dtype dtype = 0;
  std::uint32_t rank = 0;                               ///< 0: not known
  std::array<std::uint64_t, QUERN_MAX_RANK> extents{};  ///< slowest axis first
  bool big_endian = false;                              ///< as stored; the machine's own order inside quern
  std::optional<std::uint64_t> fill;                    ///< bits of the fill or missing value

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
/// The chunks' half; not known() when nothing was filled in, or when there are no words at all (settings that were
/// lost).
ChunkLayout parse_layout(const unsigned* words, std::size_t count);
/// The other way; a layout that is not known gives zeros.
Words make_words(const Request& request, const ChunkLayout& layout);

}  // namespace quern::hdf5
