// A mask in a stream that may hold masks coded by levels. Input: element type, three extents, then the stored mask. What
// decodes must fit the segment, stay under what decode_bytes says, and survive being stored again in the same form. The code that warps run must
// accept the same bytes and restore the same values.
#include "libcompress/pipeline/mask/mask.h"
#include "tests/fuzz/fuzz_common.h"
#include "tests/fuzz/mask_lanes.h"

namespace {

using namespace quern;

constexpr DType kTypes[] = {DType::f32, DType::f64, DType::u8, DType::i16};
constexpr std::uint64_t kSlack = UINT64_C(64) << 10;  // tables whose size does not depend on the input

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Feed feed({data, size});
  const DType dtype = kTypes[feed.byte() % std::size(kTypes)];
  mask::Extents extents{};
  for (std::uint64_t& extent : extents) extent = feed.byte() % 80 + 1;
  const std::uint64_t cells = extents[0] * extents[1] * extents[2];
  const std::uint64_t limit = mask::decode_bytes(extents, mask::MaskForm::levels);

  const fuzz::AllocationWatch watch;
  const std::span<const std::uint8_t> bytes = feed.rest();
  const auto decoded = mask::decode_mask(bytes, extents, dtype, limit, mask::MaskForm::levels);
  QUERN_FUZZ_CHECK(watch.peak() <= limit + kSlack, std::to_string(watch.peak()));
  fuzz::check_lanes(bytes, decoded, extents, dtype, mask::MaskForm::levels);
  if (!decoded.ok()) {
    QUERN_FUZZ_CHECK(decoded.status().code() != StatusCode::memory_limit);
    return 0;
  }
  if (decoded->empty()) return 0;
  QUERN_FUZZ_CHECK(decoded->classes.size() == cells);
  std::uint64_t masked = 0, verbatim = 0;
  for (const std::uint8_t c : decoded->classes) {
    masked += c != 0 ? 1 : 0;
    verbatim += c == mask::kVerbatimClass ? 1 : 0;
    QUERN_FUZZ_CHECK(c <= decoded->specials.size() || c == mask::kVerbatimClass);
  }
  QUERN_FUZZ_CHECK(masked == decoded->masked && verbatim == decoded->verbatim.size());
  Vector<std::uint8_t> stored;
  const Status status = mask::encode_mask(*decoded, extents, dtype, stored, {}, mask::MaskForm::levels);
  QUERN_FUZZ_CHECK(status.ok(), status.text());
  const auto again = mask::decode_mask(stored, extents, dtype, limit, mask::MaskForm::levels);
  QUERN_FUZZ_CHECK(again.ok(), again.status().text());
  QUERN_FUZZ_CHECK(*again == *decoded);
  return 0;
}
