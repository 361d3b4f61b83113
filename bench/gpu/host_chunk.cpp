// Plans are forced to a layout.
#include "bench/gpu/host_chunk.h"

#include <algorithm>
#include <array>

#include "codecs/stencil/device/state.h"
#include "codecs/stencil/stencil.h"

namespace quern::bench {
namespace {

constexpr std::uint64_t kChunkElems = UINT64_C(1) << 21;

}  // namespace

bool HostSlab::plan(const ArrayCodec& codec, const BenchArray& array, const char* layout, std::uint64_t elems) {
  std::array<std::uint64_t, 3> extents = array.extents;
  const std::size_t axis = extents[0] > 1 ? 0 : extents[1] > 1 ? 1 : 2;
  const std::uint64_t each = array.elems() / extents[axis];
  extents[axis] = std::clamp<std::uint64_t>(elems / each, 1, extents[axis]);
  const std::uint64_t count = each * extents[axis];
  data_.resize(count * kernels::element_bytes(array.element));
  check(cudaMemcpy(data_.data(), array.values, data_.size(), cudaMemcpyDeviceToHost), "copy from the device");
  Vector<std::uint64_t> list;
  for (const std::uint64_t e : extents)
    if (e > 1 || list.empty()) list.push_back(e);
  PlanRequest request;
  request.dtype = static_cast<DType>(array.element);
  request.shape = Shape::make(list).value();
  request.bound = {BoundKind::abs, array.bound};
  request.settings = {{"layout", layout}};
  const PlainSample sample(data_.data(), request.dtype, count);
  SerialRunner runner;
  request.sample = &sample;
  request.runner = &runner;
  auto encoder = codec.plan(request);
  if (!encoder.ok()) return false;
  encoder_ = std::move(*encoder);
  OpenRequest open;
  open.dtype = request.dtype;
  open.shape = request.shape;
  open.bound = request.bound;
  open.version = codec.info().version;
  open.params = encoder_->plan().params;
  auto decoder = codec.open(open);
  if (!decoder.ok()) return false;
  decoder_ = std::move(*decoder);
  return scratch_.resize(std::max(encoder_->scratch_bytes(), decoder_->scratch_bytes())).ok();
}

bool HostChunk::encode(const BenchArray& array, const char* layout) {
  if (!slab_.plan(codec::stencil::stencil_codec(), array, layout, kChunkElems)) return false;
  const ChunkGrid& grid = slab_.encoder().plan().grid;
  const auto n = grid.counts();
  if (n[0] * n[1] * n[2] != 1) return false;
  box_.data = data().data();
  box_.extents = grid.extents;
  box_.strides = {grid.extents[1] * grid.extents[2], grid.extents[2]};
  expected_.resize(room_bytes());
  const auto written = slab_.encoder().encode(box_, expected_, scratch());
  if (!written.ok()) return false;
  expected_.resize(*written);
  return true;
}

codec::stencil::EncodeSpec HostChunk::spec() const {
  return codec::stencil::spec_of_encoder_state(slab_.encoder().device_state());
}

}  // namespace quern::bench
