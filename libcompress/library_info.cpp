// Versions of what is linked in and the kernels' choice of instruction set.
#include <xxhash.h>
#include <zstd.h>

#include <quern/library.h>

#include "kernels/common/cpu/isa.h"

namespace quern {

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> out;
  for (std::size_t i = 0; i < kernels::kIsaLevels; ++i) {
    const auto level = static_cast<kernels::IsaLevel>(i);
    out.push_back({kernels::isa_name(level), kernels::isa_available(level), level == kernels::best_isa()});
  }
  return out;
}

std::vector<LinkedLibrary> linked_libraries() {
  const std::string xxhash = std::to_string(XXH_VERSION_MAJOR) + '.' + std::to_string(XXH_VERSION_MINOR) + '.' +
                             std::to_string(XXH_VERSION_RELEASE);
  return {{"xxHash", xxhash}, {"zstd", ZSTD_versionString()}};
}

}  // namespace quern
