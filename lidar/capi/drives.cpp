// Drives through the C interface: frames are coded when they are added; the file is written at the end.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>

#include "libcompress/capi/versioned.h"
#include "lidar/capi/call.h"
#include "lidar/cloud/length.h"
#include "lidar/history/places.h"
#include "lidar/locate/rigid.h"

namespace capi = quern::lidar::capi;
namespace lidar = quern::lidar;
using quern::Status;
using quern::StatusCode;
using quern::String;

namespace {

template <class Handle>
struct Destroy {
  void operator()(Handle* handle) const { quern::capi::destroy_handle(handle); }
};
template <class Handle>
using Owned = std::unique_ptr<Handle, Destroy<Handle>>;

Status invalid(const char* what) { return Status(StatusCode::invalid_argument, what); }

Status read_writer_desc(const quern_lidar_writer_desc* given, quern_lidar_writer& out) {
  quern_lidar_writer_desc desc = QUERN_LIDAR_WRITER_DESC_INIT;
  if (given != nullptr) QUERN_RETURN_IF_ERROR(quern::capi::read_struct(given, desc));
  if (desc.mode < QUERN_LIDAR_SET || desc.mode > QUERN_LIDAR_EXACT)
    return invalid("the mode is none of QUERN_LIDAR_SET, _POINTS, _EXACT");
  if (desc.reserved != 0 || desc.reserved2 != 0) return invalid("a reserved member is not 0");
  out.options.mode = static_cast<lidar::Mode>(desc.mode);
  out.options.max_error_nm = lidar::nanometres_of(desc.max_error);
  out.replace = desc.replace != 0;
  if (desc.key_frames == 0 || desc.key_frames > lidar::kMostKeyDistance) return invalid("key_frames must be 1 to 64");
  out.key_every = desc.key_frames;
  out.history = desc.history;
  const bool bounded = desc.mode != QUERN_LIDAR_EXACT;
  if (bounded && (out.options.max_error_nm == 0 || out.options.max_error_nm > lidar::kMostMaxErrorNm))
    return invalid("max_error must be above 0 and at most 104 metres");
  return {};
}

/// The number in decimal, as a name.
String numbered(std::uint64_t number) {
  std::array<char, 24> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  String out(text.data(), end);
  return out.size() < 6 ? String(6 - out.size(), '0') + out : out;
}

Status read_frame(const quern_lidar_frame* given, std::uint64_t number, lidar::FrameDescription& out) {
  quern_lidar_frame frame = QUERN_LIDAR_FRAME_INIT;
  if (given != nullptr) QUERN_RETURN_IF_ERROR(quern::capi::read_struct(given, frame));
  out.name = frame.name != nullptr ? String(frame.name) : numbered(number);
  if (!lidar::is_frame_name(out.name)) return invalid("the name of a frame could not be a file's");
  if (frame.has_time != 0) out.time_stamp = frame.time_ns;
  return {};
}

/// The history's newest epoch. `report` keeps what the history said.
Status find_epoch(quern_lidar_writer& writer, lidar::Report& report) {
  if (writer.history == nullptr) return {};
  const std::lock_guard lock(writer.history->mutex);
  QUERN_ASSIGN_OR_RETURN(const auto names, writer.history->tiles->history().epochs(report));
  if (!names.empty()) writer.epoch = names.back().root;
  return {};
}

/// The pose that a frame was given; all frames are given one or none is.
quern::Result<std::optional<lidar::Pose>> pose_of(const quern_lidar_frame* given, const quern_lidar_writer& writer) {
  quern_lidar_frame frame = QUERN_LIDAR_FRAME_INIT;
  if (given != nullptr) QUERN_RETURN_IF_ERROR(quern::capi::read_struct(given, frame));
  const bool is_first = writer.frames->empty();
  if (frame.pose == nullptr) {
    if (!is_first && writer.gives_poses)
      return invalid("the frames before this one have poses: this one needs one, too");
    return std::optional<lidar::Pose>();
  }
  if (!is_first && !writer.gives_poses) return invalid("the frames before this one were given no poses");
  std::array<double, 12> rows{};
  std::copy_n(frame.pose, rows.size(), rows.begin());
  const auto pose = lidar::pose_of_matrix(rows);
  if (!pose) return invalid("the pose is none: its rotation is not rigid, or it lies too far away");
  return pose;
}

/// Where a scan finds its place in the history, as `quern lidar compress` without poses does. `report` keeps what the
/// history said.
quern::Result<std::optional<lidar::Pose>> locate(quern_lidar_writer& writer, const lidar::PointCloud& cloud,
                                                 lidar::Report& report) {
  if (!writer.epoch || cloud.kind != lidar::CoordinateKind::f32) return std::optional<lidar::Pose>();
  const std::lock_guard lock(writer.history->mutex);
  // What the history keeps of tiles outlives the writer.
  const quern::MemoryScope scope(&writer.history->memory);
  if (!writer.locator) {
    const std::uint64_t memory = writer.history->memory_limit();
    auto places = lidar::read_places(writer.history->tiles->history(), report, memory / 8);
    if (!places.ok()) return places.status();
    writer.locator.emplace(*writer.history->tiles, *writer.epoch, std::move(places).value());
  }
  return writer.locator->locate(lidar::unit_points(cloud.words));
}

/// Frames from a key frame to the next are written when they are all there. Where this throws, nothing has changed.
void close_group(quern_lidar_writer& writer) {
  if (writer.group->empty()) return;
  lidar::FrameDescription key = writer.group->front();
  quern::Vector<lidar::FrameDescription*> group;
  for (lidar::FrameDescription& description : *writer.group) group.push_back(&description);
  group.front() = &key;
  lidar::drop_unused(group);
  quern::Vector<quern::Vector<std::uint8_t>> written;
  for (const lidar::FrameDescription* const one : group) written.push_back(lidar::write_description(*one));
  const std::size_t first = writer.frames->size() - written.size();
  for (std::size_t i = 0; i < written.size(); ++i) (*writer.frames)[first + i].description = std::move(written[i]);
  writer.group->clear();
}

/// Room for one more, so that push_back() does not throw.
template <class Items>
void make_room(Items& items) {
  if (items.size() == items.capacity()) items.reserve(std::max<std::size_t>(16, 2 * items.size()));
}

quern::Result<lidar::CodedFrame> encode(quern_lidar_writer& writer, const lidar::PointCloud& cloud,
                                        const std::optional<lidar::Pose>& pose) {
  quern::RunnerHandle runner(writer.execution());
  // A first frame that failed decides nothing for the next.
  if (writer.frames->empty()) writer.posed.reset();
  if (!pose) return lidar::encode_frame(cloud, writer.options, runner.get());
  if (!writer.posed) {
    lidar::UsedHistory used;
    if (writer.epoch) used = {&writer.history->source, *writer.epoch};
    writer.posed.emplace(writer.key_every, used);
  }
  return writer.posed->encode(cloud, writer.options, *pose, runner.get());
}

std::string_view path_of(const quern_lidar_drive& drive) { return *drive.path; }
std::string_view path_of(const quern_lidar_writer& writer) { return *writer.path; }

}  // namespace

