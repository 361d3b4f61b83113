// Residual coding without a codec around it: stored distributions, tables made of them, hostile streams, and residuals
// that are encoded into a stream and decoded again.
// Input: which use, distributions as they are stored, then streams, or residuals as a context bin, a token and open
// bits.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "coding/distributions.h"
#include "coding/stream_reader.h"
#include "coding/token_tables.h"
#include "tests/fuzz/fuzz_common.h"

namespace {

using namespace quern;

constexpr std::size_t kMostResiduals = 4096;

struct Tables {
  std::array<kernels::TokenTable, kernels::kContextBins> tables;
  coding::ServingTables serving{};
};

/// Ranges of all tokens follow each other from 0 to 2^15, none is empty, and looking for a slot begins no later than
/// its token.
void check_table(const kernels::TokenTable& table, unsigned tokens) {
  QUERN_FUZZ_CHECK(table.starts[0] == 0 && table.starts[tokens] == kernels::kFrequencySum);
  for (unsigned t = 0; t < tokens; ++t) QUERN_FUZZ_CHECK(table.starts[t] < table.starts[t + 1u]);
  for (std::size_t b = 0; b < table.buckets.size(); ++b)
    QUERN_FUZZ_CHECK(table.buckets[b] < tokens &&
                     table.starts[table.buckets[b]] <= b << kernels::TokenTable::kBucketShift);
}

/// What was read is read again from what is written of it.
void check_rewriting(const coding::Distributions& distributions) {
  Vector<std::uint8_t> bytes;
  BitWriter writer(bytes);
  coding::write_distributions(distributions, writer);
  BitReader reader(bytes);
  coding::Distributions again{};
  QUERN_FUZZ_CHECK(coding::read_distributions(reader, again).ok() && !reader.failed());
  for (std::size_t l = 0; l < kernels::kContextBins; ++l) {
    const kernels::TokenDistribution& a = distributions[l];
    const kernels::TokenDistribution& b = again[l];
    QUERN_FUZZ_CHECK(a.tokens == b.tokens);
    QUERN_FUZZ_CHECK(a.tokens < 2 || a.zero == b.zero);
    QUERN_FUZZ_CHECK(a.tokens < 3 || (a.shape == b.shape && a.scale == b.scale));
  }
}

/// Streams in turn, contexts by the last residual: everything ends, and no residual is larger than there may be.
void decode_streams(const Tables& tables, std::span<const std::uint8_t> bytes) {
  const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
  coding::StreamReader streams;
  if (!streams.open(exact).ok()) return;
  QUERN_FUZZ_CHECK(streams.mask < kernels::kMaxStreams);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < kMostResiduals && !streams.failed(); ++i) {
    const std::int64_t residual =
        kernels::decode_residual(streams.sources[i & streams.mask], *tables.serving[kernels::context_bin(sum)]);
    const auto magnitude = static_cast<std::uint64_t>(residual < 0 ? -residual : residual);
    QUERN_FUZZ_CHECK(magnitude <= kernels::kMaxMagnitude);
    sum = sum / 2 + static_cast<std::uint32_t>(magnitude);
  }
  for (const kernels::RansSource& source : streams.used())
    QUERN_FUZZ_CHECK(source.at <= source.end && source.end <= exact.data() + exact.size());
}

/// A residual and the context bin that it is coded at.
struct Coded {
  unsigned bin = 0;
  std::int32_t residual = 0;
};

std::vector<Coded> make_residuals(const coding::Distributions& distributions, fuzz::Feed& feed) {
  const auto map = coding::serving_bins(distributions);
  std::vector<Coded> list;
  while (!feed.rest().empty() && list.size() < kMostResiduals) {
    Coded coded;
    coded.bin = feed.byte() % kernels::kContextBins;
    const unsigned token = feed.byte() % distributions[map[coded.bin]].tokens;
    const unsigned open = kernels::token_open_bits(token);
    const auto bits = static_cast<std::uint32_t>(feed.below(std::uint64_t{2} << open));
    const auto magnitude = static_cast<std::int32_t>(kernels::token_base(token) + (bits >> 1));
    QUERN_FUZZ_CHECK(kernels::token_of(static_cast<std::uint32_t>(magnitude)) == token);
    coded.residual = (bits & 1) != 0 ? -magnitude : magnitude;
    list.push_back(coded);
  }
  return list;
}

void encode_and_decode(const coding::Distributions& distributions, const Tables& tables,
                       const std::vector<Coded>& list) {
  std::vector<kernels::RansEncodeEntry> entries(kernels::kContextBins * kernels::kTokenStride);
  std::vector<std::uint32_t> packed(entries.size());
  coding::fill_token_entries(distributions, {entries.data(), packed.data()});
  std::vector<std::uint16_t> words(kernels::kResidualWords * list.size() + 3);
  std::uint16_t* const end = words.data() + words.size();
  std::uint16_t* at = end;
  std::uint32_t state = kernels::kRansFloor;
  for (std::size_t i = list.size(); i-- > 0;) {
    const std::int32_t residual = list[i].residual;
    const unsigned token = kernels::token_of(static_cast<std::uint32_t>(residual < 0 ? -residual : residual));
    const std::uint16_t* const before = at;
    const std::size_t symbol = list[i].bin * kernels::kTokenStride + token;
    kernels::encode_residual(state, residual, token, entries[symbol], at);
    QUERN_FUZZ_CHECK(packed[symbol] == (entries[symbol].frequency | entries[symbol].start << 16));
    QUERN_FUZZ_CHECK(before - at <= static_cast<std::ptrdiff_t>(kernels::kResidualWords) &&
                     state >= kernels::kRansFloor);
  }
  *--at = static_cast<std::uint16_t>(state >> 16);
  *--at = static_cast<std::uint16_t>(state);
  Vector<std::uint8_t> bytes{0};  // a single stream
  for (; at != end; ++at) {
    bytes.push_back(static_cast<std::uint8_t>(*at));
    bytes.push_back(static_cast<std::uint8_t>(*at >> 8));
  }
  coding::StreamReader streams;
  QUERN_FUZZ_CHECK(streams.open(bytes).ok());
  for (const Coded& coded : list)
    QUERN_FUZZ_CHECK(kernels::decode_residual(streams.sources[0], *tables.serving[coded.bin]) == coded.residual);
  QUERN_FUZZ_CHECK(streams.finished());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Feed feed({data, size});
  const bool own = (feed.byte() & 1) != 0;
  BitReader reader(feed.rest());
  coding::Distributions distributions{};
  if (!coding::read_distributions(reader, distributions).ok() || reader.failed()) return 0;
  feed.take(reader.bytes_used());
  const auto tables = std::make_unique<Tables>();
  const bool served = coding::fill_token_tables(distributions, tables->tables.data(), tables->serving).ok();
  const bool any = std::ranges::any_of(distributions, [](const auto& bin) { return bin.tokens != 0; });
  QUERN_FUZZ_CHECK(served == any);
  if (!served) return 0;
  check_rewriting(distributions);
  for (std::size_t l = 0; l < kernels::kContextBins; ++l)
    if (distributions[l].tokens != 0) check_table(tables->tables[l], distributions[l].tokens);
  if (!own) {
    decode_streams(*tables, feed.rest());
  } else {
    encode_and_decode(distributions, *tables, make_residuals(distributions, feed));
  }
  return 0;
}
