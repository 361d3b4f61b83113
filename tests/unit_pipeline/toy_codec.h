// A codec simple enough to be checked by reading it: quantizes to multiples of 2E (or takes the bits as they are), then
// stores differences as varints. It gives up on chunks it cannot bound, which exercises the raw fallback.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <vector>

#include <quern/codec.h>

#include "libcompress/format/reader.h"
#include "libcompress/format/writer.h"

namespace quern::testing {

inline ChunkGrid toy_grid(const Shape& shape, const std::array<std::uint64_t, 3>& chunk) {
  ChunkGrid grid;
  for (std::size_t a = 0; a < shape.rank(); ++a) {
    const std::size_t from_end = shape.rank() - 1 - a;
    grid.extents[from_end >= 2 ? 0 : 2 - from_end] *= shape[a];
  }
  for (std::size_t a = 0; a < 3; ++a) grid.chunk[a] = std::max<std::uint64_t>(1, std::min(chunk[a], grid.extents[a]));
  return grid;
}

/// Element bits to codes and back, for the types the tests use under a bound: f32 and f64; others bit for bit.
class ToyQuantizer {
 public:
  ToyQuantizer(DType dtype, EnforcedBound bound) : dtype_(dtype), bound_(bound) {}

  std::uint64_t bits_of(const std::uint8_t* data) const {
    std::uint64_t bits = 0;
    std::memcpy(&bits, data, dtype_bytes(dtype_));
    return bits;
  }
  bool encode(const std::uint8_t* data, std::uint64_t& code) const {
    const std::uint64_t bits = bits_of(data);
    code = bits;
    if (!lossy()) return true;
    const double x = value(bits);
    const double q = std::nearbyint(x / (2 * bound_.value));
    if (!(std::abs(q) < 1e15)) return false;
    code = static_cast<std::uint64_t>(static_cast<std::int64_t>(q));
    return std::abs(value(decode(code)) - x) <= bound_.value;
  }
  std::uint64_t decode(std::uint64_t code) const {
    if (!lossy()) return code;
    const double y = static_cast<double>(static_cast<std::int64_t>(code)) * (2 * bound_.value);
    if (dtype_ == DType::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(y));
    return std::bit_cast<std::uint64_t>(y);
  }

 private:
  bool lossy() const { return bound_.kind == BoundKind::abs; }
  double value(std::uint64_t bits) const {
    if (dtype_ == DType::f32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    return std::bit_cast<double>(bits);
  }
  DType dtype_;
  EnforcedBound bound_;
};

class ToyEncoder final : public ChunkEncoder {
 public:
  ToyEncoder(const PlanRequest& request, CodecPlan plan)
      : plan_(std::move(plan)), width_(dtype_bytes(request.dtype)), quantizer_(request.dtype, request.bound) {}
  const CodecPlan& plan() const override { return plan_; }
  std::size_t max_chunk_bytes() const override {
    return static_cast<std::size_t>(10 * plan_.grid.chunk[0] * plan_.grid.chunk[1] * plan_.grid.chunk[2]);
  }
  std::size_t scratch_bytes() const override { return 8; }
  Result<std::size_t> encode(const ConstBox3& in, std::span<std::uint8_t> out,
                             std::span<std::uint8_t> scratch) const override {
    if (scratch.size() < scratch_bytes()) return Status(StatusCode::internal, "no scratch");
    FixedWriter w(out);
    std::uint64_t previous = 0;
    for (std::uint64_t i = 0; i < in.extents[0]; ++i)
      for (std::uint64_t j = 0; j < in.extents[1]; ++j)
        for (std::uint64_t k = 0; k < in.extents[2]; ++k) {
          std::uint64_t code = 0;
          const auto* at =
              static_cast<const std::uint8_t*>(in.data) + (i * in.strides[0] + j * in.strides[1] + k) * width_;
          if (!quantizer_.encode(at, code)) return max_chunk_bytes();
          const std::uint64_t d = code - previous;
          w.varint(d << 1 ^ (0 - (d >> 63)));
          previous = code;
        }
    QUERN_RETURN_IF_ERROR(w.status());
    return w.size();
  }

 private:
  CodecPlan plan_;
  std::size_t width_;
  ToyQuantizer quantizer_;
};

class ToyDecoder final : public ChunkDecoder {
 public:
  ToyDecoder(const OpenRequest& request, const ChunkGrid& grid)
      : grid_(grid), width_(dtype_bytes(request.dtype)), quantizer_(request.dtype, request.bound) {}
  const ChunkGrid& grid() const override { return grid_; }
  std::size_t scratch_bytes() const override { return 0; }
  Status decode(std::span<const std::uint8_t> in, const MutableBox3& out, std::span<std::uint8_t>) const override {
    Reader r(in);
    std::uint64_t code = 0;
    for (std::uint64_t i = 0; i < out.extents[0]; ++i)
      for (std::uint64_t j = 0; j < out.extents[1]; ++j)
        for (std::uint64_t k = 0; k < out.extents[2]; ++k) {
          QUERN_ASSIGN_OR_RETURN(const std::uint64_t z, r.varint());
          code += z >> 1 ^ (0 - (z & 1));
          const std::uint64_t bits = quantizer_.decode(code);
          std::memcpy(static_cast<std::uint8_t*>(out.data) + (i * out.strides[0] + j * out.strides[1] + k) * width_,
                      &bits, width_);
        }
    return r.expect_end();
  }

 private:
  ChunkGrid grid_;
  std::size_t width_;
  ToyQuantizer quantizer_;
};

class ToyCodec final : public ArrayCodec {
 public:
  /// `extra_params` makes the header larger than a small array can pay for.
  ToyCodec(const char* name, std::uint16_t id, std::array<std::uint64_t, 3> chunk, bool lossy,
           std::size_t extra_params = 0)
      : info_{id, 1, name, "for tests", lossy ? CodecTier::throughput : CodecTier::archive},
        chunk_(chunk),
        lossy_(lossy),
        extra_params_(extra_params) {}

  const CodecInfo& info() const override { return info_; }
  bool supports(DType dtype, BoundKind kind) const override {
    if (kind == BoundKind::lossless) return !lossy_;
    return lossy_ && kind == BoundKind::abs && (dtype == DType::f32 || dtype == DType::f64);
  }
  Result<std::unique_ptr<ChunkEncoder>> plan(const PlanRequest& request) const override {
    if (!request.settings.empty()) return Status(StatusCode::unknown_setting, "the toy codec has no settings");
    CodecPlan plan;
    plan.grid = toy_grid(request.shape, chunk_);
    Writer w(plan.params);
    for (const std::uint64_t c : chunk_) w.varint(c);
    plan.params.resize(plan.params.size() + extra_params_, 0x5A);
    return std::unique_ptr<ChunkEncoder>(std::make_unique<ToyEncoder>(request, std::move(plan)));
  }
  Result<std::unique_ptr<ChunkDecoder>> open(const OpenRequest& request) const override {
    if (request.version != 1) return Status(StatusCode::unsupported_version, "toy version");
    Reader r(request.params);
    std::array<std::uint64_t, 3> chunk{};
    for (std::uint64_t& c : chunk) {
      QUERN_ASSIGN_OR_RETURN(c, r.varint(1 << 20));
    }
    return std::unique_ptr<ChunkDecoder>(std::make_unique<ToyDecoder>(request, toy_grid(request.shape, chunk)));
  }

 private:
  CodecInfo info_;
  std::array<std::uint64_t, 3> chunk_;
  bool lossy_;
  std::size_t extra_params_;
};

}  // namespace quern::testing
