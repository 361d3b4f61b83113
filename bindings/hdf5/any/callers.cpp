// Finding the HDF5 that calls, once for each library.
#include "bindings/hdf5/any/callers.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "bindings/hdf5/host.h"

namespace quern::hdf5 {
namespace {

constexpr std::size_t kCalls = static_cast<std::size_t>(Call::count);
constexpr std::array<const char*, kCalls> kNames{
    "H5allocate_memory", "H5free_memory",     "H5Ecreate_msg",    "H5Eget_class_name",     "H5Epush2",
    "H5Eregister_class", "H5Iget_type",       "H5open",           "H5Pfill_value_defined", "H5Pget_chunk",
    "H5Pget_fill_time",  "H5Pget_fill_value", "H5Pget_filter2",   "H5Pget_layout",         "H5Pget_nfilters",
    "H5Pmodify_filter",  "H5Tget_class",      "H5Tget_ebias",     "H5Tget_fields",         "H5Tget_norm",
    "H5Tget_offset",     "H5Tget_order",      "H5Tget_precision", "H5Tget_sign",           "H5Tget_size"};
/// VTK renames the functions of the HDF5 inside it.
constexpr std::array<const char*, 2> kPrefixes{"", "vtkhdf5_"};

struct Library {
  const void* base = nullptr;  ///< where it is mapped; null: a free place
  std::array<void*, kCalls> functions{};
};

void find_functions(void* handle, Library& library) {
  for (const char* prefix : kPrefixes) {
    if (dlsym(handle, (std::string(prefix) + "H5Pget_filter2").c_str()) == nullptr) continue;
    for (std::size_t i = 0; i < kCalls; ++i)
      library.functions[i] = dlsym(handle, (std::string(prefix) + kNames[i]).c_str());
    return;
  }
}

/// The file's handle without loading it. It is kept: a library that is known is never unloaded.
void* handle_of(const char* file) {
  if (file == nullptr || *file == '\0') return dlopen(nullptr, RTLD_LAZY);
  void* handle = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
  return handle != nullptr ? handle : dlopen(nullptr, RTLD_LAZY);  // the program itself has no name that dlopen takes
}

struct OnlyOne {
  int count = 0;
  std::string name;
};

/// The file of the one HDF5 of the process; empty when there are several, or none.
std::string only_hdf5() {
  OnlyOne found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* user) {
        auto& only = *static_cast<OnlyOne*>(user);
        const char* file = std::strrchr(info->dlpi_name, '/');
        if (file != nullptr && std::strncmp(file + 1, "libhdf5", 7) == 0 && std::strstr(file, "_hl") == nullptr) {
          ++only.count;
          only.name = info->dlpi_name;
        }
        return 0;
      },
      &found);
  return found.count == 1 ? found.name : std::string();
}

class Libraries {
 public:
  /// The library an address lies in; null when there is no room for another or nothing is known of the address.
  const Library* at(const void* address) {
    Dl_info info{};
    if (dladdr(address, &info) == 0 || info.dli_fbase == nullptr) return nullptr;
    const std::lock_guard lock(mutex_);
    for (Library& library : known_) {
      if (library.base == info.dli_fbase) return &library;
      if (library.base != nullptr) continue;
      find_functions(handle_of(info.dli_fname), library);
      if (library.functions[static_cast<std::size_t>(Call::get_filter2)] == nullptr) {
        // A call that came through somebody else's code.
        if (const std::string only = only_hdf5(); !only.empty()) find_functions(handle_of(only.c_str()), library);
      }
      library.base = info.dli_fbase;
      return &library;
    }
    return nullptr;
  }

 private:
  std::mutex mutex_;
  std::array<Library, 32> known_;
};

Libraries& libraries() {
  static Libraries all;
  return all;
}

thread_local const Library* current = nullptr;

}  // namespace

const void* calling_hdf5() noexcept { return current; }

void* function_of_caller(Call call) noexcept {
  return current == nullptr ? nullptr : current->functions[static_cast<std::size_t>(call)];
}

CallerScope::CallerScope(const void* return_address) noexcept : outer_(current) {
  try {
    current = libraries().at(return_address);
  } catch (...) {
    current = nullptr;
  }
}

CallerScope::~CallerScope() { current = static_cast<const Library*>(outer_); }

}  // namespace quern::hdf5