quern_status quern_lidar_writer_open(const char* path, const quern_lidar_writer_desc* desc,
                                     const quern_lidar_execution* execution, quern_lidar_writer** writer) {
  if (writer == nullptr) return capi::refuse("quern_lidar_writer_open: the place for the writer is NULL");
  *writer = nullptr;
  if (path == nullptr || *path == '\0') return capi::refuse("quern_lidar_writer_open: the path is NULL or empty");
  const auto given = capi::read_execution(execution);
  if (!given.ok()) return capi::refuse(given.status());
  Owned<quern_lidar_writer> made(capi::make<quern_lidar_writer>(*given));
  if (made == nullptr) return QUERN_ERROR_OUT_OF_MEMORY;
  lidar::Report report;
  const quern_status status = capi::call(made->memory, path, [&]() -> Status {
    QUERN_RETURN_IF_ERROR(read_writer_desc(desc, *made));
    made->path.emplace(path);
    made->frames.emplace();
    made->group.emplace();
    return find_epoch(*made, report);
  });
  if (status != QUERN_OK) return capi::tell_history(status, path, report.problem, false);
  *writer = made.release();
  return status;
}

quern_status quern_lidar_writer_add(quern_lidar_writer* writer, const quern_lidar_cloud_desc* scan,
                                    const quern_lidar_frame* frame) {
  if (writer == nullptr || writer->finished)
    return capi::refuse("quern_lidar_writer_add: the writer is NULL or finished");
  String problem;
  bool is_lost = false;
  const quern_status status = capi::call(writer->memory, *writer->path, [&]() -> Status {
    QUERN_ASSIGN_OR_RETURN(const auto cloud, capi::read_cloud_desc(scan));
    lidar::FrameDescription named;
    QUERN_RETURN_IF_ERROR(read_frame(frame, writer->frames->size(), named));
    QUERN_ASSIGN_OR_RETURN(const auto given, pose_of(frame, *writer));
    lidar::Report report;
    const auto note_lost = [&](const Status& failed) {
      problem = report.problem;
      if (problem.empty() && writer->epoch) problem = writer->history->problem();
      is_lost = !problem.empty() && lidar::is_lost(failed);
      return failed;
    };
    const auto found = given ? quern::Result(given) : locate(*writer, cloud, report);
    if (!found.ok()) return note_lost(found.status());
    const std::optional<lidar::Pose>& pose = *found;
    make_room(*writer->frames);
    make_room(*writer->group);
    if (writer->posed && writer->posed->is_key_next()) close_group(*writer);
    auto encoded = encode(*writer, cloud, pose);
    if (!encoded.ok()) return note_lost(encoded.status());
    lidar::CodedFrame coded = std::move(encoded).value();
    coded.description.name = std::move(named.name);
    coded.description.time_stamp = named.time_stamp;
    quern::Vector<std::uint8_t> description;
    if (!pose) {
      description = lidar::write_description(coded.description);
      // No frame behind this one is predicted from what lies before it.
      close_group(*writer);
      writer->posed.reset();
    }
    // Nothing from here on throws, nor behind encode() where there is a pose: it has counted the frame.
    writer->frames->push_back({std::move(description), std::move(coded.scan), pose});
    writer->gives_poses = given.has_value();
    if (pose) {
      writer->uses_history = writer->uses_history || coded.description.reach.has_value();
      writer->group->push_back(std::move(coded.description));
    }
    quern_lidar_result& result = writer->result;
    if (pose && !given) ++result.located_frames;
    ++result.frames;
    result.points += coded.points;
    result.dropped_points += coded.dropped_points;
    result.achieved_error = std::max(result.achieved_error, coded.achieved_error);
    return {};
  });
  return status == QUERN_OK ? status : capi::tell_history(status, path_of(*writer), problem, is_lost);
}

