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
#include "cli/models/model_files.h"

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

/// What headers say, with the shape of what is decoded.
StreamInfo at_shape(const Decoder& decoder) {
  StreamInfo info = decoder.info();
  info.shape = decoder.shape();
  return info;
}

void add_report(const DecompressReport& report, DecodeOutcome& outcome) {
  outcome.on_device = outcome.on_device || report.on_device;
  outcome.bytes_read += report.bytes_read;
  outcome.holes.insert(outcome.holes.end(), report.holes.begin(), report.holes.end());
}

std::unique_ptr<Decoder> open(FdSource& source, const DecodeContext& context, const PipedValues& last) {
  Execution execution = context.execution;
  execution.memory_limit -= std::min(execution.memory_limit, 2 * last.values.size());
  // These values, and soon those of the stream itself.
  auto decoder = open_step_beside(source, last.view, codecs(), execution, options_of(context, true));
  if (last.dropped_bytes != 0 && decoder.status().code() == StatusCode::reference_missing)
    fail(Exit::resource, fmt::format("{}: a step was predicted from the one before, whose values take {} of memory; "
                                     "raise --memory to at least four times that, or name the file",
                                     context.name, size_text(last.dropped_bytes)));
  if (context.level > 0 && decoder.status().code() == StatusCode::unsupported)
    fail_level(context.level, decoder.status().text(), context.name);
  return check(std::move(decoder), Phase::decode, context.name);
}

/// Elements of an open decoder; the last piece of them. `waited()`: seconds that its source has waited so far.
template <class Waited>
Buffer decode_pieces(Decoder& decoder, const DecodeContext& context, const TakeElements& take, const Waited& waited,
                     DecodeOutcome& outcome) {
  const StreamInfo info = at_shape(decoder);
  const std::uint64_t elem = dtype_bytes(info.dtype);
  const std::uint64_t total = info.shape.elems() * elem;
  Buffer piece(std::clamp<std::uint64_t>(total, elem, std::max(context.memory / 4, kSmallestPiece) / elem * elem),
               context.name);
  while (true) {
    const Stopwatch watch;
    const double waited_before = waited();
    const std::size_t count = check(decoder.pull({piece.data(), piece.size()}), Phase::decode, context.name);
    outcome.seconds += watch.seconds() - (waited() - waited_before);
    if (count == 0) break;
    take({piece.data(), count});
    outcome.elems += count / elem;
  }
  add_report(decoder.report(), outcome);
  return piece;
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

void decode_part(StepDecoders& steps, std::size_t step, std::span<const std::uint8_t> stream, const StreamInfo& info,
                 const DecodeContext& context, const TakeElements& take, DecodeOutcome& outcome) {
  const std::uint64_t bytes = info.shape.elems() * dtype_bytes(info.dtype);
  // Values of the step before may be kept beside.
  if (bytes > context.memory / (steps.reference(step) ? 3 : 2)) {
    Stopwatch opening;
    steps.forget();
    const auto decoder = steps.open(step, context.execution, options_of(context));
    outcome.seconds += opening.seconds();
    (void)decode_pieces(
        *decoder, context, take, [] { return 0.0; }, outcome);
    return;
  }
  Buffer array(bytes, context.name);
  if (bytes / kPlausibleRatio <= stream.size()) array.touch();
  if (context.level == 0) touch_pages(stream.data(), stream.size());
  Execution execution = context.execution;
  execution.memory_limit = context.memory - bytes - std::min(context.memory - bytes, steps.kept_bytes());
  const Stopwatch watch;
  const DecompressOptions options = options_of(context);
  auto decoder = steps.open(step, execution, options);
  auto pulled = decoder->pull(array.span());
  if (pulled.status().code() == StatusCode::memory_limit && steps.reference(step) && steps.kept_bytes() == 0) {
    // Steps one after the other take less than all of a chain at once.
    decoder.reset();
    array = Buffer();
    execution.memory_limit = context.memory - 2 * bytes;
    outcome.bytes_read += check(steps.approach(step, info, execution, options), Phase::decode, context.name);
    array = Buffer(bytes, context.name);
    decoder = steps.open(step, execution, options);
    pulled = decoder->pull(array.span());
  }
  check(std::move(pulled), Phase::decode, context.name);
  outcome.seconds += watch.seconds();
  add_report(decoder->report(), outcome);
  take({array.data(), array.size()});
  outcome.elems += info.shape.elems();
  if (context.level == 0 && bytes <= context.memory / 3) {
    steps.keep(step, info, std::move(array));
  } else {
    steps.forget();
  }
}

StreamInfo decode_pipe(FdSource& source, const DecodeContext& context, const TakeElements& take, PipedValues& last,
                       DecodeOutcome& outcome) {
  const auto waited = [&source] { return source.seconds(); };
  const Stopwatch opening;
  const double waited_before = waited();
  const auto decoder = open(source, context, last);
  outcome.seconds += opening.seconds() - (waited() - waited_before);
  StreamInfo info = at_shape(*decoder);
  const std::uint64_t bytes = info.shape.elems() * dtype_bytes(info.dtype);
  std::uint64_t most_at_once = 0;
  const TakeElements take_and_measure = [&](std::span<const std::uint8_t> piece) {
    take(piece);
    most_at_once = std::max<std::uint64_t>(most_at_once, piece.size());
  };
  Buffer values = decode_pieces(*decoder, context, take_and_measure, waited, outcome);
  const bool wanted = context.level == 0 && bytes != 0 && may_predict_next(info);
  // One piece holds all values.
  const bool kept = wanted && most_at_once == bytes && bytes <= context.memory / 4;
  last = PipedValues();
  if (kept) last.values = std::move(values);
  if (kept) last.view = {last.values.data(), info.dtype, info.shape};
  if (wanted && !kept) last.dropped_bytes = bytes;
  return info;
}

void decode_region(StepDecoders& steps, std::optional<std::size_t> step, const std::vector<StreamInfo>& infos,
                   const Box& box, const DecodeContext& context, const TakeElements& take, DecodeOutcome& outcome) {
  const bool has_steps = !step && steps.count() > 1;
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
  const std::uint64_t first = has_steps ? box.begin[0] : step.value_or(0);
  const std::uint64_t end = has_steps ? box.end[0] : first + 1;
  for (std::uint64_t i = first; i < end; ++i) {
    const Stopwatch watch;
    const auto decoder = steps.open(static_cast<std::size_t>(i), context.execution, options_of(context));
    check(decoder->region(inner, {array.data(), dtype, shape}), Phase::decode, context.name);
    outcome.seconds += watch.seconds();
    outcome.bytes_read += decoder->report().bytes_read;
    take({array.data(), array.size()});
    outcome.elems += shape.elems();
  }
}

}  // namespace quern::cli
