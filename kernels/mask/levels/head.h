// The head of a mask that is coded by levels (docs/format-mask.md, section 10), read from any bytes. Host and device
// code use it alike.
#pragma once

#include <cstdint>

#include "kernels/mask/levels/lanes.h"
#include "kernels/mask/symbols.h"
#include "kernels/mask/view.h"

namespace quern::kernels {

inline constexpr unsigned kLevelSpecialsMask = 31, kLevelHasVerbatim = 32;  // of the byte that says what there is
inline constexpr unsigned kLevelBesideRim = 64;     // the lowest bits of the classes' numbers are coded beside the rim
inline constexpr unsigned kMostLevelLaneShift = 6;  // 4 << 6 lanes
inline constexpr unsigned kMostLevelGroups = level_groups(kMostLevelLanes);

/// Where the parts of a mask are, in bytes from its beginning behind the view.
struct LevelHead {
  MaskDamage damage = MaskDamage::none;
  MaskAlphabet alphabet;
  unsigned lanes = 0;
  bool beside_rim = false;
  std::uint64_t distance = 1;  ///< of the reference planes
  std::uint64_t specials = 0;
  std::uint64_t words = 0;     ///< two bytes each, of one group of lanes after the other
  std::uint64_t verbatim = 0;  ///< to the end
};

/// Bytes from the front on. The first fault stays, and zeros are read after it.
class LevelHeadReader {
 public:
  constexpr LevelHeadReader(const std::uint8_t* in, std::uint64_t bytes) : in_(in), bytes_(bytes) {}

  constexpr MaskDamage damage() const { return damage_; }
  constexpr void fail(MaskDamage damage) {
    if (damage_ == MaskDamage::none) damage_ = damage;
  }
  /// Where so many bytes are that are left out.
  constexpr std::uint64_t skip(std::uint64_t count) {
    const std::uint64_t at = at_;
    if (count > bytes_ - at_) {
      fail(MaskDamage::truncated);
    } else {
      at_ += count;
    }
    return at;
  }
  constexpr unsigned byte() {
    const std::uint64_t at = skip(1);
    return damage_ == MaskDamage::none ? in_[at] : 0;
  }
  /// In the fewest bytes, at most `most`.
  constexpr std::uint64_t number(std::uint64_t most) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
      const std::uint64_t next = byte();
      value |= (next & 0x7F) << shift;
      if (next >= 0x80) continue;
      if ((next == 0 && shift > 0) || value > most) fail(MaskDamage::corrupt);
      return damage_ == MaskDamage::none ? value : 0;
    }
    fail(MaskDamage::corrupt);
    return 0;
  }

 private:
  const std::uint8_t* in_;
  std::uint64_t bytes_;
  std::uint64_t at_ = 0;
  MaskDamage damage_ = MaskDamage::none;
};

/// `planes`: how many the mask has; `element_bytes`: of a value. Calls group(g, words) for each group of lanes.
template <class F>
constexpr LevelHead read_level_head(const std::uint8_t* in, std::uint64_t bytes, std::uint64_t planes,
                                    std::uint64_t element_bytes, F&& group) {
  constexpr std::uint64_t kMostWords = UINT64_C(1) << 48;
  LevelHeadReader reader(in, bytes);
  LevelHead head;
  if (reader.byte() != kLevelMark) reader.fail(MaskDamage::corrupt);
  const unsigned flags = reader.byte(), lane_shift = reader.byte();
  head.alphabet = {flags & kLevelSpecialsMask, (flags & kLevelHasVerbatim) != 0};
  head.beside_rim = (flags & kLevelBesideRim) != 0;
  if (flags > (kLevelSpecialsMask | kLevelHasVerbatim | kLevelBesideRim) || head.alphabet.specials > kMaxSpecials ||
      head.alphabet.size() < (head.beside_rim ? 3 : 2) || lane_shift > kMostLevelLaneShift)
    reader.fail(MaskDamage::corrupt);
  head.damage = reader.damage();
  if (head.damage != MaskDamage::none) return head;
  head.lanes = kFewestLevelLanes << lane_shift;
  if (planes > 1) {
    head.distance = reader.number(kMaxReferenceDistance);
    if (head.distance == 0) reader.fail(MaskDamage::corrupt);
  }
  head.specials = reader.skip(head.alphabet.specials * element_bytes);
  const unsigned groups = level_groups(head.lanes);
  std::uint64_t words = 0;
  for (unsigned g = 0; g < groups; ++g) {
    const std::uint64_t count = reader.number(kMostWords);
    group(g, count);
    words += count;
  }
  head.words = reader.skip(2 * words);
  head.verbatim = reader.skip(0);
  head.damage = reader.damage();
  return head;
}

/// An element of a few bytes, little-endian.
constexpr std::uint64_t stored_element(const std::uint8_t* at, unsigned bytes) {
  std::uint64_t value = 0;
  for (unsigned b = bytes; b-- > 0;) value = value << 8 | at[b];
  return value;
}

}  // namespace quern::kernels
