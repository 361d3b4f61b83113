// Random access: the first bytes choose a box and a coarse level, the rest is a stream. A box of a stream that decodes
// must equal the same box cut out of the whole; on other streams it must end with a status. So must a level, which is
// the whole's points if it decodes, or means of them.
#include <quern/codec.h>
#include <quern/compress.h>

#include <vector>

#include "tests/fuzz/fuzz_common.h"
#include "tests/fuzz/reseal.h"

namespace {

using namespace quern;

constexpr std::uint64_t kMostOutput = UINT64_C(1) << 20;
constexpr std::size_t kChoiceBytes = 16;

Execution limited() {
  Execution execution;
  execution.memory_limit = UINT64_C(8) << 20;
  return execution;
}

/// Copies a box out of a whole array, element by element.
Vector<std::uint8_t> cut(std::span<const std::uint8_t> whole, const Shape& shape, const Box& box, std::size_t width) {
  Vector<std::uint8_t> out;
  std::array<std::uint64_t, kMaxRank> at = box.begin;
  const auto extents = box.shape();
  for (std::uint64_t left = extents->elems(); left > 0; --left) {
    std::uint64_t flat = 0;
    for (std::size_t a = 0; a < shape.rank(); ++a) flat = flat * shape[a] + at[a];
    const auto from = whole.begin() + static_cast<std::ptrdiff_t>(flat * width);
    out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(width));
    for (std::size_t a = shape.rank(); a-- > 0;) {
      if (++at[a] < box.end[a]) break;
      at[a] = box.begin[a];
    }
  }
  return out;
}

/// The level read in part , which a wrong level table may keep from it where the whole is right.
void check_level(std::span<const std::uint8_t> stream, const StreamInfo& info, const Vector<std::uint8_t>* whole,
                 unsigned level) {
  const Shape& coarse = info.levels[level - 1];
  const std::size_t width = dtype_bytes(info.dtype);
  MemorySource source(stream);
  DecompressOptions options;
  options.level = level;
  Vector<std::uint8_t> points(static_cast<std::size_t>(coarse.elems()) * width, 0xA5);
  const auto done = decompress(source, {points.data(), info.dtype, coarse}, builtin_codecs(), limited(), options);
  if (!done.ok() || whole == nullptr || info.levels_are_means) return;
  for (std::uint64_t i = 0; i < coarse.elems(); ++i) {
    std::uint64_t flat = 0;
    std::uint64_t stride = 1;
    std::uint64_t rest = i;
    for (std::size_t a = coarse.rank(); a-- > 0; rest /= coarse[a], stride *= info.shape[a])
      flat += (coarse[a] == info.shape[a] ? rest % coarse[a] : rest % coarse[a] << level) * stride;
    QUERN_FUZZ_CHECK(std::memcmp(points.data() + i * width, whole->data() + flat * width, width) == 0);
  }
}

Box choose_box(fuzz::Feed& feed, const Shape& shape) {
  Box box;
  box.rank = shape.rank();
  for (std::size_t a = 0; a < shape.rank(); ++a) {
    const std::uint64_t one = feed.below(shape[a] + 1);
    const std::uint64_t other = feed.below(shape[a] + 1);
    box.begin[a] = std::min(one, other);
    box.end[a] = std::max(one, other);
  }
  return box;
}

void check_stream(std::span<const std::uint8_t> stream, fuzz::Feed choices, unsigned level) {
  MemorySource source(stream);
  auto decoder = Decoder::open(source, builtin_codecs(), limited());
  if (!decoder.ok()) return;
  const StreamInfo& info = (*decoder)->info();
  const auto bytes = checked_multiply(info.shape.elems(), dtype_bytes(info.dtype));
  if (!bytes || *bytes > kMostOutput) return;

  const Box box = choose_box(choices, info.shape);
  QUERN_FUZZ_CHECK(box.check(info.shape).ok());
  const auto box_shape = box.shape();
  QUERN_FUZZ_CHECK(box_shape.ok());
  Vector<std::uint8_t> part(box_shape->elems() * dtype_bytes(info.dtype), 0xA5);
  const Status status = (*decoder)->region(box, {part.data(), info.dtype, *box_shape});

  Vector<std::uint8_t> whole(static_cast<std::size_t>(*bytes), 0x5A);
  MemorySource again(stream);
  const auto report = decompress(again, {whole.data(), info.dtype, info.shape}, builtin_codecs(), limited());
  if (!info.levels.empty())
    check_level(stream, info, report.ok() ? &whole : nullptr, 1 + level % static_cast<unsigned>(info.levels.size()));
  if (!report.ok()) return;
  QUERN_FUZZ_CHECK(status.ok(), status.text());
  QUERN_FUZZ_CHECK(part == cut(whole, info.shape, box, dtype_bytes(info.dtype)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  fuzz::Feed feed({data, size});
  const fuzz::Feed choices(feed.take(kChoiceBytes));
  const unsigned level = data[std::min(size, kChoiceBytes) - 1];
  const auto stream = feed.rest();
  check_stream(stream, choices, level);
  const auto sealed = fuzz::reseal(stream);
  if (!std::equal(sealed.begin(), sealed.end(), stream.begin(), stream.end())) check_stream(sealed, choices, level);
  return 0;
}
