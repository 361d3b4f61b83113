// quern h5 and the doctor's word on the plugin in a build without HDF5.
#include "cli/args/exit_codes.h"
#include "cli/h5/plugin.h"
#include "cli/verbs/verbs.h"

namespace quern::cli {

Exit run_h5(const H5Args& /*args*/) {
  fail(Exit::resource, "h5: this build has no HDF5; build with QUERN_HDF5_PLUGIN=ON and libhdf5-dev");
}

void prepare_filter() {}

PluginState examine_plugin() { return {false, {}, "this build has no HDF5"}; }

}  // namespace quern::cli
