// The library's QualityEstimator: features, networks, and what must hold of any answer.
#pragma once

#include <quern/codec.h>
#include <quern/estimate.h>

namespace quern::surrogate {

/// `registry` outlives the estimator; a model whose codecs have other versions there is refused.
const QualityEstimator& estimator(const Registry& registry);

}  // namespace quern::surrogate
