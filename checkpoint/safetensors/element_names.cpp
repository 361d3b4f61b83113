// The one table of element type names.
#include "checkpoint/safetensors/element_names.h"

#include <algorithm>
#include <utility>

namespace quern::checkpoint {
namespace {

constexpr std::pair<const char*, ElementType> kNames[] = {{"F64", ElementType::f64},
                                                          {"F32", ElementType::f32},
                                                          {"F16", ElementType::f16},
                                                          {"BF16", ElementType::bf16},
                                                          {"F8_E4M3", ElementType::f8_e4m3},
                                                          {"F8_E5M2", ElementType::f8_e5m2},
                                                          {"I64", ElementType::i64},
                                                          {"I32", ElementType::i32},
                                                          {"I16", ElementType::i16},
                                                          {"I8", ElementType::i8},
                                                          {"U64", ElementType::u64},
                                                          {"U32", ElementType::u32},
                                                          {"U16", ElementType::u16},
                                                          {"U8", ElementType::u8},
                                                          {"BOOL", ElementType::boolean},
                                                          {"F8_E4M3FNUZ", ElementType::f8_e4m3fnuz},
                                                          {"F8_E5M2FNUZ", ElementType::f8_e5m2fnuz},
                                                          {"F8_E8M0", ElementType::f8_e8m0},
                                                          {"C64", ElementType::c64},
                                                          {"C128", ElementType::c128}};

constexpr std::pair<const char*, unsigned> kPacked[] = {{"F4", 4}, {"F6_E2M3", 6}, {"F6_E3M2", 6}};

}  // namespace

const char* element_name(ElementType type) {
  for (const auto& [name, named] : kNames)
    if (named == type) return name;
  return "unknown";
}

std::optional<unsigned> packed_bits(std::string_view name) {
  for (const auto& [known, bits] : kPacked)
    if (name == known) return bits;
  return std::nullopt;
}

std::optional<std::uint64_t> count_elements(std::span<const std::uint64_t> extents) {
  constexpr std::uint64_t kMost = UINT64_C(1) << 59;
  std::uint64_t count = 1;  // extents of 0 left out, so that they do not hide an overflow
  for (const std::uint64_t extent : extents) {
    if (extent != 0 && count > kMost / extent) return std::nullopt;
    count *= std::max<std::uint64_t>(extent, 1);
  }
  return std::find(extents.begin(), extents.end(), 0U) != extents.end() ? 0 : count;
}

bool fits(const DeclaredType& said, std::uint64_t bytes) {
  const auto elements = count_elements(said.shape);
  if (!elements) return false;
  if (const auto known = parse_element(said.dtype)) return bytes == *elements * codec::tensor::element_bytes(*known);
  const auto bits = packed_bits(said.dtype);
  if (!bits) return true;
  return *elements % 8 * *bits % 8 == 0 && bytes == *elements / 8 * *bits + *elements % 8 * *bits / 8;
}

std::optional<ElementType> parse_element(std::string_view name) {
  for (const auto& [known, type] : kNames)
    if (name == known) return type;
  return std::nullopt;
}

}  // namespace quern::checkpoint
