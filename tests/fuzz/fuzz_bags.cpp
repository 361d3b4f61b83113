// Bags: any bytes become a bag or a status, any message a cloud or a status; memory stays below the limit and in
// proportion to the bytes; a message that is made of the cloud is read again to the same points and columns.
#include <array>
#include <string_view>

#include "lidar/bags/bag.h"
#include "lidar/bags/message_layout.h"
#include "lidar/bags/point_cloud2.h"
#include "tests/fuzz/fuzz_common.h"

namespace {

using namespace quern;
using namespace quern::lidar;

constexpr BagLimits kLimits{UINT64_C(1) << 20};

void write_and_read(const MessageCloud& read) {
  const auto written = write_point_cloud2(read.cloud, read.stamp, "/points");
  QUERN_FUZZ_CHECK(written.ok());
  QUERN_FUZZ_CHECK(written->left_out.empty());
  const auto again = read_point_cloud2(written->bytes, written->topic, written->log_time);
  QUERN_FUZZ_CHECK(again.ok());
  QUERN_FUZZ_CHECK(again->stamp == read.stamp);
  QUERN_FUZZ_CHECK(again->cloud.points() == read.cloud.points());
  QUERN_FUZZ_CHECK(again->cloud.rows == read.cloud.rows);
  QUERN_FUZZ_CHECK(again->cloud.columns.size() == read.cloud.columns.size());
}

void read_message(std::span<const std::uint8_t> bytes, std::string_view topic, std::int64_t log_time) {
  const auto cloud = read_point_cloud2(bytes, topic, log_time);
  if (!cloud.ok()) return;
  QUERN_FUZZ_CHECK(cloud->cloud.points() <= bytes.size());
  // Fields may lie upon each other; then no message has them as they were read.
  const auto layout = read_layout(cloud->cloud.file_header);
  QUERN_FUZZ_CHECK(layout.ok());
  std::uint64_t field_bytes = 0;
  const auto elements = cloud->cloud.columns;
  for (const auto& column : elements) field_bytes += dtype_bytes(column.type);
  if (cloud->cloud.points() <= 10000 && field_bytes <= layout->point_step) write_and_read(*cloud);
}

void read_bag(Bag& bag) {
  for (std::size_t i = 0; i < bag.topics().size(); ++i) {
    if (!bag.topics()[i].has_clouds()) continue;
    for (std::uint64_t k = 0; k < std::min<std::uint64_t>(bag.topics()[i].messages, 32); ++k) {
      const auto message = bag.read(i, k);
      if (message.ok()) read_message(message->bytes, bag.topics()[i].name, message->log_time);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Feed feed({data, size});
  const unsigned kind = feed.byte() % 4;
  const auto bytes = feed.rest();
  const fuzz::AllocationWatch watch;
  if (kind == 0) {
    read_message(bytes, "/points", 0);
    QUERN_FUZZ_CHECK(watch.peak() <= 1024 * size + 65536);
    return 0;
  }
  if (kind == 1) {
    const auto bag = open_mcap(bytes, kLimits);
    if (bag.ok()) read_bag(**bag);
  } else if (kind == 2) {
    const auto bag = open_sqlite_bag(Vector<std::uint8_t>(bytes.begin(), bytes.end()), kLimits);
    if (bag.ok()) read_bag(**bag);
  } else {
    const auto unpacked = unpack_bag(bytes, kLimits);
    QUERN_FUZZ_CHECK(!unpacked.ok() || unpacked->size() <= kLimits.most_bytes);
    const auto names = files_of_metadata({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (names.ok())
      for (const String& name : *names) QUERN_FUZZ_CHECK(name.find('/') == String::npos && !name.starts_with('.'));
  }
  // Four chunks that are remembered, one that is being unpacked, the index; and what points become of messages.
  QUERN_FUZZ_CHECK(watch.peak() <= 64 * kLimits.most_bytes + 1024 * size);
  return 0;
}
