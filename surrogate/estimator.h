// The library's QualityEstimator: features, networks, and what must hold of any answer.
#pragma once

#include <quern/codec.h>
#include <quern/estimate.h>

namespace quern::surrogate {

/// `registry` outlives the estimator; a model whose codecs have other versions there is refused.
const QualityEstimator& estimator(const Registry& registry);

struct Model;
/// Networks speak of codecs as they were when their runs were made: fails with unsupported where a codec of `registry` is
/// of another version or the inputs are of an older list, with unsupported_version where they are of a newer one.
Status check_versions(const Model& model, const Registry& registry);

/// False for codecs whose streams are made by a model of their own: what they give depends on that model.
bool is_estimated(const ArrayCodec& codec);
inline constexpr const char* kNotEstimated =
    "is not estimated: what it makes depends on the model it is given; compress with --model to know";

}  // namespace quern::surrogate
