// The codec's settings (lorenzo.h), read from text.
#pragma once

#include <optional>

#include <quern/codec.h>
#include <quern/shape.h>

#include "codecs/lorenzo/rules.h"
#include "kernels/lorenzo/cpu/lorenzo.h"

namespace quern::codec::lorenzo {

struct ParsedSettings {
  std::optional<Layout> layout;  ///< nothing: the codec chooses
  kernels::IsaLevel isa = kernels::best_isa();
  bool checks_faults = false;
};

/// Fails on keys and values that make no sense, and on instruction sets that this processor does not have.
Result<ParsedSettings> parse_settings(const Settings& settings, const Shape& shape);

}  // namespace quern::codec::lorenzo
