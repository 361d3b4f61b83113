// Instruction sets that kernels on the CPU are compiled for, and which of them this processor has.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

/// Instruction sets with code of their own, worst first. All give the same bytes.
enum class IsaLevel : std::uint8_t { baseline = 0, avx2 = 1, avx512 = 2 };
inline constexpr std::size_t kIsaLevels = 3;

/// "baseline", "avx2", "avx512".
const char* isa_name(IsaLevel level);
/// True when this processor can run that code and it was compiled in.
bool isa_available(IsaLevel level);
/// The best available level.
IsaLevel best_isa();

}  // namespace quern::kernels
