// The mask kernels on a copy of the array with gaps.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "bench/gpu/chunked_array.h"
#include "bench/gpu/subjects.h"
#include "kernels/mask/cuda/entry_points.h"
#include "kernels/mask/words.h"
#include "libcompress/format/grid/layout.h"
#include "libcompress/pipeline/mask/mask.h"

namespace quern::bench {
namespace {

using kernels::Element;
using kernels::MaskDamage;
using kernels::MaskSlotInfo;
using kernels::SegmentExtents;
using kernels::SegmentGrid;

constexpr std::uint64_t kMostHostBytes = UINT64_C(64) << 20;
/// Patches of some forty cells, smaller ones in small arrays.
double gap_wavelength(const BenchArray& array) {
  return std::clamp(static_cast<double>(array.extents[2]) / 4, 2.0, 40.0);
}
constexpr std::uint32_t kWarpsPerMultiprocessor = 12;

SegmentGrid segment_grid_of(const BenchArray& array) {
  const ChunkGrid grid = chunk_grid_of(array);
  const GridBox first = SegmentLayout(grid, static_cast<DType>(array.element)).segment_box(0);
  SegmentGrid segments;
  segments.extents = grid.extents;
  segments.chunk = grid.chunk;
  for (std::size_t a = 0; a < 3; ++a) segments.per_segment[a] = (first.extents[a] + grid.chunk[a] - 1) / grid.chunk[a];
  return segments;
}

kernels::LaneMaskRules rules_of(const BenchArray& array, bool by_levels) {
  kernels::LaneMaskRules rules;
  rules.by_levels = by_levels;
  rules.element = array.element;
  kernels::with_element_words(array.element, [&](auto words) {
    rules.repeated = {true, kernels::make_cost_scale<decltype(words)>(kernels::QuantizerKind::absolute, array.bound)};
  });
  return rules;
}

class MaskBench {
 public:
  MaskBench(Session& session, const BenchArray& array, const SegmentGrid& grid, bool by_levels)
      : session_(session),
        array_(array),
        grid_(grid),
        by_levels_(by_levels),
        rules_(rules_of(array, by_levels)),
        segments_(static_cast<std::uint32_t>(grid.segments())),
        warps_(std::min(segments_,
                        kWarpsPerMultiprocessor * static_cast<std::uint32_t>(session.machine().multiprocessors))),
        slot_bytes_(kernels::mask_slot_bytes(array.element, grid)),
        values_(array.bytes()),
        scans_(segments_),
        list_(segments_),
        listed_(1),
        infos_(segments_),
        stored_(segments_ * slot_bytes_) {
    std::size_t bytes = 0;
    check(kernels::mask_workspace(array.element, grid, warps_, segments_, by_levels, bytes), "mask_workspace");
    workspace_bytes_ = bytes;
  }

  void run() {
    check(cudaMemcpyAsync(values_.data(), array_.values, array_.bytes(), cudaMemcpyDeviceToDevice, stream_), "copy");
    check(punch_gaps_async(array_.element, gap_wavelength(array_), array_.extents, values_.data(), stream_),
          "punch_gaps");
    stream_.wait();
    DeviceArray<std::uint8_t> workspace(workspace_bytes_);
    time_encoding(workspace);
    time_decoding(workspace);
  }

 private:
  void time_encoding(const DeviceArray<std::uint8_t>& workspace) {
    const std::uint64_t n = array_.bytes();
    const Work scan = [&](cudaStream_t stream) {
      const cudaError_t error = kernels::mask_scan_async(rules_, grid_, values_.data(), scans_.data(), stream);
      return error != cudaSuccess
                 ? error
                 : kernels::mask_list_async(rules_, grid_, scans_.data(), list_.data(), listed_.data(), stream);
    };
    check(scan(stream_), "mask_scan_async");
    if (!by_levels_) session_.time_step(array_, "mask", "scan_and_list", {n, 0, n}, scan);
    DeviceArray<std::uint8_t> copies(segments_ * slot_bytes_);
    const kernels::MaskSlots slots{segments_, infos_.data(), stored_.data(), copies.data()};
    const Work encode = [&](cudaStream_t stream) {
      return kernels::mask_encode_async(rules_, grid_, values_.data(), scans_.data(), list_.data(), listed_.data(), 0,
                                        slots, warps_, workspace.data(), workspace_bytes_, stream);
    };
    check(encode(stream_), "mask_encode_async");
    stream_.wait();
    host_infos_ = infos_.get();
    for (const MaskSlotInfo& info : host_infos_) {
      if (info.segment == kernels::kNoSegment) continue;
      ++masked_segments_;
      masked_ += info.masked;
      mask_bytes_ += info.stored_bytes;
    }
    // Values are read and written without gaps.
    session_.time_step(array_, "mask", by_levels_ ? "encode_levels_and_fill" : "encode_and_fill",
                       {n, mask_bytes_, 2 * n + mask_bytes_}, encode);
  }

