// The interp kernels, codes and tiles together.
#include "bench/gpu/job_bench.h"
#include "codecs/interp/device/chunk_job.h"
#include "codecs/interp/interp.h"
#include "kernels/interp/cuda/entry_points.h"
#include "kernels/interp/interp_job.h"

namespace quern::bench {
namespace {

struct Interp {
  static constexpr const char* kName = "interp";
  static constexpr const char* kStep = "decode";
  static constexpr const char* kLayout = "auto";
  using Job = kernels::InterpJob;

  static const ArrayCodec& codec() { return codec::interp::interp_codec(); }
  static std::uint64_t work_bytes(const Job& job) { return job.work_bytes; }
  static bool append_job(std::span<const std::uint8_t> state, std::span<const std::uint8_t> chunk,
                         const MutableBox3& box, Vector<std::uint8_t>& out) {
    return codec::interp::append_chunk_job(codec::interp::device_state_of(state), chunk, box, out);
  }
  static cudaError_t decode_async(const kernels::JobTask* tasks, std::uint32_t count, std::uint32_t* damaged,
                                  cudaStream_t stream) {
    return kernels::interp_decode_async(tasks, count, damaged, stream);
  }
};

}  // namespace

void bench_interp(Session& session, const BenchArray& array) { JobBench<Interp>(session, array).run(); }

}  // namespace quern::bench
