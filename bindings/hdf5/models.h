// Models of learned codecs that the environment names, for a filter that nobody can hand them to.
#pragma once

#include <string>

#include <quern/quern.h>

namespace quern::hdf5 {

/// Ids of the models that codecs encode with; "" where there is none.
struct EncodingModels {
  std::string autoencoder;
  std::string stencil;

  /// The one of that codec; "" where it has none or takes none.
  const std::string& of_codec(const std::string& codec) const;
};

/// Gives a context the model files of QUERN_MODELS: paths with colons between them. Returns the first one for each
/// codec. Throws Problem(request) naming the file that cannot be read or is no model.
EncodingModels add_models(quern_context& context);

}  // namespace quern::hdf5