quern_status quern_lidar_writer_pose(const quern_lidar_writer* writer, uint64_t index, double* pose,
                                     uint32_t* has_pose) {
  if (writer == nullptr || pose == nullptr || has_pose == nullptr)
    return capi::refuse("quern_lidar_writer_pose: the writer or a place for its answer is NULL");
  if (index >= writer->frames->size()) return capi::refuse("quern_lidar_writer_pose: there is no such frame yet");
  const auto& known = (*writer->frames)[static_cast<std::size_t>(index)].pose;
  *has_pose = known ? 1 : 0;
  if (known) std::ranges::copy(lidar::matrix_of(*known), pose);
  return QUERN_OK;
}

quern_status quern_lidar_writer_finish(quern_lidar_writer* writer, quern_lidar_result* result) {
  if (writer == nullptr || writer->finished)
    return capi::refuse("quern_lidar_writer_finish: the writer is NULL or finished");
  if (result != nullptr)
    if (const Status checked = quern::capi::check_struct(result); !checked.ok()) return capi::refuse(checked);
  lidar::Report report;
  bool is_lost = false;
  const quern_status status = capi::call(writer->memory, *writer->path, [&]() -> Status {
    writer->finished = true;
    close_group(*writer);
    if (writer->uses_history) {
      // Another process may have removed the epoch meanwhile.
      const std::lock_guard lock(writer->history->mutex);
      const auto epoch = writer->history->tiles->history().read(*writer->epoch, report);
      is_lost = !epoch.ok() && lidar::is_lost(epoch.status());
      if (!epoch.ok()) return epoch.status();
    }
    quern::Vector<lidar::StoredFrame> frames;
    for (const auto& frame : *writer->frames) frames.push_back({frame.description, frame.scan});
    capi::NewFile file;
    QUERN_RETURN_IF_ERROR(file.create(*writer->path, writer->replace));
    QUERN_ASSIGN_OR_RETURN(writer->result.file_bytes, lidar::write_drive(frames, writer->execution(), file));
    QUERN_RETURN_IF_ERROR(file.finish());
    if (result != nullptr) quern::capi::write_struct(writer->result, result);
    return {};
  });
  return status == QUERN_OK ? status : capi::tell_history(status, path_of(*writer), report.problem, is_lost);
}

void quern_lidar_writer_destroy(quern_lidar_writer* writer) { quern::capi::destroy_handle(writer); }

