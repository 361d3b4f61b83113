// Choice of the differencing orders on a sample of rows, by an integer cost.
#include "codecs/lossless/differences.h"

#include <algorithm>

namespace quern::codec::lossless {
namespace {

struct RowSample {
  std::size_t count = 0;   // pieces
  std::size_t length = 0;  // elements of a piece
};

/// At least 1024 elements where there are so many, in at least 16 pieces.
RowSample sample_of(const RowGrid& grid, unsigned thinning) {
  const std::size_t target = std::min(grid.elems(), std::max<std::size_t>(grid.elems() / thinning, 1024));
  RowSample sample;
  sample.count = std::max<std::size_t>(16, (target + grid.width - 1) / grid.width);
  sample.length = std::min(grid.width, (target + sample.count - 1) / sample.count);
  return sample;
}

template <class U>
std::uint64_t folded_bits(const U* differences, std::size_t count, unsigned bits) {
  std::uint64_t sum = 0;
  for (std::size_t x = 0; x < count; ++x) {
    sum += static_cast<unsigned>(std::bit_width(fold_sign(differences[x], bits)));
  }
  return sum;
}

}  // namespace

template <class U>
OrdersChoice choose_orders(const U* keys, const RowGrid& grid, unsigned bits, unsigned thinning, U* scratch) {
  const RowSample sample = sample_of(grid, thinning);
  U* plain = scratch;
  U* once = plain + grid.width + 2;
  U* twice = once + grid.width + 2;
  std::array<std::uint64_t, 27> cost{};
  const unsigned most_z = static_cast<unsigned>(std::min<std::size_t>(2, grid.planes - 1));
  const unsigned most_y = static_cast<unsigned>(std::min<std::size_t>(2, grid.rows - 1));
  const unsigned most_x = static_cast<unsigned>(std::min<std::size_t>(2, grid.width - 1));
  for (std::size_t piece = 0; piece < sample.count; ++piece) {
    const std::size_t r = piece * grid.row_count() / sample.count;
    const std::size_t z = r / grid.rows;
    const std::size_t y = r % grid.rows;
    // Multiples of the golden ratio spread the pieces' places within their rows.
    const std::size_t start = (piece * 40503 & 0xffff) * (grid.width - sample.length + 1) >> 16;
    const std::size_t lead = std::min<std::size_t>(start, 2);  // elements before the piece that differences reach
    const std::size_t count = sample.length + lead;
    for (unsigned oz = 0; oz <= most_z; ++oz) {
      for (unsigned oy = 0; oy <= most_y; ++oy) {
        const Orders orders{{static_cast<std::uint8_t>(oz), static_cast<std::uint8_t>(oy), 0}};
        std::uint64_t* const sums = cost.data() + (oz * 3 + oy) * 3;
        std::memcpy(plain, keys + r * grid.width + start - lead, count * sizeof(U));
        add_previous_rows(keys, grid, z, y, orders, false, start - lead, count, plain);
        sums[0] += folded_bits(plain + lead, sample.length, bits);
        difference_row(plain, count, U{0}, once);
        sums[1] += folded_bits(once + lead, sample.length, bits);
        difference_row(once, count, U{0}, twice);
        sums[2] += folded_bits(twice + lead, sample.length, bits);
      }
    }
  }
  OrdersChoice best;
  best.sampled = sample.count * sample.length;
  best.cost = cost[0];
  for (unsigned i = 1; i < cost.size(); ++i) {
    const Orders orders{
        {static_cast<std::uint8_t>(i / 9), static_cast<std::uint8_t>(i / 3 % 3), static_cast<std::uint8_t>(i % 3)}};
    const bool possible = orders.of[0] <= most_z && orders.of[1] <= most_y && orders.of[2] <= most_x;
    if (possible && cost[i] < best.cost) {
      best.cost = cost[i];
      best.orders = orders;
    }
  }
  return best;
}

template OrdersChoice choose_orders<std::uint32_t>(const std::uint32_t*, const RowGrid&, unsigned, unsigned,
                                                   std::uint32_t*);
template OrdersChoice choose_orders<std::uint64_t>(const std::uint64_t*, const RowGrid&, unsigned, unsigned,
                                                   std::uint64_t*);

}  // namespace quern::codec::lossless
