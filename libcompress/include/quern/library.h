// What this build of the library is made of and what it would run on this machine.
#pragma once

#include <string>
#include <vector>

namespace quern {

/// Instruction sets for which the CPU kernels have code of their own, worst first.
struct InstructionSet {
  const char* name = "";   ///< "baseline", "avx2", "avx512"
  bool available = false;  ///< compiled in, and this processor has it
  bool chosen = false;     ///< what codecs use unless a setting says otherwise: the best available
};
/// Asks the processor; never empty, exactly one is chosen.
std::vector<InstructionSet> instruction_sets();

/// A library of somebody else's that is linked in.
struct LinkedLibrary {
  const char* name = "";
  std::string version;
};
std::vector<LinkedLibrary> linked_libraries();

}  // namespace quern
