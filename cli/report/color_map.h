// Colour maps, laid out in the Oklab colour space so that equal steps of value look like equal steps of colour.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace quern::report {

using Color = std::array<std::uint8_t, 3>;

/// Levels of a map; palette entries beyond them mark what has no place on it.
inline constexpr int kLevels = 254;
inline constexpr std::uint8_t kNotFiniteIndex =
    254;                                            ///< the reconstruction is NaN or infinite where the original is not
inline constexpr std::uint8_t kInvalidIndex = 255;  ///< gap: not finite or a fill value in the original

/// 256 entries: dark blue over green to light yellow, lightness growing evenly.
std::vector<Color> sequential_palette();
/// 256 entries: blue for negative, nearly white at 0, red for positive.
std::vector<Color> diverging_palette();

/// Palette index of a value on the scale low..high; values beyond take the end colours, NaN the invalid one.
std::uint8_t level_of(double value, double low, double high);

}  // namespace quern::report
