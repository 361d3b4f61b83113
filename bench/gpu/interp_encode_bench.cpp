// The interp kernels that encode, tiles and symbols together and streams apart from them. The host begins the chunks of
// the first planes of the array, and makes their distributions, neither of which is in the times; the device encodes
// copies of these chunks, as many as the array has.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <vector>

#include <quern/codec.h>

#include "bench/gpu/host_chunk.h"
#include "bench/gpu/job_bench.h"
#include "bench/gpu/subjects.h"
#include "codecs/interp/device/chunk_encoding.h"
#include "codecs/interp/device/state.h"
#include "codecs/interp/interp.h"
#include "kernels/interp/cuda/entry_points.h"

namespace quern::bench {
namespace {

using codec::interp::DeviceEncoding;
using kernels::EncodeTask;
using kernels::InterpEncodeResult;
using kernels::InterpWriteResult;

class InterpEncodeBench {
 public:
  InterpEncodeBench(Session& session, const BenchArray& array) : session_(session), array_(array) {}

  void run() {
    if (!start()) return gives_up("the host could not encode it");
    if (chunks_.empty()) return gives_up("every chunk is the host's to encode");
    std::uint64_t chunk_bytes = 0;
    std::uint64_t work_bytes = 0;
    std::uint64_t stored = 0;
    std::uint64_t elements = 0;
    for (Chunk& chunk : chunks_) {
      chunk.at = chunk_bytes;
      chunk.work_at = work_bytes;
      chunk_bytes += kernels::job_aligned(chunk.elements.size());
      work_bytes += kernels::job_aligned(chunk.encoding.work_bytes());
      stored += chunk.expected.size();
      elements += chunk.elements.size();
    }
    const std::uint64_t times = std::max<std::uint64_t>(1, array_.bytes() / elements);
    if (!session_.has_room(times * (2 * chunk_bytes + work_bytes))) return gives_up("the device has no room for it");
    std::vector<std::uint8_t> copies(times * chunk_bytes);
    for (std::uint64_t t = 0; t < times; ++t)
      for (const Chunk& chunk : chunks_)
        std::memcpy(copies.data() + t * chunk_bytes + chunk.at, chunk.elements.data(), chunk.elements.size());
    DeviceArray<std::uint8_t> values(copies);
    DeviceArray<std::uint8_t> words(times * chunk_bytes);
    DeviceArray<std::uint8_t> work(times * work_bytes);
    const auto count = static_cast<std::uint32_t>(times * chunks_.size());
    DeviceArray<InterpEncodeResult> results(count);
    DeviceArray<InterpWriteResult> written(count);
    const auto tasks_of = [&](DeviceArray<std::uint8_t>& jobs, std::uint8_t* memory, auto* result) {
      std::vector<EncodeTask> tasks;
      for (std::uint64_t t = 0; t < times; ++t)
        for (const Chunk& chunk : chunks_)
          tasks.push_back({jobs.data() + chunk.job_at, work.data() + t * work_bytes + chunk.work_at,
                           memory + t * chunk_bytes + chunk.at, nullptr, result++});
      return tasks;
    };
    const std::uint64_t n = times * elements;
    DeviceArray<std::uint8_t> first = upload_jobs();
    DeviceArray<EncodeTask> first_tasks(tasks_of(first, values.data(), results.data()));
    session_.time_step(array_, "interp_encode", "encode", {n, 0, n}, [&](cudaStream_t stream) {
      return kernels::interp_encode_async(first_tasks.data(), count, stream);
    });
    if (!choose(results.get(), work)) return gives_up("a chunk is stored raw, or left to the host");
    DeviceArray<std::uint8_t> second = upload_jobs();
    DeviceArray<EncodeTask> second_tasks(tasks_of(second, words.data(), written.data()));
    session_.time_step(array_, "interp_encode", "write", {n, times * stored, times * stored}, [&](cudaStream_t stream) {
      return kernels::interp_write_async(second_tasks.data(), count, stream);
    });
    const auto sizes = written.get();
    const auto streams = words.get();
    bool same = true;
    for (std::uint64_t i = 0; i < count; ++i)
      same = same && same_bytes(chunks_[i % chunks_.size()], sizes[i],
                                streams.data() + i / chunks_.size() * chunk_bytes + chunks_[i % chunks_.size()].at);
    session_.tell(array_, "interp_encode",
                  Members()
                      .count("chunks", count)
                      .number("ratio", static_cast<double>(n) / static_cast<double>(times * stored))
                      .flag("same_bytes", same));
  }

 private:
  struct Chunk {
    ConstBox3 box;
    DeviceEncoding encoding;
    std::vector<std::uint8_t> elements;  ///< side by side
    Vector<std::uint8_t> expected;       ///< what the host makes of it
    Vector<std::uint8_t> job;
    std::uint64_t job_at = 0;
    std::uint64_t at = 0;
    std::uint64_t work_at = 0;
  };

