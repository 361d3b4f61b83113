// Memory limits and page-aligned buffers.
#include "cli/files/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/args/values.h"

namespace quern::cli {
namespace {

constexpr std::uint64_t kWorthHugePages = UINT64_C(8) << 20;

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

std::uint64_t machine_memory() {
  std::uint64_t bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * page_bytes();
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    std::uint64_t limit = 0;
    if (file >> limit && limit != 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

std::uint64_t memory_limit(const RunArgs& run) { return run.memory ? *run.memory : machine_memory() / 4 * 3; }

Buffer::Buffer(std::uint64_t bytes, const std::string& what) : size_(bytes) {
  if (bytes == 0) return;
  void* pages = bytes > (UINT64_C(1) << 62)
                    ? MAP_FAILED
                    : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED)
    fail(Exit::resource, fmt::format("{}: {} of memory could not be had", what, size_text(bytes)));
  data_ = static_cast<std::uint8_t*>(pages);
#ifdef MADV_HUGEPAGE
  // An array's pages are met one after another: faulting them in singly takes longer than decoding into them.
  if (bytes >= kWorthHugePages) (void)madvise(pages, bytes, MADV_HUGEPAGE);
#endif
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) munmap(data_, size_);
}

void Buffer::touch() {
  for (std::uint64_t at = 0; at < size_; at += page_bytes()) data_[at] = 0;
}

void touch_pages(const void* data, std::uint64_t bytes) {
  const auto* first = static_cast<const volatile std::uint8_t*>(data);
  for (std::uint64_t at = 0; at < bytes; at += page_bytes()) (void)first[at];
}

}  // namespace quern::cli
