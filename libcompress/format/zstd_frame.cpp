// zstd with its memory from the current resource; contexts live for one call.
#include "libcompress/format/zstd_frame.h"

#include <memory>
#include <new>

// Contexts in memory of the caller's choice belong to the part of the interface that zstd promises to static linking.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

#include <quern/memory.h>

namespace quern {
namespace {

/// Stands before each block that zstd holds: it does not say how large one was when it gives it back.
struct alignas(std::max_align_t) Block {
  std::size_t bytes;
};

void* take(void* opaque, std::size_t bytes) {
  auto* const memory = static_cast<std::pmr::memory_resource*>(opaque);
  if (bytes > static_cast<std::size_t>(-1) / 2) return nullptr;
  const std::size_t all = bytes + sizeof(Block);
  try {
    return new (memory->allocate(all, alignof(Block))) Block{all} + 1;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void give_back(void* opaque, void* address) {
  if (address == nullptr) return;
  Block* const block = static_cast<Block*>(address) - 1;
  static_cast<std::pmr::memory_resource*>(opaque)->deallocate(block, block->bytes, alignof(Block));
}

ZSTD_customMem zstd_memory() { return {&take, &give_back, current_memory()}; }

}  // namespace

Result<std::size_t> zstd_pack(std::span<const std::uint8_t> data, int level, std::span<std::uint8_t> out) {
  const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx_advanced(zstd_memory()),
                                                                        &ZSTD_freeCCtx);
  if (context == nullptr) return Status(StatusCode::out_of_memory, "no memory for zstd");
  const std::size_t bytes = ZSTD_compressCCtx(context.get(), out.data(), out.size(), data.data(), data.size(), level);
  if (ZSTD_getErrorCode(bytes) == ZSTD_error_memory_allocation)
    return Status(StatusCode::out_of_memory, "no memory for zstd");
  return ZSTD_isError(bytes) ? std::size_t{0} : bytes;
}

Status zstd_unpack(std::span<const std::uint8_t> in, std::span<std::uint8_t> out) {
  // One whole frame and nothing behind it, decoded straight into memory of the known size.
  const std::size_t frame = ZSTD_findFrameCompressedSize(in.data(), in.size());
  if (ZSTD_isError(frame) || frame != in.size()) {
    return Status(StatusCode::corrupt, "a zstd frame does not fill its place");
  }
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx_advanced(zstd_memory()),
                                                                        &ZSTD_freeDCtx);
  if (context == nullptr) return Status(StatusCode::out_of_memory, "no memory for zstd");
  const std::size_t bytes = ZSTD_decompressDCtx(context.get(), out.data(), out.size(), in.data(), in.size());
  if (ZSTD_getErrorCode(bytes) == ZSTD_error_memory_allocation)
    return Status(StatusCode::out_of_memory, "no memory for zstd");
  if (ZSTD_isError(bytes) || bytes != out.size()) return Status(StatusCode::corrupt, "zstd frame is malformed");
  return {};
}

}  // namespace quern
