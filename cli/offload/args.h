// quern offload: what the user asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/args/run_args.h"
#include "offload/file_form.h"

namespace quern::cli {

/// A folder of the bench and what it may move.
struct OffloadFolder {
  std::string path;
  double rate = 0;  ///< bytes a second in each direction; 0: as fast as it goes
};

/// Of raw: one is read, one updated, one written.
inline constexpr std::uint64_t kFewestRawBuffers = 3;

/// How the state lies while it is measured.
struct OffloadForm {
  std::string name;   ///< as the user wrote it
  unsigned bits = 0;  ///< of a code; 0: weights and moments in binary32
  bool finest = true;
  offload::FileForm files = offload::FileForm::plain;
};

/// The bench of offloaded steps.
struct OffloadArgs {
  std::uint64_t parameters = UINT64_C(1) << 22;
  std::uint64_t subgroup = UINT64_C(1) << 16;
  std::uint64_t steps = 3;
  std::vector<OffloadFolder> folders;
  std::vector<OffloadForm> forms;
  std::string html;  ///< empty: no page
  bool force = false;
  RunArgs run;  ///< memory: of subgroups and coders; none: as docs/man/quern.1 says
};

}  // namespace quern::cli
