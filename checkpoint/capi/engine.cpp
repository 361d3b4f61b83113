// <quern/checkpoint_engine.h> over the engine.
#include <algorithm>
#include <cstring>

#include <quern/checkpoint_engine.h>

#include "checkpoint/capi/call.h"
#include "checkpoint/capi/read_tensor.h"
#include "checkpoint/capi/save_desc.h"
#include "checkpoint/engine/engine.h"
#include "checkpoint/tiers/tiers.h"
#include "libcompress/capi/versioned.h"
#include "libcompress/core/task_runner.h"

struct quern_checkpoint_engine {
  std::unique_ptr<quern::checkpoint::Engine> engine;
};

struct quern_checkpoint_pending {
  quern_checkpoint_engine* engine = nullptr;
  std::unique_ptr<quern::checkpoint::PendingSave> save;
};

namespace quern::checkpoint::capi {
namespace {

/// Runs `body` in the memory of the engine.
template <class Body>
quern_status engine_call(Engine& engine, const Body& body) noexcept {
  const MemoryScope scope(engine.memory());
  ErrorLine& error = thread_error();
  try {
    Report report;
    const Status status = body(report);
    if (!status.ok()) set_error(report, status);
    return static_cast<quern_status>(status.code());
  } catch (const std::bad_alloc&) {
    error.set("out of memory: the engine may take no more; give it more coding_bytes");
    return QUERN_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    error.set("an exception of the library; please report it");
  }
  return QUERN_ERROR_INTERNAL;
}

Status check(const quern_checkpoint_engine_desc& desc) {
  if (desc.when_full < QUERN_CHECKPOINT_BLOCK || desc.when_full > QUERN_CHECKPOINT_COMPRESS_FIRST)
    return Status(StatusCode::invalid_argument, "when_full must be BLOCK, SKIP or COMPRESS_FIRST");
  if (desc.at_exit != QUERN_CHECKPOINT_DRAIN && desc.at_exit != QUERN_CHECKPOINT_DROP)
    return Status(StatusCode::invalid_argument, "at_exit must be DRAIN or DROP");
  if (!(desc.write_rate >= 0)) return Status(StatusCode::invalid_argument, "write_rate must be at least 0");
  if (!(desc.exit_seconds >= 0)) return Status(StatusCode::invalid_argument, "exit_seconds must be at least 0");
  if (desc.check_changes > 1 || desc.reserved != 0)
    return Status(StatusCode::invalid_argument, "check_changes must be 0 or 1, and reserved members 0");
  return {};
}

EngineOptions options_of(const quern_checkpoint_engine_desc& desc) {
  EngineOptions options;
  options.ring_bytes = desc.ring_bytes;
  options.coding_bytes = desc.coding_bytes;
  options.write_rate = desc.write_rate;
  options.threads = desc.threads;
  options.when_full = static_cast<WhenFull>(desc.when_full);
  options.at_exit = static_cast<AtEnd>(desc.at_exit);
  options.exit_seconds = desc.exit_seconds;
  options.check_changes = desc.check_changes == 1;
  if (desc.note != nullptr)
    options.note = [note = desc.note, user = desc.note_user](const String& text) { note(user, text.c_str()); };
  return options;
}

Status read_tiers(const quern_checkpoint_engine_desc& desc, EngineOptions& options) {
  options.keep_local = static_cast<std::size_t>(desc.keep_local);
  if (desc.tier_count > 64 || (desc.tiers == nullptr && desc.tier_count != 0))
    return Status(StatusCode::invalid_argument, "tiers is NULL, or there are more than 64");
  if (desc.keep_local != 0 && desc.tier_count == 0)
    return Status(StatusCode::invalid_argument, "keep_local removes what tiers have; give tiers");
  for (std::uint64_t i = 0; i < desc.tier_count; ++i) {
    quern_checkpoint_tier tier = QUERN_CHECKPOINT_TIER_INIT;
    QUERN_RETURN_IF_ERROR(quern::capi::read_struct(desc.tiers[i], tier));
    if (tier.path == nullptr || *tier.path == '\0')
      return Status(StatusCode::invalid_argument, "tier {0} has no path", static_cast<std::int64_t>(i));
    if (tier.every == 0 || tier.most_waiting == 0 || !(tier.write_rate >= 0) || !(tier.share > 0 && tier.share <= 1))
      return Status(
          StatusCode::invalid_argument,
          "tier {0}: every and most_waiting are at least 1, write_rate at least 0, share above 0 and at most 1",
          static_cast<std::int64_t>(i));
    TierOptions out;
    out.path = tier.path;
    out.every = tier.every;
    out.write_rate = tier.write_rate;
    out.share = tier.share;
    out.most_waiting = tier.most_waiting;
    options.tiers.push_back(std::move(out));
  }
  return {};
}

Status answer(const Result<bool>& made, std::uint32_t* out) {
  if (!made.ok()) return made.status();
  *out = *made ? 1 : 0;
  return {};
}

}  // namespace
}  // namespace quern::checkpoint::capi

