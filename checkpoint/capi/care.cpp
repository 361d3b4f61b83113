// Verifying, repairing, compacting and collecting through the C interface.
#include <algorithm>

#include "checkpoint/capi/call.h"
#include "checkpoint/capi/save_desc.h"
#include "checkpoint/restore/verify.h"
#include "checkpoint/save/compact.h"
#include "checkpoint/store/collect.h"
#include "libcompress/capi/versioned.h"

namespace quern::checkpoint::capi {
namespace {

Status check_may_write(const quern_checkpoint_store& store, Report& report) {
  if (store.may_write) return {};
  return fail(report, StatusCode::invalid_argument, join({store.store->root(), ": the store was opened for reading"}));
}

/// Those of `names` that have the step, or the largest step there is.
Result<Vector<CheckpointName>> of_step(const Store& store, Vector<CheckpointName> names, std::uint64_t step,
                                       Report& report) {
  if (step == QUERN_CHECKPOINT_NEWEST && !names.empty())
    step = std::max_element(names.begin(), names.end(), [](const CheckpointName& a, const CheckpointName& b) {
             return a.generation != b.generation ? a.generation < b.generation : a.step < b.step;
           })->step;
  Vector<CheckpointName> out;
  for (CheckpointName& name : names)
    if (name.step == step) out.push_back(std::move(name));
  if (!out.empty()) return out;
  if (step == QUERN_CHECKPOINT_NEWEST)
    return fail(report, StatusCode::io_error, join({store.root(), ": the store has no checkpoint"}));
  return fail(report, StatusCode::invalid_argument,
              join({store.root(), ": the store has no checkpoint of step ", decimal(step)}));
}

/// Findings as notes; the first problem becomes the sentence.
Status outcome_of(const Vector<Finding>& findings, Report& report) {
  String first;
  for (const Finding& finding : findings) {
    for (const String& problem : finding.problems) {
      report.notes.push_back(problem);
      if (!finding.good && first.empty()) first = problem;
    }
    if (!finding.good && first.empty()) first = join({"step ", decimal(finding.name.step), " is damaged"});
  }
  if (first.empty()) return {};
  return fail(report, StatusCode::corrupt, std::move(first));
}

void tell(const Collected& done, quern_checkpoint_collected* collected) {
  if (collected == nullptr) return;
  quern_checkpoint_collected out = QUERN_CHECKPOINT_COLLECTED_INIT;
  out.removed = done.removed.size();
  out.kept_for_others = done.kept_for_others.size();
  out.freed_bytes = done.freed_bytes;
  quern::capi::write_struct(out, collected);
}

}  // namespace
}  // namespace quern::checkpoint::capi

namespace ck = quern::checkpoint::capi;
using quern::RunnerHandle;
using quern::Status;
using quern::Vector;
using quern::checkpoint::Report;

quern_status quern_checkpoint_verify(quern_checkpoint_store* store, uint64_t step, int full) {
  if (store == nullptr) return ck::refuse("quern_checkpoint_verify: the store is NULL");
  return ck::call(*store, [&](Report& report) -> Status {
    QUERN_ASSIGN_OR_RETURN(auto all, store->store->list(report));
    QUERN_ASSIGN_OR_RETURN(const auto names, ck::of_step(*store->store, std::move(all), step, report));
    RunnerHandle runner(store->execution());
    Vector<quern::checkpoint::Finding> findings;
    for (const auto& name : names)
      findings.push_back(quern::checkpoint::verify_checkpoint(*store->store, name, full != 0, runner.get()));
    return ck::outcome_of(findings, report);
  });
}

quern_status quern_checkpoint_repair(quern_checkpoint_store* store, uint64_t step, int* repaired) {
  if (store == nullptr) return ck::refuse("quern_checkpoint_repair: the store is NULL");
  return ck::call(*store, [&](Report& report) -> Status {
    QUERN_RETURN_IF_ERROR(ck::check_may_write(*store, report));
    QUERN_ASSIGN_OR_RETURN(auto all, quern::checkpoint::names_to_repair(*store->store, report));
    QUERN_ASSIGN_OR_RETURN(const auto names, ck::of_step(*store->store, std::move(all), step, report));
    RunnerHandle runner(store->execution());
    Vector<quern::checkpoint::Finding> findings;
    bool mended = false;
    for (const auto& name : names) {
      findings.push_back(quern::checkpoint::repair_checkpoint(*store->store, name, runner.get()));
      mended = mended || findings.back().repaired;
    }
    if (repaired != nullptr) *repaired = mended ? 1 : 0;
    return ck::outcome_of(findings, report);
  });
}

