// Where the columns of a parity set lie. The image of each member's checkpoint is cut into as many pieces as there are
// data columns in a stripe. There are as many stripes as members, and every member has one column of each: in `parity`
// stripes, that begin at its own number and go back, parity; in the others the next of its pieces. So whichever members
// are lost, each stripe has lost one column for each of them.
//
//   4 members, 1 parity     member 0   1   2   3
//                stripe 0:         P   0   0   0
//                stripe 1:         0   P   1   1
//                stripe 2:         1   1   P   2
//                stripe 3:         2   2   2   P
#pragma once

#include <cstdint>

namespace quern::checkpoint {

inline constexpr std::uint32_t kMostMembers = 64;

struct PeerLayout {
  std::uint32_t members = 0;  ///< 2 to kMostMembers
  std::uint32_t parity = 0;   ///< 1 to members - 1

  std::uint32_t data() const { return members - parity; }
  /// Which column of a stripe a member has; data comes first.
  std::uint32_t column(std::uint32_t stripe, std::uint32_t member) const {
    const std::uint32_t behind = (member + members - stripe) % members;
    return behind < parity ? data() + behind : behind - parity;
  }
  std::uint32_t member(std::uint32_t stripe, std::uint32_t column) const {
    const std::uint32_t behind = column < data() ? column + parity : column - data();
    return (stripe + behind) % members;
  }
  bool is_parity(std::uint32_t column) const { return column >= data(); }
  /// The stripe in which a member has parity for the nth time.
  std::uint32_t parity_stripe(std::uint32_t member, std::uint32_t nth) const {
    return (member + members - nth) % members;
  }
  /// Which of its pieces a member has in a stripe where it has data.
  std::uint32_t piece(std::uint32_t stripe, std::uint32_t member) const {
    std::uint32_t out = 0;
    for (std::uint32_t before = 0; before < stripe; ++before) out += is_parity(column(before, member)) ? 0 : 1;
    return out;
  }
  /// The stripe in which a member has a piece.
  std::uint32_t piece_stripe(std::uint32_t member, std::uint32_t piece_number) const {
    std::uint32_t stripe = 0;
    while (is_parity(column(stripe, member)) || piece(stripe, member) != piece_number) ++stripe;
    return stripe;
  }
};

}  // namespace quern::checkpoint
