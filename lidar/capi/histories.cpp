// Histories through the C interface: making, opening, adding drives, and tiles for drives and writers.
#include <algorithm>
#include <cmath>
#include <memory>

#include "libcompress/capi/versioned.h"
#include "lidar/capi/call.h"
#include "lidar/history/addition.h"

namespace capi = quern::lidar::capi;
namespace lidar = quern::lidar;
using quern::MemoryScope;
using quern::Status;
using quern::StatusCode;
using quern::String;

namespace {

struct DestroyHistory {
  void operator()(quern_lidar_history* history) const { quern::capi::destroy_handle(history); }
};

Status invalid(const char* what) { return Status(StatusCode::invalid_argument, what); }

Status read_history_desc(const quern_lidar_history_desc* given, lidar::HistoryOptions& out) {
  quern_lidar_history_desc desc = QUERN_LIDAR_HISTORY_DESC_INIT;
  if (given != nullptr) QUERN_RETURN_IF_ERROR(quern::capi::read_struct(given, desc));
  if (desc.reserved != 0) return invalid("a reserved member is not 0");
  if (!(desc.resolution > 0 && desc.resolution < 100)) return invalid("the resolution must be above 0 and below 100 m");
  out.cell_units = static_cast<std::uint32_t>(std::lround(desc.resolution * 10000));
  out.most_bytes = desc.max_size;
  return {};
}

/// Decoded frames of a drive, with their poses, into an addition. The drive's mutex is held.
Status collect(quern_lidar_drive& drive, lidar::Addition& addition) {
  const quern::Execution execution = drive.execution();
  quern::RunnerHandle runner(execution);
  // The drive may outlive the history, in whose memory this call runs.
  const auto read = [&](std::uint64_t i) {
    const MemoryScope scope(&drive.memory);
    return drive.drive->read_coded(i);
  };
  for (std::uint64_t i = 0; i < drive.drive->frames(); ++i) {
    QUERN_ASSIGN_OR_RETURN(const auto coded, read(i));
    if (!coded.description.pose)
      return Status(StatusCode::invalid_argument, "frame {0} of the drive has no pose", static_cast<std::int64_t>(i));
    QUERN_ASSIGN_OR_RETURN(const auto cloud, lidar::decode_frame(coded.description, coded.scan,
                                                                 lidar::points_within(execution.memory_limit),
                                                                 runner.get(), coded.prediction));
    if (cloud.kind != lidar::CoordinateKind::f32)
      return Status(StatusCode::invalid_argument, "frame {0} of the drive has no 32-bit coordinates in metres",
                    static_cast<std::int64_t>(i));
    {
      const MemoryScope scope(&drive.memory);
      drive.drive->remember(i, coded.description, cloud);
    }
    QUERN_RETURN_IF_ERROR(addition.add(*coded.description.pose, lidar::unit_points(cloud.words)));
  }
  return {};
}

}  // namespace

Status quern_lidar_history::Source::add_tiles(const quern::storage::ContentHash& epoch, std::uint64_t reach,
                                              const lidar::Pose& pose, lidar::ScanPredictor& predictor) {
  const std::lock_guard lock(history_.mutex);
  const MemoryScope scope(&history_.memory);
  return history_.tiles->add_tiles(epoch, reach, pose, predictor);
}

String quern_lidar_history::problem() {
  const std::lock_guard lock(mutex);
  return tiles->report().problem;
}

quern_status capi::tell_history(quern_status status, std::string_view where, std::string_view problem,
                                bool is_lost) noexcept {
  if (!problem.empty()) {
    try {
      thread_error().set(where.empty() ? String(problem) : quern::storage::join({where, ": ", problem}));
    } catch (const std::bad_alloc&) {
      thread_error().set(problem);
    }
  }
  return is_lost ? static_cast<quern_status>(QUERN_LIDAR_ERROR_NO_HISTORY) : status;
}

quern_status quern_lidar_history_create(const char* folder, const quern_lidar_history_desc* desc) {
  if (folder == nullptr || *folder == '\0')
    return capi::refuse("quern_lidar_history_create: the folder is NULL or empty");
  capi::HandleBase base(quern_allocator{nullptr, nullptr, nullptr});
  lidar::Report report;
  const quern_status status = capi::call(base.memory, folder, [&]() -> Status {
    lidar::HistoryOptions options;
    QUERN_RETURN_IF_ERROR(read_history_desc(desc, options));
    return lidar::History::init(quern::storage::system_files(), String(folder), options, report);
  });
  return status == QUERN_OK ? status : capi::tell_history(status, "", report.problem, false);
}

