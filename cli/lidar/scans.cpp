// Inputs of quern lidar: files and folders of scans, and bags.
#include "cli/lidar/scans.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "cli/files/byte_streams.h"
#include "cli/files/file_names.h"
#include "cli/files/memory.h"
#include "cli/lidar/verb.h"
#include "lidar/bags/point_cloud2.h"
#include "lidar/cloud/zero_points.h"
#include "lidar/drive/frame_description.h"
#include "lidar/files/cloud_files.h"

namespace quern::cli {
namespace {

constexpr const char* kMetadata = "metadata.yaml";

/// Damaged files of other programs are inputs that cannot be read, not bad streams.
Exit exit_for_input(const Status& status) {
  if (status.code() == StatusCode::invalid_argument) return Exit::usage;
  const Exit code = exit_for(status, Phase::decode);
  return code == Exit::stream ? Exit::io : code;
}

/// `memory_advice`: what to do where memory does not suffice.
[[noreturn]] void fail_input(const std::string& where, const Status& status,
                             const char* memory_advice = "; raise --memory") {
  const char* const advice = status.code() == StatusCode::memory_limit ? memory_advice
                             : status.code() == StatusCode::truncated  ? "; fetch or write the file again"
                                                                       : "";
  fail(exit_for_input(status), where + ": " + status.text() + advice);
}

/// The files of a bag of rosbag2, in the order of its metadata.
std::vector<std::string> files_of_bag(const std::string& folder) {
  const std::string metadata = in_folder(folder, kMetadata);
  const Mapping mapping = Mapping::of_file(metadata);
  const auto names =
      lidar::files_of_metadata({reinterpret_cast<const char*>(mapping.bytes().data()), mapping.bytes().size()});
  if (!names.ok()) fail_input(metadata, names.status());
  std::vector<std::string> out;
  for (const String& name : *names) {
    const std::string path = in_folder(folder, plain(name));
    const std::string packed = path + ".zstd";
    out.push_back(!is_there(path) && is_there(packed) ? packed : path);
  }
  return out;
}

std::vector<std::string> files_of_folder(const std::string& folder) {
  if (is_there(in_folder(folder, kMetadata))) return files_of_bag(folder);
  std::vector<std::string> out;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string path = entry->path().string();
    std::error_code ignored;
    const bool is_scan = lidar::format_of_name(path) != lidar::FileFormat::unknown || lidar::is_bag_name(path);
    if (is_scan && entry->is_regular_file(ignored)) out.push_back(path);
  }
  if (error) fail(Exit::io, fmt::format("{}: cannot list the folder: {}", folder, error.message()));
  if (out.empty()) fail(Exit::io, folder + ": the folder has no .bin .pcd .ply .npy .las .mcap or .db3 files");
  std::sort(out.begin(), out.end());
  return out;
}

std::string topics_text(const std::vector<const lidar::BagTopic*>& topics) {
  constexpr std::size_t kMost = 4;
  std::string out;
  for (std::size_t i = 0; i < std::min(topics.size(), kMost); ++i) out += (i == 0 ? "" : ", ") + plain(topics[i]->name);
  if (topics.size() > kMost) out += fmt::format(" and {} more", topics.size() - kMost);
  return out;
}

}  // namespace

bool is_bag_file(const std::string& path) {
  if (path == "-" || lidar::format_of_name(path) != lidar::FileFormat::unknown || is_directory(path)) return false;
  if (lidar::is_bag_name(path)) return true;
  if (!is_there(path)) return false;
  return lidar::bag_format_of(Mapping::of_file(path).bytes()) != lidar::BagFormat::none;
}

