#include "tests/simt/runtime/memory.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

#include "tests/simt/runtime/pages.h"
#include "tests/simt/runtime/sanitizers.h"

namespace simt {
namespace {

constexpr std::size_t kAlignment = 256;

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

}  // namespace

Allocation* Memory::allocate(std::size_t bytes, bool pinned, int device, Random& random) {
  const std::size_t inner = round_up(bytes, page_bytes());
  void* const mapping =
      mmap(nullptr, inner + 2 * page_bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  Allocation allocation;
  allocation.mapping = static_cast<unsigned char*>(mapping);
  allocation.mapped_bytes = inner + 2 * page_bytes();
  allocation.begin = allocation.mapping + page_bytes() + inner - round_up(bytes, kAlignment);
  allocation.bytes = bytes;
  allocation.pinned = pinned;
  allocation.device = device;
  protect(allocation, PROT_READ | PROT_WRITE);
  random.fill(allocation.mapping + page_bytes(), inner);
  const unsigned char* const end = allocation.begin + bytes;
  poison(allocation.mapping, static_cast<std::size_t>(allocation.begin - allocation.mapping));
  poison(end, static_cast<std::size_t>(allocation.mapping + allocation.mapped_bytes - end));
  if (!pinned && open_device_ != device) protect(allocation, PROT_NONE);
  return &(allocations_[reinterpret_cast<std::uintptr_t>(mapping)] = allocation);
}

void Memory::release(Allocation& allocation) {
  allocation.freed = true;
  unpoison(allocation.mapping, allocation.mapped_bytes);
  protect(allocation, PROT_NONE);
  madvise(allocation.mapping, allocation.mapped_bytes, MADV_DONTNEED);
}

Allocation* Memory::find(const void* at) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  auto it = allocations_.upper_bound(address);
  if (it == allocations_.begin()) return nullptr;
  Allocation& allocation = (--it)->second;
  const auto offset = address - reinterpret_cast<std::uintptr_t>(allocation.begin);
  return offset < allocation.bytes && !allocation.freed ? &allocation : nullptr;
}

std::size_t Memory::used(int device) const {
  std::size_t sum = 0;
  for (const auto& [at, allocation] : allocations_)
    if (!allocation.pinned && !allocation.freed && allocation.device == device) sum += allocation.bytes;
  return sum;
}

void Memory::open(int device) {
  if (open_device_ == device) return;
  close();
  open_device_ = device;
  for (const auto& [at, allocation] : allocations_)
    if (!allocation.pinned && !allocation.freed && allocation.device == device)
      protect(allocation, PROT_READ | PROT_WRITE);
}

void Memory::close() {
  if (open_device_ < 0) return;
  for (const auto& [at, allocation] : allocations_)
    if (!allocation.pinned && !allocation.freed && allocation.device == open_device_) protect(allocation, PROT_NONE);
  open_device_ = -1;
}

void Memory::protect(const Allocation& allocation, int protection) {
  if (mprotect(allocation.mapping + page_bytes(), allocation.mapped_bytes - 2 * page_bytes(), protection) != 0)
    std::abort();
}

std::string Memory::describe(const void* at) const {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  auto it = allocations_.upper_bound(address);
  if (it == allocations_.begin()) return {};
  const Allocation& allocation = (--it)->second;
  if (address >= reinterpret_cast<std::uintptr_t>(allocation.mapping) + allocation.mapped_bytes) return {};
  const auto offset = static_cast<long long>(address - reinterpret_cast<std::uintptr_t>(allocation.begin));
  char text[160];
  std::snprintf(text, sizeof text, "byte %lld of %zu bytes of %s%s memory of device %d", offset, allocation.bytes,
                allocation.freed ? "freed " : "", allocation.pinned ? "pinned host" : "device", allocation.device);
  return text;
}

void Memory::clear() {
  for (const auto& [at, allocation] : allocations_) {
    unpoison(allocation.mapping, allocation.mapped_bytes);
    munmap(allocation.mapping, allocation.mapped_bytes);
  }
  allocations_.clear();
  open_device_ = -1;
}

}  // namespace simt
