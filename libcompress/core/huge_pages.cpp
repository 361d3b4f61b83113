// Anonymous mappings with advice, on Linux.
#include "libcompress/core/huge_pages.h"

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <sys/mman.h>
#if defined(MADV_HUGEPAGE)
#define QUERN_HUGE_PAGES 1
#endif
#endif

namespace quern {

#if defined(QUERN_HUGE_PAGES)

std::uint8_t* map_huge_pages(std::size_t bytes) noexcept {
  constexpr std::size_t kOwnPages = std::size_t{1} << 20;
  constexpr std::size_t kHugePages = std::size_t{8} << 20;
  if (bytes < kOwnPages) return nullptr;
  void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  if (bytes >= kHugePages) static_cast<void>(madvise(pages, bytes, MADV_HUGEPAGE));
  return static_cast<std::uint8_t*>(pages);
}

void unmap_huge_pages(std::uint8_t* pages, std::size_t bytes) noexcept { munmap(pages, bytes); }

#else

std::uint8_t* map_huge_pages(std::size_t) noexcept { return nullptr; }
void unmap_huge_pages(std::uint8_t*, std::size_t) noexcept {}

#endif

}  // namespace quern
