// The codec's settings (interp.h), read from text.
#pragma once

#include <optional>

#include <quern/codec.h>
#include <quern/shape.h>

#include "codecs/interp/rules.h"
#include "kernels/common/cpu/isa.h"

namespace quern::codec::interp {

struct ParsedSettings {
  std::optional<Layout> layout;  ///< nothing: the codec chooses
  kernels::IsaLevel isa = kernels::best_isa();
};

/// Fails on keys and values that make no sense, and on instruction sets that this processor does not have.
Result<ParsedSettings> parse_settings(const Settings& settings, const Shape& shape);

}  // namespace quern::codec::interp
