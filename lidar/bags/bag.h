// Bags of ROS 2: messages of topics in a file, either MCAP or an SQLite database (.db3).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <tuple>

#include <quern/memory.h>
#include <quern/status.h>

namespace quern::lidar {

inline constexpr std::string_view kPointCloud2 = "sensor_msgs/msg/PointCloud2";

struct BagTopic {
  String name;
  String type;      ///< of its messages, as "sensor_msgs/msg/PointCloud2"
  String encoding;  ///< of their bytes: "cdr"
  std::uint64_t messages = 0;

  bool has_clouds() const { return type == kPointCloud2; }
};

/// The bytes live as long as the message and, for messages that lie unpacked in an MCAP file, the file's memory.
struct BagMessage {
  std::shared_ptr<const Vector<std::uint8_t>> owner;
  std::span<const std::uint8_t> bytes;
  std::int64_t log_time = 0;  ///< nanoseconds
};

struct BagLimits {
  /// Of an unpacked chunk, of a message, of the index of a file, and of an unpacked file: each fails with
  /// `memory_limit` beyond it. Chunks that a bag remembers fit into it together.
  std::uint64_t most_bytes = UINT64_C(1) << 30;
};

/// An open bag. Messages of a topic are in order of log time; of equal times, as they were written.
class Bag {
 public:
  Bag() = default;
  Bag(const Bag&) = delete;
  Bag& operator=(const Bag&) = delete;
  virtual ~Bag() = default;

  /// Sorted by name.
  const Vector<BagTopic>& topics() const { return topics_; }
  /// Whether the file ends in the middle of a record, or without its end: what is whole can be read.
  bool is_cut() const { return is_cut_; }
  /// Message `index` of topics()[topic], which has clouds. Several threads may call it. Fails with `corrupt` where the
  /// bytes are damaged.
  virtual Result<BagMessage> read(std::size_t topic, std::uint64_t index) = 0;

 protected:
  /// The topic of that name and type, which is added where it is not there. Keeps each text twice.
  std::size_t topic_at(std::string_view name, std::string_view type, std::string_view encoding);
  /// To be called before topics_ is sorted: topics are found no more.
  void end_topics() { numbers_.clear(); }

  /// Counts what the index of the bag takes. Fails with `memory_limit`.
  Status take_index(std::uint64_t bytes, const BagLimits& limits);

  Vector<BagTopic> topics_;
  bool is_cut_ = false;

 private:
  std::uint64_t index_bytes_ = 0;
  std::map<std::tuple<String, String, String>, std::size_t> numbers_;  ///< of topics, by what they are
};

enum class BagFormat : std::uint8_t { none, mcap, sqlite, zstd };
/// By the first bytes; zstd is a packed file, perhaps of a bag.
BagFormat bag_format_of(std::span<const std::uint8_t> bytes);
/// By the end of the name: .mcap .db3, and the same with .zstd behind it.
bool is_bag_name(std::string_view path);

/// Opens an MCAP file, whose memory outlives the bag. Any bytes are safe. Reads all of it once: O(bytes).
Result<std::unique_ptr<Bag>> open_mcap(std::span<const std::uint8_t> file, const BagLimits& limits);
/// Opens a database. Any file is safe. Fails with `unsupported` in a build without SQLite.
Result<std::unique_ptr<Bag>> open_sqlite_bag(const char* path, const BagLimits& limits);
Result<std::unique_ptr<Bag>> open_sqlite_bag(Vector<std::uint8_t> file, const BagLimits& limits);
/// A file that rosbag2 packed as a whole.
Result<Vector<std::uint8_t>> unpack_bag(std::span<const std::uint8_t> file, const BagLimits& limits);

/// Names of the bag's files, in order, of a metadata.yaml of rosbag2: the list behind relative_file_paths. Fails with
/// `corrupt` where there is none or a name has a folder.
Result<Vector<String>> files_of_metadata(std::string_view yaml);

}  // namespace quern::lidar
