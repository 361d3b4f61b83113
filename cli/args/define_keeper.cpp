// Options of quern checkpoint keeper, and how their texts are read.
#include "cli/args/exit_codes.h"
#include "cli/args/options.h"
#include "cli/args/raw_args.h"
#include "cli/args/values.h"

namespace quern::cli {

void define_keeper(CLI::App& verb, RawArgs& raw) {
  CLI::App& work = *verb.add_subcommand("keeper", "hold a store in memory that outlives the trainer which saves to it");
  work.add_option("--store", raw.store, "folder of the store on a disk that checkpoints go to")
      ->type_name("DIR")
      ->required();
  work.add_option("--memory", raw.keeper_memory, "most that checkpoints in memory take, the one being written included")
      ->type_name("SIZE")
      ->required();
  add_value(work, "--dir", raw.keeper_folder, "FOLDER",
            "the store in memory; on tmpfs, for you alone [one for the store in /dev/shm]");
  add_value(work, "--every", raw.every, "N", "the store on the disk gets steps that are multiples of N [1]");
  add_repeatable(work, "--peer", raw.peers, "SOCKET",
                 "a member's socket; once for each member of the group, this one too, in one order");
  add_value(work, "--member", raw.member, "N", "with --peer: which of the members this one is, from 0");
  add_value(work, "--peer-parity", raw.peer_parity, "M",
            "with --peer: so many members may be lost with their memory [1]");
  work.add_flag("--once", raw.once, "look once and end; for scripts");
  add_value(work, "-T,--threads", raw.threads, "N", "threads; 0 = all [1]");
  work.add_flag("-q,--quiet", raw.quiet, "only errors");
  work.add_flag("--json", raw.json, "with --once: one JSON object on standard output");
  work.footer(
      "Trainers save to the folder that it names; the newest checkpoints that fit stay there, all go to the store.\n"
      "After a trainer died: quern checkpoint load --store FOLDER --tier DIR takes the newest that either has.\n"
      "Runs until it is interrupted. What is in memory stays when the keeper ends.\n"
      "With --peer the keepers of several trainers hold parity of each other's memories, and one that starts with an\n"
      "empty memory gets its checkpoint back from the others. Sockets of other machines are forwarded (ssh -L).\n"
      "Examples:\n"
      "  quern checkpoint keeper --store run --memory 64M --once\n"
      "  quern checkpoint keeper --store run --memory 2G --dir /dev/shm/run --every 10 --once\n");
}

namespace {

void read_peers(const RawArgs& raw, CheckpointArgs& out) {
  out.peers = raw.peers;
  if (out.peers.empty()) {
    if (!raw.member.empty() || !raw.peer_parity.empty())
      fail(Exit::usage, "--member and --peer-parity: with --peer SOCKET for each member of the group");
    return;
  }
  constexpr std::uint64_t kMost = 64;
  if (out.peers.size() < 2 || out.peers.size() > kMost)
    fail(Exit::usage, "--peer: give the sockets of all members, this keeper's too, 2 to 64 of them");
  for (std::size_t i = 0; i < out.peers.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (out.peers[i] == out.peers[j])
        fail(Exit::usage, "--peer " + out.peers[i] + ": twice; each member has its own socket");
  if (raw.member.empty()) fail(Exit::usage, "--peer: say with --member N which of them this keeper is, from 0");
  out.member = parse_count(raw.member, "--member", out.peers.size() - 1);
  if (!raw.peer_parity.empty()) out.peer_parity = parse_count(raw.peer_parity, "--peer-parity", out.peers.size() - 1);
  if (out.peer_parity == 0) fail(Exit::usage, "--peer-parity 0: give a number above 0");
  if (raw.once) fail(Exit::usage, "--once: not with --peer; a keeper of a group must be there for the others");
}

}  // namespace

void read_keeper(const RawArgs& raw, CheckpointArgs& out) {
  out.memory_bytes = parse_size(raw.keeper_memory, "--memory");
  out.keeper_folder = raw.keeper_folder;
  while (out.keeper_folder.size() > 1 && out.keeper_folder.back() == '/') out.keeper_folder.pop_back();
  if (!raw.every.empty()) out.every = parse_count(raw.every, "--every", 999'999'999'999'999);
  if (out.every == 0) fail(Exit::usage, "--every 0: give a number above 0");
  out.once = raw.once;
  if (raw.json && !out.once) fail(Exit::usage, "--json: with --once; a keeper that goes on has no end to tell of");
  read_peers(raw, out);
}

}  // namespace quern::cli
