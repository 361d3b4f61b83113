// quern checkpoint tiers: where checkpoints are, copies to further folders and back, and room made in the store.
#include "checkpoint/tiers/tiers.h"

#include <chrono>
#include <deque>
#include <thread>

#include <fmt/format.h>

#include "checkpoint/store/collect.h"
#include "cli/args/values.h"
#include "cli/checkpoint/verb.h"
#include "cli/files/interrupt.h"
#include "cli/messages/file_report.h"
#include "cli/messages/progress.h"
#include "storage/token_bucket.h"

namespace quern::cli {
namespace {

namespace ck = quern::checkpoint;

std::string text(const String& s) { return {s.data(), s.size()}; }

/// Copies under the limit of the command, which Ctrl-C ends between two writes.
class Copier {
 public:
  explicit Copier(const CheckpointArgs& args) : bucket_(args.throttle) {
    control_.turn = [this](std::size_t bytes) {
      return storage::wait_turn(bucket_, bytes, [] { return SignalGuard::is_interrupted(); });
    };
  }
  Result<ck::Copied> copy(const ck::Store& from, const ck::Store& to, const ck::CheckpointName& name,
                          ck::Report& report) {
    auto copied = ck::copy_checkpoint(from, to, name, control_, report);
    if (SignalGuard::is_interrupted()) fail(Exit::interrupted, "interrupted");
    return copied;
  }

 private:
  const SignalGuard signals_;
  storage::TokenBucket bucket_;
  ck::CopyControl control_;
};

Exit list(const CheckpointArgs& args, CheckpointWorkspace& work) {
  const auto stores = stores_of(args);
  struct Row {
    ck::CheckpointName name;
    std::vector<std::string> states;  ///< one a store
  };
  std::vector<Row> rows;
  Json places = Json::array();
  for (std::size_t i = 0; i < stores.size(); ++i) {
    ck::Report own;
    const auto names = stores[i].list_current(own);
    places.push_back(
        Json{{"path", text(stores[i].root())}, {"problem", names.ok() ? Json(nullptr) : Json(text(own.problem))}});
    if (!names.ok()) {
      print_note(text(own.problem));
      continue;
    }
    for (const auto& name : *names) {
      auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& one) {
        return one.name.step == name.step && one.name.generation == name.generation;
      });
      if (row == rows.end()) {
        rows.push_back({name, std::vector<std::string>(stores.size(), "-")});
        row = rows.end() - 1;
      }
      const auto manifest = stores[i].read_checked(name, own);
      row->states[i] = manifest.ok() && stores[i].check_needs(*manifest, own).ok() ? "whole" : "damaged";
    }
  }
  work.print_notes();
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.name.generation != b.name.generation ? a.name.generation < b.name.generation : a.name.step < b.name.step;
  });
  Json list = Json::array();
  std::string out;
  for (std::size_t i = 0; i < stores.size(); ++i)
    out += fmt::format("{}: {}\n", i == 0 ? "store" : fmt::format("tier {}", i), text(stores[i].root()));
  out += fmt::format("{:>12}  {:<8}", "step", "store");
  for (std::size_t i = 1; i < stores.size(); ++i) out += fmt::format("  {:<8}", fmt::format("tier {}", i));
  out += "\n";
  for (const Row& row : rows) {
    list.push_back(Json{{"step", row.name.step}, {"generation", row.name.generation}, {"states", row.states}});
    out += fmt::format("{:>12}", row.name.step);
    for (const std::string& state : row.states) out += fmt::format("  {:<8}", state);
    out += "\n";
  }
  if (args.run.json) {
    print_json(Json{{"places", places}, {"checkpoints", list}});
  } else {
    print_text(out);
  }
  return Exit::ok;
}

