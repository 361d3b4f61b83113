// Decoding whole streams, pipes and regions.
#include "cli/decode_stream.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/clock.h"
#include "cli/exit_codes.h"
#include "cli/memory.h"
#include "cli/values.h"

namespace quern::cli {
namespace {

/// A header may promise far more than its stream can hold: pages are touched ahead of time only where the size is
/// plausible.
constexpr std::uint64_t kPlausibleRatio = 1024;
constexpr std::uint64_t kSmallestPiece = UINT64_C(1) << 20;

DecompressOptions options_of(const DecodeContext& context, bool more_streams = false) {
  DecompressOptions options;
  options.keep_going = context.keep_going;
  options.more_streams = more_streams;
  return options;
}

void add_report(const DecompressReport& report, DecodeOutcome& outcome) {
  outcome.on_device = outcome.on_device || report.on_device;
  outcome.holes.insert(outcome.holes.end(), report.holes.begin(), report.holes.end());
}

void decode_pieces(ByteSource& source, const DecodeContext& context, const TakeElements& take, DecodeOutcome& outcome,
                   StreamInfo& info) {
  const auto* pipe = dynamic_cast<const FdSource*>(&source);
  const auto waited = [pipe] { return pipe == nullptr ? 0.0 : pipe->seconds(); };
  Stopwatch opening;
  double waited_before = waited();
  auto decoder = check(Decoder::open(source, builtin_codecs(), context.execution, options_of(context, pipe != nullptr)),
                       Phase::decode, context.name);
  outcome.seconds += opening.seconds() - (waited() - waited_before);
  info = decoder->info();
  const std::uint64_t elem = dtype_bytes(info.dtype);
  const std::uint64_t total = info.shape.elems() * elem;
  Buffer piece(std::clamp<std::uint64_t>(total, elem, std::max(context.memory / 4, kSmallestPiece) / elem * elem),
               context.name);
  while (true) {
    const Stopwatch watch;
    waited_before = waited();
    const std::size_t count = check(decoder->pull({piece.data(), piece.size()}), Phase::decode, context.name);
    outcome.seconds += watch.seconds() - (waited() - waited_before);
    if (count == 0) break;
    take({piece.data(), count});
    outcome.elems += count / elem;
  }
  add_report(decoder->report(), outcome);
}

}  // namespace

void decode_part(std::span<const std::uint8_t> stream, const StreamInfo& info, const DecodeContext& context,
                 const TakeElements& take, DecodeOutcome& outcome) {
  const std::uint64_t bytes = info.shape.elems() * dtype_bytes(info.dtype);
  MemorySource source(stream);
  if (bytes > context.memory / 2) {
    StreamInfo again;
    decode_pieces(source, context, take, outcome, again);
    return;
  }
  Buffer array(bytes, context.name);
  if (bytes / kPlausibleRatio <= stream.size()) array.touch();
  touch_pages(stream.data(), stream.size());
  Execution execution = context.execution;
  execution.memory_limit = context.memory - bytes;
  const Stopwatch watch;
  const auto result =
      decompress(source, {array.data(), info.dtype, info.shape}, builtin_codecs(), execution, options_of(context));
  outcome.seconds += watch.seconds();
  add_report(check(result, Phase::decode, context.name), outcome);
  take({array.data(), array.size()});
  outcome.elems += info.shape.elems();
}

StreamInfo decode_pipe(FdSource& source, const DecodeContext& context, const TakeElements& take,
                       DecodeOutcome& outcome) {
  StreamInfo info;
  decode_pieces(source, context, take, outcome, info);
  return info;
}

void decode_region(const std::vector<std::span<const std::uint8_t>>& streams, const std::vector<StreamInfo>& infos,
                   const Box& box, const DecodeContext& context, const TakeElements& take, DecodeOutcome& outcome) {
  const bool has_steps = streams.size() > 1;
  Box inner = box;
  if (has_steps) {
    inner.rank = box.rank - 1;
    std::copy(box.begin.begin() + 1, box.begin.end(), inner.begin.begin());
    std::copy(box.end.begin() + 1, box.end.end(), inner.end.begin());
  }
  const Shape shape = check(inner.shape(), Phase::encode, context.name);
  const DType dtype = infos.front().dtype;
  const std::uint64_t bytes = shape.elems() * dtype_bytes(dtype);
  if (bytes > context.memory / 2)
    fail(Exit::resource, fmt::format("{}: the region needs {} of memory; raise --memory or take smaller regions",
                                     context.name, size_text(bytes)));
  Buffer array(bytes, context.name);
  for (std::uint64_t step = has_steps ? box.begin[0] : 0; step < (has_steps ? box.end[0] : 1); ++step) {
    MemorySource source(streams[step]);
    const Stopwatch watch;
    auto decoder = check(Decoder::open(source, builtin_codecs(), context.execution, options_of(context)), Phase::decode,
                         context.name);
    check(decoder->region(inner, {array.data(), dtype, shape}), Phase::decode, context.name);
    outcome.seconds += watch.seconds();
    take({array.data(), array.size()});
    outcome.elems += shape.elems();
  }
}

}  // namespace quern::cli
