// The stencil kernels that encode in steps between which a host fits models: the finest level of chunks in levels and
// in planes, and chunks under the wavelet. The host fits those of one chunk; the device takes each step on that chunk
// as often as the array has room for it.
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "bench/gpu/host_chunk.h"
#include "bench/gpu/subjects.h"
#include "codecs/stencil/device/levels_encode_steps.h"
#include "codecs/stencil/device/wavelet_encode_steps.h"
#include "kernels/stencil/cuda/encode_entry_points.h"

namespace quern::bench {
namespace {

using codec::stencil::LevelsEncoding;
using codec::stencil::WaveletEncoding;
using kernels::EncodeTask;
using kernels::RasterEncodeResult;
using kernels::RowLanesResult;

using Launch = cudaError_t (*)(const EncodeTask*, std::uint32_t, cudaStream_t);

template <class Encoding>
class StepsBench {
 public:
  StepsBench(Session& session, const BenchArray& array, const char* layout, Launch launch)
      : session_(session), array_(array), layout_(layout), launch_(launch) {}

  void run() {
    if (!chunk_.encode(array_, layout_)) return;
    // What travels are to be the array's own elements, not places on a lattice.
    const bool started =
        time_host([&] { return encoding_.start(chunk_.spec(), chunk_.box(), chunk_.scratch(), job_); });
    if (!started || encoding_.box().data != chunk_.box().data) return;
    times_ = std::max<std::uint64_t>(1, array_.bytes() / chunk_.data().size());
    stride_ = kernels::job_aligned(chunk_.data().size());
    work_stride_ = kernels::job_aligned(encoding_.work_bytes());
    if (!session_.has_room(times_ * (2 * stride_ + work_stride_ + 2 * sizeof(RasterEncodeResult)))) return;
    std::vector<std::uint8_t> copies(times_ * stride_);
    for (std::uint64_t i = 0; i < times_; ++i)
      std::memcpy(copies.data() + i * stride_, chunk_.data().data(), chunk_.data().size());
    elements_ = std::make_unique<DeviceArray<std::uint8_t>>(copies);
    work_ = std::make_unique<DeviceArray<std::uint8_t>>(times_ * work_stride_);
    steps();
  }

 private:
  void steps() {
    RasterEncodeResult result = step(0);
    for (std::size_t n = 1; encoding_.gathers(); ++n) {
      if (result.left != 0) return;
      const std::vector<std::uint8_t> samples = piece(encoding_.samples_at(), encoding_.samples_bytes());
      job_.clear();
      time_host([&] { encoding_.next(result, samples, job_); });
      result = step(n);
    }
    if (result.left != 0) return;
    const std::vector<std::uint8_t> list = piece(encoding_.exception_list(), result.exceptions * sizeof(std::uint32_t));
    std::vector<std::uint32_t> exceptions(result.exceptions);
    if (!list.empty()) std::memcpy(exceptions.data(), list.data(), list.size());
    job_.clear();
    const auto choice = time_host([&] { return encoding_.choose(result, exceptions, job_); });
    if (choice == Encoding::Choice::lanes) lanes();
  }

  /// Times the step of the job at hand, which may be taken again with the same outcome.
  RasterEncodeResult step(std::size_t number) {
    DeviceArray<RasterEncodeResult> results(times_);
    const std::uint64_t n = times_ * chunk_.data().size();
    time_job(launch_, *elements_, results, "encode_" + name() + "_" + std::to_string(number), {n, 0, n});
    return results.get()[0];
  }

  void lanes() {
    DeviceArray<RowLanesResult> results(times_);
    DeviceArray<std::uint8_t> words(times_ * stride_);
    const std::uint64_t n = times_ * chunk_.data().size();
    const std::uint64_t stored = times_ * chunk_.expected().size();
    time_job(&kernels::stencil_row_lanes_async, words, results, "write_" + name() + "_lanes", {n, stored, stored});
    const auto lane_words = results.get();
    const auto bytes = words.get();
    Vector<std::uint8_t> out(chunk_.room_bytes());
    bool same = true;
    for (std::uint64_t i = 0; i < times_; ++i) {
      std::size_t size = 0;
      const auto* const from = reinterpret_cast<const std::uint16_t*>(bytes.data() + i * stride_);
      const auto end = encoding_.write(lane_words[i].words, from, out, size);
      same = same && end == Encoding::Choice::lanes && size == chunk_.expected().size() &&
             std::memcmp(out.data(), chunk_.expected().data(), size) == 0;
    }
    session_.tell(array_, "stencil_steps",
                  Members()
                      .text("layout", layout_)
                      .count("chunks", times_)
                      .number("ratio", static_cast<double>(n) / static_cast<double>(stored))
                      .number("host_seconds_a_chunk", host_seconds_)
                      .flag("same_bytes", same));
  }

  template <class KernelResult>
  void time_job(Launch launch, DeviceArray<std::uint8_t>& memory, DeviceArray<KernelResult>& results,
                const std::string& what, const StepBytes& bytes) {
    DeviceArray<std::uint8_t> job(std::vector<std::uint8_t>(job_.begin(), job_.end()));
    std::vector<EncodeTask> tasks;
    for (std::uint64_t i = 0; i < times_; ++i)
      tasks.push_back(
          {job.data(), work_->data() + i * work_stride_, memory.data() + i * stride_, nullptr, results.data() + i});
    DeviceArray<EncodeTask> device_tasks(tasks);
    session_.time_step(array_, "stencil_steps", what, bytes, [&](cudaStream_t stream) {
      return launch(device_tasks.data(), static_cast<std::uint32_t>(times_), stream);
    });
  }

  std::vector<std::uint8_t> piece(std::uint32_t at, std::size_t bytes) const {
    std::vector<std::uint8_t> out(bytes);
    if (bytes > 0)
      check(cudaMemcpy(out.data(), work_->data() + at, bytes, cudaMemcpyDeviceToHost), "copy from the device");
    return out;
  }

  /// Adds to what the host needs for a chunk.
  template <class F>
  auto time_host(F&& f) {
    struct Watch {
      double& seconds;
      std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
      ~Watch() { seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }
    } const watch{host_seconds_};
    return f();
  }

  std::string name() const { return layout_; }

  Session& session_;
  const BenchArray& array_;
  const char* layout_;
  Launch launch_;
  HostChunk chunk_;
  Encoding encoding_;
  Vector<std::uint8_t> job_;
  std::uint64_t times_ = 1;
  std::uint64_t stride_ = 0;
  std::uint64_t work_stride_ = 0;
  std::unique_ptr<DeviceArray<std::uint8_t>> elements_;
  std::unique_ptr<DeviceArray<std::uint8_t>> work_;
  double host_seconds_ = 0;
};

}  // namespace

void bench_stencil_steps(Session& session, const BenchArray& array) {
  for (const char* layout : {"levels", "planes"})
    StepsBench<LevelsEncoding>(session, array, layout, &kernels::stencil_levels_encode_async).run();
  StepsBench<WaveletEncoding>(session, array, "wavelet", &kernels::stencil_wavelet_encode_async).run();
}

}  // namespace quern::bench