namespace ck = quern::checkpoint::capi;
using quern::Status;
using quern::StatusCode;
using quern::checkpoint::Report;

quern_status quern_checkpoint_engine_open(const char* path, const quern_checkpoint_engine_desc* given,
                                          quern_checkpoint_engine** out) {
  if (out == nullptr) return ck::refuse("quern_checkpoint_engine_open: the place for the engine is NULL");
  *out = nullptr;
  if (path == nullptr || *path == '\0') return ck::refuse("quern_checkpoint_engine_open: the path is NULL or empty");
  quern_checkpoint_engine_desc desc = QUERN_CHECKPOINT_ENGINE_DESC_INIT;
  if (given != nullptr) {
    if (const Status read = quern::capi::read_struct(given, desc); !read.ok()) return ck::refuse(read);
  }
  if (const Status checked = ck::check(desc); !checked.ok()) return ck::refuse(checked);
  try {
    Report report;
    quern::checkpoint::EngineOptions options = ck::options_of(desc);
    if (const Status tiers = ck::read_tiers(desc, options); !tiers.ok()) return ck::refuse(tiers);
    auto engine = quern::checkpoint::Engine::open(quern::checkpoint::system_files(), path, options, report);
    if (!engine.ok()) {
      ck::set_error(report, engine.status());
      return static_cast<quern_status>(engine.status().code());
    }
    *out = new quern_checkpoint_engine{std::move(engine).value()};
    return QUERN_OK;
  } catch (const std::exception&) {
    ck::thread_error().set("out of memory, or no thread could be started");
    return QUERN_ERROR_OUT_OF_MEMORY;
  }
}

quern_status quern_checkpoint_engine_close(quern_checkpoint_engine* engine, quern_checkpoint_at_end how,
                                           double seconds) {
  if (engine == nullptr) return QUERN_OK;
  const bool known = (how == QUERN_CHECKPOINT_DRAIN || how == QUERN_CHECKPOINT_DROP) && seconds >= 0;
  const auto end = known ? static_cast<quern::checkpoint::AtEnd>(how) : quern::checkpoint::AtEnd::drop;
  const quern_status status = ck::engine_call(
      *engine->engine, [&](Report& report) { return engine->engine->close(end, known ? seconds : 0, report); });
  delete engine;
  // That tensors must stay as they are matters more.
  if (known || status == QUERN_ERROR_IO) return status;
  return ck::refuse(
      "quern_checkpoint_engine_close: `how` is DRAIN or DROP, and seconds at least 0; the engine's saves were dropped");
}

