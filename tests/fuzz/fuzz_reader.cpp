// The Reader against the plain model of a position in an array: a failed read moves nothing, a good one moves by what
// it returned, and a read of fixed width fails exactly when too few bytes are left.
#include "libcompress/format/reader.h"

#include "tests/fuzz/fuzz_common.h"

namespace {

using quern::Reader;

void check_fixed(const Reader& reader, std::size_t before, std::size_t total, bool ok, std::size_t width) {
  QUERN_FUZZ_CHECK(ok == (total - before >= width));
  QUERN_FUZZ_CHECK(reader.position() - before == (ok ? width : 0));
}

void check_varint(Reader& reader, std::uint64_t limit) {
  const std::size_t before = reader.position();
  const auto value = reader.varint(limit);
  const std::size_t moved = reader.position() - before;
  QUERN_FUZZ_CHECK(value.ok() ? *value <= limit && moved >= 1 && moved <= 10 : moved == 0);
}

void check_view(Reader& reader, std::span<const std::uint8_t> bytes, std::uint64_t count) {
  const std::size_t before = reader.position();
  const auto view = reader.bytes(count);
  QUERN_FUZZ_CHECK(view.ok() == (bytes.size() - before >= count));
  QUERN_FUZZ_CHECK(!view.ok() || (view->size() == count && view->data() == bytes.data() + before));
  QUERN_FUZZ_CHECK(reader.position() - before == (view.ok() ? count : 0));
}

void step(Reader& reader, std::span<const std::uint8_t> bytes, std::uint8_t operation) {
  const std::size_t before = reader.position();
  const std::size_t argument = operation / 9;
  // Counts near 2^64 must not wrap around.
  const std::uint64_t count = argument > 26 ? UINT64_MAX - argument : argument;
  switch (operation % 9) {
    case 0: return check_fixed(reader, before, bytes.size(), reader.u8().ok(), 1);
    case 1: return check_fixed(reader, before, bytes.size(), reader.u16().ok(), 2);
    case 2: return check_fixed(reader, before, bytes.size(), reader.u32().ok(), 4);
    case 3: return check_fixed(reader, before, bytes.size(), reader.u64().ok(), 8);
    case 4: return check_fixed(reader, before, bytes.size(), reader.f64().ok(), 8);
    case 5:
      return check_fixed(reader, before, bytes.size(), reader.unsigned_of(argument % 8 + 1).ok(), argument % 8 + 1);
    case 6: return check_varint(reader, argument % 2 == 0 ? UINT64_MAX : 1000);
    case 7: return check_view(reader, bytes, count);
    default: QUERN_FUZZ_CHECK(reader.skip(count).ok() == (bytes.size() - before >= count));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  quern::fuzz::Feed feed({data, size});
  const auto operations = feed.take(size / 4);
  const auto bytes = feed.rest();
  Reader reader(bytes);
  for (const std::uint8_t operation : operations) {
    step(reader, bytes, operation);
    QUERN_FUZZ_CHECK(reader.position() + reader.remaining() == bytes.size());
  }
  QUERN_FUZZ_CHECK(reader.expect_end().ok() == reader.at_end());
  return 0;
}
