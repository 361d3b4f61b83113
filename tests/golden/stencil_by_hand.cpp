// Writes the stored form of chunks by the document, with the codec's own bit fields and rANS.
#include "tests/golden/stencil_by_hand.h"

#include <array>
#include <bit>

#include "kernels/entropy/residual_encode.h"
#include "libcompress/format/bit_stream.h"
#include "libcompress/format/grid/header.h"
#include "tests/fuzz/reseal.h"

namespace quern::golden {
namespace {

using Bytes = Vector<std::uint8_t>;

void put_weights(BitWriter& bits, const StoredWeights& weights) {
  bits.put(weights.order, 4);
  for (std::size_t i = 0; i < weights.count; ++i) bits.put_golomb(i == 0 ? weights.first_zigzag : 0, weights.order);
}

}  // namespace

void put_distributions(BitWriter& bits, const StoredDistributions& distributions) {
  bits.put(distributions.first_level, 6);
  bits.put(distributions.last_level, 6);
  for (unsigned level = distributions.first_level; level <= distributions.last_level; ++level) {
    bits.put(distributions.tokens, 7);
    if (distributions.tokens > 1) bits.put(distributions.zero, 15);
    if (distributions.tokens > 2) bits.put(0, 3 + 8);
  }
}

Bytes chunk_bytes(const StoredChunk& chunk) {
  Bytes out{static_cast<std::uint8_t>(chunk.mode)};
  BitWriter bits(out);
  bits.put(std::bit_cast<std::uint64_t>(chunk.base) >> 32, 32);
  bits.put(std::bit_cast<std::uint64_t>(chunk.step) >> 32, 32);
  bits.put(chunk.value_bits, 4);
  bits.put(chunk.weight_bits - 8, 4);
  if (chunk.mode == kRasterMode) {
    bits.put(chunk.lane_bits, 3);
    bits.put(chunk.mean, 1);
    bits.put(chunk.masked, 1);
    // Classes 1, 3 and 5 of rows, each a plane; nine context taps and the constant.
    bits.put(chunk.weights ? 1 : 0, 1);
    if (chunk.weights) put_weights(bits, *chunk.weights);
    bits.put(0, 2);
    for (unsigned tap = 0; tap < 9; ++tap) bits.put_golomb(20, 5);
    bits.put_golomb(chunk.context_constant, 5);
  } else {
    bits.put(chunk.border, 1);
    bits.put(chunk.tightening, 2);
    bits.put(chunk.masked, 1);
    if (chunk.masked != 0) bits.put(2, 50);  // low = 1
    if (chunk.masked != 0) bits.put(0, 50);  // high = 0
    // Predictors of levels 3 and 2, that of level 2 again twice; contexts of level 0, then of level 1 and the only
    // point.
    bits.put(chunk.top_kind, 3);
    bits.put(chunk.kind, 3);
    if (chunk.weights) put_weights(bits, *chunk.weights);
    bits.put(3, 2);
    bits.put(1, 1);
    bits.put(0, 1 + 1);  // features 1 and 21
    bits.put(0, 1);      // feature 25
    bits.put_golomb(chunk.context_constant, 5);
    bits.put(0, 2);
  }
  put_distributions(bits, chunk);
  if (chunk.cut > 0) out.resize(out.size() - chunk.cut);
  if (chunk.cut > 0) return out;
  const auto append = [&](const Bytes& bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); };
  append(chunk.exceptions);
  if (chunk.mode == kLevelsMode) append(chunk.sections);
  append(chunk.lane_sizes);
  append(chunk.lanes);
  return out;
}

Bytes lane_of(std::span<const std::int32_t> residuals, unsigned tokens, unsigned zero) {
  kernels::TokenDistribution model;
  model.tokens = static_cast<std::uint8_t>(tokens);
  model.zero = static_cast<std::uint16_t>(zero);
  kernels::TokenStarts starts;
  kernels::fill_token_starts(model, starts);
  std::array<kernels::RansEncodeEntry, kernels::kResidualTokens> table{};
  for (unsigned t = 0; t < tokens; ++t)
    table[t] = kernels::make_rans_entry(std::uint32_t{starts[t + 1u]} - starts[t], starts[t]);
  Vector<std::uint16_t> words(4 * residuals.size() + 4);
  std::uint16_t* const end = words.data() + words.size();
  std::uint16_t* at = end;
  std::uint32_t state = kernels::kRansFloor;
  for (std::size_t i = residuals.size(); i-- > 0;) {
    const std::int32_t code = residuals[i];
    const unsigned token = kernels::token_of(static_cast<std::uint32_t>(code < 0 ? -code : code));
    kernels::encode_residual(state, code, token, table[token], at);
  }
  *--at = static_cast<std::uint16_t>(state >> 16);
  *--at = static_cast<std::uint16_t>(state);
  Bytes out;
  for (; at != end; ++at) {
    out.push_back(static_cast<std::uint8_t>(*at));
    out.push_back(static_cast<std::uint8_t>(*at >> 8));
  }
  return out;
}

Bytes with_chunk(const Bytes& stream, const Bytes& chunk) {
  // Size (4), mask size (1), the chunk's size and check (2, 2), head check (4), the chunk, the checksum (8).
  const auto segment = static_cast<std::size_t>(header_size(stream).value());
  Bytes out(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(segment));
  const std::size_t size = 4 + 1 + 4 + 4 + chunk.size() + 8;
  for (unsigned i = 0; i < 4; ++i) out.push_back(static_cast<std::uint8_t>(size >> (8 * i)));
  out.push_back(0);
  for (unsigned i = 0; i < 2; ++i) out.push_back(static_cast<std::uint8_t>(chunk.size() >> (8 * i)));
  out.resize(out.size() + 6);
  out.insert(out.end(), chunk.begin(), chunk.end());
  out.resize(out.size() + 8);
  return fuzz::reseal(out);
}

GoldenFile with_chunk(GoldenFile file, const Bytes& chunk) {
  file.streams[0].options.find_repeated = false;
  const auto stream = encode(file);
  if (stream.ok()) file.written = with_chunk(*stream, chunk);
  return file;
}

}  // namespace quern::golden
