// Encode and decode of whole chunks by the lorenzo kernels, for every instruction set this processor has, beside memcpy
// of the same bytes. A 64^3 turbulence-like field stays in the L2 cache; bytes per second count raw elements.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/lorenzo/cpu/lorenzo.h"

namespace quern::kernels {
namespace {

constexpr std::uint64_t kSide = 64;
constexpr std::size_t kElems = kSide * kSide * kSide;

/// Sum of waves of falling amplitude, and a little noise from a linear congruence.
std::vector<float> field() {
  std::vector<float> values(kElems);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < kElems; ++i) {
    const double x = static_cast<double>(i % kSide), y = static_cast<double>(i / kSide % kSide),
                 z = static_cast<double>(i / kSide / kSide);
    double v = 0;
    for (int k = 1; k <= 16; k *= 2) v += std::sin(0.07 * k * (x + 0.6 * y - 0.3 * z) + k) / k;
    state = state * 1664525u + 1013904223u;
    values[i] = static_cast<float>(v + 1e-3 * static_cast<double>(state >> 8) / 16777216.0);
  }
  return values;
}

ChunkRules rules_for(double bound) {
  ChunkRules rules;
  rules.tile = TileShape::block;
  rules.candidates = {Predictor::xyz, Predictor::xy, Predictor::x};
  rules.candidate_count = 3;
  rules.params.bound = rules.params.strict = static_cast<float>(bound);
  rules.params.step = 2 * rules.params.strict;
  rules.params.reciprocal = 1 / static_cast<float>(rules.params.step);
  return rules;
}

struct AlignedScratch {
  explicit AlignedScratch(std::size_t bytes) : owner(new std::uint8_t[bytes + 64]) {
    data = owner.get() + (64 - reinterpret_cast<std::uintptr_t>(owner.get()) % 64) % 64;
  }
  std::unique_ptr<std::uint8_t[]> owner;
  std::uint8_t* data;
};

/// Calls f(offset, box) for the 8x16x64 chunks of the field.
template <class F>
void for_chunks(F&& f) {
  for (std::uint64_t z = 0; z < kSide; z += 8)
    for (std::uint64_t y = 0; y < kSide; y += 16)
      f((z * kSide + y) * kSide, ChunkBox{{8, 16, 64}, {kSide * kSide, kSide}});
}

void encode(benchmark::State& state) {
  const auto level = static_cast<IsaLevel>(state.range(0));
  if (!isa_available(level)) return state.SkipWithError("not on this processor");
  const LorenzoKernels& kernels = lorenzo_kernels(level);
  const ChunkRules rules = rules_for(std::pow(10.0, -static_cast<double>(state.range(1))));
  const auto values = field();
  AlignedScratch scratch(kernels.encode_scratch_bytes);
  std::vector<std::uint8_t> out(max_lorenzo_chunk_bytes(Element::f32, 8));
  std::size_t stored = 0;
  for (auto _ : state) {
    stored = 0;
    for_chunks([&](std::size_t at, const ChunkBox& box) {
      stored += kernels.encode(rules, values.data() + at, box, out.data(), scratch.data);
    });
    benchmark::DoNotOptimize(stored);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kElems * 4));
  state.SetLabel(isa_name(level));
  state.counters["ratio"] = static_cast<double>(kElems * 4) / static_cast<double>(stored);
}

void decode(benchmark::State& state) {
  const auto level = static_cast<IsaLevel>(state.range(0));
  if (!isa_available(level)) return state.SkipWithError("not on this processor");
  const LorenzoKernels& kernels = lorenzo_kernels(level);
  const ChunkRules rules = rules_for(std::pow(10.0, -static_cast<double>(state.range(1))));
  auto values = field();
  AlignedScratch scratch(std::max(kernels.encode_scratch_bytes, kernels.decode_scratch_bytes));
  std::vector<std::vector<std::uint8_t>> chunks;
  for_chunks([&](std::size_t at, const ChunkBox& box) {
    std::vector<std::uint8_t> out(max_lorenzo_chunk_bytes(Element::f32, 8));
    out.resize(kernels.encode(rules, values.data() + at, box, out.data(), scratch.data));
    chunks.push_back(std::move(out));
  });
  for (auto _ : state) {
    std::size_t i = 0;
    bool good = true;
    for_chunks([&](std::size_t at, const ChunkBox& box) {
      const auto& in = chunks[i++];
      good = kernels.decode(rules, in.data(), in.size(), values.data() + at, box, scratch.data) && good;
    });
    if (!good) state.SkipWithError("a chunk was refused");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kElems * 4));
  state.SetLabel(isa_name(level));
}

void copy(benchmark::State& state) {
  const auto values = field();
  std::vector<float> out(kElems);
  for (auto _ : state) {
    std::memcpy(out.data(), values.data(), kElems * 4);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kElems * 4));
}

BENCHMARK(encode)->ArgNames({"isa", "digits"})->ArgsProduct({{0, 1, 2}, {2, 3, 4}});
BENCHMARK(decode)->ArgNames({"isa", "digits"})->ArgsProduct({{0, 1, 2}, {2, 3, 4}});
BENCHMARK(copy);

}  // namespace
}  // namespace quern::kernels
