// The entropy coder of stencil without a chunk around it: stored distributions, tables made of them, hostile lanes, and
// residuals that are put into a lane and taken out again.
// Input: which use, distributions as a model stores them, then lanes, or residuals as a context level, a token and open
// bits.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "codecs/stencil/model/distributions.h"
#include "codecs/stencil/model/stream_readers.h"
#include "codecs/stencil/model/token_tables.h"
#include "tests/fuzz/fuzz_common.h"

namespace {

using namespace quern;
using namespace quern::codec::stencil;

constexpr std::size_t kMostResiduals = 4096;

struct Tables {
  std::array<TokenTable, kLevels> tables;
  std::array<const TokenTable*, kLevels> serving{};
};

/// Ranges of all tokens follow each other from 0 to 2^15, none is empty, and looking for a slot begins no later than
/// its token.
void check_table(const TokenTable& table, unsigned tokens) {
  QUERN_FUZZ_CHECK(table.starts[0] == 0 && table.starts[tokens] == kernels::kFrequencySum);
  for (unsigned t = 0; t < tokens; ++t) QUERN_FUZZ_CHECK(table.starts[t] < table.starts[t + 1u]);
  for (std::size_t b = 0; b < table.buckets.size(); ++b)
    QUERN_FUZZ_CHECK(table.buckets[b] < tokens && table.starts[table.buckets[b]] <= b << TokenTable::kBucketShift);
}

/// What was read is read again from what is written of it.
void check_rewriting(const ChunkModel& model) {
  Vector<std::uint8_t> bytes;
  BitWriter writer(bytes);
  write_distributions(model, writer);
  BitReader reader(bytes);
  ChunkModel again;
  QUERN_FUZZ_CHECK(read_distributions(reader, again).ok() && !reader.failed());
  for (std::size_t l = 0; l < kLevels; ++l) {
    const kernels::ResidualModel& a = model.levels[l];
    const kernels::ResidualModel& b = again.levels[l];
    QUERN_FUZZ_CHECK(a.tokens == b.tokens);
    QUERN_FUZZ_CHECK(a.tokens < 2 || a.zero == b.zero);
    QUERN_FUZZ_CHECK(a.tokens < 3 || (a.shape == b.shape && a.scale == b.scale));
  }
}

/// Lanes in turn, contexts by the last residual: everything ends, and no residual is larger than there may be.
void take_from_lanes(const Tables& tables, std::span<const std::uint8_t> bytes) {
  const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
  LaneSources lanes;
  if (!lanes.open(exact).ok()) return;
  QUERN_FUZZ_CHECK(lanes.mask < kMaxLanes);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < kMostResiduals && !lanes.failed(); ++i) {
    const std::int64_t residual = take_residual(lanes.sources[i & lanes.mask], *tables.serving[level_of(sum)]);
    const auto magnitude = static_cast<std::uint64_t>(residual < 0 ? -residual : residual);
    QUERN_FUZZ_CHECK(magnitude <= kernels::kMaxMagnitude);
    sum = sum / 2 + static_cast<std::uint32_t>(magnitude);
  }
  for (const kernels::RansSource& source : lanes.used())
    QUERN_FUZZ_CHECK(source.at <= source.end && source.end <= exact.data() + exact.size());
}

/// A residual and the context level that it is coded at.
struct Coded {
  unsigned level = 0;
  std::int32_t residual = 0;
};

std::vector<Coded> make_residuals(const ChunkModel& model, fuzz::Feed& feed) {
  const auto map = level_map(model);
  std::vector<Coded> list;
  while (!feed.rest().empty() && list.size() < kMostResiduals) {
    Coded coded;
    coded.level = feed.byte() % kLevels;
    const unsigned token = feed.byte() % model.levels[map[coded.level]].tokens;
    const unsigned open = kernels::token_open_bits(token);
    const auto bits = static_cast<std::uint32_t>(feed.below(std::uint64_t{2} << open));
    const auto magnitude = static_cast<std::int32_t>(kernels::token_base(token) + (bits >> 1));
    QUERN_FUZZ_CHECK(kernels::token_of(static_cast<std::uint32_t>(magnitude)) == token);
    coded.residual = (bits & 1) != 0 ? -magnitude : magnitude;
    list.push_back(coded);
  }
  return list;
}

void put_and_take(const ChunkModel& model, const Tables& tables, const std::vector<Coded>& list) {
  std::vector<kernels::RansEncodeEntry> entries(kLevels * kTokenPlaces);
  std::vector<std::uint32_t> packed(entries.size());
  fill_token_entries(model, {entries.data(), packed.data()});
  std::vector<std::uint16_t> words(kResidualWords * list.size() + 3);
  std::uint16_t* const end = words.data() + words.size();
  std::uint16_t* at = end;
  std::uint32_t state = kernels::kRansFloor;
  for (std::size_t i = list.size(); i-- > 0;) {
    const std::int32_t residual = list[i].residual;
    const unsigned token = kernels::token_of(static_cast<std::uint32_t>(residual < 0 ? -residual : residual));
    const std::uint16_t* const before = at;
    const std::size_t symbol = list[i].level * kTokenPlaces + token;
    put_symbol(state, residual, token, entries[symbol], at);
    QUERN_FUZZ_CHECK(packed[symbol] == (entries[symbol].frequency | entries[symbol].start << 16));
    QUERN_FUZZ_CHECK(before - at <= static_cast<std::ptrdiff_t>(kResidualWords) && state >= kernels::kRansFloor);
  }
  *--at = static_cast<std::uint16_t>(state >> 16);
  *--at = static_cast<std::uint16_t>(state);
  Vector<std::uint8_t> bytes{0};  // a single lane
  for (; at != end; ++at) {
    bytes.push_back(static_cast<std::uint8_t>(*at));
    bytes.push_back(static_cast<std::uint8_t>(*at >> 8));
  }
  LaneSources lanes;
  QUERN_FUZZ_CHECK(lanes.open(bytes).ok());
  for (const Coded& coded : list)
    QUERN_FUZZ_CHECK(take_residual(lanes.sources[0], *tables.serving[coded.level]) == coded.residual);
  QUERN_FUZZ_CHECK(lanes.finished());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Feed feed({data, size});
  const bool own = (feed.byte() & 1) != 0;
  BitReader reader(feed.rest());
  ChunkModel model;
  if (!read_distributions(reader, model).ok() || reader.failed()) return 0;
  feed.take(reader.bytes_used());
  const auto tables = std::make_unique<Tables>();
  const bool served = fill_token_tables(model, tables->tables.data(), tables->serving).ok();
  const bool any = std::ranges::any_of(model.levels, [](const auto& level) { return level.tokens != 0; });
  QUERN_FUZZ_CHECK(served == any);
  if (!served) return 0;
  check_rewriting(model);
  for (std::size_t l = 0; l < kLevels; ++l)
    if (model.levels[l].tokens != 0) check_table(tables->tables[l], model.levels[l].tokens);
  if (!own) {
    take_from_lanes(*tables, feed.rest());
  } else {
    put_and_take(model, *tables, make_residuals(model, feed));
  }
  return 0;
}
