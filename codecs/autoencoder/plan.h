// What an encoder decides for an array: the model, its scale, and whether the stream holds it.
#pragma once

#include <memory>

#include <quern/codec.h>
#include <quern/models.h>

#include "codecs/autoencoder/chunk.h"
#include "codecs/autoencoder/params.h"

namespace quern::codec::autoencoder {

struct ParsedSettings : models::ModelSettings {
  kernels::IsaLevel isa = kernels::best_isa();
};
Result<ParsedSettings> parse_settings(const Settings& settings);

struct EncodePlan {
  CodecPlan plan;
  EncodeSpec spec;  ///< its model is the one below
  std::unique_ptr<const PreparedModel> model;
};

/// `models` may be null: then there are none. May throw std::bad_alloc.
Result<EncodePlan> make_plan(const PlanRequest& request, const ModelSource* models);

/// The model of that id, checked; it fails with `missing_model` where there is none.
Result<models::BlockModel> find_model(const ModelSource* models, const ModelId& id);

}  // namespace quern::codec::autoencoder
