// Models of learned codecs that the environment names, for a filter that nobody can hand them to.
#pragma once

#include <string>

#include <quern/quern.h>

namespace quern::hdf5 {

/// Gives a context the model files of QUERN_MODELS: paths with colons between them. Returns the id of the first, "" when
/// the variable is unset or empty. Throws Problem(request) naming the file that cannot be read or is no model.
std::string add_models(quern_context& context);

}  // namespace quern::hdf5
