// A compressor that is not quern's, as a template of the commands that run it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quern::cli {

/// Words of a command, with placeholders inside.
using CommandTemplate = std::vector<std::string>;

struct Peer {
  std::string name;  ///< as it stands in runs and models
  /// One way to run it, or several of which the first whose tool is installed counts.
  struct Way {
    CommandTemplate compress;
    CommandTemplate decompress;  ///< empty: `compress` writes the reconstruction, too
  };
  std::vector<Way> ways;
  bool power_steps = false;  ///< it works with the largest power of two that is no larger than the bound
};

/// What placeholders stand for.
struct PeerFiles {
  std::string input;   ///< {input}: raw values, little-endian, the last axis fastest
  std::string stream;  ///< {stream}: what the compressor writes
  std::string output;  ///< {output}: what comes back, raw as the input
  std::string type;    ///< {type}: quern's name; {bits}, {letter}: its size, f or d
  std::vector<std::string>
      extents;        ///< slowest first. {shape}: 50x100x80; {extents}: 50 100 80; {dims}: 80 100 50; {rank}
  std::string bound;  ///< {bound}: absolute
};

/// Reads "name=NAME: COMPRESS ;; DECOMPRESS", or "name=NAME: COMMAND" where one command does both. "name=NAME steps=2:"
/// says that the peer rounds bounds down to powers of two. Commands are cut into words at blanks; '...', "..." and a
/// backslash keep what they hold together. No shell reads them. Throws CliError (usage) for a missing placeholder, one
/// that is not known, or a quote that is left open.
Peer parse_peer(std::string_view text);

/// The words to run. A word that is nothing but {extents} or {dims} becomes one word an axis. Throws CliError (usage)
/// where the array has no such thing: {letter} of a type that is neither f32 nor f64.
std::vector<std::string> filled(const CommandTemplate& command, const PeerFiles& files);

}  // namespace quern::cli
