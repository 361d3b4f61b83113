// The stencil kernels on chunks in raster order, both ways. The host fits the model of one chunk, which takes long, and
// chooses its distributions; the device encodes and decodes that chunk as often as the array has room for it.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include <quern/codec.h>

#include "bench/gpu/subjects.h"
#include "codecs/stencil/device_state.h"
#include "codecs/stencil/raster_encode.h"
#include "codecs/stencil/raster_program.h"
#include "codecs/stencil/stencil.h"
#include "kernels/core/program_task.h"
#include "kernels/cuda/stencil_cuda.h"
#include "kernels/cuda/stencil_encode_cuda.h"

namespace quern::bench {
namespace {

using codec::stencil::RasterEncoding;
using kernels::EncodeTask;
using kernels::RasterEncodeAnswer;
using kernels::RowLanesAnswer;

constexpr std::uint64_t kChunkElems = UINT64_C(1) << 21;

class StencilEncodeBench {
 public:
  StencilEncodeBench(Session& session, const BenchArray& array) : session_(session), array_(array) {}

  void run() {
    if (!start()) return;
    encode();
    decode();
  }

 private:
  void encode() {
    const std::uint64_t times = std::max<std::uint64_t>(1, array_.bytes() / data_.size());
    const std::uint64_t stride = aligned(data_.size());
    const std::uint64_t work_stride = aligned(encoding_.work_bytes());
    if (!session_.has_room(times * (2 * stride + work_stride + 2 * sizeof(RasterEncodeAnswer)))) return;
    std::vector<std::uint8_t> copies(times * stride);
    for (std::uint64_t i = 0; i < times; ++i) std::memcpy(copies.data() + i * stride, data_.data(), data_.size());
    DeviceArray<std::uint8_t> elements(copies);
    DeviceArray<std::uint8_t> words(times * stride);
    DeviceArray<std::uint8_t> work(times * work_stride);
    DeviceArray<RasterEncodeAnswer> answers(times);
    DeviceArray<RowLanesAnswer> lane_answers(times);
    const auto tasks_of = [&](const std::uint8_t* program, std::uint8_t* memory, auto* answer) {
      std::vector<EncodeTask> tasks;
      for (std::uint64_t i = 0; i < times; ++i)
        tasks.push_back({program, work.data() + i * work_stride, memory + i * stride, nullptr, answer + i});
      return tasks;
    };
    const auto count = static_cast<std::uint32_t>(times);
    const std::uint64_t n = times * data_.size();

    DeviceArray<std::uint8_t> first(std::vector<std::uint8_t>(program_.begin(), program_.end()));
    DeviceArray<EncodeTask> first_tasks(tasks_of(first.data(), elements.data(), answers.data()));
    session_.time_step(array_, "stencil_encode", "encode_raster", {n, 0, n}, [&](cudaStream_t stream) {
      return kernels::stencil_raster_encode_async(first_tasks.data(), count, stream);
    });
    const RasterEncodeAnswer answer = answers.get()[0];
    if (answer.left != 0) return;
    std::vector<std::uint32_t> exceptions(answer.exceptions);
    if (!exceptions.empty())
      check(cudaMemcpy(exceptions.data(), work.data() + encoding_.exception_list(),
                       exceptions.size() * sizeof(std::uint32_t), cudaMemcpyDeviceToHost),
            "copy from the device");
    program_.clear();
    if (!encoding_.choose(answer, exceptions, program_)) return;

    DeviceArray<std::uint8_t> second(std::vector<std::uint8_t>(program_.begin(), program_.end()));
    DeviceArray<EncodeTask> second_tasks(tasks_of(second.data(), words.data(), lane_answers.data()));
    const std::uint64_t stored = times * expected_.size();
    session_.time_step(array_, "stencil_encode", "write_raster_lanes", {n, stored, stored}, [&](cudaStream_t stream) {
      return kernels::stencil_row_lanes_async(second_tasks.data(), count, stream);
    });
    session_.tell(array_, "stencil_encode",
                  Members()
                      .count("chunks", times)
                      .number("ratio", static_cast<double>(n) / static_cast<double>(stored))
                      .flag("same_bytes", same_bytes(lane_answers.get(), words.get(), stride)));
  }

  void decode() {
    const std::uint64_t times = std::max<std::uint64_t>(1, array_.bytes() / data_.size());
    const std::uint64_t stride = aligned(data_.size());
    kernels::ProgramHead head;
    std::memcpy(&head, decode_program_.data(), sizeof head);
    const std::uint64_t work_stride = aligned(head.work_bytes);
    if (!session_.has_room(head.bytes + times * (stride + work_stride))) return;
    DeviceArray<std::uint8_t> program(std::vector<std::uint8_t>(decode_program_.begin(), decode_program_.end()));
    DeviceArray<std::uint8_t> values(times * stride);
    DeviceArray<std::uint8_t> work(times * work_stride);
    std::vector<kernels::ProgramTask> tasks;
    for (std::uint64_t i = 0; i < times; ++i)
      tasks.push_back({program.data(), work.data() + i * work_stride, values.data() + i * stride, nullptr});
    DeviceArray<kernels::ProgramTask> device_tasks(tasks);
    DeviceArray<std::uint32_t> damaged(times);
    check(cudaMemset(values.data(), 0xa5, values.bytes()), "cudaMemset");
    const std::uint64_t n = times * data_.size();
    const std::uint64_t stored = times * expected_.size();
    session_.time_step(array_, "stencil", "decode_raster", {n, stored, n + stored}, [&](cudaStream_t stream) {
      return kernels::stencil_raster_decode_async(device_tasks.data(), static_cast<std::uint32_t>(times),
                                                  damaged.data(), stream);
    });
    const auto flags = damaged.get();
    const auto back = values.get();
    bool same = true;
    for (std::uint64_t i = 0; i < times; ++i)
      same = same && std::memcmp(back.data() + i * stride, decoded_.data(), decoded_.size()) == 0;
    session_.tell(array_, "stencil",
                  Members()
                      .count("chunks", times)
                      .number("ratio", static_cast<double>(n) / static_cast<double>(stored))
                      .count("damaged_chunks", std::accumulate(flags.begin(), flags.end(), std::uint64_t{0}))
                      .flag("same_values", same));
  }