quern_status quern_checkpoint_engine_begin(quern_checkpoint_engine* engine, const quern_checkpoint_save_desc* given,
                                           quern_checkpoint_pending** out) {
  if (out == nullptr) return ck::refuse("quern_checkpoint_engine_begin: the place for the save is NULL");
  *out = nullptr;
  if (engine == nullptr) return ck::refuse("quern_checkpoint_engine_begin: the engine is NULL");
  quern_checkpoint_save_desc desc = QUERN_CHECKPOINT_SAVE_DESC_INIT;
  if (const Status read = quern::capi::read_struct(given, desc); !read.ok()) return ck::refuse(read);
  return ck::engine_call(*engine->engine, [&](Report& report) -> Status {
    quern::checkpoint::FileSaveOptions options;
    options.group_bytes = options.save.large_tensor_bytes = quern::checkpoint::kEngineGroupBytes;
    QUERN_RETURN_IF_ERROR(ck::read_save_desc(desc, options.save, options.preset, report));
    QUERN_RETURN_IF_ERROR(ck::read_rules(desc, options.policy, options.replay, report));
    QUERN_ASSIGN_OR_RETURN(auto save, engine->engine->begin(options, report));
    *out = new quern_checkpoint_pending{engine, std::move(save)};
    return {};
  });
}

quern_status quern_checkpoint_engine_add(quern_checkpoint_pending* save, const quern_checkpoint_tensor* given) {
  if (save == nullptr) return ck::refuse("quern_checkpoint_engine_add: the save is NULL");
  quern_checkpoint_tensor tensor = QUERN_CHECKPOINT_TENSOR_INIT;
  if (const Status read = quern::capi::read_struct(given, tensor); !read.ok()) return ck::refuse(read);
  if (tensor.name == nullptr) return ck::refuse("quern_checkpoint_engine_add: the tensor's name is NULL");
  return ck::engine_call(*save->engine->engine, [&](Report& report) -> Status {
    quern::checkpoint::AddedTensor added;
    QUERN_RETURN_IF_ERROR(ck::read_tensor(tensor, added, report));
    return save->engine->engine->add(*save->save, std::move(added), report);
  });
}

quern_status quern_checkpoint_engine_add_blob(quern_checkpoint_pending* save, const char* name, const void* bytes,
                                              uint64_t size) {
  if (save == nullptr || name == nullptr || (bytes == nullptr && size != 0))
    return ck::refuse("quern_checkpoint_engine_add_blob: NULL argument");
  return ck::engine_call(*save->engine->engine, [&](Report& report) {
    return save->engine->engine->add_blob(
        *save->save, name, {static_cast<const std::uint8_t*>(bytes), static_cast<std::size_t>(size)}, report);
  });
}

quern_status quern_checkpoint_engine_submit(quern_checkpoint_pending* save) {
  if (save == nullptr) return ck::refuse("quern_checkpoint_engine_submit: the save is NULL");
  const std::unique_ptr<quern_checkpoint_pending> owned(save);
  return ck::engine_call(*save->engine->engine,
                         [&](Report& report) { return save->engine->engine->submit(std::move(save->save), report); });
}

void quern_checkpoint_engine_forget(quern_checkpoint_pending* save) { delete save; }

quern_status quern_checkpoint_engine_fence(quern_checkpoint_engine* engine, const char* tensor, double seconds,
                                           uint32_t* free) {
  if (engine == nullptr || free == nullptr) return ck::refuse("quern_checkpoint_engine_fence: NULL argument");
  if (!(seconds >= 0)) return ck::refuse("quern_checkpoint_engine_fence: seconds must be at least 0");
  return ck::engine_call(*engine->engine, [&](Report& report) {
    return ck::answer(engine->engine->fence(tensor == nullptr ? "" : tensor, seconds, report), free);
  });
}

