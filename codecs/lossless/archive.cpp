// zstd behind two functions; contexts live for one call.
#include "codecs/lossless/archive.h"

#include <zstd.h>

#include <memory>

namespace quern::codec::lossless {

void split_planes(std::span<const std::uint8_t> elements, std::size_t elem_bytes, std::uint8_t* planes) {
  for (std::size_t plane = 0; plane < elem_bytes; ++plane) {
    for (std::size_t i = plane; i < elements.size(); i += elem_bytes) *planes++ = elements[i];
  }
}

void join_planes(std::span<const std::uint8_t> planes, std::size_t elem_bytes, std::uint8_t* elements) {
  const std::uint8_t* from = planes.data();
  for (std::size_t plane = 0; plane < elem_bytes; ++plane) {
    for (std::size_t i = plane; i < planes.size(); i += elem_bytes) elements[i] = *from++;
  }
}

Result<std::size_t> pack(std::span<const std::uint8_t> data, int level, std::span<std::uint8_t> out) {
  const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), &ZSTD_freeCCtx);
  if (context == nullptr) return Status(StatusCode::out_of_memory, "no memory for zstd");
  const std::size_t bytes = ZSTD_compressCCtx(context.get(), out.data(), out.size(), data.data(), data.size(), level);
  return ZSTD_isError(bytes) ? std::size_t{0} : bytes;
}

Status unpack(std::span<const std::uint8_t> in, std::span<std::uint8_t> out) {
  // One whole frame and nothing behind it, decoded straight into memory of the known size.
  const std::size_t frame = ZSTD_findFrameCompressedSize(in.data(), in.size());
  if (ZSTD_isError(frame) || frame != in.size()) {
    return Status(StatusCode::corrupt, "zstd frame does not fill its chunk");
  }
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  if (context == nullptr) return Status(StatusCode::out_of_memory, "no memory for zstd");
  const std::size_t bytes = ZSTD_decompressDCtx(context.get(), out.data(), out.size(), in.data(), in.size());
  if (ZSTD_isError(bytes) || bytes != out.size()) return Status(StatusCode::corrupt, "zstd frame is malformed");
  return {};
}

}  // namespace quern::codec::lossless