  static std::uint64_t aligned(std::uint64_t bytes) {
    return (bytes + kernels::kProgramAlignment - 1) / kernels::kProgramAlignment * kernels::kProgramAlignment;
  }

  bool same_bytes(const std::vector<RowLanesAnswer>& lanes, const std::vector<std::uint8_t>& words,
                  std::uint64_t stride) const {
    Vector<std::uint8_t> out(room_bytes_);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const std::size_t bytes =
          encoding_.write(lanes[i].words, reinterpret_cast<const std::uint16_t*>(words.data() + i * stride), out);
      if (bytes != expected_.size() || std::memcmp(out.data(), expected_.data(), bytes) != 0) return false;
    }
    return true;
  }

  /// The first chunk's worth of the array: what the host encodes, and the first program. False when that is not a
  /// single chunk in raster order.
  bool start() {
    std::array<std::uint64_t, 3> extents = array_.extents;
    const std::size_t axis = extents[0] > 1 ? 0 : extents[1] > 1 ? 1 : 2;
    const std::uint64_t each = array_.elems() / extents[axis];
    extents[axis] = std::clamp<std::uint64_t>(kChunkElems / each, 1, extents[axis]);
    const std::uint64_t elems = each * extents[axis];
    data_.resize(elems * kernels::element_bytes(array_.element));
    check(cudaMemcpy(data_.data(), array_.values, data_.size(), cudaMemcpyDeviceToHost), "copy from the device");
    Vector<std::uint64_t> list;
    for (const std::uint64_t e : extents)
      if (e > 1 || list.empty()) list.push_back(e);
    PlanRequest request;
    request.dtype = static_cast<DType>(array_.element);
    request.shape = Shape::make(list).value();
    request.bound = {BoundKind::abs, array_.bound};
    request.settings = {{"layout", "raster"}};
    const PlainSample sample(data_.data(), request.dtype, elems);
    SerialRunner runner;
    request.sample = &sample;
    request.runner = &runner;
    auto encoder = codec::stencil::stencil_codec().plan(request);
    if (!encoder.ok()) return false;
    const ChunkGrid& grid = (*encoder)->plan().grid;
    const auto n = grid.counts();
    if (n[0] * n[1] * n[2] != 1) return false;
    ConstBox3 box;
    box.data = data_.data();
    box.extents = grid.extents;
    box.strides = {grid.extents[1] * grid.extents[2], grid.extents[2]};
    std::vector<std::uint8_t> scratch((*encoder)->scratch_bytes() + kAlign);
    const std::size_t shift = (kAlign - reinterpret_cast<std::uintptr_t>(scratch.data()) % kAlign) % kAlign;
    const std::span<std::uint8_t> room(scratch.data() + shift, scratch.size() - kAlign);
    room_bytes_ = (*encoder)->max_chunk_bytes();
    expected_.resize(room_bytes_);
    const auto written = (*encoder)->encode(box, expected_, room);
    if (!written.ok()) return false;
    expected_.resize(*written);
    OpenRequest open;
    open.dtype = request.dtype;
    open.shape = request.shape;
    open.bound = request.bound;
    open.version = codec::stencil::stencil_codec().info().version;
    open.params = (*encoder)->plan().params;
    auto decoder = codec::stencil::stencil_codec().open(open);
    if (!decoder.ok()) return false;
    std::vector<std::uint8_t> more((*decoder)->scratch_bytes() + kAlign);
    const std::size_t more_shift = (kAlign - reinterpret_cast<std::uintptr_t>(more.data()) % kAlign) % kAlign;
    decoded_.resize(data_.size());
    MutableBox3 back;
    back.data = decoded_.data();
    back.extents = box.extents;
    back.strides = box.strides;
    if (!(*decoder)->decode(expected_, back, {more.data() + more_shift, more.size() - kAlign}).ok()) return false;
    if (!codec::stencil::append_raster_program(codec::stencil::spec_of_state((*decoder)->device_state()), expected_,
                                               back, decode_program_))
      return false;
    // What travels are to be the array's own elements, not places on a lattice.
    return encoding_.start(codec::stencil::spec_of_encoder_state((*encoder)->device_state()), box, room, program_) &&
           encoding_.box().data == box.data;
  }

  static constexpr std::size_t kAlign = 64;
  Session& session_;
  const BenchArray& array_;
  std::vector<std::uint8_t> data_;     ///< of the chunk
  Vector<std::uint8_t> expected_;      ///< what the host makes of it
  std::vector<std::uint8_t> decoded_;  ///< and of that
  Vector<std::uint8_t> decode_program_;
  std::size_t room_bytes_ = 0;
  Vector<std::uint8_t> program_;
  RasterEncoding encoding_;
};

}  // namespace

void bench_stencil_encode(Session& session, const BenchArray& array) { StencilEncodeBench(session, array).run(); }

}  // namespace quern::bench
