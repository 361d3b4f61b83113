// Drives: any bytes, and any bytes as description and scan of a frame whose checksums are right, become frames or a
// status inside the limits. Frames that are said to predict each other in any way come out alike in any order.
#include <array>
#include <bit>
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

constexpr std::uint64_t kMostFrames = 24;

/// Up to so many frames with the same scan and two bytes each: how far the key frame is, and which of the
/// frames before it predict it.
void read_chain(fuzz::Feed& feed) {
  SerialRunner runner;
  static const CodedFrame made = [&] {
    PointCloud cloud;
    for (float i = 0; i < 100; ++i)
      for (const float value : {i, 3 * i, 1.0F}) cloud.words.push_back(std::bit_cast<std::uint32_t>(value));
    auto frame = encode_frame(cloud, {Mode::set, 150'000'000}, runner);
    QUERN_FUZZ_CHECK(frame.ok());
    return std::move(frame).value();
  }();
  std::vector<Vector<std::uint8_t>> descriptions;
  for (std::uint64_t i = 0; i < kMostFrames && (i == 0 || !feed.rest().empty()); ++i) {
    FrameDescription description = made.description;
    description.name = "frame";
    description.pose = Pose();
    description.key_distance = feed.byte() % (kMostKeyDistance + 1);
    const unsigned references = feed.byte();
    for (unsigned back = 1; back <= kMostReferenceDistance; ++back)
      if ((references >> (back - 1) & 1U) != 0 && back <= description.key_distance)
        description.references.push_back(back);
    if (description.references.empty()) {
      description.key_distance = 0;
      description.rays.emplace();
      description.rays->step = {codec::lidar::kOne, codec::lidar::kOne / 64};
      description.rays->rings = {{-1000, 0}, {1000, 0}};
    }
    descriptions.push_back(write_description(description));
    QUERN_FUZZ_CHECK(read_description(descriptions.back()).ok());
  }
  std::vector<StoredFrame> frames;
  for (const auto& description : descriptions) frames.push_back({description, made.scan});
  Vector<std::uint8_t> bytes;
  VectorSink sink(bytes);
  QUERN_FUZZ_CHECK(write_drive(frames, Execution(), sink).ok());
  MemorySource source(bytes);
  const auto forward = Drive::open(source, Execution());
  const auto backward = Drive::open(source, Execution());
  std::vector<StatusCode> codes;
  for (std::uint64_t i = 0; i < frames.size(); ++i)
    codes.push_back((*forward)->read(i, kMostHostilePoints, runner).status().code());
  for (std::uint64_t i = frames.size() - 1; i < frames.size(); i -= 7)
    QUERN_FUZZ_CHECK((*backward)->read(i, kMostHostilePoints, runner).status().code() == codes[i]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Feed feed({data, size});
  const fuzz::AllocationWatch watch;
  const unsigned kind = feed.byte() % 4;
  if (kind == 3) {
    read_chain(feed);
  } else if (kind % 2 == 0) {
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
