// Writer of interleaved rANS streams. rANS decodes in the reverse of the order of encoding, so a writer is given the
// last symbols first and fills each stream's room downwards.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <quern/memory.h>

#include "coding/stream_reader.h"
#include "kernels/entropy/cpu/encode_streams.h"
#include "kernels/entropy/cpu/residual_kernels.h"
#include "libcompress/format/writer.h"

namespace quern::coding {

/// Words to add to the room for streams. Chunks are mostly powers of two: with an odd number of cache lines more, what
/// streams write to lies in different sets of a cache.
inline constexpr std::size_t kSpareWords = kernels::kMaxStreams * 96;

/// 2^this is how many streams pay for symbols of about that many bytes: each costs its state and its size. At most
/// `most` streams.
unsigned choose_stream_bits(std::uint64_t bytes, std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

/// Codes with their symbols, in rows that take turns in streams: row r lies in stream r modulo their number. The arrays
/// are the caller's.
struct CodedRows {
  const std::int32_t* codes = nullptr;
  const std::uint16_t* symbols = nullptr;  ///< kernels::kNoSymbol: the element has no code
  std::size_t count = 0;                   ///< of rows
  const std::uint32_t* ends = nullptr;     ///< of each row, counted in codes; null: all rows have `columns`
  std::size_t columns = 0;

  std::size_t begin(std::size_t row) const {
    if (ends == nullptr) return row * columns;
    return row > 0 ? ends[row - 1] : 0;
  }
  std::size_t end(std::size_t row) const { return ends == nullptr ? (row + 1) * columns : ends[row]; }
};

/// Once a call has returned false, what was written has no meaning: begin again with fewer streams or more room.
class StreamWriter {
 public:
  /// Elements between two checks of the room that streams have left.
  static constexpr std::size_t kBlock = 1024;
  /// Words that a stream has to have left for encode() to go on.
  static constexpr std::size_t words_wanted(std::size_t streams) {
    return (kBlock / streams + 1) * kernels::kResidualWords + kStateWords;
  }

  /// `room` is the caller's host memory, shared by 2^stream_bits streams, and outlives the writer. It holds at least
  /// kStateWords for each.
  StreamWriter(std::span<std::uint16_t> room, unsigned stream_bits);

  /// Encodes the elements before those encoded last: codes[x], whose symbol is symbols[x], into stream (first + x)
  /// modulo their number, for x < count. False when a stream has no room left.
  bool encode(const kernels::ResidualKernels& kernels, const kernels::ResidualEntries& entries,
              const std::uint16_t* symbols, const std::int32_t* codes, std::size_t count, std::size_t first);
  /// Ends every stream with its state, once all is encoded. False when a stream has no room left.
  bool finish();

  /// Encodes rows and ends the streams: side by side with equal shares of the room, or if that is too small one after
  /// the other. The words are the same. False when all of the room is too small.
  bool encode_rows(const kernels::ResidualKernels& kernels, const kernels::ResidualEntries& entries,
                   const CodedRows& rows);

  /// Of all streams, without their sizes.
  std::size_t bytes() const;
  /// Appends the sizes of all streams but the last, in words.
  void append_sizes(Writer& writer) const;
  /// Writes the words of all streams to `out`, which has room for bytes() of them.
  void copy_words(std::uint8_t* out) const;
  /// Appends them. May throw std::bad_alloc.
  void append_words(Vector<std::uint8_t>& out) const;

 private:
  static constexpr std::size_t kStateWords = 2;

  std::size_t count() const { return streams_.mask + 1; }
  std::size_t words(std::size_t stream) const { return static_cast<std::size_t>(end_[stream] - streams_.at[stream]); }
  void share_room();
  bool has_room(std::size_t residuals) const;
  bool encode_side_by_side(const kernels::ResidualKernels& kernels, const kernels::ResidualEntries& entries,
                           const CodedRows& rows);
  bool encode_in_turn(const kernels::ResidualEntries& entries, const CodedRows& rows);
  void put_state(std::size_t stream);

  std::span<std::uint16_t> room_;
  kernels::EncodeStreams streams_;
  std::array<std::uint16_t*, kernels::kMaxStreams> begin_{};
  std::array<std::uint16_t*, kernels::kMaxStreams> end_{};
};

}  // namespace quern::coding