quern_status quern_lidar_history_open(const char* folder, const quern_lidar_execution* execution,
                                      quern_lidar_history** history) {
  if (history == nullptr) return capi::refuse("quern_lidar_history_open: the place for the history is NULL");
  *history = nullptr;
  if (folder == nullptr || *folder == '\0')
    return capi::refuse("quern_lidar_history_open: the folder is NULL or empty");
  const auto given = capi::read_execution(execution);
  if (!given.ok()) return capi::refuse(given.status());
  std::unique_ptr<quern_lidar_history, DestroyHistory> made(capi::make<quern_lidar_history>(*given));
  if (made == nullptr) return QUERN_ERROR_OUT_OF_MEMORY;
  lidar::Report report;
  const quern_status status = capi::call(made->memory, folder, [&]() -> Status {
    made->path.emplace(folder);
    QUERN_ASSIGN_OR_RETURN(auto opened, lidar::History::open(quern::storage::system_files(), *made->path, report));
    made->tiles.emplace(std::move(opened), made->memory_limit() / 4, made->memory_limit() / 2);
    return {};
  });
  if (status != QUERN_OK) return capi::tell_history(status, "", report.problem, false);
  *history = made.release();
  return status;
}

void quern_lidar_history_destroy(quern_lidar_history* history) { quern::capi::destroy_handle(history); }

quern_status quern_lidar_drive_set_history(quern_lidar_drive* drive, quern_lidar_history* history) {
  if (drive == nullptr) return capi::refuse("quern_lidar_drive_set_history: the drive is NULL");
  const std::lock_guard lock(drive->mutex);
  drive->history = history;
  drive->drive->set_history(history == nullptr ? nullptr : &history->source);
  return QUERN_OK;
}

quern_status quern_lidar_history_add_drive(quern_lidar_history* history, quern_lidar_drive* drive,
                                           quern_lidar_addition* addition) {
  if (history == nullptr || drive == nullptr)
    return capi::refuse("quern_lidar_history_add_drive: the history or the drive is NULL");
  if (addition != nullptr)
    if (const Status checked = quern::capi::check_struct(addition); !checked.ok()) return capi::refuse(checked);
  lidar::Report report;
  bool misses = false;
  bool is_lost = false;
  const std::string_view where(history->path->data(), history->path->size());
  const quern_status status = capi::call(history->memory, where, [&]() -> Status {
    // Held while the drive is read, too: a second writer is told before it has worked for nothing.
    const auto lock_history = [&] {
      const std::lock_guard lock(history->mutex);
      return history->tiles->history().lock(report);
    };
    QUERN_ASSIGN_OR_RETURN(const auto lock, lock_history());
    const std::uint64_t limit = history->given().memory_limit;
    lidar::Addition made(history->tiles->history().options().cell_units, limit == 0 ? UINT64_MAX : limit / 2);
    const auto collect_all = [&]() -> Status {
      const std::lock_guard held(drive->mutex);
      Status collected = collect(*drive, made);
      if (collected.ok()) return collected;
      misses = drive->drive->misses_history();
      is_lost = misses && (drive->history == nullptr || lidar::is_lost(collected));
      if (misses && drive->history != nullptr) report.problem = drive->history->problem();
      return collected;
    };
    QUERN_RETURN_IF_ERROR(collect_all());
    const std::lock_guard guard(history->mutex);
    QUERN_ASSIGN_OR_RETURN(const auto added, made.publish(history->tiles->history(), report));
    if (addition == nullptr) return {};
    quern_lidar_addition out = QUERN_LIDAR_ADDITION_INIT;
    out.epoch = added.epoch.number;
    out.frames = made.frames();
    out.new_cells = added.new_cells;
    out.tiles = added.tiles;
    out.evicted_tiles = added.evicted_tiles;
    const String root = quern::storage::hex(added.epoch.root);
    std::copy_n(root.data(), std::min(root.size(), sizeof(out.root) - 1), out.root);
    quern::capi::write_struct(out, addition);
    return {};
  });
  return status == QUERN_OK ? status
                            : capi::tell_history(status, misses ? *drive->path : String(), report.problem, is_lost);
}
