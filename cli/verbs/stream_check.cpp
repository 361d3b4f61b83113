// Piecewise comparison of a stream with its original.
#include "cli/verbs/stream_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/files/memory.h"
#include "cli/messages/clock.h"
#include "cli/models/model_files.h"

namespace quern::cli {
namespace {

constexpr std::size_t kListed = 16;

void merge_bound(const BoundCheck& piece, std::uint64_t offset, BoundCheck& total) {
  total.violations += piece.violations;
  total.specials_lost += piece.specials_lost;
  for (Violation violation : piece.first) {
    if (total.first.size() == kListed) break;
    violation.index += offset;
    total.first.push_back(violation);
  }
}

void merge_quality(const Quality& piece, std::uint64_t offset, Quality& total) {
  if (piece.valid != 0) {
    const bool first = total.valid == 0;
    total.min = first ? piece.min : std::min(total.min, piece.min);
    total.max = first ? piece.max : std::max(total.max, piece.max);
    const auto before = static_cast<double>(total.valid);
    const auto added = static_cast<double>(piece.valid);
    total.mse = (total.mse * before + piece.mse * added) / (before + added);
  }
  if (piece.max_error > total.max_error) {
    total.max_error = piece.max_error;
    total.max_error_index = piece.max_error_index + offset;
  }
  total.elems += piece.elems;
  total.valid += piece.valid;
  total.specials_lost += piece.specials_lost;
  total.max_pointwise_rel = std::max(total.max_pointwise_rel, piece.max_pointwise_rel);
  total.max_ulp = std::max(total.max_ulp, piece.max_ulp);
}

void finish_quality(Quality& total) {
  const double range = total.max - total.min;
  if (total.mse > 0 && range > 0) {
    total.psnr_db = 20 * std::log10(range) - 10 * std::log10(total.mse);
    total.nrmse = std::sqrt(total.mse) / range;
  } else if (range > 0) {
    total.nrmse = 0.0;
  }
}

/// Targets that a bound on single elements does not express, and bounds looser than what was asked for.
std::string missed_target(const StreamCheck& check, std::uint64_t stream_bytes) {
  const ErrorBound& asked = check.info.requested;
  const EnforcedBound& kept = check.info.enforced;
  switch (asked.kind) {
    case BoundKind::psnr:
      if (check.quality.psnr_db && *check.quality.psnr_db < asked.value)
        return fmt::format("the PSNR is {:.4f} dB, asked for were {} dB", *check.quality.psnr_db, asked.value);
      break;
    case BoundKind::ratio: {
      const double raw = static_cast<double>(check.info.shape.elems() * dtype_bytes(check.info.dtype));
      const double ratio = raw / static_cast<double>(std::max<std::uint64_t>(stream_bytes, 1));
      if (ratio < asked.value) return fmt::format("the ratio is {:.4f}, asked for was {}", ratio, asked.value);
      break;
    }
    case BoundKind::abs:
      if (kept.kind == BoundKind::abs && kept.value > asked.value)
        return fmt::format("the stream enforces {} where {} was asked for", kept.value, asked.value);
      break;
    case BoundKind::rel:
      if (kept.kind == BoundKind::abs && check.info.range &&
          kept.value > asked.value * (check.info.range->max - check.info.range->min))
        return fmt::format("the stream enforces {}, more than {} of its range", kept.value, asked.value);
      break;
    case BoundKind::pwrel:
      if (kept.kind == BoundKind::pwrel && kept.value > asked.value)
        return fmt::format("the stream enforces {} where {} was asked for", kept.value, asked.value);
      break;
    case BoundKind::lossless:
      if (kept.kind != BoundKind::lossless && kept.value != 0) return "the stream is not lossless";
      break;
  }
  return {};
}

/// `values` gets all that was decoded, if that was one piece.
StreamCheck check_decoded(Decoder* decoder, std::uint64_t stream_bytes, const NextOriginal& next,
                          const CheckOptions& options, const Execution& execution, const std::string& name,
                          Buffer& values) {
  StreamCheck out;
  out.info = decoder->info();
  const std::size_t elem = dtype_bytes(out.info.dtype);
  const std::uint64_t total = out.info.shape.elems() * elem;
  const bool one_piece = total <= options.piece_bytes;
  Buffer decoded(std::min<std::uint64_t>(total, std::max<std::uint64_t>(options.piece_bytes / elem, 1) * elem), name);
  ValidityRule validity;
  validity.fill_bits = out.info.fill_bits;
  QualityOptions quality;
  quality.validity = validity;
  quality.validity.fill_bits.insert(quality.validity.fill_bits.end(), options.left_out.begin(), options.left_out.end());
  quality.with_ssim = options.with_ssim && one_piece;
  quality.autocorrelation_lags = one_piece && options.with_ssim ? quality.autocorrelation_lags : 0;

  for (std::uint64_t at = 0; at < total;) {
    const std::uint64_t bytes = std::min<std::uint64_t>(total - at, decoded.size());
    const Stopwatch watch;
    for (std::uint64_t filled = 0; filled < bytes;) {
      const std::size_t count = check(decoder->pull({decoded.data() + filled, bytes - filled}), Phase::decode, name);
      if (count == 0) fail(Exit::stream, name + ": the stream gave fewer elements than its shape has");
      filled += count;
    }
    out.decode_seconds += watch.seconds();
    const std::uint64_t count = bytes / elem;
    const Shape shape = one_piece ? out.info.shape : check(Shape::make({{count}}), Phase::decode, name);
    const ArrayView original{next(bytes), out.info.dtype, shape};
    const ArrayView reconstructed{decoded.data(), out.info.dtype, shape};
    merge_bound(
        check(check_bound(original, reconstructed, out.info.enforced, validity, execution), Phase::decode, name),
        at / elem, out.bound);
    const Quality piece = check(measure_quality(original, reconstructed, quality, execution), Phase::decode, name);
    if (one_piece) {
      out.quality = piece;
    } else {
      merge_quality(piece, at / elem, out.quality);
    }
    at += bytes;
  }
  // The end of the array is followed by a trailer with checks of its own.
  std::uint8_t nothing[8];
  if (check(decoder->pull({nothing, elem}), Phase::decode, name) != 0)
    fail(Exit::stream, name + ": the stream gave more elements than its shape has");
  if (!one_piece) finish_quality(out.quality);
  out.missed_target = missed_target(out, stream_bytes);
  if (one_piece) values = std::move(decoded);
  return out;
}

}  // namespace

StreamCheck check_stream(ByteSource& source, std::uint64_t stream_bytes, const NextOriginal& next,
                         const CheckOptions& options, const Execution& execution, const std::string& name) {
  const auto decoder = check(open_step_beside(source, options.before, codecs(), execution), Phase::decode, name);
  Buffer values;
  return check_decoded(decoder.get(), stream_bytes, next, options, execution, name, values);
}

StreamCheck check_step(StepDecoders& steps, std::size_t step, std::uint64_t stream_bytes, const NextOriginal& next,
                       const CheckOptions& options, const Execution& execution, const std::string& name) {
  const auto decoder = steps.open(step, execution, {});
  Buffer values;
  StreamCheck out = check_decoded(decoder.get(), stream_bytes, next, options, execution, name, values);
  if (values.size() != 0) steps.keep(step, out.info, std::move(values));
  return out;
}

std::string index_text(std::uint64_t index, const Shape& shape) {
  std::array<std::uint64_t, kMaxRank> at{};
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    at[axis] = index % shape[axis];
    index /= shape[axis];
  }
  return fmt::format("[{}]", fmt::join(at.begin(), at.begin() + shape.rank(), ","));
}

std::string describe_failure(const StreamCheck& check) {
  if (check.bound.violations == 0) return check.missed_target;
  std::string out = fmt::format("{} of {} elements miss {}", check.bound.violations, check.info.shape.elems(),
                                bound_text(check.info.enforced.kind, check.info.enforced.value));
  if (check.bound.specials_lost != 0) out += fmt::format(" ({} special values changed)", check.bound.specials_lost);
  if (!check.bound.first.empty()) {
    const Violation& first = check.bound.first.front();
    out += fmt::format("; first at {}: {} became {} (error {}, {} ulps)", index_text(first.index, check.info.shape),
                       first.original, first.reconstructed, first.error, first.ulps);
  }
  return out;
}

}  // namespace quern::cli
