// Section encoder: tokens and raw bits, contexts by activity, greedy merging of contexts, interleaved rANS.
#include <algorithm>

#include "codecs/lossless/section.h"

namespace quern::codec::lossless {
namespace {

constexpr std::size_t kHeadBytes = 9;  // raw bytes, words, contexts
// A stored table takes 2 bytes and at most 36 bits for each symbol but one.
constexpr std::size_t kMaxTableBytes = 2 + 255 * 36 / 8 + 1;
constexpr std::size_t kSlack = 16;

/// Estimated size of a stored table, in the unit of entropy_cost.
std::uint64_t table_cost(const Counts& counts) {
  const auto used = 256 - static_cast<std::uint64_t>(std::count(counts.begin(), counts.end(), 0u));
  return (32 + 7 * used) << 12;
}

std::uint64_t context_cost(const Counts& counts) { return entropy_cost(counts) + table_cost(counts); }

std::size_t initial_contexts(std::size_t elems) {
  if (elems < 1024) return 1;
  if (elems < 8192) return 6;
  return elems < 32768 ? 12 : kMaxContexts;
}

}  // namespace

template <class U>
SectionEncoder<U>::SectionEncoder(Arena& arena, const RowGrid& most)
    : grid_(most),
      token_memory_(arena.take<std::uint8_t>(std::max(TokenPlane::bytes(most), most.elems() + 2 * kTokenPad))),
      bins_(arena.take<std::uint16_t>(most.elems())),
      raw_(arena.take<std::uint8_t>(most.elems() * sizeof(U) + kSlack)),
      words_(arena.take<std::uint16_t>(most.elems())),
      tables_(arena.take<std::uint8_t>(kMaxContexts * kMaxTableBytes + kSlack)),
      counts_(arena.take<Counts>(kMaxContexts)),
      encode_tables_(arena.take<EncodeTable>(kMaxContexts)),
      capacity_(most.elems()) {}

template <class U>
std::size_t SectionEncoder<U>::encode(const U* values, const RowGrid& grid) {
  grid_ = grid;
  tokenize(values);
  gather_contexts();
  write_tables();
  encode_tokens();
  return kHeadBytes + 2 * (contexts_ - 1) + table_bytes_ + raw_bytes_ + 4 * kStates + 2 * word_count_;
}

template <class U>
void SectionEncoder<U>::tokenize(const U* values) {
  const TokenPlane plane(token_memory_, grid_);
  BitWriter raw(raw_);
  for (std::size_t r = 0; r < grid_.row_count(); ++r, values += grid_.width) {
    std::uint8_t* tokens = plane.row(r);
    for (std::size_t x = 0; x < grid_.width; ++x) {
      const U value = values[x];
      unsigned count = 0;
      tokens[x] = token_of(value, count);
      const U low = value & ((U{1} << count) - 1);
      if constexpr (sizeof(U) == 4) {
        raw.put(low, count);
      } else {
        raw.put_wide(low, count);
      }
    }
    plane.close_row(r);
  }
  raw_bytes_ = raw.finish();
}

template <class U>
void SectionEncoder<U>::gather_contexts() {
  const TokenPlane plane(token_memory_, grid_);
  std::array<std::uint32_t, kActivityBins> population{};
  for (std::size_t r = 0; r < grid_.row_count(); ++r) {
    const std::uint8_t* above = nullptr;
    const std::uint8_t* behind = nullptr;
    plane.neighbours(r, above, behind);
    const std::uint8_t* tokens = plane.row(r);
    std::uint16_t* bins = bins_ + r * grid_.width;
    row_activity(above, behind, grid_.width, bins);
    for (std::size_t x = 0; x < grid_.width; x += kStates) {
      const unsigned block_part = block_activity(tokens, x, above);
      const std::size_t end = std::min(x + kStates, grid_.width);
      for (std::size_t i = x; i < end; ++i) {
        bins[i] = static_cast<std::uint16_t>(activity_bin(bins[i], block_part));
        ++population[bins[i]];
      }
    }
  }
  // Contexts of about equal population, as intervals of the activity.
  const std::size_t contexts = initial_contexts(grid_.elems());
  std::uint64_t before = 0;
  std::size_t context = 0;
  threshold_.fill(kActivityBins);
  for (std::size_t bin = 0; bin < kActivityBins; ++bin) {
    while (context + 1 < contexts && before >= (context + 1) * grid_.elems() / contexts) {
      threshold_[++context] = static_cast<std::uint16_t>(bin);
    }
    context_of_bin_[bin] = static_cast<std::uint8_t>(context);
    before += population[bin];
  }
  for (std::size_t i = 0; i < contexts; ++i) counts_[i].fill(0);
  for (std::size_t r = 0; r < grid_.row_count(); ++r) {
    const std::uint8_t* tokens = plane.row(r);
    const std::uint16_t* bins = bins_ + r * grid_.width;
    for (std::size_t x = 0; x < grid_.width; ++x) ++counts_[context_of_bin_[bins[x]]][tokens[x]];
  }
  merge_contexts(contexts);
}

template <class U>
void SectionEncoder<U>::merge_contexts(std::size_t contexts) {
  std::array<std::uint64_t, kMaxContexts> cost{};    // of a context alone
  std::array<std::uint64_t, kMaxContexts> merged{};  // of a context and its successor together
  const auto cost_with_next = [&](std::size_t i) {
    Counts sum;
    for (std::size_t s = 0; s < 256; ++s) sum[s] = counts_[i][s] + counts_[i + 1][s];
    return context_cost(sum);
  };
  for (std::size_t i = 0; i < contexts; ++i) cost[i] = context_cost(counts_[i]);
  for (std::size_t i = 0; i + 1 < contexts; ++i) merged[i] = cost_with_next(i);
  while (contexts > 1) {
    std::size_t best = 0;
    std::uint64_t best_gain = 0;
    for (std::size_t i = 0; i + 1 < contexts; ++i) {
      const std::uint64_t apart = cost[i] + cost[i + 1];
      if (apart > merged[i] && apart - merged[i] > best_gain) {
        best_gain = apart - merged[i];
        best = i;
      }
    }
    if (best_gain == 0) break;
    for (std::size_t s = 0; s < 256; ++s) counts_[best][s] += counts_[best + 1][s];
    cost[best] = merged[best];
    --contexts;
    for (std::size_t i = best + 1; i < contexts; ++i) {
      counts_[i] = counts_[i + 1];
      cost[i] = cost[i + 1];
      merged[i] = merged[i + 1];
      threshold_[i] = threshold_[i + 1];
    }
    if (best > 0) merged[best - 1] = cost_with_next(best - 1);
    if (best + 1 < contexts) merged[best] = cost_with_next(best);
  }
  contexts_ = contexts;
  std::size_t context = 0;
  for (std::size_t bin = 0; bin < kActivityBins; ++bin) {
    while (context + 1 < contexts && bin >= threshold_[context + 1]) ++context;
    context_of_bin_[bin] = static_cast<std::uint8_t>(context);
  }
}

template <class U>
void SectionEncoder<U>::write_tables() {
  BitWriter writer(tables_);
  for (std::size_t i = 0; i < contexts_; ++i) {
    Frequencies frequencies;
    // A context that nothing fell into still needs a table that is complete.
    if (std::all_of(counts_[i].begin(), counts_[i].end(), [](std::uint32_t c) { return c == 0; })) counts_[i][0] = 1;
    normalize(counts_[i], frequencies);
    write_table(frequencies, writer);
    make_encode_table(frequencies, encode_tables_[i]);
  }
  table_bytes_ = writer.finish();
}

template <class U>
void SectionEncoder<U>::encode_tokens() {
  const TokenPlane plane(token_memory_, grid_);
  states_.fill(kStateFloor);
  std::uint16_t* const end = words_ + capacity_;
  std::uint16_t* words = end;
  for (std::size_t r = grid_.row_count(); r-- > 0;) {
    const std::uint8_t* tokens = plane.row(r);
    const std::uint16_t* bins = bins_ + r * grid_.width;
    for (std::size_t x = grid_.width; x-- > 0;) {
      const EncodeEntry& entry = encode_tables_[context_of_bin_[bins[x]]][tokens[x]];
      encode_step(states_[x % kStates], entry, words);
    }
  }
  word_count_ = static_cast<std::size_t>(end - words);
}

template <class U>
void SectionEncoder<U>::write(std::uint8_t* out) const {
  store_le(out, static_cast<std::uint32_t>(raw_bytes_));
  store_le(out + 4, static_cast<std::uint32_t>(word_count_));
  out[8] = static_cast<std::uint8_t>(contexts_);
  out += kHeadBytes;
  for (std::size_t i = 1; i < contexts_; ++i, out += 2) store_le(out, threshold_[i]);
  std::memcpy(out, tables_, table_bytes_);
  out += table_bytes_;
  std::memcpy(out, raw_, raw_bytes_);
  out += raw_bytes_;
  for (const std::uint32_t state : states_) {
    store_le(out, state);
    out += 4;
  }
  const std::uint16_t* words = words_ + capacity_ - word_count_;
  for (std::size_t i = 0; i < word_count_; ++i) store_le(out + 2 * i, words[i]);
}

template class SectionEncoder<std::uint32_t>;
template class SectionEncoder<std::uint64_t>;

}  // namespace quern::codec::lossless