  void gives_up(const char* why) const {
    std::fprintf(stderr, "bench_gpu: interp_encode of %s: %s\n", array_.field.c_str(), why);
  }

  /// The chunks of the first planes that a device encodes.
  bool start() {
    if (!slab_.plan(codec::interp::interp_codec(), array_, "auto", kSlabElems)) return false;
    spec_ = codec::interp::spec_of_encoder_state(slab_.encoder().device_state());
    const ChunkGrid& grid = slab_.encoder().plan().grid;
    const auto n = grid.counts();
    const std::size_t width = kernels::element_bytes(array_.element);
    for (std::uint64_t c = 0; c < n[0] * n[1] * n[2]; ++c) {
      const std::uint64_t place[3] = {c / (n[1] * n[2]), c / n[2] % n[1], c % n[2]};
      Chunk& chunk = chunks_.emplace_back();
      chunk.box.strides = {grid.extents[1] * grid.extents[2], grid.extents[2]};
      std::uint64_t first = 0;
      for (std::size_t a = 0; a < 3; ++a) {
        chunk.box.extents[a] = std::min(grid.chunk[a], grid.extents[a] - place[a] * grid.chunk[a]);
        first += place[a] * grid.chunk[a] * (a == 2 ? 1 : chunk.box.strides[a]);
      }
      const std::uint8_t* const begin = slab_.data().data() + first * width;
      chunk.box.data = begin;
      chunk.expected.resize(slab_.encoder().max_chunk_bytes());
      const auto size = slab_.encoder().encode(chunk.box, chunk.expected, slab_.scratch());
      if (!size.ok()) return false;
      chunk.expected.resize(*size);
      if (!chunk.encoding.start(spec_, chunk.box, slab_.scratch(), chunk.job)) {
        chunks_.pop_back();
        continue;
      }
      for (std::uint64_t z = 0; z < chunk.box.extents[0]; ++z)
        for (std::uint64_t y = 0; y < chunk.box.extents[1]; ++y) {
          const std::uint8_t* const row = begin + (z * chunk.box.strides[0] + y * chunk.box.strides[1]) * width;
          chunk.elements.insert(chunk.elements.end(), row, row + chunk.box.extents[2] * width);
        }
    }
    return true;
  }

  /// Brings the jobs of all chunks to the device, one behind another.
  DeviceArray<std::uint8_t> upload_jobs() {
    std::vector<std::uint8_t> jobs;
    for (Chunk& chunk : chunks_) {
      chunk.job_at = jobs.size();
      jobs.insert(jobs.end(), chunk.job.begin(), chunk.job.end());
      jobs.resize(kernels::job_aligned(jobs.size()));
    }
    return DeviceArray<std::uint8_t>(jobs);
  }

  /// The second jobs, from what came of the first copy of each chunk. False when one has none.
  bool choose(const std::vector<InterpEncodeResult>& results, const DeviceArray<std::uint8_t>& work) {
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      Chunk& chunk = chunks_[i];
      if (results[i].left != 0) return false;
      std::vector<std::uint32_t> exceptions(results[i].exceptions);
      if (!exceptions.empty())
        check(cudaMemcpy(exceptions.data(), work.data() + chunk.work_at + chunk.encoding.exception_list(),
                         exceptions.size() * sizeof(std::uint32_t), cudaMemcpyDeviceToHost),
              "copy from the device");
      chunk.job.clear();
      if (chunk.encoding.choose(results[i], exceptions, chunk.job) != DeviceEncoding::Outcome::coded) return false;
    }
    return true;
  }

  bool same_bytes(const Chunk& chunk, const InterpWriteResult& sizes, const std::uint8_t* streams) const {
    std::uint64_t total = 0;
    for (const auto& section : sizes.words)
      for (const std::uint32_t words : section) total += words;
    if (total > chunk.encoding.most_words()) return false;
    Vector<std::uint8_t> out(slab_.encoder().max_chunk_bytes());
    std::size_t size = 0;
    const std::span words(reinterpret_cast<const std::uint16_t*>(streams), static_cast<std::size_t>(total));
    return chunk.encoding.write(sizes, words, out, size) == DeviceEncoding::Outcome::coded &&
           size == chunk.expected.size() && std::memcmp(out.data(), chunk.expected.data(), size) == 0;
  }

  Session& session_;
  const BenchArray& array_;
  HostSlab slab_;
  codec::interp::ChunkSpec spec_;
  std::deque<Chunk> chunks_;
};

}  // namespace

void bench_interp_encode(Session& session, const BenchArray& array) { InterpEncodeBench(session, array).run(); }

}  // namespace quern::bench
