// Symbols into interleaved streams.
#include "coding/stream_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace quern::coding {
namespace {

constexpr std::uint64_t kStreamBytes = 1024;  // payload that makes another stream worth its state

}  // namespace

unsigned choose_stream_bits(std::uint64_t bytes, std::uint64_t most) {
  unsigned bits = 0;
  while (bits < kMaxStreamBits && (std::uint64_t{2} << bits) * kStreamBytes <= bytes &&
         (std::uint64_t{2} << bits) <= most)
    ++bits;
  return bits;
}

StreamWriter::StreamWriter(std::span<std::uint16_t> room, unsigned stream_bits) : room_(room) {
  streams_.mask = (std::size_t{1} << stream_bits) - 1;
  share_room();
}

void StreamWriter::share_room() {
  const std::size_t share = room_.size() / count();
  for (std::size_t stream = 0; stream < count(); ++stream) {
    streams_.states[stream] = kernels::kRansFloor;
    begin_[stream] = room_.data() + stream * share;
    end_[stream] = begin_[stream] + share;
    streams_.at[stream] = end_[stream];
  }
}

/// Whether each stream has room for so many residuals and its state.
bool StreamWriter::has_room(std::size_t residuals) const {
  for (std::size_t stream = 0; stream < count(); ++stream)
    if (static_cast<std::size_t>(streams_.at[stream] - begin_[stream]) <
        residuals * kernels::kResidualWords + kStateWords)
      return false;
  return true;
}

bool StreamWriter::encode(const kernels::ResidualKernels& kernels, const kernels::ResidualEntries& entries,
                          const std::uint16_t* symbols, const std::int32_t* codes, std::size_t count,
                          std::size_t first) {
  for (std::size_t end = count; end > 0;) {
    const std::size_t here = std::min(kBlock, end);
    if (!has_room(here / this->count() + 1)) return false;
    end -= here;
    kernels.encode_residuals(streams_, entries, symbols + end, codes + end, here, first + end);
  }
  return true;
}

void StreamWriter::put_state(std::size_t stream) {
  *--streams_.at[stream] = static_cast<std::uint16_t>(streams_.states[stream] >> 16);
  *--streams_.at[stream] = static_cast<std::uint16_t>(streams_.states[stream]);
}

bool StreamWriter::finish() {
  if (!has_room(0)) return false;
  for (std::size_t stream = 0; stream < count(); ++stream) put_state(stream);
  return true;
}

bool StreamWriter::encode_rows(const kernels::ResidualKernels& kernels, const kernels::ResidualEntries& entries,
                               const CodedRows& rows) {
  return encode_side_by_side(kernels, entries, rows) || encode_in_turn(entries, rows);
}

bool StreamWriter::encode_side_by_side(const kernels::ResidualKernels& kernels, const kernels::ResidualEntries& entries,
                                       const CodedRows& rows) {
  if (rows.count == 0 || rows.end(rows.count - 1) > INT32_MAX) return false;
  for (std::size_t first = (rows.count - 1) / count() * count();; first -= count()) {
    kernels::StreamRows turn;
    std::size_t longest = 0;
    for (std::size_t r = first; r < std::min(first + count(), rows.count); ++r) {
      turn.begin[r - first] = static_cast<std::uint32_t>(rows.begin(r));
      turn.end[r - first] = static_cast<std::uint32_t>(rows.end(r));
      longest = std::max(longest, rows.end(r) - rows.begin(r));
    }
    if (!has_room(longest)) return false;
    kernels.encode_rows(streams_, entries, rows.symbols, rows.codes, turn);
    if (first == 0) break;
  }
  return finish();
}

bool StreamWriter::encode_in_turn(const kernels::ResidualEntries& entries, const CodedRows& rows) {
  share_room();
  std::uint16_t* at = room_.data() + room_.size();
  const auto has_room_for = [&](std::size_t residuals) {
    return static_cast<std::size_t>(at - room_.data()) >= residuals * kernels::kResidualWords + kStateWords;
  };
  for (std::size_t stream = count(); stream-- > 0;) {
    end_[stream] = at;
    std::uint32_t state = kernels::kRansFloor;
    for (std::size_t r = rows.count; r-- > 0;) {
      if ((r & streams_.mask) != stream) continue;
      for (std::size_t i = rows.end(r); i-- > rows.begin(r);) {
        const std::uint16_t symbol = rows.symbols[i];
        if (symbol == kernels::kNoSymbol) continue;
        if (!has_room_for(1)) return false;
        kernels::encode_residual(state, rows.codes[i], symbol % kernels::kTokenStride, entries.entries[symbol], at);
      }
    }
    if (!has_room_for(0)) return false;
    streams_.states[stream] = state;
    streams_.at[stream] = at;
    put_state(stream);
    at = streams_.at[stream];
  }
  return true;
}

std::size_t StreamWriter::bytes() const {
  std::size_t all = 0;
  for (std::size_t stream = 0; stream < count(); ++stream) all += words(stream);
  return 2 * all;
}

void StreamWriter::append_sizes(Writer& writer) const {
  for (std::size_t stream = 0; stream + 1 < count(); ++stream) writer.varint(words(stream));
}

void StreamWriter::copy_words(std::uint8_t* out) const {
  for (std::size_t stream = 0; stream < count(); ++stream) {
    const std::size_t stored = words(stream);
    if constexpr (std::endian::native == std::endian::little) {
      if (stored > 0) std::memcpy(out, streams_.at[stream], 2 * stored);
    } else {
      for (std::size_t i = 0; i < stored; ++i) {
        out[2 * i] = static_cast<std::uint8_t>(streams_.at[stream][i]);
        out[2 * i + 1] = static_cast<std::uint8_t>(streams_.at[stream][i] >> 8);
      }
    }
    out += 2 * stored;
  }
}

void StreamWriter::append_words(Vector<std::uint8_t>& out) const {
  const std::size_t before = out.size();
  out.resize(before + bytes());
  copy_words(out.data() + before);
}

}  // namespace quern::coding
