// Composition: the estimator with the codecs of this build.
#include <quern/estimate.h>

#include "surrogate/estimator.h"

namespace quern {

const QualityEstimator& builtin_estimator() { return surrogate::estimator(builtin_codecs()); }

}  // namespace quern
