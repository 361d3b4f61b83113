// Parsing with the decoder's own functions.
#include "codecs/stencil/device/wavelet_job.h"

#include "codecs/stencil/device/job_parts.h"
#include "codecs/stencil/device/wavelet_plans.h"
#include "codecs/stencil/wavelet/axes.h"
#include "codecs/stencil/wavelet/model.h"
#include "kernels/stencil/wavelet_job.h"
#include "libcompress/core/element_of.h"

namespace quern::codec::stencil {
namespace {

using kernels::WaveletJob;

class JobMaker {
 public:
  JobMaker(const ChunkSpec& spec, const MutableBox3& box)
      : spec_(spec), masked_(box.special != nullptr), view_(box, spec.form) {}

  bool make(std::span<const std::uint8_t> in, Vector<std::uint8_t>& out) {
    Vector<std::uint16_t> constants(kMaxWaveletGroups);
    model_.axes = wavelet_axes(view_);
    model_.constants = constants.data();
    if (!read_wavelet_model(in, model_).ok() || model_.masked != masked_) return false;
    if (!parts_.take_starts(model_.distributions, head_.serving)) return false;
    Reader reader(in);
    if (!parts_.take_exceptions(spec_.dtype, reader, axes().elems())) return false;
    coding::StreamReader streams;
    if (!streams.open(in.subspan(static_cast<std::size_t>(reader.position()))).ok()) return false;
    parts_.take_streams(streams, head_.lanes);
    plans_.add_bands(model_);
    head_.band_count = static_cast<std::uint32_t>(plans_.bands.size());
    if (model_.correction != 0) plans_.add_corrections(model_);
    plans_.add_lifts(axes());
    append(out);
    return true;
  }

 private:
  const WaveletAxes& axes() const { return model_.axes; }

  void append(Vector<std::uint8_t>& out) {
    set_wavelet_places(axes(), view_.strides, view_.special_strides, head_);
    head_.element = element_of(spec_.dtype);
    head_.masked = masked_;
    head_.base = model_.format.base;
    head_.unit = model_.format.step;
    head_.correction = static_cast<double>(model_.correction);
    for (const std::size_t i : {0, 1}) head_.offsets[i] = model_.offsets[i];
    head_.lift_count = static_cast<std::uint32_t>(plans_.lifts.size());
    head_.table_count = static_cast<std::uint32_t>(parts_.starts.size());
    head_.exception_count = static_cast<std::uint32_t>(parts_.exceptions.size());
    std::uint32_t bytes = 0;
    const auto take = [&](std::size_t width) {
      const std::uint32_t begin = bytes;
      bytes += static_cast<std::uint32_t>(kernels::job_aligned(axes().elems() * width));
      return begin;
    };
    head_.values = take(sizeof(double));
    head_.room = take(sizeof(double));
    head_.magnitudes = take(sizeof(std::uint32_t));
    head_.corrections = take(sizeof(std::uint32_t));
    head_.head.work_bytes = bytes;
    JobAppender job(out, sizeof head_);
    head_.bands = job.add(plans_.bands);
    head_.taps = job.add(plans_.taps);
    head_.lifts = job.add(plans_.lifts);
    head_.starts = job.add(parts_.starts);
    head_.exceptions = job.add(parts_.exceptions);
    head_.words = job.add(parts_.words);
    head_.head.bytes = job.bytes();
    job.set_head(head_);
  }

  const ChunkSpec& spec_;
  bool masked_;
  LevelsView view_;
  WaveletModel model_;
  WaveletJob head_;
  WaveletPlans plans_;
  JobParts parts_;
};

}  // namespace

bool append_wavelet_job(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& box,
                        Vector<std::uint8_t>& out) {
  if (!spec.form.wavelet || in.empty() || in[0] != static_cast<std::uint8_t>(Mode::wavelet)) return false;
  return JobMaker(spec, box).make(in.subspan(1), out);
}

}  // namespace quern::codec::stencil
