// Arrays made from the input through compress and back: the bound holds by the independent check, the size limit holds,
// more threads give the same bytes, and pieces pushed one by one decode within the bound too.
// Input: type, bound, codec and layout, shape, fill value, way of making values, then the bytes they are made from.
#include <quern/codec.h>
#include <quern/compress.h>
#include <quern/metrics.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "tests/fuzz/fuzz_common.h"

namespace {

using namespace quern;

constexpr DType kTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,  DType::i16,
                            DType::i32, DType::i64, DType::u8,  DType::u16,  DType::u32, DType::u64};
constexpr std::uint64_t kMostElems = 1 << 14;

struct Case {
  DType dtype = DType::f32;
  Shape shape;
  CompressOptions options;
  Vector<std::uint8_t> values;
};

ErrorBound choose_bound(fuzz::Feed& feed) {
  static constexpr double kUsual[] = {0, 1e-300, 1e-6, 1e-3, 0.01, 0.5, 1, 2.5, 100, 1e30};
  ErrorBound bound;
  bound.kind = static_cast<BoundKind>(feed.byte() % 6);
  const std::uint8_t which = feed.byte();
  bound.value = which < 240 ? kUsual[which % std::size(kUsual)] : std::fabs(feed.raw<double>());
  if (bound.kind == BoundKind::psnr) bound.value = which % 120;
  if (bound.kind == BoundKind::ratio) bound.value = 1 + which % 64;
  if (bound.kind == BoundKind::lossless) bound.value = 0;
  return bound;
}

Result<Shape> choose_shape(fuzz::Feed& feed) {
  std::uint64_t extents[4];
  const std::size_t rank = feed.byte() % 5;
  std::uint64_t left = kMostElems;
  for (std::size_t a = 0; a < rank; ++a) {
    extents[a] = feed.below(left + 1);
    if (a + 1 < rank) extents[a] %= 64;
    left = extents[a] > 1 ? left / extents[a] : left;
  }
  return Shape::make({extents, rank});
}

/// Repeats bytes up to a length.
void fill_cyclic(std::span<const std::uint8_t> pattern, Vector<std::uint8_t>& out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = pattern.empty() ? 0 : pattern[i % pattern.size()];
}

/// A walk whose steps are the pattern's bytes: smooth data, as the type's own numbers.
template <class T>
void fill_walk(std::span<const std::uint8_t> pattern, double scale, Vector<std::uint8_t>& out) {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < out.size() / sizeof(T); ++i) {
    const std::uint8_t byte = pattern.empty() ? 0 : pattern[i % pattern.size()];
    at += static_cast<std::int8_t>(byte);
    T value = static_cast<T>(at);
    if constexpr (std::is_floating_point_v<T>) value = static_cast<T>(static_cast<double>(at) * scale);
    std::memcpy(out.data() + i * sizeof(T), &value, sizeof(T));
  }
}

Case make_case(fuzz::Feed& feed) {
  Case c;
  c.dtype = kTypes[feed.byte() % std::size(kTypes)];
  c.options.bound = choose_bound(feed);
  const auto codecs = builtin_codecs().all();
  const std::size_t choice = feed.byte();
  const std::size_t codec = choice % (codecs.size() + 1);
  if (codec < codecs.size()) c.options.codec = codecs[codec]->info().name;
  static constexpr const char* kLayouts[] = {"auto", "raster", "levels", "planes", "wavelet"};
  if (c.options.codec == "stencil")
    c.options.settings = {{"layout", kLayouts[choice / (codecs.size() + 1) % std::size(kLayouts)]}};
  c.options.effort = static_cast<unsigned>(1 + choice / (codecs.size() + 1) / std::size(kLayouts) % 9);
  const auto shape = choose_shape(feed);
  QUERN_FUZZ_CHECK(shape.ok(), shape.status().text());
  c.shape = *shape;
  const std::uint8_t flags = feed.byte();
  c.options.find_repeated = (flags & 1) == 0;
  if ((flags & 2) != 0) c.options.fill_bits.push_back(feed.raw<std::uint64_t>() >> (64 - 8 * dtype_bytes(c.dtype)));
  if ((flags & 4) != 0) c.options.metadata.assign(feed.byte(), feed.byte());
  c.values.resize(c.shape.elems() * dtype_bytes(c.dtype));
  const double scale = std::ldexp(1.0, static_cast<int>(flags >> 4) * 8 - 64);
  if ((flags & 8) == 0) {
    fill_cyclic(feed.rest(), c.values);
  } else if (c.dtype == DType::f64) {
    fill_walk<double>(feed.rest(), scale, c.values);
  } else if (c.dtype == DType::f32) {
    fill_walk<float>(feed.rest(), scale, c.values);
  } else if (dtype_bytes(c.dtype) == 8) {
    fill_walk<std::int64_t>(feed.rest(), scale, c.values);
  } else if (dtype_bytes(c.dtype) == 4) {
    fill_walk<std::int32_t>(feed.rest(), scale, c.values);
  } else if (dtype_bytes(c.dtype) == 2) {
    fill_walk<std::int16_t>(feed.rest(), scale, c.values);
  } else {
    fill_walk<std::int8_t>(feed.rest(), scale, c.values);
  }
  return c;
}

