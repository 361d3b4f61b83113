// Drives: any bytes, and any bytes as description and scan of a frame whose checksums are right, become frames or a
// status inside the limits.
#include <array>
#include <vector>

#include "lidar/drive/drive.h"
#include "tests/fuzz/fuzz_common.h"

namespace {

using namespace quern;
using namespace quern::lidar;

constexpr std::uint64_t kMostHostilePoints = 4096;
/// Tables of the scan decoder's models, and what it takes for each point.
constexpr std::uint64_t kMostMemory = UINT64_C(1) << 26;

void read_all(std::span<const std::uint8_t> bytes) {
  MemorySource source(bytes);
  Execution execution;
  execution.memory_limit = UINT64_C(1) << 24;
  const auto drive = Drive::open(source, execution);
  if (!drive.ok()) return;
  SerialRunner runner;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>((*drive)->frames(), 4); ++i) {
    (void)(*drive)->describe(i);
    const auto cloud = (*drive)->read(i, kMostHostilePoints, runner);
    if (cloud.ok()) QUERN_FUZZ_CHECK(cloud->points() <= kMostHostilePoints);
  }
  (void)(*drive)->check_bytes();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Feed feed({data, size});
  const fuzz::AllocationWatch watch;
  if (feed.byte() % 2 == 0) {
    read_all(feed.rest());
  } else {
    const std::size_t cut = feed.byte();
    const auto rest = feed.rest();
    const auto description = rest.first(std::min(cut, rest.size()));
    const auto parsed = read_description(description);
    if (parsed.ok()) {
      const auto again = write_description(*parsed);
      QUERN_FUZZ_CHECK(std::equal(again.begin(), again.end(), description.begin(), description.end()));
    }
    const std::array<StoredFrame, 1> frames = {StoredFrame{description, rest.subspan(description.size())}};
    Vector<std::uint8_t> drive;
    VectorSink sink(drive);
    QUERN_FUZZ_CHECK(write_drive(frames, Execution(), sink).ok());
    read_all(drive);
  }
  QUERN_FUZZ_CHECK(watch.peak() <= kMostMemory + 64 * size);
  return 0;
}
