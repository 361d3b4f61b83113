// The chunk kernels of lorenzo and what surrounds them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "bench/gpu/chunked_array.h"
#include "bench/gpu/subjects.h"
#include "kernels/common/cuda/range_cuda.h"
#include "kernels/metrics/cuda/bound_check_cuda.h"

namespace quern::bench {
namespace {

using kernels::StoredChunk;

/// Arrays up to this size are looked at by the host too.
constexpr std::uint64_t kMostHostBytes = UINT64_C(64) << 20;

class LorenzoBench {
 public:
  LorenzoBench(Session& session, const BenchArray& array)
      : session_(session),
        array_(array),
        chunked_(array),
        sizes_(chunked_.count()),
        slots_(chunked_.count() * chunked_.slot_bytes()),
        parts_(has_parts() ? kernels::lorenzo_parts_bytes(array_.element, chunked_.count()) : 0),
        targets_(has_parts() ? chunked_.count() : 0),
        joined_(has_parts() ? slots_.count() : 0) {}

  void run() {
    chunked_.choose_predictors(stream_);
    time_samples();
    queue_slots(stream_);
    stream_.wait();
    count_stored();
    time_slots();
    time_join();
    if (!session_.has_room(array_.bytes())) return;
    DeviceArray<std::uint8_t> decoded(array_.bytes());
    time_decode(decoded);
    compare(decoded);
  }

 private:
  bool has_parts() const { return kernels::lorenzo_has_parts(chunked_.rules()); }
  kernels::LorenzoSlots slots() const {
    kernels::LorenzoSlots slots{slots_.data(), chunked_.slot_bytes(), {}};
    if (!has_parts()) return slots;
    slots.parts = kernels::lorenzo_parts(parts_.data(), array_.element, chunked_.count());
    slots.parts.targets = targets_.data();
    return slots;
  }
  cudaError_t queue_slots(cudaStream_t stream) const {
    return kernels::lorenzo_encode_async(chunked_.chunks(), slots(), {}, sizes_.data(), stream);
  }
  /// Where chunk q is after it was joined, or where it was encoded to.
  std::uint8_t* chunk_at(std::size_t q) const {
    return (in_parts_[q] ? joined_.data() : slots_.data()) + q * chunked_.slot_bytes();
  }

  std::uint64_t chunk_bytes(std::size_t q) const {
    const auto& n = host_boxes_[q].box.extents;
    return n[0] * n[1] * n[2] * kernels::element_bytes(array_.element);
  }

  void count_stored() {
    host_sizes_ = sizes_.get();
    for (std::uint32_t& size : host_sizes_) {
      in_parts_.push_back((size & kernels::kChunkInParts) != 0);
      size &= ~kernels::kChunkInParts;
    }
    host_boxes_ = chunked_.boxes_in(nullptr);
    for (std::size_t q = 0; q < host_sizes_.size(); ++q) {
      const std::uint64_t raw = chunk_bytes(q);
      raw_chunks_ += host_sizes_[q] >= raw ? 1 : 0;
      stored_bytes_ += std::min<std::uint64_t>(host_sizes_[q], raw);
    }
  }

  void time_samples() {
    const std::uint64_t bytes = chunked_.sample_elems() * kernels::element_bytes(array_.element);
    const kernels::LorenzoChunks tiles = chunked_.sample();
    DeviceArray<std::uint32_t> costs(std::uint64_t{tiles.chunks} * kernels::kPredictors), measured(tiles.chunks);
    session_.time_step(array_, "lorenzo", "estimate_sample", {bytes, 0, bytes}, [&](cudaStream_t stream) {
      return kernels::lorenzo_estimate_async(tiles, costs.data(), stream);
    });
    session_.time_step(array_, "lorenzo", "measure_sample", {bytes, 0, bytes}, [&](cudaStream_t stream) {
      return kernels::lorenzo_measure_async(tiles, measured.data(), stream);
    });
  }

  void time_slots() {
    const std::uint64_t n = array_.bytes();
    // An absolute bound, and a relative one whose range the caller gives: the same work.
    session_.time_step(array_, "lorenzo", "encode_to_slots", {n, stored_bytes_, n + stored_bytes_},
                       [&](cudaStream_t stream) { return queue_slots(stream); });
    // A relative bound whose range is to be found.
    DeviceArray<kernels::RangeKeys> keys(1);
    const kernels::FillValues no_fills;
    session_.time_step(array_, "lorenzo", "find_range_and_encode_to_slots", {n, stored_bytes_, 2 * n + stored_bytes_},
                       [&](cudaStream_t stream) {
                         const cudaError_t error = kernels::find_range_async(
                             array_.element, array_.values, array_.elems(), no_fills, keys.data(), stream);
                         return error != cudaSuccess ? error : queue_slots(stream);
                       });
  }