quern_status quern_checkpoint_engine_wait(quern_checkpoint_engine* engine, uint64_t step, quern_checkpoint_level level,
                                          double seconds, uint32_t* reached) {
  if (engine == nullptr || reached == nullptr) return ck::refuse("quern_checkpoint_engine_wait: NULL argument");
  if (level < QUERN_CHECKPOINT_SUBMITTED || level > QUERN_CHECKPOINT_DURABLE || !(seconds >= 0))
    return ck::refuse("quern_checkpoint_engine_wait: there is no such level, or seconds are below 0");
  return ck::engine_call(*engine->engine, [&](Report& report) {
    return ck::answer(engine->engine->wait(step, static_cast<quern::checkpoint::SaveLevel>(level), seconds, report),
                      reached);
  });
}

quern_status quern_checkpoint_engine_wait_all(quern_checkpoint_engine* engine, double seconds, uint32_t* reached) {
  if (engine == nullptr || reached == nullptr) return ck::refuse("quern_checkpoint_engine_wait_all: NULL argument");
  if (!(seconds >= 0)) return ck::refuse("quern_checkpoint_engine_wait_all: seconds must be at least 0");
  return ck::engine_call(
      *engine->engine, [&](Report& report) { return ck::answer(engine->engine->wait_all(seconds, report), reached); });
}

quern_status quern_checkpoint_engine_poll(quern_checkpoint_engine* engine, uint64_t step,
                                          quern_checkpoint_progress* progress) {
  if (engine == nullptr) return ck::refuse("quern_checkpoint_engine_poll: the engine is NULL");
  if (const Status checked = quern::capi::check_struct(progress); !checked.ok()) return ck::refuse(checked);
  return ck::engine_call(*engine->engine, [&](Report& report) -> Status {
    QUERN_ASSIGN_OR_RETURN(const auto known, engine->engine->poll(step, report));
    quern_checkpoint_progress out = QUERN_CHECKPOINT_PROGRESS_INIT;
    out.level = static_cast<quern_checkpoint_level>(known.level);
    out.finished = known.finished ? 1 : 0;
    out.error = static_cast<quern_status>(known.code);
    out.raw_bytes = known.raw_bytes;
    out.captured_bytes = known.captured_bytes;
    out.copied_tensors = known.copied_tensors;
    out.coded_first = known.coded_first;
    out.submit_seconds = known.submit_seconds;
    out.captured_seconds = known.captured_seconds;
    out.durable_seconds = known.durable_seconds;
    out.local_seconds = known.local_seconds;
    if (known.level >= quern::checkpoint::SaveLevel::local || (known.finished && known.code == StatusCode::ok)) {
      out.result.published = known.published ? 1 : 0;
      out.result.step = step;
      out.result.raw_bytes = known.counts.raw_bytes;
      out.result.stored_bytes = known.counts.stored_bytes;
      out.result.manifest_bytes = known.manifest_bytes;
      out.result.tensors = known.counts.tensors;
      out.result.stored_already = known.counts.stored_already;
      out.result.differences = known.differences;
      out.result.lossy = known.counts.lossy;
      std::memcpy(out.result.id, known.id.data(), std::min(known.id.size(), sizeof(out.result.id) - 1));
    }
    quern::capi::write_struct(out, progress);
    return {};
  });
}

quern_status quern_checkpoint_engine_cancel(quern_checkpoint_engine* engine, uint64_t step) {
  if (engine == nullptr) return ck::refuse("quern_checkpoint_engine_cancel: the engine is NULL");
  return ck::engine_call(*engine->engine, [&](Report& report) { return engine->engine->cancel(step, report); });
}

