// The mask kernels without races, by what CUDA orders.
#include "tests/unit_cuda/cuda_masks.h"

namespace quern::mask {
namespace {

class MaskCudaRaces : public MaskCudaTest {};

TEST_F(MaskCudaRaces, EveryScene_HasNone) {
  simt::Options options;
  options.watch_races = true;
  for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::f64}) {
    for (const SegmentGrid& grid : mask_grids()) {
      for (unsigned scene = 0; scene < kScenes; scene += 4) {
        simt::reset(options);
        with_words(dtype, [&](auto words) { round_trip<decltype(words)>(grid, scene, options.seed); });
        if (HasFatalFailure()) return;
        ++options.seed;
      }
    }
  }
}

}  // namespace
}  // namespace quern::mask
