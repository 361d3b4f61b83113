// The library's QualityEstimator: features, networks, and what must hold of any answer.
#pragma once

#include <quern/codec.h>
#include <quern/estimate.h>

namespace quern::surrogate {

/// `registry` outlives the estimator; a model whose codecs have other versions there is refused.
const QualityEstimator& estimator(const Registry& registry);

/// False for codecs whose streams are made by a model of their own: what they give depends on that model.
bool is_estimated(const ArrayCodec& codec);
inline constexpr const char* kNotEstimated =
    "is not estimated: what it makes depends on the model it is given; compress with --model to know";

}  // namespace quern::surrogate
