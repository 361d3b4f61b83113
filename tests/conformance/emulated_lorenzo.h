// lorenzo with every chunk coded a second time by the code that warps run, on the emulator: an ArrayCodec that fails
// the test where bytes, elements or verdicts differ.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <quern/codec.h>

#include "codecs/lorenzo/lorenzo.h"
#include "codecs/lorenzo/plan.h"
#include "codecs/lorenzo/rules.h"
#include "tests/emulator/lane_chunks.h"

namespace quern::testing {

class EmulatedLorenzo final : public ArrayCodec {
 public:
  const CodecInfo& info() const override { return real().info(); }
  bool supports(DType dtype, BoundKind kind) const override { return real().supports(dtype, kind); }

  Result<std::unique_ptr<ChunkEncoder>> plan(const PlanRequest& request) const override {
    QUERN_ASSIGN_OR_RETURN(auto encoder, real().plan(request));
    const auto& cpu = kernels::lorenzo_kernels(kernels::IsaLevel::baseline);
    QUERN_ASSIGN_OR_RETURN(const auto choice, codec::lorenzo::choose(request, nullptr, cpu));
    return std::unique_ptr<ChunkEncoder>(new Encoder(std::move(encoder), choice.rules, chunks_));
  }

  Result<std::unique_ptr<ChunkDecoder>> open(const OpenRequest& request) const override {
    QUERN_ASSIGN_OR_RETURN(auto decoder, real().open(request));
    kernels::ChunkRules rules;
    codec::lorenzo::Layout layout;
    QUERN_RETURN_IF_ERROR(codec::lorenzo::read_params(request.params, request.dtype, request.shape, rules, layout));
    return std::unique_ptr<ChunkDecoder>(new Decoder(std::move(decoder), rules, dtype_bytes(request.dtype), chunks_));
  }

  /// Chunks compared so far.
  std::size_t chunks() const { return chunks_; }

 private:
  static const ArrayCodec& real() { return codec::lorenzo::lorenzo_codec(); }

  class Encoder final : public ChunkEncoder {
   public:
    Encoder(std::unique_ptr<ChunkEncoder> cpu, const kernels::ChunkRules& rules, std::size_t& chunks)
        : cpu_(std::move(cpu)), rules_(rules), chunks_(chunks) {}
    const CodecPlan& plan() const override { return cpu_->plan(); }
    std::size_t max_chunk_bytes() const override { return cpu_->max_chunk_bytes(); }
    std::size_t scratch_bytes() const override { return cpu_->scratch_bytes(); }
    Result<std::size_t> encode(const ConstBox3& in, std::span<std::uint8_t> out,
                               std::span<std::uint8_t> scratch) const override {
      const auto bytes = cpu_->encode(in, out, scratch);
      if (!bytes.ok()) return bytes;
      const auto lanes = encode_chunk_on_lanes(rules_, in.data, {in.extents, in.strides});
      EXPECT_EQ(lanes, std::vector<std::uint8_t>(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(*bytes)));
      ++chunks_;
      return bytes;
    }

   private:
    std::unique_ptr<ChunkEncoder> cpu_;
    kernels::ChunkRules rules_;
    std::size_t& chunks_;
  };

  class Decoder final : public ChunkDecoder {
   public:
    Decoder(std::unique_ptr<ChunkDecoder> cpu, const kernels::ChunkRules& rules, std::size_t width, std::size_t& chunks)
        : cpu_(std::move(cpu)), rules_(rules), width_(width), chunks_(chunks) {}
    const ChunkGrid& grid() const override { return cpu_->grid(); }
    std::size_t scratch_bytes() const override { return cpu_->scratch_bytes(); }
    Status decode(std::span<const std::uint8_t> in, const MutableBox3& out,
                  std::span<std::uint8_t> scratch) const override {
      QUERN_RETURN_IF_ERROR(cpu_->decode(in, out, scratch));
      const std::array<std::uint64_t, 2> dense{out.extents[1] * out.extents[2], out.extents[2]};
      Vector<std::uint8_t> lanes(out.elems() * width_);
      EXPECT_TRUE(decode_chunk_on_lanes(rules_, in, lanes.data(), {out.extents, dense}));
      for (std::uint64_t z = 0; z < out.extents[0]; ++z)
        for (std::uint64_t y = 0; y < out.extents[1]; ++y) {
          const auto* row =
              static_cast<const std::uint8_t*>(out.data) + (z * out.strides[0] + y * out.strides[1]) * width_;
          EXPECT_EQ(std::memcmp(row, lanes.data() + (z * dense[0] + y * dense[1]) * width_, out.extents[2] * width_), 0)
              << "row " << z << ", " << y;
        }
      ++chunks_;
      return {};
    }

   private:
    std::unique_ptr<ChunkDecoder> cpu_;
    kernels::ChunkRules rules_;
    std::size_t width_;
    std::size_t& chunks_;
  };

  mutable std::size_t chunks_ = 0;
};

}  // namespace quern::testing
