// The mask kernels without races, by what CUDA orders.
#include "tests/support/thorough.h"
#include "tests/unit_cuda/cuda_masks.h"

namespace quern::mask {
namespace {

class MaskCudaRaces : public MaskCudaTest {};

TEST_F(MaskCudaRaces, EveryScene_HasNone) {
  simt::Options options;
  options.watch_races = true;
  // Scenes by turns: another third of them for each grid.
  const unsigned step = quern::testing::thorough() ? 4 : 12;
  unsigned turn = 0;
  for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::f64}) {
    for (const SegmentGrid& grid : mask_grids()) {
      for (unsigned scene = 4 * turn++ % step; scene < kScenes; scene += step) {
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
