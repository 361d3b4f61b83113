// The peers whose templates quern has: sz3, zfp, sperr and qoz.
#pragma once

#include <string>
#include <vector>

#include "cli/peers/peer.h"

namespace quern::cli {

std::vector<std::string> shipped_peer_names();

/// The way of `peer` to be used: the first whose tool is installed. Throws CliError (usage) that names what to install.
Peer::Way usable_way(const Peer& peer);

/// A text of --peer: one of those names, or a template of one's own (parse_peer).
Peer peer_of(const std::string& text);

}  // namespace quern::cli
