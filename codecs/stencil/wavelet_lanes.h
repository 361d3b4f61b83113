// The lanes that codes of bands and corrections lie in: rows take turns.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/stencil/model.h"
#include "codecs/stencil/residual_symbols.h"
#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::codec::stencil {

inline constexpr std::size_t kMaxLanes = std::size_t{1} << kMaxLaneBits;

/// Lanes as a decoder reads them.
struct LaneSources {
  std::array<kernels::RansSource, kMaxLanes> sources{};
  std::size_t mask = 0;

  Status open(std::span<const std::uint8_t> in) {
    Reader reader(in);
    QUERN_ASSIGN_OR_RETURN(const std::uint8_t bits, reader.u8());
    if (bits > kMaxLaneBits) return Status(StatusCode::corrupt, "stencil: a chunk has too many lanes");
    mask = (std::size_t{1} << bits) - 1;
    std::array<std::uint64_t, kMaxLanes> words{};
    std::uint64_t known = 0;
    for (std::size_t lane = 0; lane < mask; ++lane) {
      QUERN_ASSIGN_OR_RETURN(words[lane], reader.varint(in.size()));
      known += words[lane];
    }
    const std::uint64_t left = reader.remaining();
    if (left % 2 != 0 || known > left / 2)
      return Status(StatusCode::corrupt, "stencil: sizes of lanes do not fit their chunk");
    words[mask] = left / 2 - known;
    const std::uint8_t* at = in.data() + reader.position();
    for (std::size_t lane = 0; lane <= mask; ++lane) {
      if (words[lane] < 2) return Status(StatusCode::corrupt, "stencil: a lane has no state");
      std::uint32_t state = 0;
      for (unsigned i = 0; i < 4; ++i) state |= static_cast<std::uint32_t>(at[i]) << (8 * i);
      if (state < kernels::kRansFloor) return Status(StatusCode::corrupt, "stencil: a lane begins below its floor");
      sources[lane] = {at + 4, at + 2 * words[lane], state, false};
      at += 2 * words[lane];
    }
    return {};
  }
  bool finished() const {
    return std::all_of(sources.begin(), sources.begin() + static_cast<std::ptrdiff_t>(mask) + 1,
                       [](const kernels::RansSource& s) { return s.finished(); });
  }
};

inline constexpr std::uint8_t kNoContext = 255;  // of an element that has no code

/// What an encoder puts into lanes: codes with their context levels, in rows.
struct CodedRows {
  Vector<std::uint32_t> ends;  ///< of each row, counted in codes
  const std::int32_t* codes = nullptr;
  const std::uint8_t* contexts = nullptr;  ///< kNoContext: no code
};

/// Encoding tables of all levels that occur.
class LaneTables {
 public:
  explicit LaneTables(const ChunkModel& model) {
    const auto map = level_map(model);
    for (std::size_t l = 0; l < kLevels; ++l) {
      const kernels::ResidualModel& level = model.levels[l];
      if (level.tokens == 0) continue;
      kernels::TokenStarts starts;
      kernels::fill_token_starts(level, starts);
      entries_[l].resize(level.tokens);
      for (unsigned t = 0; t < level.tokens; ++t)
        entries_[l][t] = kernels::make_rans_entry(std::uint32_t{starts[t + 1u]} - starts[t], starts[t]);
    }
    for (std::size_t l = 0; l < kLevels; ++l) tables_[l] = map[l] < kLevels ? entries_[map[l]].data() : nullptr;
  }
  const kernels::RansEncodeEntry* operator[](std::size_t level) const { return tables_[level]; }

 private:
  std::array<Vector<kernels::RansEncodeEntry>, kLevels> entries_;
  std::array<const kernels::RansEncodeEntry*, kLevels> tables_{};
};

/// Appends lanes for codes of about that many bytes; false when they do not fit into `words`.
inline bool write_lanes(const CodedRows& rows, const LaneTables& tables, std::uint64_t bytes,
                        std::span<std::uint16_t> words, Writer& writer) {
  constexpr std::uint64_t kLaneBytes = 1024;  // payload that makes another lane worth its state
  constexpr std::ptrdiff_t kMostWords = 8;    // that a code or a state takes, and more
  unsigned lane_bits = 0;
  while (lane_bits < kMaxLaneBits && (std::uint64_t{2} << lane_bits) * kLaneBytes <= bytes) ++lane_bits;
  const std::size_t lanes = std::size_t{1} << lane_bits;
  std::uint16_t* const end = words.data() + words.size();
  std::uint16_t* at = end;
  std::array<std::size_t, kMaxLanes> sizes{};
  for (std::size_t lane = lanes; lane-- > 0;) {
    const std::uint16_t* const before = at;
    std::uint32_t state = kernels::kRansFloor;
    for (std::size_t r = rows.ends.size(); r-- > 0;) {
      if ((r & (lanes - 1)) != lane) continue;
      const std::size_t first = r > 0 ? rows.ends[r - 1] : 0;
      for (std::size_t i = rows.ends[r]; i-- > first;) {
        if (rows.contexts[i] == kNoContext) continue;
        if (at - words.data() < kMostWords) return false;
        const std::int32_t code = rows.codes[i];
        const unsigned token = kernels::token_of(static_cast<std::uint32_t>(code < 0 ? -code : code));
        put_symbol(state, code, token, tables[rows.contexts[i]][token], at);
      }
    }
    if (at - words.data() < kMostWords) return false;
    *--at = static_cast<std::uint16_t>(state >> 16);
    *--at = static_cast<std::uint16_t>(state);
    sizes[lane] = static_cast<std::size_t>(before - at);
  }
  writer.u8(static_cast<std::uint8_t>(lane_bits));
  for (std::size_t lane = 0; lane + 1 < lanes; ++lane) writer.varint(sizes[lane]);
  for (; at != end; ++at) writer.u16(*at);
  return true;
}

}  // namespace quern::codec::stencil
