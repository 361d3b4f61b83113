// Composition root of the device's side: the one place that names the codecs that have kernels.
#include "codecs/lorenzo/lorenzo_device.h"
#include "codecs/stencil/stencil.h"
#include "codecs/stencil/device/stencil_device.h"
#include "codecs/stencil/device/stencil_encode_device.h"
#include "libcompress/cuda/chunk_kernels.h"
#include "libcompress/cuda/jobs/encode_kernels.h"
#include "libcompress/cuda/jobs/decode_kernels.h"

namespace quern::cuda {

const ChunkKernels* builtin_chunk_kernels(std::uint16_t codec_id) {
  return codec_id == codec::lorenzo::kCodecId ? &codec::lorenzo::lorenzo_chunk_kernels() : nullptr;
}

const ChunkKernels* builtin_chunk_kernels(std::string_view codec_name) {
  const ChunkKernels& lorenzo = codec::lorenzo::lorenzo_chunk_kernels();
  return codec_name == lorenzo.info().name ? &lorenzo : nullptr;
}

const ProgramKernels* builtin_program_kernels(std::uint16_t codec_id) {
  return codec_id == codec::stencil::kCodecId ? &codec::stencil::stencil_program_kernels() : nullptr;
}

const ProgramEncodeKernels* builtin_program_encode_kernels(std::uint16_t codec_id,
                                                           std::span<const std::uint8_t> state) {
  return codec_id == codec::stencil::kCodecId ? codec::stencil::stencil_encode_kernels(state) : nullptr;
}

}  // namespace quern::cuda
