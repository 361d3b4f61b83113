// The model of a stream: found when it is opened; taken for an array when it makes its chunks smaller.
#pragma once

#include <memory>

#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/models.h>
#include <quern/status.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/networks/level_networks.h"
#include "models/model_reference.h"

namespace quern::codec::stencil {

/// The networks that all chunks of an array share. Belongs to its encoder or decoder.
struct ArrayNetworks : Allocated {
  std::unique_ptr<const LevelNetworks> networks;  ///< null: the model was not found
  ChunkNetworks of_chunks;
};

/// The networks of a stream that names a model. One that is missing is no failure: chunks without networks decode all
/// the same. May throw std::bad_alloc.
Result<std::unique_ptr<const ArrayNetworks>> open_networks(const models::ModelReference& reference,
                                                           const ModelSource* models, kernels::IsaLevel isa);

struct ChosenNetworks {
  std::unique_ptr<const ArrayNetworks> networks;  ///< null: the array is coded without
  Vector<std::uint8_t> reference;                 ///< what parameters say of the model
};

/// Whether the networks of the model that settings name predict points of full chunks and make the chunks of an array smaller, by what chunks of the
/// sample take with and without; `spec` is without. Where the sample holds none, they are taken. Fails where the model
/// is missing, or none for levels. May throw std::bad_alloc.
Result<ChosenNetworks> choose_networks(const PlanRequest& request, const models::ModelSettings& settings,
                                       const ModelSource* models, kernels::IsaLevel isa, const ChunkGrid& grid,
                                       const EncodeSpec& spec);

}  // namespace quern::codec::stencil
