// Encode and decode of tensors by the tensor codec beside zstd -3 and memcpy of the same bytes, on one thread and on
// two. Weights are normal, their scale changing from row to row, as in a model; moments are weights with a wider spread
// of scales. Bytes per second count raw bytes; `ratio` is raw by coded bytes.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <zstd.h>

#include "codecs/tensor/tensor.h"
#include "kernels/common/bits.h"
#include "libcompress/core/task_runner.h"

namespace quern::codec::tensor {
namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr std::size_t kElems = 16 * kChunkBytes / 4;
constexpr std::size_t kRow = 1024;

enum Subject { kWeights, kMoments, kCopies, kSubjects };
constexpr const char* kNames[] = {"f32 weights", "f32 second moments", "bf16 weights"};

struct Data {
  TensorDescription description;
  Bytes values;
  Bytes base;
};

Data make(Subject subject) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const bool copies = subject == kCopies;
  const std::uint64_t extents[] = {(copies ? 2 : 1) * kElems / kRow, kRow};
  Data data{{copies ? ElementType::bf16 : ElementType::f32, *TensorShape::make(extents)}, {}, {}};
  float scale = 1;
  for (std::size_t i = 0; i < data.description.elems(); ++i) {
    if (i % kRow == 0) scale = std::exp((subject == kMoments ? 2.0f : 0.1f) * normal(random));
    float value = 0.02f * scale * normal(random);
    if (subject == kMoments) value = value * value;
    const std::uint32_t bits = copies ? kernels::float_to_bfloat(value) : std::bit_cast<std::uint32_t>(value);
    const float moved = value * 0.99f + 1e-4f * normal(random);
    const std::uint32_t then = copies ? kernels::float_to_bfloat(moved) : std::bit_cast<std::uint32_t>(moved);
    for (std::size_t k = 0; k < element_bytes(data.description.type); ++k) {
      data.values.push_back(static_cast<std::uint8_t>(bits >> (8 * k)));
      data.base.push_back(static_cast<std::uint8_t>(then >> (8 * k)));
    }
  }
  return data;
}

const Data& subject_of(const benchmark::State& state) {
  static const Data all[kSubjects] = {make(kWeights), make(kMoments), make(kCopies)};
  return all[state.range(0)];
}

void report(benchmark::State& state, const Data& data, std::uint64_t coded) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(data.values.size()));
  state.SetLabel(kNames[state.range(0)]);
  if (coded > 0) state.counters["ratio"] = static_cast<double>(data.values.size()) / static_cast<double>(coded);
}

/// Chunks with a plan made before, as a store codes them; range(1) is the mode.
void encode(benchmark::State& state) {
  const Data& data = subject_of(state);
  TensorInputs inputs;
  inputs.values = data.values;
  inputs.base = data.base;
  TensorRequest request;
  request.mode = static_cast<Mode>(state.range(1));
  const auto plan = plan_tensor(data.description, request, inputs);
  if (!plan.ok()) return state.SkipWithError("no plan");
  Bytes out(chunk_bound(data.description, 0));
  AlignedBuffer scratch;
  std::uint64_t coded = 0;
  for (auto _ : state) {
    coded = 0;
    for (std::uint64_t i = 0; i < data.description.chunks(); ++i)
      coded += *encode_chunk(*plan, inputs, i, out, scratch);
    benchmark::DoNotOptimize(coded);
  }
  report(state, data, coded);
}

void decode(benchmark::State& state) {
  const Data& data = subject_of(state);
  TensorInputs inputs;
  inputs.values = data.values;
  inputs.base = data.base;
  TensorRequest request;
  request.mode = static_cast<Mode>(state.range(1));
  SerialRunner serial;
  const auto encoded = encode_tensor(data.description, request, inputs, serial);
  if (!encoded.ok()) return state.SkipWithError("no plan");
  inputs.values = {};
  Bytes out(data.values.size());
  AlignedBuffer scratch;
  for (auto _ : state) {
    for (std::size_t i = 0; i < encoded->sizes.size(); ++i) {
      const auto piece = std::span(out).subspan(data.description.chunk_begin(i), data.description.chunk_bytes(i));
      if (!decode_chunk(data.description, encoded->mode, encoded->side, i, encoded->chunk(i), inputs, piece, scratch)
               .ok())
        return state.SkipWithError("does not decode");
    }
    benchmark::DoNotOptimize(out.data());
  }
  if (out != data.values) return state.SkipWithError("does not come back");
  report(state, data, encoded->total_bytes());
}

