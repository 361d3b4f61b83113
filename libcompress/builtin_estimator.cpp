// Composition: the estimator with the codecs of this build.
#include <quern/codec.h>
#include <quern/estimate.h>

namespace quern {

const QualityEstimator& builtin_estimator() { return *builtin_codecs().estimator(); }

}  // namespace quern
