#include "codecs/lidar/order/order_coder.h"

#include "codecs/lidar/coding/bit_coder.h"

namespace quern::codec::lidar {
namespace {

constexpr unsigned kMostCellBits = 40;

/// Cells about as large as the median step from a point to the next.
unsigned choose_cell_bits(std::span<const Site> sites, std::span<const std::uint32_t> order) {
  std::array<std::size_t, kMostCellBits + 1> lengths{};
  for (std::size_t i = 1; i < order.size(); ++i) {
    std::uint64_t longest = 0;
    for (unsigned axis = 0; axis < 3; ++axis) {
      const std::int64_t d = sites[order[i]][axis] - sites[order[i - 1]][axis];
      longest = std::max(longest, static_cast<std::uint64_t>(d < 0 ? -d : d));
    }
    ++lengths[std::min(kernels::bit_length(longest), kMostCellBits)];
  }
  std::size_t seen = 0;
  unsigned bits = 0;
  while (bits < kMostCellBits && 2 * (seen += lengths[bits]) < order.size()) ++bits;
  return std::max(bits, 1U);
}

}  // namespace

RemainingSites::RemainingSites(std::span<const Site> sites, std::span<const std::uint32_t> counts, unsigned cell_bits)
    : sites_(sites), left_(counts.begin(), counts.end()), cell_bits_(cell_bits) {
  std::size_t buckets = 64;
  while (buckets < sites.size()) buckets *= 2;
  mask_ = buckets - 1;
  first_.assign(buckets + 1, 0);
  size_.assign(buckets, 0);
  for (const Site& site : sites) ++first_[bucket_of(cell_of(site)) + 1];
  for (std::size_t i = 0; i < buckets; ++i) first_[i + 1] += first_[i];
  entries_.resize(sites.size());
  place_.resize(sites.size());
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const std::size_t bucket = bucket_of(cell_of(sites[i]));
    place_[i] = first_[bucket] + size_[bucket]++;
    entries_[place_[i]] = static_cast<std::uint32_t>(i);
  }
}

std::size_t RemainingSites::bucket_of(const Site& cell) const {
  std::uint64_t h = static_cast<std::uint64_t>(cell[0]) * UINT64_C(0x9E3779B97F4A7C15) +
                    static_cast<std::uint64_t>(cell[1]) * UINT64_C(0xC2B2AE3D27D4EB4F) +
                    static_cast<std::uint64_t>(cell[2]) * UINT64_C(0x165667B19E3779F9);
  h ^= h >> 32;
  return static_cast<std::size_t>(h) & mask_;
}

void RemainingSites::take(std::uint32_t site) {
  if (--left_[site] != 0) return;
  const std::size_t bucket = bucket_of(cell_of(sites_[site]));
  const std::uint32_t last = entries_[first_[bucket] + --size_[bucket]];
  entries_[place_[site]] = last;
  place_[last] = place_[site];
}

std::span<const std::uint32_t> RemainingSites::around(const Site& place) {
  seen_.clear();
  ranked_.clear();
  const Site middle = cell_of(place);
  std::size_t looked_at = 0;
  for (unsigned slot = 0; slot < 27; ++slot) {
    const Site cell = {middle[0] + slot / 9 - 1, middle[1] + slot / 3 % 3 - 1, middle[2] + slot % 3 - 1};
    const std::size_t bucket = bucket_of(cell);
    looked_at += size_[bucket];
    if (looked_at > kMostSeen) return {};
    for (std::size_t i = first_[bucket]; i < first_[bucket] + size_[bucket]; ++i) {
      const std::uint32_t site = entries_[i];
      if (cell_of(sites_[site]) != cell) continue;
      std::int64_t square = 0;
      for (unsigned axis = 0; axis < 3; ++axis) {
        const std::int64_t d = std::clamp<std::int64_t>(sites_[site][axis] - place[axis], -(1 << 30), 1 << 30);
        square += d * d;
      }
      seen_.push_back({square, site});
    }
  }
  std::sort(seen_.begin(), seen_.end(),
            [](const Seen& a, const Seen& b) { return a.square != b.square ? a.square < b.square : a.site < b.site; });
  for (const Seen& seen : seen_) ranked_.push_back(seen.site);
  return ranked_;
}

Vector<std::uint8_t> encode_order(std::span<const Site> sites, std::span<const std::uint32_t> counts,
                                  std::span<const std::uint32_t> order) {
  const unsigned cell_bits = choose_cell_bits(sites, order);
  Vector<std::uint8_t> bytes(1, static_cast<std::uint8_t>(cell_bits));
  BitWriter writer(bytes);
  RemainingSites remaining(sites, counts, cell_bits);
  OrderCoder<BitWriter> coder(writer, sites, remaining);
  for (const std::uint32_t site : order) coder.next(site);
  writer.finish();
  return bytes;
}

Status decode_order(std::span<const std::uint8_t> bytes, std::span<const Site> sites,
                    std::span<const std::uint32_t> counts, std::span<std::uint32_t> order) {
  const Status corrupt(StatusCode::corrupt, "the order of points is not what an encoder writes");
  if (bytes.empty() || bytes[0] < 1 || bytes[0] > kMostCellBits) return corrupt;
  BitReader reader(bytes.subspan(1));
  RemainingSites remaining(sites, counts, bytes[0]);
  OrderCoder<BitReader> coder(reader, sites, remaining);
  for (std::uint32_t& site : order) {
    site = coder.next();
    if (site == OrderCoder<BitReader>::kFailed || !reader.good()) return corrupt;
  }
  return reader.has_more() ? corrupt : Status();
}

}  // namespace quern::codec::lidar