namespace {

/// A bag and what it lies in, which is destroyed after it.
struct OpenFile {
  Mapping mapping;
  Vector<std::uint8_t> unpacked;
  std::unique_ptr<lidar::Bag> bag;
};

std::shared_ptr<lidar::Bag> open_bag_file(const std::string& path, const RunArgs& run) {
  auto out = std::make_shared<OpenFile>();
  out->mapping = Mapping::of_file(path);
  const lidar::BagLimits limits{memory_limit(run) / 4};
  std::span<const std::uint8_t> bytes = out->mapping.bytes();
  auto format = lidar::bag_format_of(bytes);
  const bool is_packed = format == lidar::BagFormat::zstd;
  if (is_packed) {
    auto unpacked = lidar::unpack_bag(bytes, limits);
    if (!unpacked.ok()) fail_input(path, unpacked.status());
    out->unpacked = std::move(unpacked).value();
    bytes = out->unpacked;
    format = lidar::bag_format_of(bytes);
  }
  const auto open = [&]() -> Result<std::unique_ptr<lidar::Bag>> {
    if (format == lidar::BagFormat::mcap) return lidar::open_mcap(bytes, limits);
    if (format == lidar::BagFormat::sqlite && is_packed)
      return lidar::open_sqlite_bag(std::move(out->unpacked), limits);
    if (format == lidar::BagFormat::sqlite) return lidar::open_sqlite_bag(path.c_str(), limits);
    return Status(StatusCode::unsupported, "this is no bag of ROS 2: neither an MCAP file nor an SQLite database");
  };
  auto opened = open();
  if (!opened.ok()) fail_input(path, opened.status());
  out->bag = std::move(opened).value();
  lidar::Bag* const bag = out->bag.get();
  return {std::move(out), bag};
}

bool is_same_list(const Vector<lidar::BagTopic>& a, const Vector<lidar::BagTopic>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.name == y.name && x.type == y.type && x.encoding == y.encoding && x.messages == y.messages;
  });
}

}  // namespace

BagFile::BagFile(const std::string& path, const RunArgs& run) : path_(path), run_(run) {
  bag_ = open_bag_file(path, run);
  topics_ = bag_->topics();
  is_cut_ = bag_->is_cut();
  if (is_cut_ && !run.quiet) print_note(path + ": the file has no end, as after a crash; what is whole of it is read");
}

std::shared_ptr<lidar::Bag> BagFile::open() {
  if (bag_ != nullptr) return bag_;
  auto bag = open_bag_file(path_, run_);
  if (!is_same_list(bag->topics(), topics_))
    fail(Exit::io, path_ + ": the bag was changed while it was read; try again when nobody writes it");
  bag_ = std::move(bag);
  return bag_;
}

