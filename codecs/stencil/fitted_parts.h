// Which parts of a model encoders fit.
#pragma once

namespace quern::codec::stencil {

/// What encoders fit to the data; what is switched off shows what it is worth.
struct FittedParts {
  bool weights = true;   ///< of predictions; else Lorenzo's and cubics
  bool contexts = true;  ///< distributions by neighbouring residuals; else one for all, in levels for each class
};

}  // namespace quern::codec::stencil
