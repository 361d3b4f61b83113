// Which distribution serves which level, spread out for coding.
#include "codecs/stencil/model/token_tables.h"

#include <algorithm>

namespace quern::codec::stencil {

Status fill_token_tables(const ChunkModel& model, TokenTable* tables, std::array<const TokenTable*, kLevels>& serving) {
  const auto map = level_map(model);
  for (std::size_t l = 0; l < kLevels; ++l)
    if (model.levels[l].tokens != 0) tables[l].fill(model.levels[l]);
  for (std::size_t l = 0; l < kLevels; ++l) {
    if (map[l] == kLevels) return Status(StatusCode::corrupt, "stencil: a chunk without contexts");
    serving[l] = &tables[map[l]];
  }
  return {};
}

void fill_token_entries(const ChunkModel& model, const ResidualEntries& entries) {
  const auto map = level_map(model);
  for (std::size_t l = 0; l < kLevels; ++l) {
    const kernels::ResidualModel& level = model.levels[l];
    if (level.tokens == 0) continue;
    kernels::TokenStarts starts;
    kernels::fill_token_starts(level, starts);
    for (unsigned t = 0; t < level.tokens; ++t)
      entries.set(l * kTokenPlaces + t, std::uint32_t{starts[t + 1u]} - starts[t], starts[t]);
  }
  for (std::size_t l = 0; l < kLevels; ++l) {
    if (map[l] == l || map[l] >= kLevels) continue;
    const std::size_t from = map[l] * kTokenPlaces;
    const unsigned tokens = model.levels[map[l]].tokens;
    std::copy_n(entries.entries + from, tokens, entries.entries + l * kTokenPlaces);
    std::copy_n(entries.packed + from, tokens, entries.packed + l * kTokenPlaces);
  }
}

}  // namespace quern::codec::stencil