Result<CompressReport> compress_case(const Case& c, std::size_t threads, Vector<std::uint8_t>& stream) {
  VectorSink sink(stream);
  Execution execution;
  execution.threads = threads;
  return compress({c.values.data(), c.dtype, c.shape}, c.options, builtin_codecs(), execution, sink);
}

void check_quality(const Case& c, std::span<const std::uint8_t> stream, const EnforcedBound& enforced) {
  Vector<std::uint8_t> back(c.values.size(), 0xA5);
  MemorySource source(stream);
  const auto decoded = decompress(source, {back.data(), c.dtype, c.shape}, builtin_codecs(), {});
  QUERN_FUZZ_CHECK(decoded.ok(), decoded.status().text());
  const ArrayView original{c.values.data(), c.dtype, c.shape};
  const ArrayView reconstructed{back.data(), c.dtype, c.shape};
  const ValidityRule validity{c.options.fill_bits};
  const auto check = check_bound(original, reconstructed, enforced, validity, {});
  QUERN_FUZZ_CHECK(check.ok(), check.status().text());
  QUERN_FUZZ_CHECK(check->violations == 0, std::to_string(check->violations) + " values miss the bound");
  if (c.options.bound.kind == BoundKind::psnr) {
    const auto quality = measure_quality(original, reconstructed, {validity, false, 0}, {});
    QUERN_FUZZ_CHECK(quality.ok(), quality.status().text());
    QUERN_FUZZ_CHECK(!quality->psnr_db || *quality->psnr_db >= c.options.bound.value, "PSNR below the one asked for");
  }
}

/// Pushes the array in pieces of 37 elements.
Result<CompressReport> push_pieces(const Case& c, Vector<std::uint8_t>& stream) {
  VectorSink sink(stream);
  QUERN_ASSIGN_OR_RETURN(auto encoder, Encoder::create(c.dtype, c.shape, c.options, builtin_codecs(), {}, sink));
  std::span<const std::uint8_t> left(c.values);
  while (!left.empty()) {
    const std::size_t count = std::min(left.size(), 37 * dtype_bytes(c.dtype));
    QUERN_RETURN_IF_ERROR(encoder->push(left.first(count)));
    left = left.subspan(count);
  }
  return encoder->finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Feed feed({data, size});
  const Case c = make_case(feed);
  Vector<std::uint8_t> stream;
  const auto report = compress_case(c, 1, stream);
  if (!report.ok()) {
    QUERN_FUZZ_CHECK(report.status().code() != StatusCode::internal, report.status().text());
    return 0;
  }
  QUERN_FUZZ_CHECK(report->output_bytes == stream.size());
  const auto limit = max_stream_bytes(c.dtype, c.shape, c.options.metadata.size());
  QUERN_FUZZ_CHECK(limit.ok());
  QUERN_FUZZ_CHECK(stream.size() <= *limit, std::to_string(stream.size()) + " > " + std::to_string(*limit));
  const ErrorBound& asked = c.options.bound;
  if (asked.kind == BoundKind::abs) QUERN_FUZZ_CHECK(report->enforced.value <= asked.value);
  if (asked.kind == BoundKind::ratio)
    QUERN_FUZZ_CHECK(static_cast<double>(c.values.size()) >= asked.value * static_cast<double>(stream.size()));
  check_quality(c, stream, report->enforced);

  if (asked.kind != BoundKind::ratio && asked.kind != BoundKind::psnr && asked.kind != BoundKind::rel) {
    Vector<std::uint8_t> pieces;
    const auto pushed = push_pieces(c, pieces);
    QUERN_FUZZ_CHECK(pushed.ok(), pushed.status().text());
    check_quality(c, pieces, pushed->enforced);
  }
  // Threads are slow to start: one input in eight.
  if ((std::accumulate(data, data + size, 0U) & 7U) == 0) {
    Vector<std::uint8_t> threaded;
    QUERN_FUZZ_CHECK(compress_case(c, 3, threaded).ok());
    QUERN_FUZZ_CHECK(threaded == stream, "three threads gave other bytes than one");
  }
  return 0;
}
