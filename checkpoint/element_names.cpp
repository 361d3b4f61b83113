// The one table of element type names.
#include "checkpoint/element_names.h"

#include <utility>

namespace quern::checkpoint {
namespace {

constexpr std::pair<const char*, ElementType> kNames[] = {
    {"F64", ElementType::f64},   {"F32", ElementType::f32},         {"F16", ElementType::f16},
    {"BF16", ElementType::bf16}, {"F8_E4M3", ElementType::f8_e4m3}, {"F8_E5M2", ElementType::f8_e5m2},
    {"I64", ElementType::i64},   {"I32", ElementType::i32},         {"I16", ElementType::i16},
    {"I8", ElementType::i8},     {"U64", ElementType::u64},         {"U32", ElementType::u32},
    {"U16", ElementType::u16},   {"U8", ElementType::u8},           {"BOOL", ElementType::boolean}};

}  // namespace

const char* element_name(ElementType type) {
  for (const auto& [name, named] : kNames)
    if (named == type) return name;
  return "unknown";
}

std::optional<ElementType> parse_element(std::string_view name) {
  for (const auto& [known, type] : kNames)
    if (name == known) return type;
  return std::nullopt;
}

}  // namespace quern::checkpoint
