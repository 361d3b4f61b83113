// Offsets by distance.
#include "codecs/stencil/networks/input_taps.h"

#include <algorithm>

namespace quern::codec::stencil {
namespace {

int square(const Offset& offset) {
  int sum = 0;
  for (const int d : offset) sum += d * d;
  return sum;
}

}  // namespace

Vector<Offset> network_taps(std::size_t rank, std::size_t parity_class) {
  Vector<Offset> taps;
  std::array<int, kMaxAxes> reach{};
  for (std::size_t a = 0; a < rank; ++a) reach[a] = (parity_class >> (rank - 1 - a) & 1) != 0 ? 3 : 2;
  Offset at{};
  for (std::size_t a = 0; a < rank; ++a) at[a] = static_cast<std::int8_t>(-reach[a]);
  for (bool more = true; more;) {
    std::size_t odd = 0;
    for (std::size_t a = 0; a < rank; ++a) odd = odd << 1 | (static_cast<unsigned>(at[a]) & 1);
    if (class_before(parity_class ^ odd, parity_class)) taps.push_back(at);
    more = false;
    for (std::size_t a = rank; a-- > 0 && !more;) {
      more = at[a] < reach[a];
      at[a] = static_cast<std::int8_t>(more ? at[a] + 1 : -reach[a]);
    }
  }
  std::stable_sort(taps.begin(), taps.end(), [](const Offset& a, const Offset& b) { return square(a) < square(b); });
  return taps;
}

}  // namespace quern::codec::stencil
