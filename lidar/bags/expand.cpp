// zstd and lz4 by their libraries.
#include "lidar/bags/expand.h"

#include <algorithm>
#include <memory>

#include <zlib.h>
#include <zstd.h>

#ifdef QUERN_HAVE_LZ4
#include <lz4frame.h>
#endif

namespace quern::lidar {
namespace {

/// Room that is asked for at once.
constexpr std::uint64_t kStep = UINT64_C(1) << 20;

struct FreeZstd {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

}  // namespace

Result<Vector<std::uint8_t>> expand_zstd(std::span<const std::uint8_t> in, std::uint64_t most_bytes) {
  const std::unique_ptr<ZSTD_DCtx, FreeZstd> context(ZSTD_createDCtx());
  if (context == nullptr) return Status(StatusCode::out_of_memory, "out of memory");
  Vector<std::uint8_t> out;
  ZSTD_inBuffer source{in.data(), in.size(), 0};
  std::size_t hint = 1;
  while (source.pos < source.size || hint != 0) {
    const std::size_t begin = out.size();
    const std::uint64_t room = std::min(std::max(kStep, std::uint64_t{begin}), most_bytes + 1 - begin);
    out.resize(begin + static_cast<std::size_t>(room));
    ZSTD_outBuffer target{out.data() + begin, static_cast<std::size_t>(room), 0};
    hint = ZSTD_decompressStream(context.get(), &target, &source);
    out.resize(begin + target.pos);
    if (ZSTD_isError(hint) != 0) return Status(StatusCode::corrupt, "the bytes that zstd packed are damaged");
    if (out.size() > most_bytes)
      return Status(StatusCode::memory_limit, "what zstd packed needs more than {0} bytes",
                    static_cast<std::int64_t>(most_bytes));
    if (hint != 0 && source.pos == source.size && target.pos < target.size)
      return Status(StatusCode::truncated, "the bytes that zstd packed end early");
  }
  return out;
}

Status expand_lz4([[maybe_unused]] std::span<const std::uint8_t> in, [[maybe_unused]] std::span<std::uint8_t> out) {
#ifdef QUERN_HAVE_LZ4
  const auto corrupt = [] { return Status(StatusCode::corrupt, "the bytes that lz4 packed are damaged"); };
  LZ4F_dctx* made = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&made, LZ4F_VERSION)) != 0)
    return Status(StatusCode::out_of_memory, "out of memory");
  struct Free {
    void operator()(LZ4F_dctx* context) const { LZ4F_freeDecompressionContext(context); }
  };
  const std::unique_ptr<LZ4F_dctx, Free> context(made);
  std::size_t read = 0;
  std::size_t written = 0;
  while (read < in.size()) {
    std::size_t source = in.size() - read;
    std::size_t target = out.size() - written;
    const std::size_t hint =
        LZ4F_decompress(context.get(), out.data() + written, &target, in.data() + read, &source, nullptr);
    if (LZ4F_isError(hint) != 0) return corrupt();
    read += source;
    written += target;
    if (hint == 0) break;
    if (source == 0 && target == 0) return corrupt();
  }
  return read == in.size() && written == out.size() ? Status() : corrupt();
#else
  return Status(StatusCode::unsupported,
                "lz4 packed it, and this quern was built without lz4; install liblz4-dev and build again, or pack the "
                "file anew: mcap compress --compression zstd");
#endif
}

std::uint32_t crc32_of(std::span<const std::uint8_t> bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, bytes.data(), bytes.size()));
}

}  // namespace quern::lidar
