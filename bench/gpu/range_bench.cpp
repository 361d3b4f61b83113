// The range of an array.
#include "bench/gpu/subjects.h"
#include "kernels/common/cuda/range_cuda.h"

namespace quern::bench {

void bench_range(Session& session, const BenchArray& array) {
  DeviceArray<kernels::RangeKeys> keys(1);
  const kernels::FillValues no_fills;
  session.time_step(array, "range", "find", {array.bytes(), 0, array.bytes()}, [&](cudaStream_t stream) {
    return kernels::find_range_async(array.element, array.values, array.elems(), no_fills, keys.data(), stream);
  });
  Members members;
  session.tell(array, "range", members.flag("all_valid", keys.get()[0].valid == array.elems()));
}

}  // namespace quern::bench
