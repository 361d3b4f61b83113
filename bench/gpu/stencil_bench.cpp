// The stencil kernels on chunks in levels.
#include "bench/gpu/job_bench.h"
#include "codecs/stencil/device/levels_job.h"
#include "codecs/stencil/device/state.h"
#include "codecs/stencil/stencil.h"
#include "kernels/stencil/cuda/decode_entry_points.h"
#include "kernels/stencil/level_job.h"

namespace quern::bench {
namespace {

struct Levels {
  static constexpr const char* kName = "stencil";
  static constexpr const char* kStep = "decode_levels";
  static constexpr const char* kLayout = "levels";
  using Job = kernels::LevelJob;

  static const ArrayCodec& codec() { return codec::stencil::stencil_codec(); }
  static std::uint64_t work_bytes(const Job& job) { return job.head.work_bytes; }
  static bool append_job(std::span<const std::uint8_t> state, std::span<const std::uint8_t> chunk,
                         const MutableBox3& box, Vector<std::uint8_t>& out) {
    return codec::stencil::append_levels_job(codec::stencil::spec_of_state(state), chunk, box, out);
  }
  static cudaError_t decode_async(const kernels::JobTask* tasks, std::uint32_t count, std::uint32_t* damaged,
                                  cudaStream_t stream) {
    return kernels::stencil_levels_decode_async(tasks, count, damaged, stream);
  }
};

}  // namespace

void bench_stencil(Session& session, const BenchArray& array) { JobBench<Levels>(session, array).run(); }

}  // namespace quern::bench
