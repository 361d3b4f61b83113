// Decoding whole streams, pipes and regions.
#include "cli/verbs/decode_stream.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/args/values.h"
#include "cli/files/memory.h"
#include "cli/messages/clock.h"

namespace quern::cli {
namespace {

/// A header may promise far more than its stream can hold: pages are touched ahead of time only where the size is
/// plausible.
constexpr std::uint64_t kPlausibleRatio = 1024;
constexpr std::uint64_t kSmallestPiece = UINT64_C(1) << 20;

[[noreturn]] void fail_level(unsigned level, const std::string& why, const std::string& name) {
  fail(Exit::usage,
       fmt::format("{}: --level {}: {}; quern info lists levels, and compressing with --codec stencil --set "
                   "layout=levels makes them",
                   name, level, why));
}

DecompressOptions options_of(const DecodeContext& context, bool more_streams = false) {
  DecompressOptions options;
  options.keep_going = context.keep_going;
  options.check_faults = context.check_faults;
  options.more_streams = more_streams;
  options.level = context.level;
  return options;
}

void add_report(const DecompressReport& report, DecodeOutcome& outcome) {
  outcome.on_device = outcome.on_device || report.on_device;
  outcome.bytes_read += report.bytes_read;
  outcome.holes.insert(outcome.holes.end(), report.holes.begin(), report.holes.end());
}

std::unique_ptr<Decoder> open(ByteSource& source, const DecodeContext& context, const Execution& execution,
                              bool more_streams = false) {
  auto decoder = Decoder::open(source, builtin_codecs(), execution, options_of(context, more_streams));
  if (context.level > 0 && decoder.status().code() == StatusCode::unsupported)
    fail_level(context.level, decoder.status().text(), context.name);
  return check(std::move(decoder), Phase::decode, context.name);
}

void decode_pieces(ByteSource& source, const DecodeContext& context, const TakeElements& take, DecodeOutcome& outcome,
                   StreamInfo& info) {
  const auto* pipe = dynamic_cast<const FdSource*>(&source);
  const auto waited = [pipe] { return pipe == nullptr ? 0.0 : pipe->seconds(); };
  Stopwatch opening;
  double waited_before = waited();
  const auto decoder = open(source, context, context.execution, pipe != nullptr);
  outcome.seconds += opening.seconds() - (waited() - waited_before);
  info = decoder->info();
  info.shape = decoder->shape();
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

StreamInfo at_level(StreamInfo info, unsigned level, const std::string& name) {
  if (level == 0) return info;
  if (info.levels.empty())
    fail_level(level, fmt::format("the stream (codec {}) has no coarse levels", info.codec_name), name);
  if (level > info.levels.size())
    fail_level(level, fmt::format("the stream has {} coarse levels", info.levels.size()), name);
  info.shape = info.levels[level - 1];
  return info;
}

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
  if (context.level == 0) touch_pages(stream.data(), stream.size());
  Execution execution = context.execution;
  execution.memory_limit = context.memory - bytes;
  const Stopwatch watch;
  const auto decoder = open(source, context, execution);
  check(decoder->pull({array.data(), array.size()}), Phase::decode, context.name);
  outcome.seconds += watch.seconds();
  add_report(decoder->report(), outcome);
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
    const auto decoder = open(source, context, context.execution);
    check(decoder->region(inner, {array.data(), dtype, shape}), Phase::decode, context.name);
    outcome.seconds += watch.seconds();
    outcome.bytes_read += decoder->report().bytes_read;
    take({array.data(), array.size()});
    outcome.elems += shape.elems();
  }
}

}  // namespace quern::cli
