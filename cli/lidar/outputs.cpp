// Bags and arrays of images.
#include "cli/lidar/outputs.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <unistd.h>

#include <fmt/format.h>

#include "cli/files/byte_streams.h"
#include "cli/files/file_names.h"
#include "cli/files/memory.h"
#include "cli/files/safe_file.h"
#include "lidar/bags/mcap_writer.h"
#include "lidar/images/range_cloud.h"

namespace quern::cli {
namespace {

/// Frames without a time are so far apart, as most sensors turn.
constexpr std::int64_t kFrameNs = 100'000'000;

/// A safe file, or standard output.
class OneFile {
 public:
  OneFile(const std::string& path, const LidarArgs& args, const std::string& drive) : path_(path) {
    if (path != "-") file_.emplace(path, SafeFile::Options{.replace = args.force, .mode = mode_like(drive)});
    sink_.emplace(file_ ? file_->descriptor() : STDOUT_FILENO);
  }
  FdSink& sink() { return *sink_; }
  void check_written(const Status& status) const {
    if (status.ok()) return;
    if (sink_->error() != 0) fail(Exit::io, fmt::format("{}: cannot write: {}", path_, errno_text(sink_->error())));
    fail_status(status, Phase::encode, path_);
  }
  void commit() {
    if (file_) file_->commit();
  }

 private:
  std::string path_;
  std::optional<SafeFile> file_;
  std::optional<FdSink> sink_;
};

class BagOutput final : public AllFrames {
 public:
  BagOutput(const LidarArgs& args, const std::string& drive)
      : args_(args),
        drive_(drive),
        most_bytes_(memory_limit(args.run) / 4),
        file_(args.output, args, drive),
        writer_(file_.sink()) {}

  void add(DecodedFrame frame, Vector<String>& left_out) override {
    const auto& time = frame.description->time_stamp;
    without_time_ += time ? 0 : 1;
    auto message =
        lidar::write_point_cloud2(frame.cloud, time.value_or(static_cast<std::int64_t>(frame.index) * kFrameNs),
                                  args_.topic.empty() ? "/points" : args_.topic, most_bytes_);
    if (!message.ok()) fail_writing(drive_, frame.index, *frame.description, message.status());
    left_out = message->left_out;
    file_.check_written(writer_.add(*message));
  }
  std::uint64_t finish() override {
    file_.check_written(writer_.finish());
    file_.commit();
    return writer_.bytes();
  }
  std::string note() const override {
    if (without_time_ == 0) return {};
    return fmt::format("{}: {} frames have no time; their stamps are 0.1 s apart", args_.output, without_time_);
  }

 private:
  const LidarArgs& args_;
  std::string drive_;
  std::uint64_t most_bytes_;  ///< of a message: the writer holds it twice more, and packed
  OneFile file_;
  lidar::McapWriter writer_;
  std::uint64_t without_time_ = 0;
};

class ImageOutput final : public AllFrames {
 public:
  ImageOutput(const LidarArgs& args, const std::string& drive) : drive_(drive) {
    outputs_.push_back({lidar::kRangeColumn, std::make_unique<OneFile>(args.output, args, drive)});
    for (const auto& [name, path] : args.channels)
      outputs_.push_back({name, std::make_unique<OneFile>(path, args, drive)});
  }

  void add(DecodedFrame frame, Vector<String>& left_out) override {
    if (frame.description->kind != lidar::CodedKind::projected)
      fail(Exit::usage,
           fmt::format("{}: {} has no range image; those come back from drives that mode exact made of them", drive_,
                       frame_text(frame.index, *frame.description)));
    for (const Output& output : outputs_) {
      const lidar::CloudColumn* const column = frame.cloud.column(output.column.c_str());
      if (column == nullptr)
        fail(Exit::usage, fmt::format("--channel {}: {}: {} has no such column", output.column, drive_,
                                      frame_text(frame.index, *frame.description)));
      output.file->check_written(output.file->sink().write(column->values));
    }
    for (const auto& column : frame.cloud.columns) {
      const bool is_written = std::any_of(outputs_.begin(), outputs_.end(),
                                          [&](const Output& output) { return plain(column.name) == output.column; });
      if (!is_written) left_out.push_back(column.name);
    }
  }
  std::uint64_t finish() override {
    std::uint64_t bytes = 0;
    for (const Output& output : outputs_) {
      output.file->commit();
      bytes += output.file->sink().bytes();
    }
    return bytes;
  }

 private:
  struct Output {
    std::string column;
    std::unique_ptr<OneFile> file;
  };
  std::string drive_;
  std::vector<Output> outputs_;
};

/// Whether two names are of one file, or of one that is to be made. What is there and no regular file, such as
/// /dev/null, takes several outputs.
bool is_same_output(const std::string& a, const std::string& b) {
  std::error_code error;
  if (std::filesystem::exists(a, error) && !std::filesystem::is_regular_file(a, error)) return false;
  if (std::filesystem::equivalent(a, b, error)) return true;
  std::error_code of_a, of_b;
  const auto full_a = std::filesystem::weakly_canonical(std::filesystem::absolute(a, of_a), of_a);
  const auto full_b = std::filesystem::weakly_canonical(std::filesystem::absolute(b, of_b), of_b);
  return of_a || of_b ? a == b : full_a == full_b;
}

/// The images beside the ranges are outputs as -o is.
void check_channels(const LidarArgs& args, const std::string& drive) {
  std::vector<std::string> known = {args.output};
  for (const auto& [name, path] : args.channels) {
    if (path == "-")
      fail(Exit::usage, fmt::format("--channel {}=-: images beside ranges are written to files; name one", name));
    check_output(drive, path, args.force, "--channel");
    for (const std::string& other : known)
      if (is_same_output(other, path))
        fail(Exit::usage,
             fmt::format("--channel {}={}: is the same file as the output {}; name another", name, path, other));
    known.push_back(path);
  }
}

}  // namespace

void fail_writing(const std::string& drive, std::uint64_t index, const lidar::FrameDescription& description,
                  const Status& status) {
  const Phase phase = status.code() == StatusCode::corrupt ? Phase::decode : Phase::encode;
  fail(exit_for(status, phase), fmt::format("{}: {}: {}{}", drive, frame_text(index, description), status.text(),
                                            status.code() == StatusCode::memory_limit ? "; raise --memory" : ""));
}

std::unique_ptr<AllFrames> open_all_frames(const LidarArgs& args, const std::string& drive) {
  const bool by_name = args.format.empty() && !is_directory(args.output);
  const bool is_bag = by_name ? args.output.ends_with(".mcap") : args.format == "mcap";
  const bool is_image = by_name ? args.output.ends_with(".u32") : args.format == "u32";
  if (!args.channels.empty() && !is_image)
    fail(Exit::usage, "--channel: images beside ranges are written with them, as in -o range.u32");
  if (!is_bag && !is_image) return nullptr;
  if (is_directory(args.output) || args.output.ends_with('/'))
    fail(Exit::usage, fmt::format("-o {}: {} one file; name it, as in -o {}", args.output,
                                  is_bag ? "a bag is" : "range images are", is_bag ? "back.mcap" : "range.u32"));
  if (is_bag) return std::make_unique<BagOutput>(args, drive);
  check_channels(args, drive);
  return std::make_unique<ImageOutput>(args, drive);
}

}  // namespace quern::cli
