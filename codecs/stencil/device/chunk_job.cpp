// The layouts' jobs, and what a lattice changes in them: the element type, the last step, exceptions.
#include "codecs/stencil/device/chunk_job.h"

#include <cstring>

#include "codecs/stencil/device/levels_job.h"
#include "codecs/stencil/device/raster_job.h"
#include "codecs/stencil/device/wavelet_job.h"
#include "codecs/stencil/elements.h"
#include "codecs/stencil/lattice/chunk.h"
#include "kernels/stencil/level_job.h"
#include "kernels/stencil/raster_job.h"
#include "kernels/stencil/wavelet_job.h"
#include "libcompress/core/element_of.h"

namespace quern::codec::stencil {
namespace {

bool append_layout(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& box,
                   Vector<std::uint8_t>& out) {
  return append_levels_job(spec, in, box, out) || append_raster_job(spec, in, box, out) ||
         append_wavelet_job(spec, in, box, out);
}

/// Makes the job of a chunk of integers that of the elements they stand for.
template <class Job>
void put_on_lattice(const Lattice& lattice, DType dtype, std::uint8_t* job) {
  Job head;
  std::memcpy(&head, job, sizeof head);
  head.element = element_of(dtype);
  head.lattice = {lattice.origin, lattice.spacing};
  std::memcpy(job, &head, sizeof head);
  with_element(dtype, [&](auto element) {
    std::uint8_t* at = job + head.exceptions;
    for (std::uint32_t i = 0; i < head.exception_count; ++i, at += sizeof(kernels::JobException)) {
      kernels::JobException exception;
      std::memcpy(&exception, at, sizeof exception);
      const auto number = static_cast<std::int32_t>(static_cast<std::uint32_t>(exception.bits));
      exception.bits = decltype(element)::bits(lattice.value(number));
      std::memcpy(at, &exception, sizeof exception);
    }
    return 0;
  });
}

}  // namespace

bool append_chunk_job(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& box,
                      Vector<std::uint8_t>& out) {
  if (in.empty() || in[0] != static_cast<std::uint8_t>(Mode::lattice)) return append_layout(spec, in, box, out);
  in = in.subspan(1);
  const auto lattice = read_lattice(spec.dtype, in);
  const auto begin = static_cast<std::size_t>(kernels::job_aligned(out.size()));
  if (!lattice.ok() || !append_layout(integer_spec(spec), in, box, out)) return false;
  std::uint8_t* const job = out.data() + begin;
  kernels::JobHead head;
  std::memcpy(&head, job, sizeof head);
  switch (head.kind) {
    case kernels::JobKind::levels: put_on_lattice<kernels::LevelJob>(*lattice, spec.dtype, job); break;
    case kernels::JobKind::raster: put_on_lattice<kernels::RasterJob>(*lattice, spec.dtype, job); break;
    case kernels::JobKind::wavelet: put_on_lattice<kernels::WaveletJob>(*lattice, spec.dtype, job); break;
  }
  return true;
}

}  // namespace quern::codec::stencil
