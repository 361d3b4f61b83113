// Device memory and pinned host memory: mappings of their own between guard pages. Device memory can be touched only
// while it is open, which it is for kernels and copies of its device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "tests/simt/runtime/random.h"

namespace simt {

struct Allocation {
  unsigned char* begin = nullptr;  ///< 256-byte aligned, ends less than 256 bytes before a guard page
  std::size_t bytes = 0;
  bool pinned = false;     ///< host memory
  int device = 0;          ///< that it lies on, or that was current
  bool on_stream = false;  ///< from cudaMallocAsync
  bool freed = false;
  unsigned char* mapping = nullptr;  ///< with the guard pages
  std::size_t mapped_bytes = 0;
};

class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { clear(); }

  /// New memory full of noise, closed; null when the system has none. `bytes` > 0.
  Allocation* allocate(std::size_t bytes, bool pinned, int device, Random& random);
  /// Addresses of freed memory are never given out again; touching them faults.
  void release(Allocation& allocation);
  /// The allocation that the address lies in; null when there is none or it was freed.
  Allocation* find(const void* at);
  std::size_t used(int device) const;

  void open(int device);
  void close();
  bool is_open(int device) const { return open_device_ == device; }

  /// What lies at an address, for messages about faults; empty when it is nothing of ours.
  std::string describe(const void* at) const;
  void clear();

 private:
  void protect(const Allocation& allocation, int protection);

  std::map<std::uintptr_t, Allocation> allocations_;  ///< by mapping
  int open_device_ = -1;
};

}  // namespace simt