/// Whole tensors, planned each time; range(1) is the number of threads.
void encode_whole(benchmark::State& state) {
  const Data& data = subject_of(state);
  TensorInputs inputs;
  inputs.values = data.values;
  Execution execution;
  execution.threads = static_cast<std::size_t>(state.range(1));
  RunnerHandle runner(execution);
  std::uint64_t coded = 0;
  for (auto _ : state) coded = encode_tensor(data.description, {}, inputs, runner.get())->total_bytes();
  report(state, data, coded);
}

void decode_whole(benchmark::State& state) {
  const Data& data = subject_of(state);
  TensorInputs inputs;
  inputs.values = data.values;
  Execution execution;
  execution.threads = static_cast<std::size_t>(state.range(1));
  RunnerHandle runner(execution);
  const auto encoded = encode_tensor(data.description, {}, inputs, runner.get());
  Bytes out(data.values.size());
  for (auto _ : state)
    if (!decode_tensor(data.description, *encoded, {}, out, runner.get()).ok()) state.SkipWithError("no");
  report(state, data, encoded->total_bytes());
}

void zstd_encode(benchmark::State& state) {
  const Data& data = subject_of(state);
  Bytes out(ZSTD_compressBound(kChunkBytes));
  std::uint64_t coded = 0;
  for (auto _ : state) {
    coded = 0;
    for (std::size_t at = 0; at < data.values.size(); at += kChunkBytes)
      coded += ZSTD_compress(out.data(), out.size(), data.values.data() + at, kChunkBytes, 3);
    benchmark::DoNotOptimize(coded);
  }
  report(state, data, coded);
}

void zstd_decode(benchmark::State& state) {
  const Data& data = subject_of(state);
  std::vector<Bytes> chunks;
  std::uint64_t coded = 0;
  for (std::size_t at = 0; at < data.values.size(); at += kChunkBytes) {
    Bytes out(ZSTD_compressBound(kChunkBytes));
    out.resize(ZSTD_compress(out.data(), out.size(), data.values.data() + at, kChunkBytes, 3));
    coded += out.size();
    chunks.push_back(std::move(out));
  }
  Bytes out(kChunkBytes);
  for (auto _ : state)
    for (const Bytes& chunk : chunks)
      benchmark::DoNotOptimize(ZSTD_decompress(out.data(), out.size(), chunk.data(), chunk.size()));
  report(state, data, coded);
}

void copy(benchmark::State& state) {
  const Data& data = subject_of(state);
  Bytes out(data.values.size());
  for (auto _ : state) {
    std::memcpy(out.data(), data.values.data(), out.size());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  report(state, data, 0);
}

constexpr int kPlanes = static_cast<int>(Mode::planes);
constexpr int kDelta = static_cast<int>(Mode::delta);
BENCHMARK(copy)->Arg(kWeights)->Unit(benchmark::kMillisecond);
BENCHMARK(zstd_encode)->DenseRange(0, kSubjects - 1)->Unit(benchmark::kMillisecond);
BENCHMARK(encode)->ArgsProduct({{kWeights, kMoments, kCopies}, {kPlanes, kDelta}})->Unit(benchmark::kMillisecond);
BENCHMARK(zstd_decode)->DenseRange(0, kSubjects - 1)->Unit(benchmark::kMillisecond);
BENCHMARK(decode)->ArgsProduct({{kWeights, kMoments, kCopies}, {kPlanes, kDelta}})->Unit(benchmark::kMillisecond);
BENCHMARK(encode_whole)->ArgsProduct({{kWeights}, {1, 2}})->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(decode_whole)->ArgsProduct({{kWeights}, {1, 2}})->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace quern::codec::tensor
