// Contexts of a plane: eight by quantiles of what is known, chosen on a sample, counted on the whole plane, and joined
// where two tables cost more than one.
#include "codecs/tensor/planes/plane_model.h"

#include <algorithm>

#include "libcompress/core/scattered_sample.h"

namespace quern::codec::tensor {
namespace {

using kernels::Counts;
using kernels::kMostLaneContexts;
using kernels::kRansLanes;
using kernels::LaneContext;
using Thresholds = std::array<std::uint16_t, kMostLaneContexts>;

constexpr std::size_t kSampleGroups = 128;
// In units of 2^-12 bits.
constexpr std::uint64_t kTableCost = 20 << 12;
constexpr std::uint64_t kSymbolCost = 7 << 12;
constexpr std::uint64_t kSampleBias = 2955;  ///< an entropy measured on few symbols is too small by 1/(2 ln 2) a symbol

std::size_t distinct(const Counts& counts) {
  return 256 - static_cast<std::size_t>(std::count(counts.begin(), counts.end(), 0u));
}
std::uint64_t table_cost(const Counts& counts) { return kTableCost + kSymbolCost * distinct(counts); }
std::uint64_t cost(const Counts& counts) { return kernels::entropy_cost(counts) + table_cost(counts); }

std::uint8_t known_of(const Reference8& reference, std::size_t i) {
  std::uint64_t word = 0;
  for (unsigned k = 0; k < reference.width; ++k)
    word |= std::uint64_t{reference.elements[i * reference.width + k]} << (8 * k);
  return static_cast<std::uint8_t>(word >> reference.shift);
}

std::size_t context_of(const Thresholds& thresholds, std::size_t contexts, unsigned known) {
  std::size_t context = 0;
  for (std::size_t t = 0; t + 1 < contexts; ++t) context += known >= thresholds[t];
  return context;
}

/// Thresholds at the eighths of sorted values; those that would make an empty context are left out. Returns contexts.
std::size_t eighths(const std::uint16_t* sorted, std::size_t count, Thresholds& thresholds) {
  std::size_t contexts = 1;
  std::uint16_t previous = sorted[0];
  for (std::size_t k = 1; k < kMostLaneContexts; ++k) {
    const std::uint16_t value = sorted[k * count / kMostLaneContexts];
    if (value <= previous) continue;
    thresholds[contexts - 1] = previous = value;
    ++contexts;
  }
  return contexts;
}

struct Sample {
  std::size_t groups = 0;
  std::array<std::array<std::uint8_t, kRansLanes>, kSampleGroups> symbols;
  std::array<std::uint16_t, kSampleGroups> sums;  ///< of the group before
  std::array<std::array<std::uint8_t, kRansLanes>, kSampleGroups> known;
};

void take_sample(const std::uint8_t* symbols, std::size_t count, const Reference8& reference, Sample& sample) {
  const std::size_t groups = count / kRansLanes;
  sample.groups = std::min(groups, kSampleGroups);
  for (std::size_t s = 0; s < sample.groups; ++s) {
    const auto group = static_cast<std::size_t>(scattered_sample(groups, sample.groups, s));
    const std::uint8_t* const first = symbols + group * kRansLanes;
    std::copy_n(first, kRansLanes, sample.symbols[s].begin());
    unsigned sum = 0;
    for (std::size_t i = 0; i < kRansLanes && group > 0; ++i) sum += symbols[(group - 1) * kRansLanes + i];
    sample.sums[s] = static_cast<std::uint16_t>(sum);
    if (reference.elements == nullptr) continue;
    for (std::size_t i = 0; i < kRansLanes; ++i) sample.known[s][i] = known_of(reference, group * kRansLanes + i);
  }
}

/// Cost of the whole plane, in units of 2^-12 bits, when its sample falls into these counts.
std::uint64_t scaled_cost(const Counts* counts, std::size_t contexts, std::size_t sampled, std::size_t count) {
  std::uint64_t symbols = 0;
  std::uint64_t tables = 0;
  for (std::size_t c = 0; c < contexts; ++c) {
    symbols += kernels::entropy_cost(counts[c]) + kSampleBias * distinct(counts[c]);
    tables += table_cost(counts[c]);
  }
  return symbols * count / sampled + tables;
}

void offer(PlaneEstimate& best, std::uint64_t& best_cost, LaneContext source, const Thresholds& thresholds,
           std::size_t contexts, std::uint64_t this_cost) {
  if (this_cost >= best_cost) return;
  best_cost = this_cost;
  best.source = source;
  best.thresholds = thresholds;
  best.contexts = contexts;
  best.coded_bytes = this_cost >> 15;
}

}  // namespace

PlaneEstimate estimate_plane(const std::uint8_t* symbols, std::size_t count, const Reference8& reference) {
  Sample sample;
  take_sample(symbols, count, reference, sample);
  PlaneEstimate best;
  best.coded_bytes = UINT64_MAX;
  if (sample.groups == 0) return best;
  const std::size_t sampled = sample.groups * kRansLanes;
  std::array<Counts, kMostLaneContexts> counts{};
  for (std::size_t s = 0; s < sample.groups; ++s)
    for (const std::uint8_t symbol : sample.symbols[s]) {
      ++counts[0][symbol];
      best.varying = static_cast<std::uint8_t>(best.varying | (symbol ^ sample.symbols[0][0]));
    }
  std::uint64_t best_cost = scaled_cost(counts.data(), 1, sampled, count);
  best.coded_bytes = best_cost >> 15;
  // A table for each context must bring something: planes with one table are coded fastest.
  best_cost -= best_cost / 64;

  Thresholds thresholds{};
  std::array<std::uint16_t, kSampleGroups> sums = sample.sums;
  std::sort(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(sample.groups));
  std::size_t contexts = eighths(sums.data(), sample.groups, thresholds);
  if (contexts > 1) {
    counts = {};
    for (std::size_t s = 0; s < sample.groups; ++s) {
      Counts& of_group = counts[context_of(thresholds, contexts, sample.sums[s])];
      for (const std::uint8_t symbol : sample.symbols[s]) ++of_group[symbol];
    }
    offer(best, best_cost, LaneContext::previous, thresholds, contexts,
          scaled_cost(counts.data(), contexts, sampled, count));
  }
  if (reference.elements != nullptr) {
    Counts of_known{};
    for (std::size_t s = 0; s < sample.groups; ++s)
      for (const std::uint8_t known : sample.known[s]) ++of_known[known];
    std::array<std::uint16_t, kSampleGroups * kRansLanes> known;  // sorted
    std::size_t at = 0;
    for (unsigned value = 0; value < 256; ++value)
      for (std::uint32_t k = 0; k < of_known[value]; ++k) known[at++] = static_cast<std::uint16_t>(value);
    thresholds = {};
    contexts = eighths(known.data(), sampled, thresholds);
    if (contexts > 1) {
      counts = {};
      for (std::size_t s = 0; s < sample.groups; ++s)
        for (std::size_t i = 0; i < kRansLanes; ++i)
          ++counts[context_of(thresholds, contexts, sample.known[s][i])][sample.symbols[s][i]];
      offer(best, best_cost, LaneContext::given, thresholds, contexts,
            scaled_cost(counts.data(), contexts, sampled, count));
    }
  }
  return best;
}

namespace {

void count_symbols(const kernels::PlaneKernels& kernels, const std::uint8_t* symbols, std::size_t count,
                   const Reference8& reference, const PlaneModel& model, std::uint8_t* contexts, std::uint16_t* sums,
                   std::array<Counts, kMostLaneContexts>& counts) {
  if (model.source == LaneContext::none) {
    // Four tables, so that equal symbols in a row do not wait for each other.
    std::array<Counts, 4> parts{};
    std::size_t i = 0;
    for (; i + 4 <= count; i += 4)
      for (std::size_t k = 0; k < 4; ++k) ++parts[k][symbols[i + k]];
    for (; i < count; ++i) ++parts[0][symbols[i]];
    for (std::size_t s = 0; s < 256; ++s) counts[0][s] = parts[0][s] + parts[1][s] + parts[2][s] + parts[3][s];
    return;
  }
  if (model.source == LaneContext::given) {
    std::array<std::uint8_t, kMostLaneContexts> thresholds{};
    for (std::size_t t = 0; t + 1 < model.contexts; ++t) thresholds[t] = static_cast<std::uint8_t>(model.thresholds[t]);
    kernels.classify(reference.elements, count, reference.width, reference.shift, thresholds.data(), model.contexts - 1,
                     contexts);
    std::array<Counts, kMostLaneContexts> odd{};
    std::size_t i = 0;
    for (; i + 2 <= count; i += 2) {
      ++counts[contexts[i]][symbols[i]];
      ++odd[contexts[i + 1]][symbols[i + 1]];
    }
    if (i < count) ++counts[contexts[i]][symbols[i]];
    for (std::size_t c = 0; c < model.contexts; ++c)
      for (std::size_t s = 0; s < 256; ++s) counts[c][s] += odd[c][s];
    return;
  }
  const std::size_t whole = count / kRansLanes;
  const std::size_t part = kernels::lane_part_groups(count);
  const std::size_t parts = kernels::lane_parts(count);
  kernels.group_sums(symbols, whole, sums);
  std::array<Counts, kMostLaneContexts> odd{};  // so that equal symbols in a row do not wait for each other
  for (std::size_t g = 0; g * kRansLanes < count; ++g) {
    // Parts know nothing of each other.
    const bool first = g == 0 || (part > 0 && g % part == 0 && g / part < parts);
    contexts[g] = static_cast<std::uint8_t>(context_of(model.thresholds, model.contexts, first ? 0 : sums[g - 1]));
    Counts& even_counts = counts[contexts[g]];
    Counts& odd_counts = odd[contexts[g]];
    const std::size_t end = std::min(count, (g + 1) * kRansLanes);
    std::size_t i = g * kRansLanes;
    for (; i + 2 <= end; i += 2) {
      ++even_counts[symbols[i]];
      ++odd_counts[symbols[i + 1]];
    }
    if (i < end) ++even_counts[symbols[i]];
  }
  for (std::size_t c = 0; c < model.contexts; ++c)
    for (std::size_t s = 0; s < 256; ++s) counts[c][s] += odd[c][s];
}

}  // namespace

void fit_plane(const kernels::PlaneKernels& kernels, const std::uint8_t* symbols, std::size_t count,
               const Reference8& reference, const PlaneEstimate& estimate, std::uint8_t* contexts, std::uint16_t* sums,
               PlaneModel& model) {
  model.source = estimate.source;
  model.contexts = estimate.contexts;
  model.thresholds = estimate.thresholds;
  std::array<Counts, kMostLaneContexts> counts{};
  count_symbols(kernels, symbols, count, reference, model, contexts, sums, counts);

  std::array<std::uint8_t, kMostLaneContexts> joined{};  // where each of the first contexts has gone
  for (std::size_t c = 0; c < model.contexts; ++c) joined[c] = static_cast<std::uint8_t>(c);
  const std::size_t contexts_before = model.contexts;
  while (model.contexts > 1) {
    std::size_t best = 0;
    std::int64_t most = -1;
    for (std::size_t c = 0; c + 1 < model.contexts; ++c) {
      Counts both;
      for (std::size_t s = 0; s < 256; ++s) both[s] = counts[c][s] + counts[c + 1][s];
      const auto gain =
          static_cast<std::int64_t>(cost(counts[c]) + cost(counts[c + 1])) - static_cast<std::int64_t>(cost(both));
      if (gain > most) {
        most = gain;
        best = c;
      }
    }
    if (most < 0) break;
    for (std::size_t s = 0; s < 256; ++s) counts[best][s] += counts[best + 1][s];
    for (std::size_t c = best + 1; c + 1 < model.contexts; ++c) counts[c] = counts[c + 1];
    for (std::size_t c = best; c + 2 < model.contexts; ++c) model.thresholds[c] = model.thresholds[c + 1];
    for (std::uint8_t& to : joined) to = static_cast<std::uint8_t>(to - (to > best));
    --model.contexts;
  }
  if (model.contexts == 1) {
    model.source = LaneContext::none;
  } else if (model.contexts < contexts_before) {
    const std::size_t known = model.source == LaneContext::given ? count : (count + kRansLanes - 1) / kRansLanes;
    for (std::size_t i = 0; i < known; ++i) contexts[i] = joined[contexts[i]];
  }
  for (std::size_t c = 0; c < model.contexts; ++c)
    kernels::normalize_counts<kernels::kLaneSumBits>(counts[c], model.frequencies[c]);
}

}  // namespace quern::codec::tensor
