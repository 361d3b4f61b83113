// A section: a grid of non-negative integers of one width as context-coded tokens and raw bits. Knows nothing of
// prediction or element types.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/status.h>

#include "codecs/lossless/rans.h"
#include "codecs/lossless/tokens.h"

namespace quern::codec::lossless {

/// Hands out 64-byte aligned pieces of a scratch span; with a null span it only counts.
class Arena {
 public:
  Arena() = default;
  explicit Arena(std::span<std::uint8_t> scratch) : begin_(scratch.data()) {}

  template <class T>
  T* take(std::size_t count) {
    std::uint8_t* piece = begin_ == nullptr ? nullptr : begin_ + used_;
    used_ += (count * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(piece);
  }
  std::size_t used() const { return used_; }

 private:
  std::uint8_t* begin_ = nullptr;
  std::size_t used_ = 0;
};

/// Encodes sections of at most `most` values; holds its buffers in the arena. U is uint32_t or uint64_t.
template <class U>
class SectionEncoder {
 public:
  SectionEncoder(Arena& arena, const RowGrid& most);

  /// Codes `values` (each below 2^bits) and keeps the result until the next call; returns its size in bytes.
  /// `grid` has at most the elements, and needs at most the token memory, that were announced.
  std::size_t encode(const U* values, const RowGrid& grid);
  /// Writes the section last encoded; `out` has at least its size.
  void write(std::uint8_t* out) const;

 private:
  void tokenize(const U* values);
  void gather_contexts();
  void merge_contexts(std::size_t contexts);
  void write_tables();
  void encode_tokens();

  RowGrid grid_;
  std::uint8_t* token_memory_;
  std::uint16_t* bins_;   // activity bin of each value
  std::uint8_t* raw_;     // raw bits, forwards
  std::uint16_t* words_;  // rANS words, filled from the end
  std::uint8_t* tables_;
  Counts* counts_;  // of each context
  EncodeTable* encode_tables_;
  std::size_t capacity_;
  std::size_t raw_bytes_ = 0;
  std::size_t word_count_ = 0;
  std::size_t table_bytes_ = 0;
  std::size_t contexts_ = 0;
  std::array<std::uint16_t, kMaxContexts> threshold_{};  // of contexts 1..: smallest bin; [0] unused
  std::array<std::uint8_t, kActivityBins> context_of_bin_{};
  std::array<std::uint32_t, kStates> states_{};
};

/// Decodes a section row by row from hostile bytes.
template <class U>
class SectionDecoder {
 public:
  SectionDecoder(Arena& arena, const RowGrid& most);

  /// Reads the head of a section that fills `in` exactly; values are below 2^bits.
  Status open(std::span<const std::uint8_t> in, const RowGrid& grid, unsigned bits);
  /// Writes the next row's `width` values.
  Status next_row(U* values);
  /// After the last row: fails unless every byte was used.
  Status finish() const;

 private:
  void decode_block(std::uint8_t* tokens, const std::uint16_t* activity, unsigned block_part);
  bool decode_partial(std::uint8_t* tokens, const std::uint16_t* activity, unsigned block_part, std::size_t count);
  Status expand(const std::uint8_t* tokens, U* values);

  RowGrid grid_;
  std::uint8_t* token_memory_;
  std::uint16_t* activity_;
  DecodeTable* tables_;
  std::span<const std::uint8_t> in_;
  std::size_t raw_at_ = 0;
  std::uint64_t raw_bits_ = 0;
  std::uint64_t raw_used_ = 0;
  std::size_t word_at_ = 0;  // byte position in in_
  std::size_t row_ = 0;
  std::array<std::uint8_t, kActivityBins> context_of_bin_{};
  std::array<std::uint32_t, kStates> states_{};
};

extern template class SectionEncoder<std::uint32_t>;
extern template class SectionEncoder<std::uint64_t>;
extern template class SectionDecoder<std::uint32_t>;
extern template class SectionDecoder<std::uint64_t>;

}  // namespace quern::codec::lossless
