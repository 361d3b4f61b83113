// Kernels are often local symbols, which dladdr does not know: the symbol table of the program's file does.
#include "tests/simt/runtime/symbol_name.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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

/// The program's file in memory.
class ProgramFile {
 public:
  ProgramFile() {
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (file >= 0 && fstat(file, &status) == 0) {
      bytes_ = static_cast<std::size_t>(status.st_size);
      void* const at = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
      begin_ = at != MAP_FAILED ? static_cast<const char*>(at) : nullptr;
    }
    if (file >= 0) close(file);
  }
  ~ProgramFile() {
    if (begin_ != nullptr) munmap(const_cast<char*>(begin_), bytes_);
  }
  ProgramFile(const ProgramFile&) = delete;
  ProgramFile& operator=(const ProgramFile&) = delete;

  template <class T>
  T read(std::size_t at) const {
    T out{};
    if (begin_ != nullptr && at <= bytes_ && sizeof out <= bytes_ - at) std::memcpy(&out, begin_ + at, sizeof out);
    return out;
  }
  std::string text(std::size_t at) const {
    return begin_ != nullptr && at < bytes_ ? std::string(begin_ + at, strnlen(begin_ + at, bytes_ - at)) : "";
  }

 private:
  const char* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

std::string mangled_name(std::uintptr_t address) {
  const ProgramFile file;
  const auto header = file.read<Header>(0);
  for (unsigned s = 0; s < header.e_shnum; ++s) {
    const auto table = file.read<Section>(header.e_shoff + s * sizeof(Section));
    if (table.sh_type != SHT_SYMTAB) continue;
    const auto names = file.read<Section>(header.e_shoff + table.sh_link * sizeof(Section));
    for (std::size_t at = 0; at < table.sh_size; at += sizeof(Symbol)) {
      const auto symbol = file.read<Symbol>(table.sh_offset + at);
      if (symbol.st_value == address && (symbol.st_info & 15) == STT_FUNC)
        return file.text(names.sh_offset + symbol.st_name);
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
