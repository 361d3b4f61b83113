// The header behind its checksum: the input is taken as header fields, wrapped in magic, size and a correct checksum,
// and read. What is accepted must be consistent and survive being written and read again.
#include <quern/codec.h>
#include <quern/compress.h>

#include <algorithm>
#include <vector>

#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/grid/header.h"
#include "libcompress/format/grid/limits.h"
#include "tests/fuzz/fuzz_common.h"

namespace {

using namespace quern;

Vector<std::uint8_t> wrap(std::span<const std::uint8_t> fields) {
  Header empty;
  empty.grid.extents = {1, 1, 1};
  const auto valid = serialize_header(empty);
  QUERN_FUZZ_CHECK(valid.ok(), valid.status().text());
  Vector<std::uint8_t> bytes(valid->begin(), valid->begin() + 8);  // the magic
  const auto total = static_cast<std::uint32_t>(kHeaderPrefixBytes + fields.size() + 8);
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(total >> (8 * i)));
  bytes.insert(bytes.end(), fields.begin(), fields.end());
  const std::uint64_t checksum = checksum64(bytes);
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<std::uint8_t>(checksum >> (8 * i)));
  return bytes;
}

void check_accepted(Header header) {
  QUERN_FUZZ_CHECK(header.params.size() <= kMaxParamsBytes);
  QUERN_FUZZ_CHECK(header.metadata.size() <= kMaxMetadataBytes);
  QUERN_FUZZ_CHECK(header.fill_bits.size() <= kMaxFillValues);
  QUERN_FUZZ_CHECK(check_grid(header.grid, header.shape).ok());
  const auto written = serialize_header(header);
  QUERN_FUZZ_CHECK(written.ok(), written.status().text());
  const auto again = parse_header(*written);
  QUERN_FUZZ_CHECK(again.ok(), again.status().text());
  QUERN_FUZZ_CHECK(again->shape == header.shape && again->dtype == header.dtype);
  QUERN_FUZZ_CHECK(again->enforced.kind == header.enforced.kind && again->enforced.value == header.enforced.value);
  QUERN_FUZZ_CHECK(again->params == header.params && again->metadata == header.metadata);
  QUERN_FUZZ_CHECK(again->fill_bits == header.fill_bits);
  QUERN_FUZZ_CHECK(again->grid.extents == header.grid.extents && again->grid.chunk == header.grid.chunk);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > kMaxHeaderBytes) return 0;
  // As it is: the public way in, which must turn anything down politely.
  MemorySource raw({data, size});
  (void)inspect(raw, builtin_codecs());

  const auto bytes = wrap({data, size});
  const auto header = parse_header(bytes);
  if (header.ok()) check_accepted(*header);
  MemorySource source(bytes);
  const auto info = inspect(source, builtin_codecs());
  QUERN_FUZZ_CHECK(!info.ok() || header.ok());
  return 0;
}
