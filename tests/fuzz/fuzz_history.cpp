// Histories: any bytes as an epoch, as the cells of a tile and as a segment become what they say or a status, and what
// is accepted comes out byte for byte.
#include "lidar/history/epoch.h"
#include "lidar/history/parity_sets.h"
#include "lidar/history/places.h"
#include "lidar/history/segment.h"
#include "tests/fuzz/fuzz_common.h"

namespace {

using namespace quern;
using namespace quern::lidar;

constexpr std::uint32_t kCellUnits = 200;

bool same(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

/// Bytes as a file.
class FuzzedFile final : public storage::File {
 public:
  explicit FuzzedFile(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) override {
    if (offset >= bytes_.size()) return std::size_t{0};
    const auto from = bytes_.subspan(static_cast<std::size_t>(offset));
    const std::size_t count = std::min(out.size(), from.size());
    std::copy_n(from.begin(), count, out.begin());
    return count;
  }
  Result<std::size_t> write_at(std::uint64_t, std::span<const std::uint8_t>) override { return refused(); }
  Result<std::uint64_t> size() override { return bytes_.size(); }
  Status cut(std::uint64_t) override { return refused(); }
  Status sync() override { return refused(); }

 private:
  static Status refused() { return Status(StatusCode::io_error, "this file is only read"); }
  std::span<const std::uint8_t> bytes_;
};

void try_epoch(std::span<const std::uint8_t> bytes) {
  const auto epoch = read_epoch(bytes);
  if (!epoch.ok()) return;
  QUERN_FUZZ_CHECK(same(write_epoch(*epoch), bytes));
  for (const EpochTile& tile : epoch->tiles) QUERN_FUZZ_CHECK(epoch->find(tile.key) == &tile);
  QUERN_FUZZ_CHECK(tiles_around(*epoch, Pose(), 8).size() <= epoch->tiles.size());
}

void try_cells(std::span<const std::uint8_t> bytes) {
  const auto cells = read_cells(bytes, kCellUnits);
  if (!cells.ok()) return;
  QUERN_FUZZ_CHECK(same(write_cells(*cells), bytes));
  for (const UnitPoint& point : cell_centres(*cells, kCellUnits))
    for (const std::int64_t at : point) QUERN_FUZZ_CHECK(at >= 0 && at < kTileUnits);
}

void try_segment(std::span<const std::uint8_t> bytes) {
  FuzzedFile file(bytes);
  bool whole = false;
  const auto parts = read_segment(file, whole);
  if (!parts.ok()) return;
  (void)heads_hold(file, *parts);
  for (const PartPlace& part : *parts) {
    const auto content = read_part_bytes(file, part);
    if (content.ok()) QUERN_FUZZ_CHECK(storage::content_hash(*content) == part.hash);
  }
}

void try_parity(std::span<const std::uint8_t> bytes) {
  std::uint8_t index = 0;
  const auto list = read_parity_header(bytes, index);
  if (!list.ok()) return;
  const auto written = write_parity_header(*list, index);
  QUERN_FUZZ_CHECK(written.size() <= kMostParityHeaderBytes && written.size() <= bytes.size());
  QUERN_FUZZ_CHECK(same(written, bytes.first(written.size())));
}

void try_places(std::span<const std::uint8_t> bytes) {
  const auto places = read_places(bytes);
  if (places.ok()) QUERN_FUZZ_CHECK(same(write_places(*places), bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Feed feed({data, size});
  const fuzz::AllocationWatch watch;
  switch (feed.byte() % 5) {
    case 0: try_epoch(feed.rest()); break;
    case 1: try_cells(feed.rest()); break;
    case 2: try_segment(feed.rest()); break;
    case 3: try_parity(feed.rest()); break;
    default: try_places(feed.rest()); break;
  }
  QUERN_FUZZ_CHECK(watch.peak() <= (UINT64_C(1) << 16) + 64 * size);
  return 0;
}
