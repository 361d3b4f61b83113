// Rows of codes into lanes.
#include "codecs/stencil/wavelet/lanes.h"

#include <algorithm>
#include <array>

#include "codecs/stencil/model/stream_readers.h"

namespace quern::codec::stencil {
namespace {

constexpr std::uint64_t kLaneBytes = 1024;  // payload that makes another lane worth its state
constexpr std::ptrdiff_t kMostWords = 8;    // that a code or a state takes, and more

using LaneSpans = std::array<std::span<const std::uint16_t>, kMaxLanes>;

void put_state(std::uint16_t*& at, std::uint32_t state) {
  *--at = static_cast<std::uint16_t>(state >> 16);
  *--at = static_cast<std::uint16_t>(state);
}

/// All lanes at once, each with its share of the words; false when that does not suffice.
bool put_side_by_side(const CodedRows& rows, const ResidualEntries& entries, const kernels::StencilKernels& kernels,
                      std::size_t lanes, std::span<std::uint16_t> words, LaneSpans& written) {
  const std::size_t count = rows.ends.size();
  if (count == 0 || rows.ends.back() > INT32_MAX) return false;
  const std::size_t share = words.size() / lanes;
  kernels::PutLanes put;
  put.mask = lanes - 1;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    put.states[lane] = kernels::kRansFloor;
    put.at[lane] = words.data() + (lane + 1) * share;
  }
  const auto all_have_room = [&](std::size_t codes) {
    for (std::size_t lane = 0; lane < lanes; ++lane)
      if (static_cast<std::size_t>(put.at[lane] - (words.data() + lane * share)) < codes * kResidualWords + kMostWords)
        return false;
    return true;
  };
  for (std::size_t first = (count - 1) / lanes * lanes;; first -= lanes) {
    kernels::PutRows turn;
    std::size_t longest = 0;
    for (std::size_t r = first; r < std::min(first + lanes, count); ++r) {
      turn.begin[r - first] = r > 0 ? rows.ends[r - 1] : 0;
      turn.end[r - first] = rows.ends[r];
      longest = std::max<std::size_t>(longest, turn.end[r - first] - turn.begin[r - first]);
    }
    if (!all_have_room(longest)) return false;
    kernels.encode.put_rows(put, entries, rows.symbols, rows.codes, turn);
    if (first == 0) break;
  }
  if (!all_have_room(0)) return false;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    put_state(put.at[lane], put.states[lane]);
    written[lane] = {put.at[lane], words.data() + (lane + 1) * share};
  }
  return true;
}

/// One lane after the other.
bool put_in_turn(const CodedRows& rows, const ResidualEntries& entries, std::size_t lanes,
                 std::span<std::uint16_t> words, LaneSpans& written) {
  std::uint16_t* at = words.data() + words.size();
  for (std::size_t lane = lanes; lane-- > 0;) {
    const std::uint16_t* const before = at;
    std::uint32_t state = kernels::kRansFloor;
    for (std::size_t r = rows.ends.size(); r-- > 0;) {
      if ((r & (lanes - 1)) != lane) continue;
      const std::size_t first = r > 0 ? rows.ends[r - 1] : 0;
      for (std::size_t i = rows.ends[r]; i-- > first;) {
        const std::uint16_t symbol = rows.symbols[i];
        if (symbol == kNoSymbol) continue;
        if (at - words.data() < kMostWords) return false;
        put_symbol(state, rows.codes[i], symbol % kTokenPlaces, entries.entries[symbol], at);
      }
    }
    if (at - words.data() < kMostWords) return false;
    put_state(at, state);
    written[lane] = {at, before};
  }
  return true;
}

}  // namespace

unsigned wavelet_lane_bits(std::uint64_t bytes) {
  unsigned lane_bits = 0;
  while (lane_bits < kMaxLaneBits && (std::uint64_t{2} << lane_bits) * kLaneBytes <= bytes) ++lane_bits;
  return lane_bits;
}

bool write_lanes(const CodedRows& rows, const ResidualEntries& entries, const kernels::StencilKernels& kernels,
                 std::uint64_t bytes, std::span<std::uint16_t> words, Writer& writer) {
  const unsigned lane_bits = wavelet_lane_bits(bytes);
  const std::size_t lanes = std::size_t{1} << lane_bits;
  LaneSpans written;
  if (!put_side_by_side(rows, entries, kernels, lanes, words, written) &&
      !put_in_turn(rows, entries, lanes, words, written))
    return false;
  writer.u8(static_cast<std::uint8_t>(lane_bits));
  for (std::size_t lane = 0; lane + 1 < lanes; ++lane) writer.varint(written[lane].size());
  for (std::size_t lane = 0; lane < lanes; ++lane)
    for (const std::uint16_t word : written[lane]) writer.u16(word);
  return true;
}

}  // namespace quern::codec::stencil
