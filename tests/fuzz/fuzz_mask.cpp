// The mask of a segment. Input: element type, three extents, then the stored mask. What decodes must fit the segment,
// stay under the memory limit, survive being stored again, and restore only into its own cells. The code that warps run
// must accept the same bytes and restore the same values.
#include "libcompress/pipeline/mask/mask.h"
#include "tests/fuzz/fuzz_common.h"
#include "tests/fuzz/mask_lanes.h"

namespace {

using namespace quern;

constexpr DType kTypes[] = {DType::f32, DType::f64, DType::u8, DType::i16};
constexpr std::uint64_t kMemoryLimit = UINT64_C(1) << 20;
constexpr std::uint64_t kSlack = UINT64_C(64) << 10;  // tables whose size does not depend on the input

void check_consistent(const mask::SegmentMask& decoded, std::uint64_t cells) {
  if (decoded.empty()) return;
  QUERN_FUZZ_CHECK(decoded.classes.size() == cells);
  QUERN_FUZZ_CHECK(decoded.specials.size() <= mask::kMaxSpecials);
  std::uint64_t masked = 0;
  std::size_t verbatim = 0;
  for (std::uint64_t cell = 0; cell < cells; ++cell) {
    const std::uint8_t c = decoded.classes[cell];
    masked += c != 0 ? 1 : 0;
    if (c == mask::kVerbatimClass) {
      ++verbatim;
    } else {
      QUERN_FUZZ_CHECK(c <= decoded.specials.size());
    }
  }
  QUERN_FUZZ_CHECK(masked == decoded.masked && verbatim == decoded.verbatim.size());
}

/// Restoring touches the special cells and nothing else.
void check_restore(const mask::SegmentMask& decoded, const mask::Extents& extents, DType dtype) {
  const std::size_t width = dtype_bytes(dtype);
  MutableBox3 box;
  box.extents = extents;
  box.strides = {extents[1] * extents[2], extents[2]};
  Vector<std::uint8_t> values(box.elems() * width, 0x5A);
  box.data = values.data();
  const Status status = mask::restore_specials(box, dtype, decoded, extents, {0, 0, 0});
  QUERN_FUZZ_CHECK(status.ok(), status.text());
  for (std::size_t cell = 0; !decoded.empty() && cell < decoded.classes.size(); ++cell)
    for (std::size_t i = 0; decoded.classes[cell] == 0 && i < width; ++i)
      QUERN_FUZZ_CHECK(values[cell * width + i] == 0x5A);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Feed feed({data, size});
  const DType dtype = kTypes[feed.byte() % std::size(kTypes)];
  mask::Extents extents{};
  for (std::uint64_t& extent : extents) extent = feed.byte() % 40 + 1;
  const std::uint64_t cells = extents[0] * extents[1] * extents[2];

  const fuzz::AllocationWatch watch;
  const std::span<const std::uint8_t> bytes = feed.rest();
  const auto decoded = mask::decode_mask(bytes, extents, dtype, kMemoryLimit);
  QUERN_FUZZ_CHECK(watch.peak() <= kMemoryLimit + kSlack, std::to_string(watch.peak()));
  if (decoded.status().code() != StatusCode::memory_limit) fuzz::check_lanes(bytes, decoded, extents, dtype);
  if (!decoded.ok()) return 0;
  check_consistent(*decoded, cells);
  check_restore(*decoded, extents, dtype);
  Vector<std::uint8_t> stored;
  const Status status = mask::encode_mask(*decoded, extents, dtype, stored);
  QUERN_FUZZ_CHECK(status.ok(), status.text());
  const auto again = mask::decode_mask(stored, extents, dtype, kMemoryLimit);
  QUERN_FUZZ_CHECK(again.ok(), again.status().text());
  QUERN_FUZZ_CHECK(*again == *decoded);
  return 0;
}
