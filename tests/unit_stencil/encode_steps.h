// Chunks of arrays encoded by jobs that gather what the host fits models to, as a device would.
#pragma once

#include "codecs/stencil/device/levels_encode_steps.h"
#include "codecs/stencil/device/wavelet_encode_steps.h"
#include "tests/unit_stencil/encode_cases.h"

namespace quern::codec::stencil::test {

struct StepsTrace {
  std::size_t steps = 0;
  std::size_t first_job = 0;  ///< bytes
  std::size_t later_job = 0;  ///< bytes of the largest that follows
};

/// Encodes a chunk: `run` has
///   open(work_bytes, elements, special), and then
///   step(job) -> RasterEncodeResult
///   work(at, bytes) -> bytes of the working memory
///   write_lanes(job, words) -> words of each lane
template <class Encoding, class Run>
Encoded encode_steps_with(Run& run, const Coding& coding, std::uint64_t chunk, Bytes& out, StepsTrace& trace) {
  using Choice = typename Encoding::Choice;
  const EncodeSpec spec = spec_of_encoder_state(coding.encoder().device_state());
  const MutableBox3 box = coding.box(chunk, const_cast<std::uint8_t*>(coding.data().data()));
  const ConstBox3 in{box.data, box.extents, box.strides, box.special, box.special_strides};
  const Scratch scratch(coding.encoder().scratch_bytes());
  Encoding encoding;
  Vector<std::uint8_t> job;
  if (!encoding.start(spec, in, scratch.span(), job)) return Encoded::host;
  const Encoded otherwise = encoding.may_be_raw() ? Encoded::raw : Encoded::host;
  Bytes elements;
  Bytes special;
  dense_box(encoding.box(), dtype_bytes(encoding.dtype()), elements, special);
  run.open(encoding.work_bytes(), elements, special);
  trace = {};
  trace.first_job = job.size();
  kernels::RasterEncodeResult result = run.step(job);
  for (trace.steps = 1; encoding.gathers(); ++trace.steps) {
    if (result.left != 0) return Encoded::host;
    const Bytes samples = run.work(encoding.samples_at(), encoding.samples_bytes());
    job.clear();
    encoding.next(result, samples, job);
    trace.later_job = std::max(trace.later_job, job.size());
    result = run.step(job);
  }
  if (result.left != 0) return Encoded::host;
  const Bytes list = run.work(encoding.exception_list(), result.exceptions * sizeof(std::uint32_t));
  std::vector<std::uint32_t> exceptions(result.exceptions);
  if (!list.empty()) std::memcpy(exceptions.data(), list.data(), list.size());
  job.clear();
  const auto after = [&](Choice choice) {
    return choice == Choice::lanes ? Encoded::coded : choice == Choice::raw ? otherwise : Encoded::host;
  };
  const Choice choice = encoding.choose(result, exceptions, job);
  trace.later_job = std::max(trace.later_job, job.size());
  if (choice != Choice::lanes) return after(choice);
  std::vector<std::uint16_t> words(static_cast<std::size_t>(encoding.most_words()));
  const std::vector<std::uint32_t> lane_words = run.write_lanes(job, words);
  std::uint64_t total = 0;
  for (const std::uint32_t n : lane_words) total += n;
  if (total > encoding.most_words()) return Encoded::host;
  out.assign(coding.encoder().max_chunk_bytes(), 0);
  std::size_t bytes = 0;
  const Choice end = encoding.write(lane_words, words.data(), out, bytes);
  out.resize(end == Choice::lanes ? bytes : 0);
  return after(end);
}

}  // namespace quern::codec::stencil::test