  void time_decoding(const DeviceArray<std::uint8_t>& workspace) {
    std::vector<kernels::StoredMask> masks;
    for (std::size_t k = 0; k < host_infos_.size(); ++k) {
      const MaskSlotInfo& info = host_infos_[k];
      if (info.segment != kernels::kNoSegment && info.masked != 0)
        masks.push_back({k * slot_bytes_, info.stored_bytes, info.segment});
    }
    if (masks.empty()) return;
    DeviceArray<kernels::StoredMask> device_masks(masks);
    DeviceArray<MaskDamage> damage(masks.size());
    DeviceArray<std::uint8_t> restored(array_.bytes());
    check(cudaMemset(restored.data(), 0x3c, restored.bytes()), "cudaMemset");
    const std::uint64_t n = array_.bytes();
    const std::uint64_t written = masked_ * kernels::element_bytes(array_.element);
    const Work decode = [&](cudaStream_t stream) {
      return kernels::mask_decode_async(array_.element, grid_, stored_.data(), stored_.bytes(), device_masks.data(),
                                        static_cast<std::uint32_t>(masks.size()), by_levels_, restored.data(),
                                        damage.data(), warps_, workspace.data(), workspace_bytes_, stream);
    };
    session_.time_step(array_, "mask", by_levels_ ? "decode_levels" : "decode", {n, mask_bytes_, mask_bytes_ + written},
                       decode);
    const auto flags = damage.get();
    Members members;
    members.count("segments", segments_).count("masked_segments", masked_segments_);
    members.number("masked_share", static_cast<double>(masked_) / static_cast<double>(array_.elems()));
    members.count("damaged_masks",
                  static_cast<std::uint64_t>(std::count_if(
                      flags.begin(), flags.end(), [](MaskDamage found) { return found != MaskDamage::none; })));
    if (array_.bytes() <= kMostHostBytes) {
      members.count("wrong_cells",
                    array_.element == Element::f64 ? wrong_cells<double>(restored) : wrong_cells<float>(restored));
    }
    session_.tell(array_, by_levels_ ? "mask_levels" : "mask", members);
  }

  /// Special values that did not come back.
  template <class T>
  std::uint64_t wrong_cells(const DeviceArray<std::uint8_t>& restored) const {
    const auto before = values_.get();
    const auto after = restored.get();
    std::uint64_t wrong = 0;
    for (std::size_t at = 0; at < before.size(); at += sizeof(T)) {
      T value;
      std::memcpy(&value, before.data() + at, sizeof value);
      if (!std::isfinite(value)) wrong += std::memcmp(before.data() + at, after.data() + at, sizeof(T)) != 0 ? 1 : 0;
    }
    return wrong;
  }

  Session& session_;
  const BenchArray& array_;
  SegmentGrid grid_;
  bool by_levels_;
  kernels::LaneMaskRules rules_;
  std::uint32_t segments_;
  std::uint32_t warps_;
  std::uint64_t slot_bytes_;
  std::uint64_t workspace_bytes_ = 0;
  Stream stream_;
  DeviceArray<std::uint8_t> values_;
  DeviceArray<kernels::SegmentScan> scans_;
  DeviceArray<std::uint32_t> list_;
  DeviceArray<std::uint32_t> listed_;
  DeviceArray<MaskSlotInfo> infos_;
  DeviceArray<std::uint8_t> stored_;
  std::vector<MaskSlotInfo> host_infos_;
  std::uint64_t masked_segments_ = 0;
  std::uint64_t masked_ = 0;
  std::uint64_t mask_bytes_ = 0;
};

}  // namespace

void bench_mask(Session& session, const BenchArray& array) {
  const SegmentGrid grid = segment_grid_of(array);
  if (!kernels::mask_cuda_serves(array.element, grid)) return;
  const auto warps = std::min(grid.segments(), std::uint64_t{kWarpsPerMultiprocessor} *
                                                   static_cast<std::uint64_t>(session.machine().multiprocessors));
  for (const bool by_levels : {false, true}) {
    std::size_t workspace = 0;
    check(kernels::mask_workspace(array.element, grid, static_cast<std::uint32_t>(warps),
                                  static_cast<std::uint32_t>(grid.segments()), by_levels, workspace),
          "mask_workspace");
    const std::uint64_t slots = grid.segments() * kernels::mask_slot_bytes(array.element, grid);
    if (session.has_room(array.bytes() + 2 * slots + workspace)) MaskBench(session, array, grid, by_levels).run();
  }
}

}  // namespace quern::bench
