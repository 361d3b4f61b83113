// Section decoder: hostile bytes in, rows of integers out. Every length is checked before it is used; the inner loop
// runs unchecked only while a whole block of words is certain to be there.
#include "codecs/lossless/section.h"

namespace quern::codec::lossless {
namespace {

constexpr Status kCorrupt(StatusCode::corrupt, "lossless section is malformed");

}  // namespace

template <class U>
SectionDecoder<U>::SectionDecoder(Arena& arena, const RowGrid& most)
    : grid_(most),
      token_memory_(arena.take<std::uint8_t>(std::max(TokenPlane::bytes(most), most.elems() + 2 * kTokenPad))),
      activity_(arena.take<std::uint16_t>(most.elems())),
      tables_(arena.take<DecodeTable>(kMaxContexts)) {}

template <class U>
Status SectionDecoder<U>::open(std::span<const std::uint8_t> in, const RowGrid& grid, unsigned bits) {
  if (in.size() < 9) return Status(StatusCode::corrupt, "lossless section ends in its head");
  grid_ = grid;
  in_ = in;
  row_ = 0;
  raw_used_ = 0;
  const std::size_t raw_bytes = load_le<std::uint32_t>(in.data());
  const std::size_t word_bytes = 2 * std::size_t{load_le<std::uint32_t>(in.data() + 4)};
  const std::size_t contexts = in[8];
  std::size_t at = 9;
  if (contexts == 0 || contexts > kMaxContexts || in.size() - at < 2 * (contexts - 1)) return kCorrupt;
  std::array<std::uint16_t, kMaxContexts> threshold{};
  for (std::size_t i = 1; i < contexts; ++i, at += 2) threshold[i] = load_le<std::uint16_t>(in.data() + at);
  for (std::size_t bin = 0, context = 0; bin < kActivityBins; ++bin) {
    while (context + 1 < contexts && bin >= threshold[context + 1]) ++context;
    context_of_bin_[bin] = static_cast<std::uint8_t>(context);
  }
  BitReader reader(in.data() + at, in.size() - at);
  for (std::size_t i = 0; i < contexts; ++i) {
    Frequencies frequencies;
    if (!read_table(reader, last_token(bits), frequencies)) return kCorrupt;
    make_decode_table(frequencies, tables_[i]);
  }
  at += reader.bytes_used();
  if (in.size() - at != raw_bytes + 4 * kStates + word_bytes) return kCorrupt;
  raw_at_ = at;
  raw_bits_ = std::uint64_t{raw_bytes} * 8;
  at += raw_bytes;
  for (std::uint32_t& state : states_) {
    state = load_le<std::uint32_t>(in.data() + at);
    if (state < kStateFloor) return kCorrupt;
    at += 4;
  }
  word_at_ = at;
  return {};
}

template <class U>
inline void SectionDecoder<U>::decode_block(std::uint8_t* tokens, const std::uint16_t* activity, unsigned block_part) {
  const std::uint8_t* words = in_.data() + word_at_;
  for (std::size_t lane = 0; lane < kStates; ++lane) {
    const DecodeTable& table = tables_[context_of_bin_[activity_bin(activity[lane], block_part)]];
    std::uint32_t state = states_[lane];
    tokens[lane] = decode_step(state, table);
    const std::uint32_t refilled = state << 16 | load_le<std::uint16_t>(words);
    const bool low = state < kStateFloor;
    states_[lane] = low ? refilled : state;
    words += low ? 2 : 0;
  }
  word_at_ = static_cast<std::size_t>(words - in_.data());
}

template <class U>
bool SectionDecoder<U>::decode_partial(std::uint8_t* tokens, const std::uint16_t* activity, unsigned block_part,
                                       std::size_t count) {
  for (std::size_t lane = 0; lane < count; ++lane) {
    const DecodeTable& table = tables_[context_of_bin_[activity_bin(activity[lane], block_part)]];
    tokens[lane] = decode_step(states_[lane], table);
    if (states_[lane] >= kStateFloor) continue;
    if (in_.size() - word_at_ < 2) return false;
    states_[lane] = states_[lane] << 16 | load_le<std::uint16_t>(in_.data() + word_at_);
    word_at_ += 2;
  }
  return true;
}

template <class U>
Status SectionDecoder<U>::expand(const std::uint8_t* tokens, U* values) {
  std::uint32_t needed = 0;
  for (std::size_t x = 0; x < grid_.width; ++x) needed += raw_bits_of(tokens[x]);
  if (needed > raw_bits_ - raw_used_) return Status(StatusCode::corrupt, "lossless section lacks raw bits");
  // Reading a whole word at the last bits stays inside the states that follow the raw bits.
  const std::uint8_t* raw = in_.data() + raw_at_;
  std::uint64_t at = raw_used_;
  for (std::size_t x = 0; x < grid_.width; ++x) {
    const unsigned count = raw_bits_of(tokens[x]);
    if constexpr (sizeof(U) == 4) {
      values[x] = token_base<U>(tokens[x]) | static_cast<U>(peek_bits(raw, at, count));
    } else {
      values[x] = token_base<U>(tokens[x]) | peek_bits_wide(raw, at, count);
    }
    at += count;
  }
  raw_used_ = at;
  return {};
}

template <class U>
Status SectionDecoder<U>::next_row(U* values) {
  const TokenPlane plane(token_memory_, grid_);
  const std::uint8_t* above = nullptr;
  const std::uint8_t* behind = nullptr;
  plane.neighbours(row_, above, behind);
  std::uint8_t* tokens = plane.row(row_);
  row_activity(above, behind, grid_.width, activity_);
  std::size_t x = 0;
  for (; x + kStates <= grid_.width && in_.size() - word_at_ >= 2 * kStates; x += kStates) {
    decode_block(tokens + x, activity_ + x, block_activity(tokens, x, above));
  }
  for (; x < grid_.width; x += kStates) {
    const std::size_t count = std::min(kStates, grid_.width - x);
    if (!decode_partial(tokens + x, activity_ + x, block_activity(tokens, x, above), count)) {
      return Status(StatusCode::corrupt, "lossless section lacks words");
    }
  }
  plane.close_row(row_);
  ++row_;
  return expand(tokens, values);
}

template <class U>
Status SectionDecoder<U>::finish() const {
  bool clean = word_at_ == in_.size() && (raw_used_ + 7) / 8 * 8 == raw_bits_;
  for (const std::uint32_t state : states_) clean = clean && state == kStateFloor;
  return clean ? Status() : Status(StatusCode::corrupt, "lossless section does not end where it should");
}

template class SectionDecoder<std::uint32_t>;
template class SectionDecoder<std::uint64_t>;

}  // namespace quern::codec::lossless