std::vector<std::string> scan_files(const std::vector<std::string>& inputs) {
  std::vector<std::string> out;
  for (const std::string& input : inputs) {
    if (input == "-") fail(Exit::usage, "-: scans are read from files, whose names tell their formats");
    if (!is_directory(input)) {
      out.push_back(input);
      continue;
    }
    const auto more = files_of_folder(input);
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

Scans::Scans(const std::vector<std::string>& inputs, const LidarArgs& args) : args_(args), files_(scan_files(inputs)) {
  if (!args.channels.empty() && files_.size() != 1)
    fail(Exit::usage,
         fmt::format("--channel: names the images beside those of one file, but there are {}", files_.size()));
  for (const std::string& path : files_) {
    Source& source = sources_.emplace_back();
    if (!args.sensor.empty()) {
      source.images = std::make_unique<RangeFiles>(path, args);
    } else if (is_bag_file(path)) {
      if (open_ != nullptr) open_->close();
      source.bag = std::make_unique<BagFile>(path, args.run);
      open_ = source.bag.get();
    }
  }
  choose_topics();
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const std::uint64_t scans = sources_[i].scans();
    for (std::uint64_t number = 0; number < scans; ++number) places_.push_back({i, number});
  }
  if (places_.empty() && !sources_.empty()) fail(Exit::io, files_.front() + ": the topic has no messages");
}

std::uint64_t Scans::Source::scans() const {
  if (images != nullptr) return images->size();
  if (bag == nullptr) return 1;
  return topic ? bag->topics()[*topic].messages : 0;
}

void Scans::choose_topics() {
  std::map<std::string, std::uint64_t> known;  // messages by topic with scans
  std::vector<const lidar::BagTopic*> all;
  const std::string* first = nullptr;
  for (const Source& source : sources_) {
    if (source.bag == nullptr) continue;
    if (first == nullptr) first = &source.bag->path();
    for (const lidar::BagTopic& topic : source.bag->topics()) {
      all.push_back(&topic);
      if (topic.has_clouds()) known[plain(topic.name)] += topic.messages;
    }
  }
  if (first == nullptr) return;
  std::string list;
  for (const auto& [name, messages] : known)
    list += fmt::format("{}{} ({} messages)", list.empty() ? "" : ", ", name, messages);
  if (known.empty())
    fail(Exit::io, fmt::format("{}: has no topic of {} messages{}", *first, lidar::kPointCloud2,
                               all.empty() ? "" : "; its topics: " + topics_text(all)));
  std::string chosen = args_.topic;
  if (chosen.empty() && known.size() > 1)
    fail(Exit::usage, fmt::format("{}: has scans of several topics; choose one with --topic: {}", *first, list));
  if (chosen.empty()) chosen = known.begin()->first;
  if (known.find(chosen) == known.end())
    fail(Exit::usage, fmt::format("--topic {}: {} has no such topic of {} messages; it has {}", chosen, *first,
                                  lidar::kPointCloud2, list));
  for (Source& source : sources_) {
    if (source.bag == nullptr) continue;
    const auto& topics = source.bag->topics();
    for (std::size_t i = 0; i < topics.size(); ++i) {
      if (!topics[i].has_clouds() || plain(topics[i].name) != chosen) continue;
      if (topics[i].encoding != "cdr")
        fail(Exit::io, fmt::format("{}: topic {}: the messages are encoded as {}; cdr, of ROS 2, is read",
                                   source.bag->path(), chosen, plain(topics[i].encoding)));
      source.topic = i;
    }
  }
}

std::string Scans::label(std::size_t i) const {
  const Place& place = places_[i];
  const Source& source = sources_[place.file];
  if (source.images != nullptr) return fmt::format("{}: image {}", files_[place.file], place.number);
  if (source.bag == nullptr) return files_[place.file];
  return fmt::format("{}: topic {}: message {}", files_[place.file], plain(source.bag->topics()[*source.topic].name),
                     place.number);
}

std::string Scans::frame_name(std::size_t i) const {
  const Place& place = places_[i];
  if (sources_[place.file].bag != nullptr || sources_[place.file].images != nullptr) return fmt::format("{:06}", i);
  std::string name = base_name(files_[place.file]);
  const std::size_t dot = name.rfind('.');
  if (dot != std::string::npos && dot > 0 && lidar::format_of_name(name) != lidar::FileFormat::unknown)
    name.resize(dot);
  return plain(lidar::frame_name_of(name));
}

std::shared_ptr<lidar::Bag> Scans::open_bag(const Source& source) const {
  const std::lock_guard lock(mutex_);
  if (open_ != source.bag.get()) open_->close();
  open_ = source.bag.get();
  return open_->open();
}

std::size_t Scans::side_by_side() const {
  const bool has_several =
      args_.work == LidarWork::verify || (args_.work == LidarWork::compress && !args_.is_in_turn());
  return has_several ? std::max<std::size_t>(std::min(thread_count(args_.run), size()), 1) : 1;
}

Scan Scans::read(std::size_t i) const {
  Scan out = read_all(i);
  if (args_.drops_zeros) out.dropped_zeros = lidar::drop_zero_points(out.cloud);
  return out;
}

Scan Scans::read_all(std::size_t i) const {
  const Place& place = places_[i];
  const Source& source = sources_[place.file];
  if (source.images != nullptr) return {source.images->read(place.number), std::nullopt, 0};
  if (source.bag == nullptr) {
    const std::string& path = files_[place.file];
    const Mapping mapping = Mapping::of_file(path);
    const std::size_t shares = side_by_side();
    auto cloud = lidar::read_cloud(path, mapping.bytes(), {args_.bin_columns, memory_limit(args_.run) / shares});
    if (!cloud.ok()) fail_input(path, cloud.status(), memory_advice(shares));
    return {std::move(cloud).value(), std::nullopt, 0};
  }
  const auto bag = open_bag(source);
  const auto message = bag->read(*source.topic, place.number);
  if (!message.ok()) fail_input(label(i), message.status());
  auto read = lidar::read_point_cloud2(message->bytes, source.bag->topics()[*source.topic].name, message->log_time);
  if (!read.ok()) fail_input(label(i), read.status());
  return {std::move(read->cloud), read->stamp, 0};
}

void Scans::tell_left_out() const {
  if (args_.run.quiet) return;
  for (const Source& source : sources_) {
    if (source.bag == nullptr) continue;
    std::vector<const lidar::BagTopic*> others;
    std::uint64_t messages = 0;
    const auto& topics = source.bag->topics();
    for (std::size_t i = 0; i < topics.size(); ++i) {
      if (source.topic && i == *source.topic) continue;
      others.push_back(&topics[i]);
      messages += topics[i].messages;
    }
    if (others.empty()) continue;
    print_note(fmt::format("{}: other topics were left out ({}, {} messages); a drive holds the scans of one topic",
                           source.bag->path(), topics_text(others), messages));
  }
}

}  // namespace quern::cli
