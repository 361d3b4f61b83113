// Rank 0 gives out files and gathers what became of them; all ranks work, rank 0 among them.
//
//   rank -> 0   Result, then what its quern printed and said; the first of a rank has no file and asks for one
//   0 -> rank   words of a command line, each ended by a zero byte; nothing: all is given out
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace quern::cli::mpi {

/// One file's quern, ended.
struct Finished {
  int code = 0;
  std::string text;
  std::string messages;
};

/// What rank 0 knows of the run. `next` gives the number of a file and its command line; false when none is left.
struct Coordinator {
  std::function<bool(std::size_t& job, std::vector<std::string>& words)> next;
  std::function<void(std::size_t job, const Finished&)> finished;
};

/// Of all ranks but 0, until nothing is left.
void serve_rank();
/// Of rank 0: returns when all files are finished. Must be followed by no other call of this kind.
void coordinate(int ranks, const Coordinator& coordinator);

}  // namespace quern::cli::mpi
