// Kernels are often local symbols, which dladdr does not know: the symbol table of the program's file does.
#include "tests/simt/runtime/symbol_name.h"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

namespace simt {
namespace {

using Header = ElfW(Ehdr);
using Section = ElfW(Shdr);
using Symbol = ElfW(Sym);

/// Where the program lies in memory, relative to the addresses in its file.
std::uintptr_t load_address() {
  std::uintptr_t address = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<std::uintptr_t*>(out) = info->dlpi_addr;
        return 1;  // the program comes first
      },
      &address);
  return address;
}

template <class T>
T read_at(const std::vector<char>& file, std::size_t at) {
  T out{};
  if (at + sizeof out <= file.size()) std::memcpy(&out, file.data() + at, sizeof out);
  return out;
}

std::string mangled_name(std::uintptr_t address) {
  std::ifstream stream("/proc/self/exe", std::ios::binary);
  const std::vector<char> file((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  const auto header = read_at<Header>(file, 0);
  for (unsigned s = 0; s < header.e_shnum; ++s) {
    const auto table = read_at<Section>(file, header.e_shoff + s * sizeof(Section));
    if (table.sh_type != SHT_SYMTAB) continue;
    const auto names = read_at<Section>(file, header.e_shoff + table.sh_link * sizeof(Section));
    for (std::size_t at = 0; at < table.sh_size; at += sizeof(Symbol)) {
      const auto symbol = read_at<Symbol>(file, table.sh_offset + at);
      const std::size_t name = names.sh_offset + symbol.st_name;
      if (symbol.st_value == address && (symbol.st_info & 15) == STT_FUNC && name < file.size())
        return {file.data() + name, strnlen(file.data() + name, file.size() - name)};
    }
  }
  return {};
}

/// Drops the return type and the parameters of a demangled function.
std::string short_name(const std::string& full) {
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < full.size(); ++i) {
    const char c = full[i];
    if (c == '(' && depth == 0 && full.compare(i, 21, "(anonymous namespace)") != 0)
      return full.substr(begin, i - begin);
    if (c == ' ' && depth == 0) begin = i + 1;
    if (c == '<' || c == '(') ++depth;
    if (c == '>' || c == ')') --depth;
  }
  return full.substr(begin);
}

}  // namespace

std::string symbol_name(const void* function) {
  const auto address = reinterpret_cast<std::uintptr_t>(function);
  const std::string mangled = mangled_name(address - load_address());
  if (mangled.empty()) {
    char text[32];
    std::snprintf(text, sizeof text, "at 0x%zx", static_cast<std::size_t>(address));
    return text;
  }
  int status = 0;
  char* const demangled = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  const std::string name = status == 0 ? short_name(demangled) : mangled;
  std::free(demangled);
  return name;
}

}  // namespace simt
