// Compiled against the stand-in's headers.
#include "tests/simt/interface_entries.h"

namespace quern::testing {

std::vector<InterfaceEntry> stand_in_interface() { return make_interface(); }

}  // namespace quern::testing
