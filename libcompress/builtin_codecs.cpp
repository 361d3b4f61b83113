// Composition root: the one place that names every codec, and gives searches their estimator.
#include <quern/codec.h>
#include <quern/records.h>

#include "codecs/interp/interp.h"
#include "codecs/lorenzo/lorenzo.h"
#include "codecs/lossless/lossless.h"
#include "codecs/stencil/stencil.h"
#include "surrogate/estimator.h"

namespace quern {

const Registry& builtin_codecs() {
  static const ArrayCodec* const codecs[] = {
      &codec::lorenzo::lorenzo_codec(),
      &codec::lossless::lossless_codec(),
      &codec::stencil::stencil_codec(),
      &codec::interp::interp_codec(),
  };
  static const Registry alone(codecs);
  static const Registry registry(codecs, &surrogate::estimator(alone));
  return registry;
}

const RecordRegistry& builtin_record_codecs() {
  static const RecordRegistry registry({});
  return registry;
}

}  // namespace quern