/// Every tier gets what it lacks, also where another one fails.
Exit drain(const CheckpointArgs& args, CheckpointWorkspace& work) {
  const auto stores = stores_of(args);
  const ck::Store& store = stores.front();
  work.check(store.check_is_store(work.report()));
  Vector<ck::CheckpointName> chosen;
  if (args.step) chosen.push_back(work.check(store.at_step(*args.step, work.report())).name);
  Copier copier(args);
  Json tiers = Json::array();
  Exit outcome = Exit::ok;
  Progress progress("checkpoint tiers drain", args.run);
  for (std::size_t i = 1; i < stores.size(); ++i) {
    const ck::Store& tier = stores[i];
    ck::Report report;
    ck::Copied sum;
    std::string problem;
    const auto failed = [&](const Status& status) {
      problem = report.problem.empty() ? std::string(status.text()) : text(report.problem);
      outcome = exit_for(status, Phase::encode);
      print_note(problem);
    };
    Status status = tier.make_folders(report);
    if (status.ok()) status = ck::check_order(store, tier, report);
    const auto missing = !status.ok()      ? Result<Vector<ck::CheckpointName>>(status)
                         : !chosen.empty() ? Result<Vector<ck::CheckpointName>>(chosen)
                                           : ck::missing_on(store, {&tier, args.every}, report, true);
    if (!missing.ok()) {
      failed(missing.status());
    } else {
      std::deque<ck::CheckpointName> left(missing->begin(), missing->end());
      std::size_t busy = 0;  // the last so many of those that are left
      while (!left.empty()) {
        progress.update(missing->size() - left.size(), missing->size());
        const ck::CheckpointName name = left.front();
        left.pop_front();
        report.problem.clear();
        const auto copied = copier.copy(store, tier, name, report);
        if (!copied.ok() && ck::is_busy(copied.status())) {
          // Somebody else copies it: the others come first.
          left.push_back(name);
          if (++busy < left.size()) continue;
          if (busy == left.size() && !args.run.quiet)
            print_note(fmt::format("{}: waits for another process that copies step {}", text(tier.root()), name.step));
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          continue;
        }
        busy = 0;
        if (!copied.ok()) {
          failed(copied.status());
          if (copied.status().code() == StatusCode::io_error) break;  // full or gone; a damaged one is its own affair
          continue;
        }
        sum.checkpoints += copied->checkpoints;
        sum.bytes += copied->bytes;
      }
    }
    if (!args.run.quiet)
      for (const String& note : report.notes) print_note(text(note));
    tiers.push_back(Json{{"path", text(tier.root())},
                         {"copied", sum.checkpoints},
                         {"bytes", sum.bytes},
                         {"problem", problem.empty() ? Json(nullptr) : Json(problem)}});
    if (!args.run.json && !args.run.quiet && problem.empty())
      print_note(
          fmt::format("{}: copied {} checkpoints, {}", text(tier.root()), sum.checkpoints, size_text(sum.bytes)));
  }
  if (args.run.json) print_json(Json{{"tiers", tiers}});
  return outcome;
}

Exit promote(const CheckpointArgs& args, CheckpointWorkspace& work) {
  const auto stores = stores_of(args);
  const auto tiers = std::span(stores).subspan(1);
  const auto found = work.check(ck::newest_of(tiers, work.runner(), work.report(), args.step), Phase::decode);
  Copier copier(args);
  const auto copied = work.check(copier.copy(tiers[found.tier], stores.front(), found.manifest.name, work.report()));
  work.print_notes();
  if (args.run.json) {
    print_json(Json{{"step", found.manifest.name.step},
                    {"from", text(tiers[found.tier].root())},
                    {"copied", copied.checkpoints},
                    {"bytes", copied.bytes}});
  } else if (!args.run.quiet) {
    print_note(copied.checkpoints == 0 ? fmt::format("step {} is in {} already", found.manifest.name.step, args.store)
                                       : fmt::format("step {}: {} from {}", found.manifest.name.step,
                                                     size_text(copied.bytes), text(tiers[found.tier].root())));
  }
  return Exit::ok;
}

Exit evict(const CheckpointArgs& args, CheckpointWorkspace& work) {
  const auto stores = stores_of(args);
  Vector<ck::Tier> tiers;
  for (std::size_t i = 1; i < stores.size(); ++i) tiers.push_back({&stores[i], args.every});
  ck::CollectOptions options;
  options.remove_exactly = work.check(ck::evictable(stores.front(), tiers, *args.keep, work.report()));
  options.dry_run = args.dry_run;
  ck::Collected done;
  if (!options.remove_exactly.empty()) done = work.check(ck::collect(stores.front(), options, work.report()));
  work.print_notes();
  if (args.run.json) {
    Json removed = Json::array();
    for (const auto& name : done.removed) removed.push_back(name.step);
    print_json(Json{{"removed", removed},
                    {"kept_for_others", done.kept_for_others.size()},
                    {"freed_bytes", done.freed_bytes},
                    {"dry_run", args.dry_run}});
  } else if (!args.run.quiet) {
    print_note(fmt::format("{} {} checkpoints of {}, {}", args.dry_run ? "would remove" : "removed",
                           done.removed.size(), args.store, size_text(done.freed_bytes)));
  }
  return Exit::ok;
}

}  // namespace

Vector<ck::Store> stores_of(const CheckpointArgs& args) {
  Vector<ck::Store> stores;
  stores.push_back(open_store(args.store));
  for (const std::string& tier : args.tiers) stores.push_back(open_store(tier));
  return stores;
}

Exit run_checkpoint_tiers(const CheckpointArgs& args) {
  CheckpointWorkspace work(args);
  const auto stores = stores_of(args);
  for (const ck::Store& tier : std::span(stores).subspan(1)) {
    ck::Report own;
    // The work tells of one that cannot be read.
    if (stores.front().check_apart(tier, own).code() == StatusCode::invalid_argument)
      fail(Exit::usage, fmt::format("--tier: {}", text(own.problem)));
  }
  if (args.tiers_work == "list") return list(args, work);
  if (args.tiers_work == "drain") return drain(args, work);
  if (args.tiers_work == "promote") return promote(args, work);
  return evict(args, work);
}

}  // namespace quern::cli
