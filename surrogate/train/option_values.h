// Numbers that options of trainers give.
#pragma once

#include <cstdint>
#include <string>

namespace quern::surrogate {

/// Numbers of the range from `least` to `most`; `out` stays where there is none. Else `problem` becomes what to type, as
/// in "--bound 0.7: use 1e-09 to 0.5".
bool take_number(const std::string& option, const char* text, double least, double most, double& out,
                 std::string& problem);
/// Whole numbers, in decimal digits.
bool take_count(const std::string& option, const char* text, std::uint64_t least, std::uint64_t most,
                std::uint64_t& out, std::string& problem);

/// A number with nine significant digits.
std::string number_text(double value);

}  // namespace quern::surrogate
