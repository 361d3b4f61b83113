// One chunk to bytes, without the plan around it.
#pragma once

#include <gtest/gtest.h>

#include "codecs/stencil/chunk.h"
#include "tests/unit_stencil/helpers.h"

namespace quern::codec::stencil::test {

/// What chunks up to that size are encoded by, with the best kernels and as the codec does by default.
inline EncodeSpec encode_spec(DType dtype, const std::array<std::uint64_t, 3>& most, double bound,
                              const LevelsForm& form) {
  EncodeSpec spec{{dtype, most, &kernels::stencil_kernels(kernels::best_isa()), form}, {}};
  spec.bound = bound;
  return spec;
}

/// What encode_chunk makes of a chunk; nothing when it fails.
inline Bytes encoded_chunk(const EncodeSpec& spec, const ConstBox3& box) {
  Bytes stored(max_chunk_bytes(spec));
  const Scratch scratch(encode_scratch_bytes(spec));
  const auto size = encode_chunk(spec, box, stored, scratch.span());
  EXPECT_TRUE(size.ok());
  stored.resize(size.ok() ? *size : 0);
  return stored;
}

}  // namespace quern::codec::stencil::test
