#include "checkpoint/tiers/tiers.h"

#include <algorithm>

#include "checkpoint/restore/verify.h"
#include "checkpoint/store/publish.h"

namespace quern::checkpoint {

Status check_order(const Store& first, const Store& tier, Report& report) {
  QUERN_ASSIGN_OR_RETURN(const auto own, first.list_all(report));
  QUERN_ASSIGN_OR_RETURN(const auto names, tier.list(report));
  std::uint64_t newest = 0;
  for (const CheckpointName& name : own) newest = std::max(newest, name.generation);
  for (const CheckpointName& name : names)
    if (name.generation > newest)
      return fail(report, StatusCode::invalid_argument,
                  join({tier.root(), ": has step ", decimal(name.step), ", which is newer than all of ", first.root(),
                        "; bring it there first (quern checkpoint tiers promote), or give this store another folder"}));
  return {};
}

Result<Vector<CheckpointName>> missing_on(const Store& first, const Tier& tier, Report& report, bool thorough) {
  QUERN_ASSIGN_OR_RETURN(const auto names, first.list_current(report));
  QUERN_ASSIGN_OR_RETURN(const auto there, tier.store->list(report));
  Vector<CheckpointName> out;
  const std::uint64_t oldest = there.empty() ? 0 : there.front().generation;
  const auto is_whole = [&](const CheckpointName& name) {
    Report unheard;
    const auto manifest = first.read(name, unheard);
    return !manifest.ok() || is_whole_on(*tier.store, *manifest);
  };
  std::size_t left_out = 0;
  for (const CheckpointName& name : names) {
    if (!tier.wants(name.step)) continue;
    const bool listed = std::find(there.begin(), there.end(), name) != there.end();
    if (!listed && name.generation < oldest) {
      ++left_out;
    } else if (!listed || (thorough && !is_whole(name))) {
      out.push_back(name);
    }
  }
  if (thorough && left_out != 0)
    report.notes.push_back(join({tier.store->root(), ": ", decimal(left_out),
                                 " checkpoints were left out, for they are older than all that it has; bring one there "
                                 "with --step"}));
  return out;
}

bool is_whole_on(const Store& tier, const Manifest& manifest) {
  Report unheard;
  const auto names = tier.list(unheard);
  if (!names.ok()) return false;
  return std::any_of(names->begin(), names->end(), [&](const CheckpointName& one) {
    const bool same = one == manifest.name;
    if (!same && (one.step != manifest.name.step || one.generation != manifest.name.generation)) return false;
    const auto there = tier.read_checked(one, unheard);
    return there.ok() && same_values(*there, manifest) && tier.check_needs(*there, unheard).ok();
  });
}

Result<Vector<CheckpointName>> whole_on(const Store& first, const Store& tier, std::size_t keep, Report& report) {
  QUERN_RETURN_IF_ERROR(first.check_apart(tier, report));
  QUERN_ASSIGN_OR_RETURN(const auto names, first.list_current(report));
  Vector<CheckpointName> out;
  for (std::size_t i = 0; i + keep < names.size(); ++i) {
    Report unheard;
    const auto manifest = first.read(names[i], unheard);
    if (manifest.ok() && is_whole_on(tier, *manifest)) out.push_back(names[i]);
  }
  return out;
}

Result<Vector<CheckpointName>> evictable(const Store& first, std::span<const Tier> tiers, std::size_t keep,
                                         Report& report) {
  QUERN_ASSIGN_OR_RETURN(const auto names, first.list_current(report));
  for (const Tier& tier : tiers)
    if (tier.whole == nullptr) QUERN_RETURN_IF_ERROR(first.check_apart(*tier.store, report));
  const auto has = [](const Tier& tier, const Manifest& manifest) {
    if (tier.whole == nullptr) return is_whole_on(*tier.store, manifest);
    return std::any_of(tier.whole->begin(), tier.whole->end(),
                       [&](const CheckpointName& one) { return is_exactly(one, manifest.name); });
  };
  Vector<CheckpointName> out;
  // A damaged one does not count: the newest that are whole stay.
  std::size_t kept = 0;
  for (std::size_t i = names.size(); i-- > 0;) {
    Report own;
    const auto manifest = first.read_checked(names[i], own);
    if (kept < keep) {
      kept += manifest.ok() ? 1 : 0;
      continue;
    }
    const auto known = manifest.ok() ? manifest : first.read(names[i], own);
    if (!known.ok()) continue;
    const auto lacks = std::find_if(tiers.begin(), tiers.end(),
                                    [&](const Tier& tier) { return tier.wants(names[i].step) && !has(tier, *known); });
    // One that no tier wants may have come there as what others need.
    const bool somewhere = lacks == tiers.end() && std::any_of(tiers.begin(), tiers.end(), [&](const Tier& tier) {
                             return tier.wants(names[i].step) || has(tier, *known);
                           });
    if (somewhere) {
      out.push_back(names[i]);
    } else {
      report.notes.push_back(
          join({"step ", decimal(names[i].step), " stays in ", first.root(), ": ",
                lacks == tiers.end() ? String("no tier is to have it, and none does; quern checkpoint gc removes it")
                                     : join({lacks->store->root(), " does not have it"})}));
    }
  }
  return out;
}

Result<Found> newest_of(std::span<const Store> stores, TaskRunner& runner, Report& report,
                        std::optional<std::uint64_t> step) {
  struct Candidate {
    CheckpointName name;
    std::size_t tier;
  };
  Vector<Candidate> candidates;
  for (std::size_t i = 0; i < stores.size(); ++i) {
    Report own;
    const auto names = stores[i].list_current(own);
    if (!names.ok()) {
      report.notes.push_back(join({"passed over: ", own.problem}));
      continue;
    }
    for (const CheckpointName& name : *names)
      if (!step || name.step == *step) candidates.push_back({name, i});
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.name.generation != b.name.generation ? a.name.generation > b.name.generation : a.name.step > b.name.step;
  });
  for (auto it = candidates.begin(); it != candidates.end(); ++it) {
    // The values that were replaced never come back in the place of those that replaced them.
    const bool again = std::any_of(candidates.begin(), it, [&](const Candidate& later) {
      return later.name.step == it->name.step && later.name.generation > it->name.generation;
    });
    if (again) continue;
    const Store& store = stores[it->tier];
    Report own;
    auto manifest = store.read_checked(it->name, own);
    String problem;
    if (manifest.ok()) {
      const Finding finding = verify_checkpoint(store, it->name, true, runner);
      if (finding.good) return Found{it->tier, std::move(manifest).value()};
      problem = finding.problems.empty() ? String("it is damaged") : finding.problems.front();
    } else {
      problem = own.problem;
    }
    report.notes.push_back(
        join({"step ", decimal(it->name.step), " of ", store.root(), " was passed over: ", problem}));
  }
  String places;
  for (const Store& store : stores) places += join({places.empty() ? "" : ", ", store.root()});
  return fail(
      report, StatusCode::io_error,
      join({places, ": no whole checkpoint", step ? join({" of step ", decimal(*step)}) : String(), " is there"}));
}

}  // namespace quern::checkpoint
