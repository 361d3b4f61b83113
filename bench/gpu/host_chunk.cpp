// A plan for a part of the array that is about a chunk, forced to a layout.
#include "bench/gpu/host_chunk.h"

#include <algorithm>
#include <array>

#include "codecs/stencil/device_state.h"
#include "codecs/stencil/stencil.h"
#include "kernels/core/level_program.h"

namespace quern::bench {
namespace {

constexpr std::uint64_t kChunkElems = UINT64_C(1) << 21;

}  // namespace

bool HostChunk::encode(const BenchArray& array, const char* layout) {
  std::array<std::uint64_t, 3> extents = array.extents;
  const std::size_t axis = extents[0] > 1 ? 0 : extents[1] > 1 ? 1 : 2;
  const std::uint64_t each = array.elems() / extents[axis];
  extents[axis] = std::clamp<std::uint64_t>(kChunkElems / each, 1, extents[axis]);
  const std::uint64_t elems = each * extents[axis];
  data_.resize(elems * kernels::element_bytes(array.element));
  check(cudaMemcpy(data_.data(), array.values, data_.size(), cudaMemcpyDeviceToHost), "copy from the device");
  Vector<std::uint64_t> list;
  for (const std::uint64_t e : extents)
    if (e > 1 || list.empty()) list.push_back(e);
  PlanRequest request;
  request.dtype = static_cast<DType>(array.element);
  request.shape = Shape::make(list).value();
  request.bound = {BoundKind::abs, array.bound};
  request.settings = {{"layout", layout}};
  const PlainSample sample(data_.data(), request.dtype, elems);
  SerialRunner runner;
  request.sample = &sample;
  request.runner = &runner;
  auto encoder = codec::stencil::stencil_codec().plan(request);
  if (!encoder.ok()) return false;
  encoder_ = std::move(*encoder);
  open_.dtype = request.dtype;
  open_.shape = request.shape;
  open_.bound = request.bound;
  open_.version = codec::stencil::stencil_codec().info().version;
  open_.params = encoder_->plan().params;
  const ChunkGrid& grid = encoder_->plan().grid;
  const auto n = grid.counts();
  if (n[0] * n[1] * n[2] != 1) return false;
  box_.data = data_.data();
  box_.extents = grid.extents;
  box_.strides = {grid.extents[1] * grid.extents[2], grid.extents[2]};
  scratch_.resize(encoder_->scratch_bytes() + kAlign);
  expected_.resize(room_bytes());
  const auto written = encoder_->encode(box_, expected_, scratch());
  if (!written.ok()) return false;
  expected_.resize(*written);
  return true;
}

codec::stencil::ChunkSpec HostChunk::spec() const {
  return codec::stencil::spec_of_encoder_state(encoder_->device_state());
}

std::span<std::uint8_t> HostChunk::scratch() {
  const std::size_t shift = (kAlign - reinterpret_cast<std::uintptr_t>(scratch_.data()) % kAlign) % kAlign;
  return {scratch_.data() + shift, scratch_.size() - kAlign};
}

std::uint64_t aligned_part(std::uint64_t bytes) { return kernels::program_aligned(bytes); }

}  // namespace quern::bench