quern_status quern_checkpoint_engine_measure(quern_checkpoint_engine* engine, quern_checkpoint_engine_stats* stats) {
  if (engine == nullptr) return ck::refuse("quern_checkpoint_engine_measure: the engine is NULL");
  if (const Status checked = quern::capi::check_struct(stats); !checked.ok()) return ck::refuse(checked);
  const quern_status own =
      ck::engine_call(*engine->engine, [&](Report& report) { return engine->engine->check_process(report); });
  if (own != QUERN_OK) return own;
  const quern::checkpoint::EngineStats known = engine->engine->stats();
  quern_checkpoint_engine_stats out = QUERN_CHECKPOINT_ENGINE_STATS_INIT;
  out.submitted = known.submitted;
  out.durable = known.durable;
  out.failed = known.failed;
  out.skipped = known.skipped;
  out.cancelled = known.cancelled;
  out.under_way = known.waiting;
  out.copied_tensors = known.copied_tensors;
  out.copied_bytes = known.copied_bytes;
  out.first_by_rate = known.first_by_rate;
  out.first_for_room = known.first_for_room;
  out.first_for_size = known.first_for_size;
  out.first_bytes = known.first_bytes;
  out.copy_rate = known.copy_rate;
  out.code_rate = known.code_rate;
  out.fence_seconds = known.fence_seconds;
  out.longest_fence = known.longest_fence;
  out.submit_inside = known.submit_seconds;
  out.fences = known.fences;
  out.ring_bytes = known.ring_bytes;
  out.ring_peak = known.ring_peak;
  out.coding_peak = known.coding_peak;
  out.written_bytes = known.written_bytes;
  quern::capi::write_struct(out, stats);
  return QUERN_OK;
}

quern_status quern_checkpoint_engine_measure_tier(quern_checkpoint_engine* engine, uint64_t tier,
                                                  quern_checkpoint_tier_stats* stats) {
  if (engine == nullptr) return ck::refuse("quern_checkpoint_engine_measure_tier: the engine is NULL");
  if (const Status checked = quern::capi::check_struct(stats); !checked.ok()) return ck::refuse(checked);
  return ck::engine_call(*engine->engine, [&](Report& report) -> Status {
    QUERN_RETURN_IF_ERROR(engine->engine->check_process(report));
    const auto all = engine->engine->tier_stats();
    if (tier >= all.size())
      return Status(StatusCode::invalid_argument, "the engine has {0} tiers", static_cast<std::int64_t>(all.size()));
    const quern::checkpoint::TierStats& known = all[static_cast<std::size_t>(tier)];
    quern_checkpoint_tier_stats out = QUERN_CHECKPOINT_TIER_STATS_INIT;
    out.depth = known.depth;
    out.checkpoints = known.checkpoints;
    out.bytes = known.bytes;
    out.waiting = known.waiting;
    out.failed = known.failed;
    out.passed_over = known.passed_over;
    out.rate = known.rate;
    std::memcpy(out.problem, known.problem.data(), std::min(known.problem.size(), sizeof(out.problem) - 1));
    quern::capi::write_struct(out, stats);
    return {};
  });
}

quern_status quern_checkpoint_newest_of(const char* const* paths, uint64_t count, uint64_t* place, uint64_t* step) {
  if (paths == nullptr || count == 0 || count > 64 || place == nullptr || step == nullptr)
    return ck::refuse("quern_checkpoint_newest_of: NULL argument, or not 1 to 64 paths");
  for (uint64_t i = 0; i < count; ++i)
    if (paths[i] == nullptr || *paths[i] == '\0')
      return ck::refuse("quern_checkpoint_newest_of: a path is NULL or empty");
  try {
    Report report;
    quern::Vector<quern::checkpoint::Store> stores;
    for (uint64_t i = 0; i < count; ++i) {
      auto store = quern::checkpoint::Store::open(quern::checkpoint::system_files(), quern::String(paths[i]), report);
      if (!store.ok()) {
        ck::set_error(report, store.status());
        return static_cast<quern_status>(store.status().code());
      }
      stores.push_back(std::move(store).value());
    }
    quern::SerialRunner runner;
    const auto found = quern::checkpoint::newest_of(stores, runner, report);
    if (!found.ok()) {
      ck::set_error(report, found.status());
      return static_cast<quern_status>(found.status().code());
    }
    *place = found->tier;
    *step = found->manifest.name.step;
    return QUERN_OK;
  } catch (const std::exception&) {
    ck::thread_error().set("out of memory");
    return QUERN_ERROR_OUT_OF_MEMORY;
  }
}
