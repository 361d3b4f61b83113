#include "tests/simt/runtime/fiber.h"

#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdint>
#include <cstdlib>

#include "tests/simt/runtime/pages.h"
#include "tests/simt/runtime/sanitizers.h"

namespace simt {
namespace context = boost::context::detail;

/// Instrumented code has large frames.
constexpr std::size_t kStackBytes = (kAddressSanitizer ? 256 : 64) * 1024;

namespace {

/// The fiber that the last switch went to.
Fiber* target = nullptr;

}  // namespace

struct FiberEntry {
  static void run(context::transfer_t transfer) {
    Fiber& self = *target;
    Fiber& from = *static_cast<Fiber*>(transfer.data);
    from.context_ = transfer.fctx;
    self.fake_stack_ = nullptr;
    self.arrived_from(from);
    self.entry_();
    std::abort();
  }
};

Fiber::Fiber(Entry entry) : entry_(entry) {
  void* const mapping = mmap(nullptr, page_bytes() + kStackBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) std::abort();
  mapping_ = static_cast<std::byte*>(mapping);
  if (mprotect(mapping_, page_bytes(), PROT_NONE) != 0) std::abort();
  bottom_ = mapping_ + page_bytes();
  bytes_ = kStackBytes;
  restart();
}

Fiber::~Fiber() {
  if (mapping_ == nullptr) return;
  unpoison(mapping_, page_bytes() + kStackBytes);
  munmap(mapping_, page_bytes() + kStackBytes);
}

void Fiber::restart() {
  unpoison(bottom_, bytes_);
  // Stacks begin at different places of their pages, or the frames of a warp's 32 lanes would evict each other from the
  // cache.
  const std::size_t colour = reinterpret_cast<std::uintptr_t>(mapping_) / (page_bytes() + kStackBytes) % 13 * 320;
  context_ = context::make_fcontext(mapping_ + page_bytes() + bytes_ - colour, bytes_ - colour, &FiberEntry::run);
}

void Fiber::switch_to(Fiber& to) {
  target = &to;
  start_switch(&fake_stack_, to.bottom_, to.bytes_);
  const context::transfer_t transfer = context::jump_fcontext(to.context_, this);
  Fiber& from = *static_cast<Fiber*>(transfer.data);
  from.context_ = transfer.fctx;
  arrived_from(from);
}

void Fiber::arrived_from(Fiber& from) {
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  finish_switch(fake_stack_, &bottom, &bytes);
  if (from.mapping_ == nullptr) {  // only now is it known where the host thread's stack lies
    from.bottom_ = bottom;
    from.bytes_ = bytes;
  }
}

}  // namespace simt
