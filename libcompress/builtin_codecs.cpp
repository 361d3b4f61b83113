// Composition root: the one place that names every codec, and gives searches their estimator.
#include <array>

#include <quern/codec.h>
#include <quern/models.h>
#include <quern/records.h>

#include "codecs/autoencoder/autoencoder.h"
#include "codecs/interp/interp.h"
#include "codecs/lorenzo/lorenzo.h"
#include "codecs/lossless/lossless.h"
#include "codecs/stencil/stencil.h"
#include "surrogate/estimator.h"

namespace quern {
namespace {

using CodecList = std::array<const ArrayCodec*, 5>;

CodecList codecs_with(const ArrayCodec& stencil, const ArrayCodec& autoencoder) {
  return {&codec::lorenzo::lorenzo_codec(), &codec::lossless::lossless_codec(), &stencil,
          &codec::interp::interp_codec(), &autoencoder};
}

/// The codecs of this build, and an estimator that knows them.
struct Builtin {
  CodecList codecs = codecs_with(codec::stencil::stencil_codec(), codec::autoencoder::autoencoder_codec());
  Registry alone{codecs};
  Registry registry{codecs, &surrogate::estimator(alone)};
};

const Builtin& builtin() {
  static const Builtin parts;
  return parts;
}

}  // namespace

const Registry& builtin_codecs() { return builtin().registry; }

struct CodecsWithModels::Parts {
  explicit Parts(const ModelSource& models)
      : stencil(codec::stencil::stencil_codec_with(models)),
        autoencoder(codec::autoencoder::autoencoder_codec_with(models)),
        codecs(codecs_with(*stencil, *autoencoder)) {}

  std::unique_ptr<ArrayCodec> stencil;
  std::unique_ptr<ArrayCodec> autoencoder;
  CodecList codecs;
  Registry registry{codecs, builtin().registry.estimator()};
};

CodecsWithModels::CodecsWithModels(const ModelSource& models) : parts_(std::make_unique<Parts>(models)) {}
CodecsWithModels::~CodecsWithModels() = default;
const Registry& CodecsWithModels::registry() const { return parts_->registry; }

const RecordRegistry& builtin_record_codecs() {
  static const RecordRegistry registry({});
  return registry;
}

}  // namespace quern
