// Parity of histories through the C interface.
#include <memory>

#include "libcompress/capi/versioned.h"
#include "lidar/capi/call.h"
#include "lidar/history/care.h"
#include "lidar/history/parity.h"

namespace capi = quern::lidar::capi;
namespace lidar = quern::lidar;
using quern::Status;
using quern::StatusCode;
using quern::String;

namespace {

/// Runs `change(history, report)` under the history's lock; where that fails its sentence is the report's.
template <class Change>
quern_status change_history(quern_lidar_history& history, const Change& change) {
  lidar::Report report;
  const std::string_view where(history.path->data(), history.path->size());
  const quern_status status = capi::call(history.memory, where, [&]() -> Status {
    const std::lock_guard guard(history.mutex);
    lidar::History& changed = history.tiles->history();
    QUERN_ASSIGN_OR_RETURN(const auto lock, changed.lock(report));
    return change(changed, report);
  });
  return status == QUERN_OK ? status : capi::tell_history(status, "", report.problem, false);
}

/// A sentence about a file of a history without parity: it names the folder once, and says what to do.
String tell_alone(const lidar::History& history, const String& damage) {
  const bool names_it = damage.starts_with(quern::storage::join({history.root(), "/"}));
  const bool advises = damage.find("; ") != String::npos;
  return quern::storage::join(
      {names_it ? "" : history.root(), names_it ? "" : ": ", damage, advises ? "" : "; restore it from a copy"});
}

/// The first of what stays damaged, and how much more there is.
Status tell_damage(const quern::Vector<String>& damage, lidar::Report& report) {
  String sentence = damage.front();
  if (damage.size() > 1)
    sentence = quern::storage::join({sentence, " (and ", quern::storage::decimal(damage.size() - 1), " more)"});
  return quern::storage::fail(report, StatusCode::corrupt, sentence);
}

}  // namespace

quern_status quern_lidar_history_make_parity(quern_lidar_history* history, uint32_t data_files, uint32_t parity_files,
                                             quern_lidar_parity* parity) {
  if (history == nullptr) return capi::refuse("quern_lidar_history_make_parity: the history is NULL");
  if (parity != nullptr)
    if (const Status checked = quern::capi::check_struct(parity); !checked.ok()) return capi::refuse(checked);
  return change_history(*history, [&](lidar::History& guarded, lidar::Report& report) -> Status {
    std::optional<lidar::ParityNumbers> numbers;
    if (data_files != 0 || parity_files != 0) numbers = {data_files, parity_files};
    QUERN_ASSIGN_OR_RETURN(const auto done, lidar::guard_history(guarded, numbers, report));
    if (parity == nullptr) return {};
    quern_lidar_parity out = QUERN_LIDAR_PARITY_INIT;
    out.data_files = done.numbers.data;
    out.parity_files = done.numbers.parity;
    out.guarded_files = done.files;
    out.made_sets = done.made_sets;
    out.parity_bytes = done.parity_bytes;
    quern::capi::write_struct(out, parity);
    return {};
  });
}

quern_status quern_lidar_history_drop_parity(quern_lidar_history* history, uint64_t* removed_sets) {
  if (history == nullptr) return capi::refuse("quern_lidar_history_drop_parity: the history is NULL");
  return change_history(*history, [&](lidar::History& bared, lidar::Report& report) -> Status {
    QUERN_ASSIGN_OR_RETURN(const auto removed, lidar::drop_parity(bared, report));
    if (removed_sets != nullptr) *removed_sets = removed;
    return {};
  });
}

quern_status quern_lidar_history_repair(quern_lidar_history* history, quern_lidar_repair* repair) {
  if (history == nullptr) return capi::refuse("quern_lidar_history_repair: the history is NULL");
  if (repair != nullptr)
    if (const Status checked = quern::capi::check_struct(repair); !checked.ok()) return capi::refuse(checked);
  return change_history(*history, [&](lidar::History& mended, lidar::Report& report) -> Status {
    QUERN_ASSIGN_OR_RETURN(auto done, lidar::check_parity(mended, true, report));
    if (done.sets == 0) {
      QUERN_ASSIGN_OR_RETURN(auto alone, lidar::check_history(mended, report));
      for (const String& one : alone.damage) done.damage.push_back(tell_alone(mended, one));
    }
    quern_lidar_repair out = QUERN_LIDAR_REPAIR_INIT;
    out.sets = done.sets;
    out.guarded_files = done.guarded;
    out.unguarded_files = done.unguarded;
    out.mended_files = done.mended.size();
    out.damaged_files = done.damage.size();
    if (repair != nullptr) quern::capi::write_struct(out, repair);
    return done.damage.empty() ? Status() : tell_damage(done.damage, report);
  });
}
