// Whole streams of hostile bytes through the public way in, under a small memory limit; once as they are and once with
// valid checksums put back. Whatever decodes must decode to the same bytes in one piece, in odd pieces, and with
// keep_going; whatever fails must fail the same way with more threads.
#include <quern/codec.h>
#include <quern/compress.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/fuzz/fuzz_common.h"
#include "tests/fuzz/reseal.h"

namespace {

using namespace quern;

constexpr std::uint64_t kMemoryLimit = UINT64_C(8) << 20;
constexpr std::uint64_t kSlack = UINT64_C(1) << 20;  // bookkeeping below the size of one segment
constexpr std::uint64_t kMostOutput = UINT64_C(1) << 20;

Execution execution_of(std::size_t threads) {
  Execution execution;
  execution.threads = threads;
  execution.memory_limit = kMemoryLimit;
  return execution;
}

struct Decoded {
  Status status;
  Vector<std::uint8_t> bytes;
  std::size_t holes = 0;
};

Decoded decode_whole(std::span<const std::uint8_t> stream, const StreamInfo& info, std::size_t threads,
                     bool keep_going) {
  Decoded out;
  // Filled beforehand, so that bytes the decoder leaves alone show up as a difference.
  out.bytes.assign(info.shape.elems() * dtype_bytes(info.dtype), threads == 1 ? 0xA5 : 0x5A);
  MemorySource source(stream);
  DecompressOptions options;
  options.keep_going = keep_going;
  const auto report =
      decompress(source, {out.bytes.data(), info.dtype, info.shape}, builtin_codecs(), execution_of(threads), options);
  if (report.ok()) {
    out.holes = report->holes.size();
  } else {
    out.status = report.status();
  }
  return out;
}

/// Pulls at most kMostOutput bytes in pieces of `elems_a_call` elements.
Status pull_pieces(std::span<const std::uint8_t> stream, std::size_t elems_a_call, Vector<std::uint8_t>& out) {
  MemorySource source(stream);
  QUERN_ASSIGN_OR_RETURN(auto decoder, Decoder::open(source, builtin_codecs(), execution_of(1)));
  Vector<std::uint8_t> piece(elems_a_call * dtype_bytes(decoder->info().dtype));
  while (out.size() < kMostOutput) {
    QUERN_ASSIGN_OR_RETURN(const std::size_t count, decoder->pull(piece));
    QUERN_FUZZ_CHECK(count <= piece.size());
    if (count == 0) break;
    out.insert(out.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return {};
}

void check_stream(std::span<const std::uint8_t> stream) {
  const fuzz::AllocationWatch watch;
  MemorySource source(stream);
  const auto info = inspect(source, builtin_codecs());
  if (!info.ok()) return;

  Vector<std::uint8_t> pulled;
  const Status pull_status = pull_pieces(stream, 61, pulled);
  QUERN_FUZZ_CHECK(watch.peak() <= kMemoryLimit + 2 * kMostOutput + kSlack + 4 * stream.size(),
                   std::to_string(watch.peak()));

  const auto bytes = checked_multiply(info->shape.elems(), dtype_bytes(info->dtype));
  if (!bytes || *bytes > kMostOutput) return;
  const Decoded whole = decode_whole(stream, *info, 1, false);
  if (whole.status.ok()) {
    QUERN_FUZZ_CHECK(whole.holes == 0);
    QUERN_FUZZ_CHECK(pull_status.ok(), pull_status.text());
    QUERN_FUZZ_CHECK(pulled == whole.bytes);
    const Decoded kept = decode_whole(stream, *info, 1, true);
    QUERN_FUZZ_CHECK(kept.status.ok() && kept.holes == 0, kept.status.text());
    QUERN_FUZZ_CHECK(kept.bytes == whole.bytes);
  }
  // Threads are slow to start: one input in eight.
  if ((std::accumulate(stream.begin(), stream.end(), 0U) & 7U) == 0) {
    const Decoded threaded = decode_whole(stream, *info, 3, false);
    QUERN_FUZZ_CHECK(threaded.status.code() == whole.status.code(),
                     threaded.status.text() + " / " + whole.status.text());
    if (whole.status.ok()) QUERN_FUZZ_CHECK(threaded.bytes == whole.bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> stream(data, size);
  check_stream(stream);
  const auto sealed = fuzz::reseal(stream);
  if (!std::equal(sealed.begin(), sealed.end(), stream.begin(), stream.end())) check_stream(sealed);
  return 0;
}
