// Whole streams of hostile bytes as records, under a small memory limit; once as they are and once with valid checksums
// put back. What decodes must decode to the same bytes whole, item by item and with more threads; verify() must take
// it; memory stays under the limit.
#include <quern/records.h>

#include <algorithm>
#include <vector>

#include "tests/fuzz/fuzz_common.h"
#include "tests/fuzz/reseal_records.h"
#include "tests/golden/record_cases.h"

namespace {

using namespace quern;

constexpr std::uint64_t kMemoryLimit = UINT64_C(4) << 20;
constexpr std::uint64_t kMostOutput = UINT64_C(1) << 20;
/// The header and what is made of it; small buffers of a call.
constexpr std::uint64_t kSlack = UINT64_C(1) << 20;
constexpr std::uint64_t kHeaderFactor = 64;

Execution execution_of(std::size_t threads) {
  Execution execution;
  execution.threads = threads;
  execution.memory_limit = kMemoryLimit;
  return execution;
}

bool equal(const golden::RecordSet& a, const golden::RecordSet& b) {
  return a.values == b.values && a.strings == b.strings;
}

/// Sections in small pieces, items of several segments among them.
void check_pieces(std::span<const std::uint8_t> stream, const golden::RecordSet& whole) {
  MemorySource source(stream);
  const auto reader = RecordReader::open(source, golden::record_codecs(), execution_of(1));
  QUERN_FUZZ_CHECK(reader.ok(), reader.status().text());
  for (std::size_t i = 0; i < whole.layout.sections.size(); ++i) {
    const RecordSection& section = whole.layout.sections[i];
    if (section.form == SectionForm::bytes) continue;
    const std::uint64_t step = std::max<std::uint64_t>(1, section.items / 3);
    for (std::uint64_t first = 0; first < section.items; first += step) {
      const std::uint64_t count = std::min(step, section.items - first);
      std::vector<std::uint8_t> piece(static_cast<std::size_t>(count * section.item_bytes()), 0x5A);
      const Status status = (*reader)->read_items(i, first, count, piece);
      QUERN_FUZZ_CHECK(status.ok(), status.text());
      const auto begin = whole.values[i].begin() + static_cast<std::ptrdiff_t>(first * section.item_bytes());
      QUERN_FUZZ_CHECK(std::equal(piece.begin(), piece.end(), begin));
    }
  }
}

void check_stream(std::span<const std::uint8_t> stream) {
  golden::RecordSet whole;
  {
    const fuzz::AllocationWatch watch;
    auto decoded = golden::decode_records(stream, golden::record_codecs(), execution_of(1), kMostOutput);
    QUERN_FUZZ_CHECK(watch.peak() <= kMemoryLimit + 2 * kMostOutput + kSlack + kHeaderFactor * stream.size(),
                     std::to_string(watch.peak()));
    MemorySource source(stream);
    auto reader = RecordReader::open(source, golden::record_codecs(), execution_of(1));
    if (reader.ok()) {
      const auto checked = (*reader)->verify();
      QUERN_FUZZ_CHECK(watch.peak() <= kMemoryLimit + 2 * kMostOutput + kSlack + kHeaderFactor * stream.size(),
                       std::to_string(watch.peak()));
      // What verify() takes, reading must give, unless it is too much or the codec is not known.
      if (checked.ok() && !decoded.ok()) {
        const StatusCode expected = checked->decoded ? StatusCode::destination_too_small : StatusCode::unknown_codec;
        const StatusCode code = decoded.status().code();
        QUERN_FUZZ_CHECK(code == expected || code == StatusCode::destination_too_small, decoded.status().text());
      }
      QUERN_FUZZ_CHECK(!checked.ok() || checked->decoded || !decoded.ok());
    } else {
      QUERN_FUZZ_CHECK(!decoded.ok());
    }
    if (!decoded.ok()) return;
    whole = std::move(decoded).value();
  }
  check_pieces(stream, whole);
  const auto threaded = golden::decode_records(stream, golden::record_codecs(), execution_of(3), kMostOutput);
  QUERN_FUZZ_CHECK(threaded.ok(), threaded.status().text());
  QUERN_FUZZ_CHECK(equal(*threaded, whole));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> stream(data, size);
  check_stream(stream);
  const auto sealed = fuzz::reseal_records(stream);
  if (!std::equal(sealed.begin(), sealed.end(), stream.begin(), stream.end())) check_stream(sealed);
  return 0;
}
