// Bags: messages of both byte orders and with padding, MCAP files written and read, files that other programs wrote,
// hostile messages and files.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "lidar/bags/bag.h"
#include "lidar/bags/cdr.h"
#include "lidar/bags/mcap_format.h"
#include "lidar/bags/mcap_writer.h"
#include "lidar/bags/message_layout.h"
#include "lidar/bags/point_cloud2.h"
#include "tests/unit_lidar/clouds.h"
#include "tests/unit_lidar_drive/made_clouds.h"

namespace quern::lidar {
namespace {

using namespace quern::lidar_test;

constexpr std::int64_t kStamp = INT64_C(1'700'000'000'123'456'789);

/// What a message says of itself; the members are changed one by one to what does not fit.
struct Made {
  bool big_endian = false;
  std::uint32_t height = 2, width = 3, point_step = 20, row_step = 64;
  std::uint32_t data_bytes = 128;
  std::uint32_t z_offset = 8;
  std::uint8_t z_type = 7;
  std::uint32_t fields = 4;
  std::string name = "ring";
};

void put(std::uint64_t value, std::size_t width, bool big_endian, std::uint8_t* to) {
  for (std::size_t i = 0; i < width; ++i)
    to[big_endian ? width - 1 - i : i] = static_cast<std::uint8_t>(value >> (8 * i));
}

/// CDR written by this file's own code, with both the message and its data in one byte order.
Vector<std::uint8_t> message_of(const Made& made) {
  Vector<std::uint8_t> out = {0, static_cast<std::uint8_t>(made.big_endian ? 0 : 1), 0, 0};
  const auto number = [&](std::uint64_t value) {
    while (out.size() % 4 != 0) out.push_back(0);
    out.resize(out.size() + 4);
    put(value, 4, made.big_endian, out.data() + out.size() - 4);
  };
  const auto text = [&](const std::string& value) {
    number(value.size() + 1);
    out.insert(out.end(), value.begin(), value.end());
    out.push_back(0);
  };
  number(1'700'000'000);
  number(123'456'789);
  text("velodyne");
  number(made.height);
  number(made.width);
  number(made.fields);
  const auto field = [&](const std::string& name, std::uint32_t offset, std::uint8_t type) {
    text(name);
    number(offset);
    out.push_back(type);
    number(1);
  };
  field("x", 0, 7);
  field("y", 4, 7);
  field("z", made.z_offset, made.z_type);
  if (made.fields > 3) field(made.name, 16, 4);
  out.push_back(made.big_endian ? 1 : 0);
  number(made.point_step);
  number(made.row_step);
  number(made.data_bytes);
  const std::size_t begin = out.size();
  out.resize(begin + made.data_bytes, 0xEE);
  for (std::uint64_t p = 0; p < 6 && made.data_bytes == 128; ++p) {
    std::uint8_t* const at = out.data() + begin + p / 3 * 64 + p % 3 * 20;
    for (std::uint64_t axis = 0; axis < 3; ++axis)
      put(std::bit_cast<std::uint32_t>(static_cast<float>(p) + 0.25F * static_cast<float>(axis)), 4, made.big_endian,
          at + 4 * axis);
    put(100 + p, 2, made.big_endian, at + 16);
  }
  out.push_back(1);
  return out;
}

TEST(PointCloud2_RowsWithPadding_BothByteOrders_GiveTheSamePoints, OwnWriter) {
  for (const bool big_endian : {false, true}) {
    SCOPED_TRACE(big_endian);
    Made made;
    made.big_endian = big_endian;
    const auto read = read_point_cloud2(message_of(made), "/points", kStamp + 77);
    ASSERT_TRUE(read.ok()) << read.status().text();
    EXPECT_EQ(read->stamp, kStamp);
    EXPECT_EQ(read->cloud.rows, 2U);
    ASSERT_EQ(read->cloud.points(), 6U);
    ASSERT_EQ(read->cloud.columns.size(), 1U);
    EXPECT_EQ(read->cloud.columns[0].name, "ring");
    for (std::uint64_t p = 0; p < 6; ++p) {
      const auto at = read->cloud.position(p);
      EXPECT_EQ(at[0], static_cast<double>(p));
      EXPECT_EQ(at[2], static_cast<double>(p) + 0.5);
      EXPECT_EQ(element_as_double(read->cloud.columns[0], p), static_cast<double>(100 + p));
    }
    const auto written = write_point_cloud2(read->cloud, read->stamp, "/unused");
    ASSERT_TRUE(written.ok());
    EXPECT_EQ(written->topic, "/points");
    EXPECT_EQ(written->log_time, kStamp + 77);
    const auto again = read_point_cloud2(written->bytes, written->topic, written->log_time);
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(same_cloud(read->cloud, again->cloud));
    EXPECT_EQ(read->cloud.file_header, again->cloud.file_header);
  }
}

TEST(PointCloud2_WhatDoesNotFitTogether_IsRefused, OneMemberAtATime) {
  const auto refused = [](const Made& made, StatusCode code) {
    const auto read = read_point_cloud2(message_of(made), "/points", 0);
    EXPECT_FALSE(read.ok());
    if (!read.ok()) {
      EXPECT_EQ(read.status().code(), code) << read.status().text();
    }
  };
  Made made;
  made.point_step = 17;
  refused(made, StatusCode::corrupt);
  made = {};
  made.row_step = 59;
  refused(made, StatusCode::corrupt);
  made = {};
  made.data_bytes = 123;
  refused(made, StatusCode::truncated);
  made = {};
  made.height = made.width = UINT32_MAX;
  made.row_step = UINT32_MAX;
  refused(made, StatusCode::corrupt);
  made = {};
  made.width = 0x40000000;
  made.height = 1;
  refused(made, StatusCode::truncated);
  made = {};
  made.z_offset = UINT32_MAX;
  refused(made, StatusCode::corrupt);
  made = {};
  made.z_type = 9;
  refused(made, StatusCode::corrupt);
  made.z_type = 5;
  refused(made, StatusCode::unsupported);
  made = {};
  made.fields = 1'000'000;
  refused(made, StatusCode::corrupt);
  made = {};
  made.name = "a\nb";
  refused(made, StatusCode::corrupt);
  made = {};
  made.point_step = 100'000;
  made.height = 1;
  refused(made, StatusCode::unsupported);
  made.width = 0;  // without points, too: the layout is stored
  refused(made, StatusCode::unsupported);
}

TEST(PointCloud2_CutAndChanged_IsCloudOrStatus, EveryLength) {
  const auto whole = message_of({});
  for (std::size_t n = 0; n < whole.size(); ++n)
    EXPECT_FALSE(read_point_cloud2(std::span(whole).first(n), "/points", 0).ok()) << n;
  Random random(5);
  for (int i = 0; i < 20000; ++i) {
    auto changed = whole;
    for (int k = 0; k <= i % 3; ++k)
      changed[static_cast<std::size_t>(random.below(changed.size()))] = static_cast<std::uint8_t>(random.next());
    const auto read = read_point_cloud2(changed, "/points", 0);
    if (read.ok()) {
      EXPECT_LE(read->cloud.points(), changed.size());
    }
  }
}

TEST(PointCloud2_OfOtherFiles_HasPackedFields, AllKindsOfCoordinates) {
  const PointCloud scan = with_columns(small_scan(50, 1));
  for (const PointCloud& cloud : {scan, as_f64(scan), as_scaled(scan, 0.001)}) {
    const auto written = write_point_cloud2(cloud, -1, "/mine");
    ASSERT_TRUE(written.ok());
    EXPECT_EQ(written->topic, "/mine");
    EXPECT_EQ(written->log_time, 0);
    const auto read = read_point_cloud2(written->bytes, written->topic, 0);
    ASSERT_TRUE(read.ok()) << read.status().text();
    EXPECT_EQ(read->stamp, -1);
    EXPECT_EQ(read->cloud.columns.size() + written->left_out.size(), cloud.columns.size());
    for (std::uint64_t i = 0; i < cloud.points(); ++i) EXPECT_EQ(read->cloud.position(i), cloud.position(i));
  }
  EXPECT_EQ(write_point_cloud2(scan, INT64_MAX, "/mine").status().code(), StatusCode::unsupported);
}

TEST(PointCloud2_DamagedLayout_IsRefused, BytesOfADrive) {
  PointCloud cloud = read_point_cloud2(message_of({}), "/points", 0)->cloud;
  const auto whole = cloud.file_header;
  for (std::size_t n = 0; n < whole.size(); ++n) {
    cloud.file_header.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_FALSE(write_point_cloud2(cloud, 0, "/x").ok()) << n;
  }
  MessageLayout layout = *read_layout(whole);
  layout.places.push_back({9, 0, 1});
  cloud.file_header = write_layout(layout);
  EXPECT_EQ(write_point_cloud2(cloud, 0, "/x").status().code(), StatusCode::corrupt);
  layout.places.back() = {0, 18, 1};
  cloud.file_header = write_layout(layout);
  EXPECT_EQ(write_point_cloud2(cloud, 0, "/x").status().code(), StatusCode::corrupt);
  layout.places.pop_back();
  layout.point_step = kMostPointStep;
  cloud.file_header = write_layout(layout);
  EXPECT_TRUE(write_point_cloud2(cloud, 0, "/x", 6 * kMostPointStep).ok());
  EXPECT_EQ(write_point_cloud2(cloud, 0, "/x", 6 * kMostPointStep - 1).status().code(), StatusCode::memory_limit);
  cloud.file_header.clear();
  drop_attributes(cloud);
  EXPECT_TRUE(write_point_cloud2(cloud, 0, "/x").ok());
}

TEST(PointCloud2_TimesFarApart_HaveNoDelay, BothEnds) {
  for (const std::int64_t log_time : {INT64_MIN, INT64_MAX}) {
    const auto read = read_point_cloud2(message_of({}), "/points", log_time);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read_layout(read->cloud.file_header)->log_delay, 0);
  }
}

Vector<std::uint8_t> mcap_of(int messages) {
  Vector<std::uint8_t> out;
  VectorSink sink(out);
  McapWriter writer(sink);
  for (int i = 0; i < messages; ++i) {
    WrittenMessage message{message_of({}), i % 2 == 0 ? "/a" : "/b", 1000 - i, {}};
    EXPECT_TRUE(writer.add(message).ok());
  }
  EXPECT_TRUE(writer.finish().ok());
  return out;
}

TEST(Mcap_Written_IsReadInOrderOfTime, TwoTopics) {
  const auto file = mcap_of(7);
  const auto bag = open_mcap(file, {});
  ASSERT_TRUE(bag.ok()) << bag.status().text();
  EXPECT_FALSE((*bag)->is_cut());
  ASSERT_EQ((*bag)->topics().size(), 2U);
  EXPECT_EQ((*bag)->topics()[0].name, "/a");
  EXPECT_EQ((*bag)->topics()[0].messages, 4U);
  std::int64_t last = 0;
  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto message = (*bag)->read(0, i);
    ASSERT_TRUE(message.ok());
    EXPECT_GT(message->log_time, last);
    last = message->log_time;
    const auto expected = message_of({});
    EXPECT_TRUE(std::equal(message->bytes.begin(), message->bytes.end(), expected.begin(), expected.end()));
  }
}

/// First and last time of each chunk, by its record and by its index.
TEST(Mcap_IndexOfChunks_BeginsWithTheFirstMessage, TimesFromZero) {
  for (const std::int64_t first : {INT64_C(0), INT64_C(5)}) {
    Vector<std::uint8_t> out;
    VectorSink sink(out);
    McapWriter writer(sink);
    for (const std::int64_t time : {first, INT64_C(100)})
      ASSERT_TRUE(writer.add({message_of({}), "/a", time, {}}).ok());
    ASSERT_TRUE(writer.finish().ok());
    mcap::Walk walk(out, mcap::kMagic.size());
    int found = 0;
    while (const auto record = walk.next()) {
      if (record->opcode != mcap::kChunk && record->opcode != mcap::kChunkIndex) continue;
      ++found;
      Reader reader(record->content);
      EXPECT_EQ(*reader.u64(), static_cast<std::uint64_t>(first));
      EXPECT_EQ(*reader.u64(), 100U);
    }
    EXPECT_EQ(found, 2);
  }
}

TEST(Mcap_CutAndChanged_IsBagOrStatus, EveryLength) {
  const auto whole = mcap_of(3);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const auto bag = open_mcap(std::span(whole).first(n), {});
    if (bag.ok() && !(*bag)->topics().empty()) {
      EXPECT_EQ((*bag)->topics()[0].messages + (*bag)->topics()[1].messages, 3U) << n;
    }
  }
  Random random(7);
  for (int i = 0; i < 4000; ++i) {
    auto changed = whole;
    for (int k = 0; k <= i % 3; ++k)
      changed[static_cast<std::size_t>(random.below(changed.size()))] = static_cast<std::uint8_t>(random.next());
    const auto bag = open_mcap(changed, {UINT64_C(1) << 20});
    if (!bag.ok()) continue;
    for (std::size_t t = 0; t < (*bag)->topics().size(); ++t)
      for (std::uint64_t m = 0; (*bag)->topics()[t].has_clouds() && m < (*bag)->topics()[t].messages; ++m)
        EXPECT_TRUE((*bag)->read(t, m).ok());
  }
}

