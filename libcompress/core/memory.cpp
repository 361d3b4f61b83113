// The scope of a thread, and objects that remember where they came from.
#include <quern/memory.h>

#include <new>

namespace quern {
namespace {

thread_local std::pmr::memory_resource* scoped = nullptr;

/// Stands before each Allocated object.
struct alignas(std::max_align_t) Origin {
  std::pmr::memory_resource* memory;
  std::size_t bytes;
};

}  // namespace

std::pmr::memory_resource* current_memory() noexcept {
  return scoped != nullptr ? scoped : std::pmr::new_delete_resource();
}

MemoryScope::MemoryScope(std::pmr::memory_resource* memory) noexcept : outer_(scoped) { scoped = memory; }

MemoryScope::~MemoryScope() { scoped = outer_; }

void* Allocated::operator new(std::size_t bytes) {
  std::pmr::memory_resource* const memory = current_memory();
  const std::size_t all = bytes + sizeof(Origin);
  auto* const origin = new (memory->allocate(all, alignof(Origin))) Origin{memory, all};
  return origin + 1;
}

void Allocated::operator delete(void* object) noexcept {
  if (object == nullptr) return;
  Origin* const origin = static_cast<Origin*>(object) - 1;
  origin->memory->deallocate(origin, origin->bytes, alignof(Origin));
}

}  // namespace quern
