// Options of quern checkpoint place, and how their texts are read.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/args/options.h"
#include "cli/args/raw_args.h"
#include "cli/args/values.h"

namespace quern::cli {
namespace {

constexpr const char* kSchedulerNames[] = {"min-storage", "least-used", "balanced", "saturation"};
constexpr std::uint64_t kMostItems = 1'000'000;
constexpr std::uint64_t kMostBytes = 100'000'000'000'000'000ULL;

}  // namespace

void define_place(CLI::App& verb, RawArgs& raw) {
  CLI::App& work =
      *verb.add_subcommand("place", "choose the nodes, parts and parity that keep checkpoints for a stated time");
  work.add_option("NODES", raw.files, "JSON file of the nodes")->expected(0, 1)->type_name("");
  add_value(work, "--size", raw.state_size, "SIZE", "bytes of a checkpoint, such as 40G");
  add_value(work, "--target", raw.target, "P", "chance that it can still be read at the end of the time [0.99999]");
  add_value(work, "--days", raw.days, "D", "the time in days [365.25]");
  add_value(work, "--scheduler", raw.scheduler, "NAME",
            "min-storage, least-used, balanced or saturation [min-storage]");
  add_value(work, "--store", raw.store, "DIR", "let this store put its parts and parity files on the chosen nodes");
  work.add_flag(
      "--adopt", raw.adopt,
      "instead: make --store the owner of the nodes in its placement.json, after its folder was lost or moved");
  add_value(work, "--simulate", raw.simulate, "N",
            "instead: how many of N made-up items each scheduler, RS(4,2) and RS(10,4) would store");
  add_value(work, "--seed", raw.seed, "N", "of the made-up items [1]");
  work.add_flag("-q,--quiet", raw.quiet, "only errors");
  work.add_flag("--json", raw.json, "one JSON object on standard output");
  work.footer(
      "NODES: {\"nodes\": [{\"name\": \"a\", \"folder\": \"/mnt/a\", \"capacity\": 4e12, \"used\": 1e12, \"write\": "
      "2e8,\n"
      "  \"read\": 4e8, \"yearly_failure_rate\": 0.02}, ...]}: bytes, bytes a second, failures expected in a year.\n"
      "Nodes fail independently and lose all that they have; nothing is mended meanwhile.\n"
      "Examples:\n"
      "  quern checkpoint place nodes.json --size 40G --target 0.999999 --days 90\n"
      "  quern checkpoint place nodes.json --size 64K --store run\n"
      "  quern checkpoint place --adopt --store run\n"
      "  quern checkpoint place nodes.json --simulate 200 --seed 7\n");
}

void read_place(const RawArgs& raw, CheckpointArgs& out) {
  out.adopt = raw.adopt;
  if (out.adopt) {
    if (out.store.empty()) fail(Exit::usage, "--adopt: say which store, with --store DIR");
    for (const std::string* const given :
         {&raw.simulate, &raw.state_size, &raw.scheduler, &raw.target, &raw.days, &raw.seed})
      if (!raw.files.empty() || !given->empty())
        fail(Exit::usage, "--adopt: goes by the placement.json of the store; leave out NODES and all but --store");
    return;
  }
  if (raw.files.empty()) fail(Exit::usage, "checkpoint place: name the JSON file of the nodes");
  if (!raw.simulate.empty()) {
    out.simulated = parse_count(raw.simulate, "--simulate", kMostItems);
    if (out.simulated == 0) fail(Exit::usage, "--simulate 0: give a number of items, such as 1000");
    if (!out.store.empty() || !raw.state_size.empty() || !raw.scheduler.empty())
      fail(Exit::usage,
           "--simulate: tries all schedulers on items of its own; leave out --store, --size and --scheduler");
  } else if (raw.state_size.empty()) {
    fail(Exit::usage, "checkpoint place: say how large a checkpoint is, with --size SIZE");
  } else {
    out.item_bytes = parse_size(raw.state_size, "--size");
    if (out.item_bytes > kMostBytes) fail(Exit::usage, "--size: at most 88 PiB");
  }
  if (!raw.seed.empty()) {
    if (out.simulated == 0) fail(Exit::usage, "--seed: of made-up items alone, with --simulate N");
    out.seed = parse_count(raw.seed, "--seed", UINT64_MAX);
  }
  out.target_given = !raw.target.empty();
  if (out.target_given) out.target = parse_real(raw.target, "--target");
  if (!(out.target > 0 && out.target < 1))
    fail(Exit::usage, fmt::format("--target {}: a chance above 0 and below 1, such as 0.99999", raw.target));
  if (!raw.days.empty()) out.days = parse_real(raw.days, "--days");
  if (!(out.days > 0 && out.days <= 36525))
    fail(Exit::usage, fmt::format("--days {}: above 0, and at most 36525 (100 years)", raw.days));
  if (!raw.scheduler.empty()) out.scheduler = raw.scheduler;
  if (std::none_of(std::begin(kSchedulerNames), std::end(kSchedulerNames),
                   [&](const char* name) { return out.scheduler == name; }))
    fail(Exit::usage,
         fmt::format("--scheduler {}: unknown; use min-storage, least-used, balanced or saturation", out.scheduler));
}

}  // namespace quern::cli