TEST(Mcap_AboveTheLimit_IsRefused, ChunkAndIndex) {
  const auto file = mcap_of(40);
  EXPECT_EQ(open_mcap(file, {4000}).status().code(), StatusCode::memory_limit);
}

Vector<std::uint8_t> golden(const std::string& name) {
  std::ifstream file(std::string(QUERN_GOLDEN_BAGS) + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Files that the packages mcap and rosbags wrote; their three scans are the same.
TEST(Bags_OfOtherPrograms_HoldTheSameScans, GoldenFiles) {
  Vector<PointCloud> first;
  std::string left_out;
  for (const char* const name : {"lz4.mcap", "zstd.mcap", "rosbag2/bag_0.db3.zstd"}) {
    SCOPED_TRACE(name);
    auto file = golden(name);
    ASSERT_FALSE(file.empty());
    const bool is_packed = bag_format_of(file) == BagFormat::zstd;
    if (is_packed) file = *unpack_bag(file, {});
    const auto bag = is_packed ? open_sqlite_bag(file, {}) : open_mcap(file, {});
    if (!bag.ok() && bag.status().code() == StatusCode::unsupported) {  // built without the library
      left_out.append(" ").append(name);
      continue;
    }
    ASSERT_TRUE(bag.ok()) << bag.status().text();
    ASSERT_EQ((*bag)->topics().size(), 2U);
    const BagTopic& topic = (*bag)->topics()[1];
    EXPECT_EQ(topic.name, "/points");
    EXPECT_TRUE(topic.has_clouds());
    ASSERT_EQ(topic.messages, 3U);
    for (std::uint64_t i = 0; i < 3; ++i) {
      const auto message = (*bag)->read(1, i);
      ASSERT_TRUE(message.ok()) << message.status().text();
      const auto read = read_point_cloud2(message->bytes, topic.name, message->log_time);
      ASSERT_TRUE(read.ok()) << read.status().text();
      EXPECT_EQ(read->stamp, INT64_C(1'700'000'000'000'000'000) + static_cast<std::int64_t>(i) * 100'000'000);
      EXPECT_EQ(message->log_time, read->stamp + 5000);
      EXPECT_EQ(read->cloud.points(), 48U);
      EXPECT_EQ(read->cloud.columns.size(), 3U);
      if (first.size() == i) first.push_back(read->cloud);
      EXPECT_TRUE(same_cloud(first[i], read->cloud));
    }
  }
  if (!left_out.empty()) GTEST_SKIP() << "built without the libraries of" << left_out;
}

TEST(Sqlite_CutAndChanged_IsBagOrStatus, GoldenFile) {
  const auto whole = *unpack_bag(golden("rosbag2/bag_0.db3.zstd"), {});
  if (open_sqlite_bag(whole, {}).status().code() == StatusCode::unsupported) GTEST_SKIP() << "built without SQLite";
  Random random(9);
  for (int i = 0; i < 1500; ++i) {
    auto changed = whole;
    for (int k = 0; k <= i % 4; ++k)
      changed[static_cast<std::size_t>(random.below(changed.size()))] = static_cast<std::uint8_t>(random.next());
    if (i % 7 == 0) changed.resize(static_cast<std::size_t>(random.below(changed.size())));
    const auto bag = open_sqlite_bag(changed, {UINT64_C(1) << 20});
    if (!bag.ok()) continue;
    for (std::size_t t = 0; t < (*bag)->topics().size(); ++t)
      for (std::uint64_t m = 0; (*bag)->topics()[t].has_clouds() && m < (*bag)->topics()[t].messages; ++m) {
        const auto message = (*bag)->read(t, m);
        if (message.ok()) (void)read_point_cloud2(message->bytes, "/points", 0).ok();
      }
  }
}

TEST(Metadata_ListOfFiles_IsRead, AndNamesOfOtherFoldersAreNot) {
  const auto names = files_of_metadata(
      "rosbag2_bagfile_information:\n  relative_file_paths:\n    - bag_0.mcap\n    - \"bag 1.mcap\"\n  version: 8\n"
      "  - other\n");
  ASSERT_TRUE(names.ok());
  ASSERT_EQ(names->size(), 2U);
  EXPECT_EQ((*names)[1], "bag 1.mcap");
  for (const char* const text : {"", "relative_file_paths:\n", "relative_file_paths:\n- ../a.db3\n",
                                 "relative_file_paths:\n- /etc/passwd\n", "relative_file_paths:\n- .\n"})
    EXPECT_FALSE(files_of_metadata(text).ok()) << text;
}

}  // namespace
}  // namespace quern::lidar