quern_status quern_checkpoint_compact(quern_checkpoint_store* store, uint64_t step,
                                      const quern_checkpoint_save_desc* given) {
  if (store == nullptr) return ck::refuse("quern_checkpoint_compact: the store is NULL");
  quern_checkpoint_save_desc desc = QUERN_CHECKPOINT_SAVE_DESC_INIT;
  if (given != nullptr) {
    if (const Status read = quern::capi::read_struct(given, desc); !read.ok()) return ck::refuse(read);
  }
  return ck::call(*store, [&](Report& report) -> Status {
    QUERN_RETURN_IF_ERROR(ck::check_may_write(*store, report));
    quern::checkpoint::SaveOptions options;
    options.zstd_level = desc.zstd_level;
    options.parity_data = desc.parity_data;
    options.parity_files = desc.parity_files;
    RunnerHandle runner(store->execution());
    return quern::checkpoint::compact(*store->store, step, options, runner.get(), report).status();
  });
}

quern_status quern_checkpoint_collect(quern_checkpoint_store* store, uint64_t keep, const uint64_t* steps,
                                      uint64_t count, quern_checkpoint_collected* collected) {
  if (store == nullptr || (steps == nullptr && count != 0))
    return ck::refuse("quern_checkpoint_collect: NULL argument");
  if (collected != nullptr) {
    if (const Status checked = quern::capi::check_struct(collected); !checked.ok()) return ck::refuse(checked);
  }
  return ck::call(*store, [&](Report& report) -> Status {
    QUERN_RETURN_IF_ERROR(ck::check_may_write(*store, report));
    quern::checkpoint::CollectOptions options;
    if (keep != UINT64_MAX) options.keep = static_cast<std::size_t>(keep);
    options.remove.assign(steps, steps + count);
    QUERN_ASSIGN_OR_RETURN(const auto done, quern::checkpoint::collect(*store->store, options, report));
    ck::tell(done, collected);
    return {};
  });
}

quern_status quern_checkpoint_retain(quern_checkpoint_store* store, const quern_checkpoint_retention* given,
                                     quern_checkpoint_collected* collected) {
  if (store == nullptr || given == nullptr) return ck::refuse("quern_checkpoint_retain: NULL argument");
  quern_checkpoint_retention desc = QUERN_CHECKPOINT_RETENTION_INIT;
  if (const Status read = quern::capi::read_struct(given, desc); !read.ok()) return ck::refuse(read);
  if (collected != nullptr) {
    if (const Status checked = quern::capi::check_struct(collected); !checked.ok()) return ck::refuse(checked);
  }
  if (desc.keep == 0 && desc.keep_every == 0 && desc.best == 0)
    return ck::refuse("quern_checkpoint_retain: nothing would stay; set keep, keep_every or best");
  if (desc.best != 0 && desc.metric == nullptr) return ck::refuse("quern_checkpoint_retain: best needs a metric");
  if (desc.best_is_largest > 1 || desc.dry_run > 1 || desc.reserved != 0)
    return ck::refuse("quern_checkpoint_retain: best_is_largest and dry_run must be 0 or 1, reserved 0");
  return ck::call(*store, [&](Report& report) -> Status {
    QUERN_RETURN_IF_ERROR(ck::check_may_write(*store, report));
    quern::checkpoint::CollectOptions options;
    options.keep = static_cast<std::size_t>(desc.keep);
    options.keep_every = desc.keep_every;
    if (desc.best != 0) options.best = {static_cast<std::size_t>(desc.best), desc.metric, desc.best_is_largest == 1};
    options.dry_run = desc.dry_run == 1;
    QUERN_ASSIGN_OR_RETURN(const auto done, quern::checkpoint::collect(*store->store, options, report));
    ck::tell(done, collected);
    return {};
  });
}