  /// Chunks in parts to their places, each at the start of a slot of its own.
  void time_join() {
    if (!has_parts()) return;
    std::vector<std::uint8_t*> targets(chunked_.count());
    for (std::size_t q = 0; q < targets.size(); ++q)
      if (in_parts_[q]) targets[q] = chunk_at(q);
    targets_.put(targets);
    session_.time_step(
        array_, "lorenzo", "join", {stored_bytes_, stored_bytes_, 2 * stored_bytes_},
        [&](cudaStream_t stream) { return kernels::lorenzo_join_async(chunked_.chunks(), slots(), stream); });
    sizes_.put(host_sizes_);
  }

  void time_decode(DeviceArray<std::uint8_t>& decoded) {
    check(cudaMemset(decoded.data(), 0xa5, decoded.bytes()), "cudaMemset");
    DeviceArray<kernels::CudaChunk> boxes(chunked_.boxes_in(decoded.data()));
    std::vector<StoredChunk> chunks(chunked_.count());
    for (std::size_t q = 0; q < chunks.size(); ++q)
      if (host_sizes_[q] < chunk_bytes(q)) chunks[q] = {chunk_at(q), host_sizes_[q]};
    DeviceArray<StoredChunk> stored(chunks);
    DeviceArray<std::uint32_t> damaged(chunked_.count());
    const kernels::LorenzoChunks places = chunked_.chunks_at(boxes);
    DeviceArray<std::uint8_t> workspace(kernels::lorenzo_decode_workspace_bytes(places));
    const std::uint64_t n = array_.bytes();
    session_.time_step(array_, "lorenzo", "decode", {n, stored_bytes_, n + stored_bytes_}, [&](cudaStream_t stream) {
      return kernels::lorenzo_decode_async(places, stored.data(), workspace.data(), damaged.data(), stream);
    });
    const auto flags = damaged.get();
    damaged_chunks_ = std::accumulate(flags.begin(), flags.end(), std::uint64_t{0});
    DeviceArray<kernels::CudaChunk> originals(chunked_.boxes_in(const_cast<void*>(array_.values)));
    check(
        copy_raw_chunks_async(array_.element, originals.data(), boxes.data(), sizes_.data(), chunked_.count(), stream_),
        "copy_raw_chunks_async");
    stream_.wait();
    time_bound_check(decoded);
  }

  void time_bound_check(const DeviceArray<std::uint8_t>& decoded) {
    DeviceArray<kernels::CudaBoundCheck> result(1);
    const kernels::FillValues no_fills;
    const std::uint64_t n = array_.bytes();
    session_.time_step(array_, "bound_check", "check", {n, 0, 2 * n}, [&](cudaStream_t stream) {
      return kernels::check_bound_async(array_.element, array_.values, decoded.data(), array_.elems(),
                                        {verifier::BoundRule::absolute, array_.bound}, no_fills, result.data(), stream);
    });
    violations_ = result.get()[0].violations;
  }

  /// The host's own look: the largest error.
  void compare(const DeviceArray<std::uint8_t>& decoded) {
    Members members;
    members.count("chunks", chunked_.count()).count("raw_chunks", raw_chunks_);
    members.count("stored_bytes", stored_bytes_)
        .number("ratio", static_cast<double>(array_.bytes()) / static_cast<double>(stored_bytes_));
    members.count("damaged_chunks", damaged_chunks_).count("violations", violations_);
    if (array_.bytes() <= kMostHostBytes) {
      members.number("largest_error", array_.element == kernels::Element::f64 ? largest_error<double>(decoded)
                                                                              : largest_error<float>(decoded));
    }
    session_.tell(array_, "lorenzo", members);
  }

  template <class T>
  double largest_error(const DeviceArray<std::uint8_t>& decoded) const {
    std::vector<T> in(array_.elems()), out(array_.elems());
    check(cudaMemcpy(in.data(), array_.values, array_.bytes(), cudaMemcpyDeviceToHost), "copy from the device");
    check(cudaMemcpy(out.data(), decoded.data(), array_.bytes(), cudaMemcpyDeviceToHost), "copy from the device");
    double largest = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const double error = std::fabs(static_cast<double>(in[i]) - static_cast<double>(out[i]));
      if (!(error <= largest)) largest = error;
    }
    return largest;
  }

  Session& session_;
  const BenchArray& array_;
  Stream stream_;
  ChunkedArray chunked_;
  DeviceArray<std::uint32_t> sizes_;
  DeviceArray<std::uint8_t> slots_;
  DeviceArray<std::uint8_t> parts_;
  DeviceArray<std::uint8_t*> targets_;
  DeviceArray<std::uint8_t> joined_;
  std::vector<std::uint32_t> host_sizes_;
  std::vector<bool> in_parts_;
  std::vector<kernels::CudaChunk> host_boxes_;
  std::uint64_t stored_bytes_ = 0;
  std::uint64_t raw_chunks_ = 0;
  std::uint64_t damaged_chunks_ = 0;
  std::uint64_t violations_ = 0;
};

}  // namespace

void bench_lorenzo(Session& session, const BenchArray& array) {
  constexpr std::uint64_t kChunkTables = 3;  // a sixty-fourth of the values each, with room
  if (!session.has_room(2 * array.bytes() + array.bytes() / 64 * kChunkTables + (UINT64_C(16) << 20))) return;
  LorenzoBench(session, array).run();
}

}  // namespace quern::bench