quern_status quern_lidar_drive_open(const char* path, const quern_lidar_execution* execution,
                                    quern_lidar_drive** drive) {
  if (drive == nullptr) return capi::refuse("quern_lidar_drive_open: the place for the drive is NULL");
  *drive = nullptr;
  if (path == nullptr || *path == '\0') return capi::refuse("quern_lidar_drive_open: the path is NULL or empty");
  const auto given = capi::read_execution(execution);
  if (!given.ok()) return capi::refuse(given.status());
  Owned<quern_lidar_drive> made(capi::make<quern_lidar_drive>(*given));
  if (made == nullptr) return QUERN_ERROR_OUT_OF_MEMORY;
  const quern_status status = capi::call(made->memory, path, [&]() -> Status {
    made->path.emplace(path);
    QUERN_RETURN_IF_ERROR(made->source.open(path));
    QUERN_ASSIGN_OR_RETURN(made->drive, lidar::Drive::open(made->source, made->execution()));
    return {};
  });
  if (status == QUERN_OK) *drive = made.release();
  return status;
}

void quern_lidar_drive_destroy(quern_lidar_drive* drive) { quern::capi::destroy_handle(drive); }

uint64_t quern_lidar_drive_frames(const quern_lidar_drive* drive) {
  return drive == nullptr ? 0 : drive->drive->frames();
}

quern_status quern_lidar_drive_inspect(quern_lidar_drive* drive, uint64_t index, quern_lidar_frame_info* info) {
  if (drive == nullptr) return capi::refuse("quern_lidar_drive_inspect: the drive is NULL");
  if (const Status checked = quern::capi::check_struct(info); !checked.ok()) return capi::refuse(checked);
  return capi::call(drive->memory, path_of(*drive), [&]() -> Status {
    const std::lock_guard lock(drive->mutex);
    QUERN_ASSIGN_OR_RETURN(const auto frame, drive->drive->describe(index));
    quern_lidar_frame_info out = QUERN_LIDAR_FRAME_INFO_INIT;
    const auto errors = lidar::frame_errors(frame.description, frame.scan);
    out.mode = static_cast<quern_lidar_mode>(frame.scan.mode);
    out.points = frame.scan.points;
    out.source_points = frame.scan.source_points;
    out.stored_bytes = frame.stored_bytes;
    out.bound = errors.bound;
    out.achieved_error = errors.achieved;
    out.has_time = frame.description.time_stamp ? 1 : 0;
    out.time_ns = frame.description.time_stamp.value_or(0);
    out.columns = static_cast<uint32_t>(frame.description.columns.size());
    if (frame.description.pose) {
      out.has_pose = 1;
      std::ranges::copy(lidar::matrix_of(*frame.description.pose), out.pose);
    }
    std::memcpy(out.name, frame.description.name.c_str(), frame.description.name.size() + 1);
    quern::capi::write_struct(out, info);
    return {};
  });
}

quern_status quern_lidar_drive_read(quern_lidar_drive* drive, uint64_t index, quern_lidar_cloud** cloud) {
  if (cloud == nullptr) return capi::refuse("quern_lidar_drive_read: the place for the cloud is NULL");
  *cloud = nullptr;
  if (drive == nullptr) return capi::refuse("quern_lidar_drive_read: the drive is NULL");
  Owned<quern_lidar_cloud> made(capi::make<quern_lidar_cloud>(drive->given()));
  if (made == nullptr) return QUERN_ERROR_OUT_OF_MEMORY;
  String problem;
  bool is_lost = false;
  const quern_status status = capi::call(made->memory, path_of(*drive), [&]() -> Status {
    const quern::Execution execution = drive->execution();
    const auto read = [&] {
      const std::lock_guard lock(drive->mutex);
      // The drive remembers frames for longer than the cloud's memory may live.
      const quern::MemoryScope scope(&drive->memory);
      auto coded = drive->drive->read_coded(index);
      if (!coded.ok() && drive->drive->misses_history()) {
        is_lost = drive->history == nullptr || lidar::is_lost(coded.status());
        if (drive->history != nullptr) problem = drive->history->problem();
      }
      return coded;
    };
    QUERN_ASSIGN_OR_RETURN(const auto coded, read());
    quern::RunnerHandle runner(execution);
    QUERN_ASSIGN_OR_RETURN(
        auto decoded, lidar::decode_frame(coded.description, coded.scan, lidar::points_within(execution.memory_limit),
                                          runner.get(), coded.prediction));
    capi::give_cloud(std::move(decoded), *made);
    return {};
  });
  if (status != QUERN_OK) return capi::tell_history(status, path_of(*drive), problem, is_lost);
  *cloud = made.release();
  return status;
}

quern_status quern_lidar_drive_verify(quern_lidar_drive* drive) {
  if (drive == nullptr) return capi::refuse("quern_lidar_drive_verify: the drive is NULL");
  return capi::call(drive->memory, path_of(*drive), [&] {
    const std::lock_guard lock(drive->mutex);
    return drive->drive->check_bytes();
  });
}
