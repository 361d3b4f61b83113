// Element types by the names that safetensors gives them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <quern/memory.h>

#include "codecs/tensor/description.h"

namespace quern::checkpoint {

using codec::tensor::ElementType;
using codec::tensor::TensorDescription;

/// What a file calls values that are stored under another description: those of a type that is not known here or that
/// packs elements into bits (stored as bytes), and those of more than 8 axes.
struct DeclaredType {
  String dtype;
  Vector<std::uint64_t> shape;

  friend bool operator==(const DeclaredType&, const DeclaredType&) = default;
};

/// Bits of an element of a type that packs elements into bytes (F4, F6_E2M3, F6_E3M2); nothing for other names.
std::optional<unsigned> packed_bits(std::string_view name);

/// Elements of a shape; nothing where they are more than 2^59.
std::optional<std::uint64_t> count_elements(std::span<const std::uint64_t> extents);
/// False when values of that type and shape do not take so many bytes. Of an unknown type any number fits.
bool fits(const DeclaredType& said, std::uint64_t bytes);

/// "F32", "BF16", "F8_E4M3", "BOOL", ...
const char* element_name(ElementType type);
/// The type of that name, or nothing.
std::optional<ElementType> parse_element(std::string_view name);

}  // namespace quern::checkpoint
