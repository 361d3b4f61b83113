// The name of a function from its address.
#pragma once

#include <string>

namespace simt {

/// Demangled, without parameters; the address in hexadecimal when this program has no symbol there.
std::string symbol_name(const void* function);

}  // namespace simt
