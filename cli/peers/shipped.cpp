// Each has the command of its own project first, then a filter of the Python package hdf5plugin.
#include "cli/peers/shipped.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/files/child.h"
#include "cli/files/file_names.h"

namespace quern::cli {

extern const char* const kHdf5FilterScript;  // hdf5_filter.py

namespace {

struct Shipped {
  const char* name;
  std::vector<const char*> commands;  ///< as parse_peer takes them, without "name=NAME:"
  const char* filter;                 ///< of hdf5plugin; nullptr: none
  bool power_steps = false;           ///< as in Peer
};

const std::vector<Shipped>& shipped() {
  static const std::vector<Shipped> all = {
      {"sz3",
       {"sz3 -{letter} -i {input} -z {stream} -{rank} {dims} -M ABS {bound} ;;"
        " sz3 -{letter} -z {stream} -o {output} -{rank} {dims} -M ABS {bound}"},
       "sz3"},
      {"zfp",
       {"zfp -{letter} -i {input} -z {stream} -{rank} {dims} -a {bound} ;;"
        " zfp -{letter} -z {stream} -o {output} -{rank} {dims} -a {bound}"},
       "zfp",
       true},
      {"sperr",
       {"sperr{rank}d -c --ftype {bits} --dims {dims} --pwe {bound} --bitstream {stream} {input} ;;"
        " sperr{rank}d -d --decomp_{letter} {output} {stream}"},
       "sperr"},
      {"qoz",
       {"qoz -{letter} -i {input} -z {stream} -{rank} {dims} -M ABS {bound} ;;"
        " qoz -{letter} -z {stream} -o {output} -{rank} {dims} -M ABS {bound}"},
       nullptr}};
  return all;
}

bool is_installed(const std::string& tool) {
  if (tool.find('/') != std::string::npos) return access(tool.c_str(), X_OK) == 0;
  const std::string path = environment("PATH");
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    if (access(in_folder(path.substr(at, end - at), tool).c_str(), X_OK) == 0) return true;
    at = end + 1;
  }
  return false;
}

bool has_filters() {
  if (!is_installed("python3")) return false;
  Child child({"python3", "-c", "import h5py, hdf5plugin, numpy"});
  child.has_ended(true);
  return child.code() == 0;
}

/// Tools whose names hold {rank} are for several ranks; that for three axes stands for all.
std::string tool_of(const Peer::Way& way) {
  std::string tool = way.compress.front();
  const std::size_t rank = tool.find("{rank}");
  return rank == std::string::npos ? tool : tool.replace(rank, 6, "3");
}

bool runs_filter(const Peer::Way& way) { return way.compress.size() > 2 && way.compress[2] == kHdf5FilterScript; }

}  // namespace

std::vector<std::string> shipped_peer_names() {
  std::vector<std::string> names;
  for (const Shipped& one : shipped()) names.emplace_back(one.name);
  return names;
}

Peer::Way usable_way(const Peer& peer) {
  std::vector<std::string> missing;
  for (const Peer::Way& way : peer.ways) {
    if (runs_filter(way) ? has_filters() : is_installed(tool_of(way))) return way;
    missing.push_back(runs_filter(way) ? "Python's package hdf5plugin (pip install hdf5plugin)" : tool_of(way));
  }
  fail(Exit::usage, fmt::format("--peer {}: {} was not found; install it or put its folder into PATH", peer.name,
                                fmt::join(missing, " or ")));
}

Peer peer_of(const std::string& text) {
  for (const Shipped& one : shipped()) {
    if (text != one.name) continue;
    Peer peer;
    peer.name = one.name;
    peer.power_steps = one.power_steps;
    for (const char* command : one.commands)
      peer.ways.push_back(parse_peer(fmt::format("name={}: {}", one.name, command)).ways.front());
    if (one.filter != nullptr)
      peer.ways.push_back({{"python3", "-c", kHdf5FilterScript, one.filter, "{input}", "{stream}", "{output}", "{type}",
                            "{shape}", "{bound}"},
                           {}});
    return peer;
  }
  return parse_peer(text);
}

}  // namespace quern::cli
