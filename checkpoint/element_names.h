// Element types by the names that safetensors gives them.
#pragma once

#include <optional>
#include <string_view>

#include "codecs/tensor/description.h"

namespace quern::checkpoint {

using codec::tensor::ElementType;
using codec::tensor::TensorDescription;

/// "F32", "BF16", "F8_E4M3", "BOOL", ...
const char* element_name(ElementType type);
/// The type of that name, or nothing.
std::optional<ElementType> parse_element(std::string_view name);

}  // namespace quern::checkpoint
