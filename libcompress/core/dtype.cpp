// Names of element types.
#include <quern/dtype.h>

#include <array>

namespace quern {
namespace {

struct Named {
  DType type;
  const char* name;
};
constexpr std::array<Named, 12> kNames{{{DType::f16, "f16"},
                                        {DType::bf16, "bf16"},
                                        {DType::f32, "f32"},
                                        {DType::f64, "f64"},
                                        {DType::i8, "i8"},
                                        {DType::i16, "i16"},
                                        {DType::i32, "i32"},
                                        {DType::i64, "i64"},
                                        {DType::u8, "u8"},
                                        {DType::u16, "u16"},
                                        {DType::u32, "u32"},
                                        {DType::u64, "u64"}}};

}  // namespace

const char* dtype_name(DType t) {
  for (const Named& n : kNames)
    if (n.type == t) return n.name;
  return "unknown";
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Named& n : kNames)
    if (name == n.name) return n.type;
  return std::nullopt;
}

}  // namespace quern
