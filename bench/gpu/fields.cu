// A thread for each element, or a CTA for each chunk.
#include "bench/gpu/fields.h"

#include "kernels/common/cuda/launch.cuh"

namespace quern::bench {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kMostBlocks = 1u << 16;

/// A number in [0, 1) for each place of a lattice (the mixer of SplitMix64).
__device__ __forceinline__ double lattice(std::uint64_t place) {
  std::uint64_t z = place + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

struct Cell {
  std::uint64_t at[3];
};

__device__ __forceinline__ Cell cell_of(std::uint64_t i, const std::array<std::uint64_t, 3>& extents) {
  return {{i / extents[2] / extents[1], i / extents[2] % extents[1], i % extents[2]}};
}

/// Values of a lattice with that many cells between its places, joined smoothly; 0 to 1.
__device__ __forceinline__ double wave(const Cell& cell, double wavelength, std::uint64_t salt) {
  std::uint64_t corner[3];
  double weight[3];
  for (int a = 0; a < 3; ++a) {
    const double x = static_cast<double>(cell.at[a]) / wavelength;
    corner[a] = static_cast<std::uint64_t>(x);
    const double t = x - static_cast<double>(corner[a]);
    weight[a] = t * t * (3 - 2 * t);
  }
  double sum = 0;
  for (unsigned k = 0; k < 8; ++k) {
    std::uint64_t place = salt;
    double share = 1;
    for (int a = 0; a < 3; ++a) {
      const bool far = (k >> a & 1) != 0;
      place = place * 0x100000001b3u + corner[a] + (far ? 1 : 0);
      share *= far ? weight[a] : 1 - weight[a];
    }
    sum += share * lattice(place);
  }
  return sum;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    fill_field(const __grid_constant__ FieldKind kind, const __grid_constant__ std::array<std::uint64_t, 3> extents,
               T* out) {
  const std::uint64_t elems = extents[0] * extents[1] * extents[2];
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < elems;
       i += std::uint64_t{gridDim.x} * kThreads) {
    const Cell cell = cell_of(i, extents);
    const double smooth = wave(cell, kind.wavelength, 1) + wave(cell, kind.wavelength / 3, 2) / 4;
    out[i] = static_cast<T>(smooth + kind.noise * kind.bound * (2 * lattice(~i) - 1));
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    punch_gaps(double wavelength, const __grid_constant__ std::array<std::uint64_t, 3> extents, T nan, T* values) {
  const std::uint64_t elems = extents[0] * extents[1] * extents[2];
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < elems;
       i += std::uint64_t{gridDim.x} * kThreads) {
    if (wave(cell_of(i, extents), wavelength, 3) < 0.43) values[i] = nan;
  }
}

__global__ void __launch_bounds__(kThreads) repeat(std::uint8_t* values, std::uint64_t period, std::uint64_t bytes) {
  for (std::uint64_t i = period + std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < bytes;
       i += std::uint64_t{gridDim.x} * kThreads)
    values[i] = values[i % period];
}

template <class Bits>
__global__ void __launch_bounds__(kThreads)
    copy_raw_chunks(const kernels::CudaChunk* from, const kernels::CudaChunk* to, const std::uint32_t* sizes) {
  const kernels::ChunkBox box = from[blockIdx.x].box;
  const std::uint64_t plane = box.extents[1] * box.extents[2];
  const std::uint64_t elems = box.extents[0] * plane;
  if (sizes[blockIdx.x] < elems * sizeof(Bits)) return;
  const auto* const in = static_cast<const Bits*>(from[blockIdx.x].values);
  auto* const out = static_cast<Bits*>(to[blockIdx.x].values);
  for (std::uint64_t i = threadIdx.x; i < elems; i += kThreads) {
    const std::uint64_t at =
        i / plane * box.strides[0] + i % plane / box.extents[2] * box.strides[1] + i % box.extents[2];
    out[at] = in[at];
  }
}

unsigned blocks_for(std::uint64_t items) {
  const std::uint64_t blocks = (items + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

}  // namespace

cudaError_t fill_field_async(kernels::Element element, const FieldKind& kind,
                             const std::array<std::uint64_t, 3>& extents, void* out, cudaStream_t stream) {
  const unsigned blocks = blocks_for(extents[0] * extents[1] * extents[2]);
  return element == kernels::Element::f64
             ? kernels::launch(&fill_field<double>, {blocks, kThreads}, stream, kind, extents,
                               static_cast<double*>(out))
             : kernels::launch(&fill_field<float>, {blocks, kThreads}, stream, kind, extents, static_cast<float*>(out));
}

cudaError_t punch_gaps_async(kernels::Element element, double wavelength, const std::array<std::uint64_t, 3>& extents,
                             void* values, cudaStream_t stream) {
  const unsigned blocks = blocks_for(extents[0] * extents[1] * extents[2]);
  return element == kernels::Element::f64
             ? kernels::launch(&punch_gaps<std::uint64_t>, {blocks, kThreads}, stream, wavelength, extents,
                               UINT64_C(0x7ff8000000000000), static_cast<std::uint64_t*>(values))
             : kernels::launch(&punch_gaps<std::uint32_t>, {blocks, kThreads}, stream, wavelength, extents,
                               std::uint32_t{0x7fc00000u}, static_cast<std::uint32_t*>(values));
}

cudaError_t repeat_async(std::uint8_t* values, std::uint64_t period, std::uint64_t bytes, cudaStream_t stream) {
  if (period == 0 || bytes <= period) return cudaSuccess;
  return kernels::launch(&repeat, {blocks_for(bytes - period), kThreads}, stream, values, period, bytes);
}

cudaError_t copy_raw_chunks_async(kernels::Element element, const kernels::CudaChunk* from,
                                  const kernels::CudaChunk* to, const std::uint32_t* sizes, std::uint32_t count,
                                  cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return element == kernels::Element::f64
             ? kernels::launch(&copy_raw_chunks<std::uint64_t>, {count, kThreads}, stream, from, to, sizes)
             : kernels::launch(&copy_raw_chunks<std::uint32_t>, {count, kThreads}, stream, from, to, sizes);
}

}  // namespace quern::bench
